/**
 * Names with an expiry that every node must know, such as ended logins. Each node keeps them in memory too, so they
 * survive the loss of the store's data. A node reads them at its start and once a minute, receives new ones, and writes
 * back those that the store has lost.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import type * as Scope from "effect/Scope"
import type { StoreShape, StoreUnavailable } from "../cluster/store/StoreShape.ts"
import { retryUntilDone } from "./clock/retry.ts"

/** A name with its expiry, in Unix milliseconds of the store. */
export type Mark = readonly [name: string, until: number]

/** A node's own collection of names of a kind; its owner bounds it. */
export interface MarkKeeper {
  readonly known: (now: number) => ReadonlyArray<Mark>
  readonly take: (mark: Mark, now: number) => void
}

export interface Marks {
  /** Adds a name for all nodes, this one included. Returns false while the store lacks it; writing is retried. */
  readonly mark: (mark: Mark) => Effect.Effect<boolean>
  readonly find: (name: string) => Effect.Effect<boolean, StoreUnavailable>
}

/** Maximum number of names that a node reads, latest expiry first. */
const mostRead = 10_000
const batch = 256

/** The marks of a kind. `failed` runs when a write fails. */
export const makeMarks = Effect.fnUntraced(function*(
  store: Pick<StoreShape, "run" | "send" | "listen" | "membership" | "clockOffset">,
  kind: string,
  { known, take }: MarkKeeper,
  failed: Effect.Effect<void>
): Effect.fn.Return<Marks, never, Scope.Scope> {
  const place = `gw:{main}:marks:${kind}`
  const clock = yield* Clock.Clock
  const fork = yield* FiberSet.makeRuntime<never, void, never>()
  const now = () => clock.currentTimeMillisUnsafe() + store.clockOffset()

  const write = (marks: ReadonlyArray<Mark>, notifies: boolean) =>
    store.run("mark", kind, notifies ? "1" : "0", JSON.stringify(marks))

  const agree = Effect.gen(function*() {
    const reply = yield* store.send("ZRANGE", place, "0", String(mostRead - 1), "REV", "WITHSCORES")
    const items = Array.isArray(reply) ? reply.map(String) : []
    const there = new Map<string, number>()
    for (let at = 0; at + 1 < items.length; at += 2) there.set(items[at]!, Number(items[at + 1]))
    const missing = known(now()).filter(([name, until]) => (there.get(name) ?? 0) < until)
    for (const mark of there) take(mark, now())
    for (let at = 0; at < missing.length; at += batch) yield* write(missing.slice(at, at + batch), false)
  })
  const agreeing = yield* retryUntilDone(agree, () => failed)
  const agreed = Effect.asVoid(agreeing)

  store.membership.bringsBack(() => agree)
  store.listen((event) => {
    if (event._tag === "up") fork(agreed)
    else if (event._tag === "mark" && event.kind === kind) take([event.name, event.until], now())
  })
  yield* Effect.ignore(agree)
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep("1 minute"), Effect.ignore(agree))))

  return {
    mark: (mark) =>
      Effect.suspend(() => {
        take(mark, now())
        // After a failure, synchronization writes all known names.
        return Effect.uninterruptible(Effect.matchEffect(write([mark], true), {
          onFailure: () => agreeing,
          onSuccess: () => Effect.succeed(true)
        }))
      }),
    find: (name) => Effect.map(store.send("ZSCORE", place, name), (until) => until !== null && Number(until) > now())
  }
})
