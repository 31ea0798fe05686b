import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { UpstreamTests } from "../../src/admin/upstreams/UpstreamTests.ts"
import {
  complete,
  ConfigStore,
  configuredUpstream,
  fixedUpstream,
  gatewayServices,
  makeDriver,
  Reply,
  undiciExchanges,
  UpstreamEvent,
  Upstreams
} from "../../src/index.ts"
import { startOpenAiServer, streamed } from "../support/openaiServer.ts"

const mine = makeDriver({
  complete: () =>
    Effect.succeed({
      id: "x",
      events: Stream.fromArray([UpstreamEvent.UpstreamText("mine"), UpstreamEvent.UpstreamFinish("stop")])
    })
})

describe("an app with an upstream of its own", () => {
  it.live("reaches the upstreams of the configuration beside it", () =>
    Effect.gen(function*() {
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startOpenAiServer()),
        (server) => Effect.promise(server.stop)
      )
      server.answer(() => streamed({ content: "named" }))
      const upstreams = { gpu: { driver: "openai" as const, base_url: server.baseUrl, models: { qwen3: "q" } } }
      const Gateway = gatewayServices(
        Upstreams.layerWith(mine).pipe(Layer.provide(configuredUpstream), Layer.provide(undiciExchanges))
      ).pipe(
        Layer.provideMerge(ConfigStore.layerMemory({ keys: ["k"], upstream: {}, upstreams })),
        Layer.provide(NodeServices.layer)
      )
      const answer = (model: string) => Effect.map(complete({ model, prompt: "hi" }), Reply.replyText)
      const answers = yield* Effect.provide(Effect.all([answer("upstream-chat"), answer("qwen3")]), Gateway)
      assert.deepStrictEqual(answers, ["mine", "named"])
    }))

  it.effect("tests no other upstream with it, whose key its driver would get", () =>
    Effect.gen(function*() {
      const verified: Array<string | undefined> = []
      const driver = makeDriver({
        complete: () => Effect.never,
        verify: (token) => Effect.sync(() => void verified.push(token))
      })
      const upstreams = { gpu: { driver: "openai" as const, base_url: "http://127.0.0.1:9/v1" } }
      const layer = Layer.provideMerge(
        UpstreamTests.layer,
        Layer.merge(fixedUpstream(driver), ConfigStore.layerMemory({ keys: ["k"], upstream: {}, upstreams }))
      )
      const tested = yield* Effect.provide(
        Effect.gen(function*() {
          const tests = yield* UpstreamTests
          const [own, gpu] = (yield* ConfigStore).now().upstreams.values()
          const key = { login: undefined, key: "key-of-gpu" }
          return [yield* tests.test(own!, { login: undefined, key: undefined }), yield* tests.test(gpu!, key)]
        }),
        Layer.provide(layer, NodeServices.layer)
      )
      assert.deepStrictEqual(tested.map(({ success }) => success), [true, false])
      assert.deepStrictEqual(verified, [undefined])
    }))
})
