/** The scripted server on the Responses API, alone and behind a gateway with this driver. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { HttpClientRequest } from "effect/http"
import { GatewayTest } from "../../src/testing/GatewayTest.ts"
import { OpenAiServer, type ScriptedAnswer } from "../../src/testing/OpenAiServer.ts"
import { parseFrames } from "../support/sse.ts"

const Gateway = Layer.unwrap(
  Effect.map(OpenAiServer, ({ baseUrl }) =>
    GatewayTest.layerServer({
      config: {
        accounts: [{ token: "a-key" }],
        upstream: { driver: "responses", base_url: baseUrl, models: { small: "s" } }
      }
    }))
)

interface Said {
  readonly status: string
  readonly output: ReadonlyArray<{ readonly type: string; readonly [field: string]: unknown }>
  readonly output_text?: string
  readonly incomplete_details?: unknown
  readonly error?: { readonly code: string } | null
}

const post = (path: string, body: object) =>
  Effect.flatMap(
    GatewayTest,
    ({ client }) =>
      client.execute(HttpClientRequest.post(path).pipe(HttpClientRequest.bodyJsonUnsafe({ model: "small", ...body })))
  )

/** The reply to a request, whole. */
const whole = Effect.fnUntraced(function*(answer: ScriptedAnswer, body: object = { input: "Hi" }) {
  const server = yield* OpenAiServer
  yield* server.reply(answer)
  const response = yield* post("/v1/responses", body)
  return { status: response.status, body: (yield* response.json) as unknown as Said }
})

/** The events of a reply. */
const streamed = Effect.fnUntraced(function*(answer: ScriptedAnswer) {
  const server = yield* OpenAiServer
  yield* server.reply(answer)
  const response = yield* post("/v1/responses", { input: "Hi", stream: true })
  const data = parseFrames(yield* response.text).map((frame) => frame.data).filter((text) => text !== "[DONE]")
  return data.map((text) => JSON.parse(text) as { type: string; delta?: string; response?: Said })
})

const trigger = { input: [{ role: "user", content: "Hi" }, { type: "compaction_trigger" }] }

layer(Layer.provideMerge(Gateway, OpenAiServer.layer))("the scripted server", (it) => {
  it.effect("says a text, thinking with a seal and calls by the Responses API", () =>
    Effect.gen(function*() {
      const reply = {
        reasoning: ["Hm", "."],
        seal: "sealed-thinking",
        text: ["It is ", "there."],
        calls: [{ name: "look", arguments: { at: "it" } }]
      }
      const { body } = yield* whole(reply)
      assert.deepStrictEqual(body.output.map(({ type }) => type), ["reasoning", "message", "function_call"])
      const [thinking, , call] = body.output
      assert.deepInclude(thinking, {
        encrypted_content: "sealed-thinking",
        summary: [{ type: "summary_text", text: "Hm." }]
      })
      assert.deepInclude(call, { name: "look", arguments: `{"at":"it"}` })
      const events = yield* streamed(reply)
      const deltas = (type: string) => events.filter((event) => event.type === type).map(({ delta }) => delta)
      assert.deepStrictEqual(deltas("response.output_text.delta"), ["It is ", "there."])
      assert.deepStrictEqual(deltas("response.reasoning_summary_text.delta"), ["Hm", "."])
      assert.strictEqual(events.at(-1)!.response?.status, "completed")
      const server = yield* OpenAiServer
      assert.deepStrictEqual((yield* server.requests).map(({ path }) => path), ["/v1/responses"])
    }))

  it.effect("is cut off, fails, breaks and refuses", () =>
    Effect.gen(function*() {
      const cut = yield* whole({ text: "one two", finish: "length" })
      assert.deepInclude(cut.body, { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } })
      const failed = yield* streamed({ text: "one", fails: { code: "server_error", message: "It broke" } })
      assert.strictEqual(failed.at(-1)!.response?.error?.code, "server_error")
      const broken = yield* streamed({ text: "one", breaks: "reset" })
      assert.strictEqual(broken.at(-1)!.response?.error?.code, "upstream_error")
      assert.include(broken.map(({ type }) => type), "response.output_text.delta")
      assert.strictEqual((yield* whole({ status: 400 })).status, 400)
    }))

  it.effect("compacts where a request asks for it", () =>
    Effect.gen(function*() {
      const { body } = yield* whole({ seal: "sealed-summary" }, trigger)
      assert.deepInclude(body.output, { id: "cmp_1", type: "compaction", encrypted_content: "sealed-summary" })
      assert.lengthOf(body.output, 1)
      const server = yield* OpenAiServer
      const response = yield* Effect.promise(() =>
        fetch(`${server.baseUrl}/responses/compact`, { method: "POST", body: JSON.stringify(trigger) })
      )
      const compacted = (yield* Effect.promise(() => response.json())) as Said
      assert.deepStrictEqual(compacted.output.map(({ type }) => type ?? "message"), ["message", "compaction"])
    }))
})
