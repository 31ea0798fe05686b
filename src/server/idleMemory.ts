/**
 * Returns memory to the machine after a burst of requests. V8 collects when its heap has to grow, so a process that has nothing to do
 * keeps what the burst left behind.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Lifecycle } from "./Lifecycle.ts"

/** Milliseconds between two looks; an idle gateway has had no request between two of them. */
const lookEvery = 15_000

/** Requests since the last collection that are worth one. It stops the process for about 0.1 s. */
const leastRequests = 1_000

type Collect = (
  options: { readonly type: "major"; readonly execution?: "async"; readonly flavor?: "last-resort" }
) => unknown

let collect: Collect | undefined

/** Collects beside the event loop, and then returns the empty pages to the machine. */
const collectAll = Effect.promise(async () => {
  if (collect === undefined) {
    setFlagsFromString("--expose-gc")
    collect = runInNewContext("gc") as Collect
  }
  // Objects with finalizers are free after the second one.
  await collect({ type: "major", execution: "async" })
  await collect({ type: "major", execution: "async" })
  collect({ type: "major", flavor: "last-resort" })
})

/** Collects the garbage of the process. */
export const CurrentCollector = Context.Reference<Effect.Effect<void>>("model-gateway/server/CurrentCollector", {
  defaultValue: () => collectAll
})

/** Collects once after each burst, when no request is open and none has come for 15 to 30 seconds. Runs in the scope. */
export const collectWhenIdle = Effect.gen(function*() {
  const lifecycle = yield* Lifecycle
  const collectAll = yield* CurrentCollector
  let seen = 0
  let collected = 0
  const look = Effect.suspend(() => {
    const begun = lifecycle.begun()
    const isIdle = begun === seen && lifecycle.active() === 0
    seen = begun
    if (!isIdle || begun - collected < leastRequests) return Effect.void
    collected = begun
    return collectAll
  })
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(lookEvery), look)))
})
