import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import {
  complete,
  ConfigStore,
  Deadlines,
  type Driver,
  Exchanges,
  gatewayServices,
  makeEmbeddedDriver,
  makeGenerateDriver,
  makeMessagesDriver,
  makeOpenAiDriver,
  makeResponsesDriver,
  makeSessionDriver,
  Reply,
  undiciExchanges,
  Upstreams
} from "../../src/index.ts"
import { said, startFarm } from "../several/support.ts"

const limits = { firstByte: 5_000, silence: 5_000 }
const common = { models: [], furtherModels: [], limits }

/** What an app makes of a driver: an upstream that serves one completion. */
const answerOf = (driver: Effect.Effect<Driver, never, Exchanges | Deadlines>) => {
  const Mine = Layer.unwrap(Effect.map(driver, (driver) => Upstreams.layerOf(driver)))
  const Gateway = gatewayServices(Layer.provide(Mine, undiciExchanges)).pipe(
    Layer.provideMerge(ConfigStore.layerMemory({ accounts: [{ token: "t" }] })),
    Layer.provide(NodeServices.layer)
  )
  return complete({ model: "upstream-chat", prompt: "Hello" }).pipe(
    Effect.map(Reply.replyText),
    Effect.provide(Gateway)
  )
}

describe("a driver that an app makes itself", () => {
  const makers = {
    openai: (exchanges: Exchanges["Service"], root: string) =>
      makeOpenAiDriver(exchanges, { ...common, baseUrl: `${root}/v1`, tools: "native" }),
    responses: (exchanges: Exchanges["Service"], root: string) =>
      makeResponsesDriver(exchanges, { ...common, baseUrl: `${root}/v1` }),
    messages: (exchanges: Exchanges["Service"], root: string) =>
      makeMessagesDriver(exchanges, { ...common, baseUrl: root }),
    generate: (exchanges: Exchanges["Service"], root: string) =>
      makeGenerateDriver(exchanges, { ...common, baseUrl: root })
  }

  it.live.each(Object.entries(makers))("speaks to a server: %s", ([name, make]) =>
    Effect.gen(function*() {
      const farm = yield* Effect.acquireRelease(Effect.promise(startFarm), (farm) => Effect.promise(farm.stop))
      farm.answer(name, (request) => said("Hello", request))
      const root = `${farm.server.baseUrl.replace("/v1", "")}/${name}`
      assert.strictEqual(yield* answerOf(Effect.map(Exchanges, (exchanges) => make(exchanges, root))), "Hello")
    }).pipe(Effect.scoped))

  it.live("answers by itself: embedded", () =>
    Effect.gen(function*() {
      assert.include(yield* answerOf(makeEmbeddedDriver({ furtherModels: [], limits })), "“Hello”")
    }))

  it.live("has accounts to log in: session", () =>
    Effect.gen(function*() {
      const exchanges = yield* Exchanges
      const driver = makeSessionDriver(exchanges, { baseUrl: "http://127.0.0.1:9", furtherModels: [], limits })
      assert.isDefined(driver.capabilities.login)
    }).pipe(Effect.provide(Layer.provide(undiciExchanges, [ConfigStore.layerMemory(), Deadlines.layer]))))
})
