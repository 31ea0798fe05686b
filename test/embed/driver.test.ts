/** A driver of an embedder's own that does not keep to the contract. */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Layer, Stream } from "effect"
import {
  complete,
  ConfigStore,
  fixedUpstream,
  gatewayServices,
  makeDriver,
  UpstreamEvent,
  UpstreamFailure
} from "../../src/index.ts"
import type { Driver } from "../../src/index.ts"

/** What a failure looks like that no compiler has seen. */
const anything = (value: unknown): Effect.Effect<never, UpstreamFailure> =>
  Effect.suspend(() => Effect.failCause(Cause.fail(value as UpstreamFailure)))

const ask = (driverComplete: Driver["complete"]) =>
  Effect.exit(complete({ model: "upstream-chat", prompt: "Hello" })).pipe(
    Effect.provide(
      gatewayServices(fixedUpstream(makeDriver({ name: "mine", complete: driverComplete }))).pipe(
        Layer.provideMerge(ConfigStore.layerMemory()),
        Layer.provide(NodeServices.layer)
      )
    )
  )

const words = /The driver "mine" failed with what is no UpstreamFailure; make one with new UpstreamFailure/

describe("a driver's failure that is none", () => {
  it.effect("dies with words, before a reply and within one", () =>
    Effect.gen(function*() {
      const early = yield* ask(() => anything({ message: "plain" }))
      const late = yield* ask(() =>
        Effect.succeed({
          id: "x",
          events: Stream.concat(
            Stream.succeed<UpstreamEvent.UpstreamEvent>(UpstreamEvent.UpstreamText("Hel")),
            Stream.fromEffect(anything("a string"))
          )
        })
      )
      for (const exit of [early, late]) {
        assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
        if (Exit.isFailure(exit)) assert.match(Cause.pretty(exit.cause), words)
      }
    }))

  it.effect("that is one stays what it is", () =>
    Effect.gen(function*() {
      const exit = yield* ask(() =>
        Effect.fail(new UpstreamFailure({ phase: "completion", kind: "refused", status: 400, message: "no" }))
      )
      assert.isTrue(Exit.isFailure(exit) && !Cause.hasDies(exit.cause))
    }))
})

describe("a configuration in memory", () => {
  it("is checked by the compiler", () => {
    ConfigStore.layerMemory({ keys: ["k"], runtime: { account_max_inflight: 2 }, upstream: { driver: "embedded" } })
    // @ts-expect-error A misspelt field does not compile.
    ConfigStore.layerMemory({ runtime: { acount_max_inflight: 2 } })
    // @ts-expect-error Nor does a misspelt group.
    ConfigStore.layerMemory({ upstreams: {} })
    // @ts-expect-error Nor a wrong value.
    ConfigStore.layerMemory({ upstream: { driver: "other" } })
  })
})
