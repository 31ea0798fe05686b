/** The gateway for tests, as those use it who test what stands before it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { HttpClientRequest } from "effect/http"
import { TestClock } from "effect/testing"
import OpenAI from "openai"
import { GatewayTest } from "../../src/testing.ts"

const chat = (prompt: string, stream = false) =>
  HttpClientRequest.post("/v1/chat/completions").pipe(
    HttpClientRequest.bodyJsonUnsafe({ model: "upstream-chat", stream, messages: [{ role: "user", content: prompt }] })
  )

interface Answer {
  readonly choices?: ReadonlyArray<{ readonly message: { readonly content: string } }>
  readonly error?: { readonly code: string }
}

const ask = Effect.fnUntraced(function*(prompt: string) {
  const { client } = yield* GatewayTest
  const response = yield* client.execute(chat(prompt))
  const body = (yield* response.json) as Answer
  return { status: response.status, text: body.choices?.[0]?.message.content, code: body.error?.code }
})

describe.each([["without a socket", GatewayTest.layer], ["on sockets", GatewayTest.layerServer]] as const)(
  "the gateway for tests, %s",
  (_, layer) => {
    it.effect("answers from the reference upstream, which reports its requests", () =>
      Effect.gen(function*() {
        const { upstream } = yield* GatewayTest
        assert.deepStrictEqual(yield* ask("!say Hello"), { status: 200, text: "Hello", code: undefined })
        yield* upstream.reply({ script: "!say ordered" })
        assert.strictEqual((yield* ask("Hi")).text, "ordered")
        const { calls, prompts } = yield* upstream.report
        assert.deepInclude(calls, { login: 1, completion: 2 })
        assert.include(prompts[1], "Hi")
      }).pipe(Effect.provide(layer())))

    it.effect("fails as ordered and retries without a delay", () =>
      Effect.gen(function*() {
        const { upstream } = yield* GatewayTest
        yield* upstream.fail({ name: "trouble" })
        assert.strictEqual((yield* ask("!say again")).text, "again")
        yield* upstream.fail({ name: "rate-limited", retryAfter: 7, times: 100 })
        assert.deepInclude(yield* ask("!say no"), { status: 429, code: "upstream_rate_limited" })
        // Nobody waits for an account that comes back: the time does not pass.
      }).pipe(Effect.provide(layer({ config: { upstream: { timeouts: { queue: 0 } } } }))))

    it.effect("uses the given configuration and serves vendors' SDKs", () =>
      Effect.gen(function*() {
        const { fetch, key, url } = yield* GatewayTest
        const openai = new OpenAI({ apiKey: key, baseURL: `${url}/v1`, fetch, maxRetries: 0 })
        const stream = openai.chat.completions.stream({
          model: "mine",
          messages: [{ role: "user", content: "!say streamed words" }]
        })
        const { choices } = yield* Effect.promise(() => stream.finalChatCompletion())
        assert.strictEqual(choices[0]?.message.content, "streamed words")
        assert.strictEqual(key, "a-key")
      }).pipe(Effect.provide(layer({ config: { keys: ["a-key"], model_aliases: { mine: "upstream-chat" } } }))))

    it.effect("accepts the admin key", () =>
      Effect.gen(function*() {
        const { adminKey, client } = yield* GatewayTest
        const request = HttpClientRequest.get("/admin/queue/status").pipe(HttpClientRequest.bearerToken(adminKey))
        assert.strictEqual((yield* client.execute(request)).status, 200)
      }).pipe(Effect.provide(layer({ adminKey: "mine" }))))
  }
)

describe("the gateway for tests", () => {
  it.effect("follows the test's clock: a silent upstream times out when the test advances it", () =>
    Effect.gen(function*() {
      const { upstream } = yield* GatewayTest
      yield* upstream.fail({ name: "hang-before-headers", times: 100 })
      const asked = yield* Effect.forkChild(ask("!say late"))
      for (let silences = 1; asked.pollUnsafe() === undefined; silences++) {
        yield* Effect.raceFirst(upstream.until((report) => report.silences >= silences), Fiber.await(asked))
        yield* TestClock.adjust("30 seconds")
      }
      assert.deepInclude(yield* Fiber.join(asked), { status: 503, code: "upstream_timeout" })
    }).pipe(Effect.provide(GatewayTest.layer())))

  it.effect("refuses an invalid configuration", () =>
    ask("!say no").pipe(
      Effect.provide(GatewayTest.layer({ config: { runtime: { account_max_inflight: 0 } } })),
      Effect.flip,
      Effect.map((error) => assert.deepInclude(error, { _tag: "ConfigInvalid" }))
    ))
})
