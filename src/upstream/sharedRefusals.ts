/**
 * What the refusals of servers have shown, for all nodes of a store: what one node learns, the others do before they send.
 *
 * Each fact is a mark (`config/marks.ts`), encrypted, which expires with it. A fact that a success has contradicted has another mark, which
 * ends it. Facts belong to the upstream as it is configured: after a change of it they have no effect.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Store } from "../cluster/store/Store.ts"
import type { StoreShape } from "../cluster/store/StoreShape.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import { makeMarks, type Mark } from "../config/marks.ts"
import { settingsOf } from "../config/upstreams.ts"
import { contracts } from "../contracts/contracts.ts"
import { RefusedPart } from "../domain/refusedParts.ts"
import { monotonicMillis } from "../domain/time.ts"
import type { FamilyName } from "../domain/VendorFields.ts"
import type { Fact, LearnedRefusals } from "./server/LearnedRefusals.ts"
import { Upstreams } from "./Upstreams.ts"

const kind = "refusals"

/** Marks that a node knows; one more takes the place of the oldest. */
const mostKnown = 10_000

/** Milliseconds by which the clocks of nodes may differ. */
const clockTolerance = 1_000

/** Removes the oldest entries that are over, or too many. */
const trim = <A>(entries: Map<string, A>, isOver: (entry: A) => boolean): void => {
  for (const [oldest, entry] of entries) {
    if (!isOver(entry) && entries.size <= mostKnown) return
    entries.delete(oldest)
  }
}

const contractNames = Object.keys(contracts) as ReadonlyArray<FamilyName>

/** A fact as nodes write it. `server`: the upstream as it is configured. */
const Shared = Schema.Struct({
  server: Schema.String,
  contract: Schema.Literals(contractNames),
  model: Schema.String,
  part: RefusedPart,
  words: Schema.String,
  perCharacter: Schema.Finite,
  isOver: Schema.Boolean
})

const read = Schema.decodeUnknownOption(Schema.fromJsonString(Shared))

/** Makes the function that joins what is known of a server, by the text of its configuration, to that of the other nodes. */
export const makeSharedRefusals = Effect.fnUntraced(function*(
  store: Pick<StoreShape, "run" | "send" | "listen" | "membership" | "clockOffset" | "secrets">
): Effect.fn.Return<
  (servers: ReadonlyMap<string, LearnedRefusals>) => void,
  never,
  Scope.Scope
> {
  const clock = yield* Clock.Clock
  const fork = yield* FiberSet.makeRuntime<never, unknown, never>()
  const known = new Map<string, { readonly until: number; readonly shared: typeof Shared.Type }>()
  /** Until when the facts lasted that a success has contradicted. */
  const ended = new Map<string, number>()
  let joined: ReadonlyMap<string, LearnedRefusals> = new Map()
  /** Milliseconds from the monotonic clock to the store's. */
  const distance = () => clock.currentTimeMillisUnsafe() + store.clockOffset() - monotonicMillis(clock)

  const apply = (shared: typeof Shared.Type, until: number) => {
    const { isOver, server, ...fact } = shared
    const learned = joined.get(server)
    const name = JSON.stringify([server, fact.contract, fact.model, fact.part])
    if (isOver) {
      ended.set(name, until + clockTolerance)
      learned?.drop(fact)
    } else if ((ended.get(name) ?? 0) < until) learned?.put({ ...fact, until: until - distance() })
  }

  const take = ([name, until]: Mark, now: number) => {
    if (until <= now || known.has(name)) return
    const shared = Option.flatMap(Option.fromUndefinedOr(store.secrets.open(kind, name)), read)
    if (Option.isNone(shared)) return
    known.set(name, { until, shared: shared.value })
    trim(known, ({ until }) => until <= now)
    apply(shared.value, until)
    trim(ended, (until) => until <= now)
  }

  const marks = yield* makeMarks(
    store,
    kind,
    {
      known: (now) => Array.from(known, ([name, { until }]): Mark => [name, until]).filter(([, until]) => until > now),
      take
    },
    Effect.void
  )

  const write = (server: string) => ({ contract, model, part, perCharacter, until, words }: Fact, isOver: boolean) => {
    const shared: typeof Shared.Type = { server, contract, model, part, words, perCharacter, isOver }
    fork(marks.mark([store.secrets.seal(kind, JSON.stringify(shared)), Math.ceil(until + distance())]))
  }

  return (servers) => {
    joined = new Map(Array.from(servers, ([text, learned]) => [store.secrets.nameOf(text), learned]))
    for (const [server, learned] of joined) learned.listen(write(server))
    for (const { shared, until } of known.values()) apply(shared, until)
  }
})

const haveSameUpstreams = (one: GatewayConfig, other: GatewayConfig): boolean => one.upstreams === other.upstreams

/** Shares what the drivers of the configured upstreams learn. */
export const layerSharedRefusals: Layer.Layer<never, never, ConfigStore | Store | Upstreams> = Layer.effectDiscard(
  Effect.gen(function*() {
    const config = yield* ConfigStore
    const upstreams = yield* Upstreams
    const join = yield* makeSharedRefusals(yield* Store)
    const follow = Effect.map(upstreams.all, (drivers) => {
      const servers = Array.from(config.now().upstreams, ([name, upstream]) => {
        const learned = drivers.get(name)?.capabilities.refusals
        return learned === undefined ? [] : [[JSON.stringify(settingsOf(upstream)), learned] as const]
      })
      join(new Map(servers.flat()))
    })
    yield* config.changes.pipe(
      Stream.changesWith(haveSameUpstreams),
      Stream.runForEach(() => follow),
      Effect.forkScoped
    )
  })
)
