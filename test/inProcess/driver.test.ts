/** A driver of an embedder's own that does not keep to the contract. */
import { NodeHttpClient, NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, Layer, Stream } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import {
  complete,
  ConfigStore,
  type Driver,
  fixedUpstream,
  gatewayServices,
  makeDriver,
  mountGateway,
  UpstreamEvent,
  UpstreamFailure,
  UsageStore
} from "../../src/index.ts"
import { measuresOf } from "../../src/usage/UsageEntry.ts"

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

const words = /The driver "mine" must fail with an UpstreamFailure; make one with new UpstreamFailure/

describe("makeDriver: a failure", () => {
  it.effect("that is not an UpstreamFailure is a defect that names the driver, before a reply and within one", () =>
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

  it.effect("that is an UpstreamFailure stays unchanged", () =>
    Effect.gen(function*() {
      const exit = yield* ask(() =>
        Effect.fail(new UpstreamFailure({ phase: "completion", kind: "refused", status: 400, message: "no" }))
      )
      assert.isTrue(Exit.isFailure(exit) && !Cause.hasDies(exit.cause))
    }))
})

describe("makeDriver: a driver with few members", () => {
  const reply: Effect.Success<ReturnType<Driver["complete"]>> = {
    id: "x",
    events: Stream.make<Array<UpstreamEvent.UpstreamEvent>>(
      UpstreamEvent.UpstreamText("Hello"),
      UpstreamEvent.UpstreamFinish("stop")
    )
  }

  it.effect("has defaults for members that are undefined", () =>
    Effect.gen(function*() {
      const driver = makeDriver({
        name: undefined,
        isAnonymous: undefined,
        sends: undefined,
        models: undefined,
        secrets: undefined,
        verify: undefined,
        capabilities: undefined,
        complete: () => Effect.succeed(reply)
      })
      assert.deepInclude(driver, { name: "custom", models: [] })
      assert.isTrue(driver.isAnonymous)
      yield* driver.verify(undefined)
      assert.deepStrictEqual([driver.capabilities, driver.secrets], [{}, []])
    }))

  it.effect("may be an instance of a class; its methods keep their state", () =>
    Effect.gen(function*() {
      class Mine {
        readonly #checked: Array<string | undefined> = []
        verify(token: string | undefined) {
          return Effect.sync(() => void this.#checked.push(token))
        }
        readonly capabilities = {
          login: () => Effect.sync(() => `token after ${this.#checked.join()}`)
        }
        complete() {
          return Effect.succeed(reply)
        }
      }
      const driver = makeDriver(new Mine())
      yield* driver.verify("token")
      const login = { email: "a@b.example", mobile: undefined, password: "p" }
      assert.strictEqual(yield* driver.capabilities.login!(login), "token after token")
    }))

  it.effect("serves the other models of the configuration", () =>
    Effect.gen(function*() {
      const asked: Array<string> = []
      const upstream = fixedUpstream(makeDriver({
        complete: ({ model }) => Effect.sync(() => (asked.push(model.id), reply))
      }))
      yield* complete({ model: "further", prompt: "Hello" }).pipe(Effect.provide(
        gatewayServices(upstream).pipe(
          Layer.provideMerge(ConfigStore.layerMemory({ upstream: { models: { further: "further" } } })),
          Layer.provide(NodeServices.layer)
        )
      ))
      assert.deepEqual(asked, ["further"])
    }))
})

describe("makeDriver: the usage of a request", () => {
  const waits = (called: Deferred.Deferred<void>) => Effect.andThen(Deferred.succeed(called, undefined), Effect.never)
  const services = (driver: Driver) =>
    gatewayServices(fixedUpstream(driver)).pipe(
      Layer.provideMerge(UsageStore.layerMemory),
      Layer.provideMerge(ConfigStore.layerMemory({ keys: ["key"], embeddings: { provider: "upstream" } })),
      Layer.provide(NodeServices.layer)
    )
  const promptTokens = Effect.gen(function*() {
    const store = yield* UsageStore
    const { totals } = yield* store.query({
      from: 0,
      to: Number.MAX_SAFE_INTEGER,
      by: [],
      only: {},
      limit: 1,
      labels: undefined
    })
    return measuresOf(totals).prompt_tokens
  })

  it.effect("has the prompt's tokens if the app leaves before the reply begins", () =>
    Effect.gen(function*() {
      const called = yield* Deferred.make<void>()
      yield* Effect.gen(function*() {
        const asking = yield* Effect.forkChild(complete({ model: "upstream-chat", prompt: "Hello to all of you" }))
        yield* Deferred.await(called)
        yield* Fiber.interrupt(asking)
        assert.isAbove(yield* promptTokens, 0)
      }).pipe(Effect.provide(services(makeDriver({ complete: () => waits(called) }))))
    }))

  it.effect("has the estimated tokens of inputs that the driver does not count", () =>
    Effect.gen(function*() {
      const driver = makeDriver({
        complete: () => Effect.never,
        capabilities: {
          embed: ({ inputs }) => Effect.succeed({ vectors: inputs.map(() => [1]), tokens: undefined })
        }
      })
      const { handler } = yield* Effect.acquireRelease(
        Effect.sync(() =>
          HttpRouter.toWebHandler(
            mountGateway("/ai").pipe(
              Layer.provide(services(driver)),
              Layer.provide([NodeHttpClient.layerUndici, NodeServices.layer, HttpServer.layerServices])
            ),
            { disableLogger: true }
          )
        ),
        ({ dispose }) => Effect.promise(dispose)
      )
      const response = yield* Effect.promise(() =>
        handler(
          new Request("http://app.test/ai/v1/embeddings", {
            method: "POST",
            headers: { authorization: "Bearer key" },
            body: JSON.stringify({ model: "upstream-chat", input: "some words" })
          })
        )
      )
      const { usage } = (yield* Effect.promise(() => response.json())) as { usage: { prompt_tokens: number } }
      assert.isAbove(usage.prompt_tokens, 0)
    }))
})

describe("ConfigStore.layerMemory: a configuration", () => {
  it("is checked by the compiler", () => {
    ConfigStore.layerMemory({ keys: ["k"], runtime: { account_max_inflight: 2 }, upstream: { driver: "embedded" } })
    // @ts-expect-error A misspelt field does not compile.
    ConfigStore.layerMemory({ runtime: { acount_max_inflight: 2 } })
    // @ts-expect-error Nor does a misspelt group.
    ConfigStore.layerMemory({ upstrem: {} })
    // @ts-expect-error Nor a wrong value.
    ConfigStore.layerMemory({ upstream: { driver: "other" } })
  })
})
