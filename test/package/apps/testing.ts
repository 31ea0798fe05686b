/** An app's own tests: the whole gateway over a scripted upstream. */
import { Effect, Layer } from "effect"
import { HttpClientRequest } from "effect/http"
import { GatewayTest, makeReference, OpenAiServer } from "model-gateway/testing"
import assert from "node:assert/strict"

const question = HttpClientRequest.post("/v1/chat/completions").pipe(
  HttpClientRequest.bodyJsonUnsafe({ model: "upstream-chat", messages: [{ role: "user", content: "!say tested" }] })
)

const program = Effect.gen(function*() {
  const { client, upstream } = yield* GatewayTest
  yield* upstream.fail({ name: "reset-mid-stream" })
  const response = yield* client.execute(question)
  assert.match(yield* response.text, /tested/)
  const report = yield* upstream.until(({ open }) => open === 0)
  assert.equal(report.calls.completion, 1)
  assert.equal(report.calls.continue, 1)
})

await Effect.runPromise(program.pipe(Effect.provide(GatewayTest.layer())))
await Effect.runPromise(program.pipe(Effect.provide(GatewayTest.layerServer())))

// The upstream alone, on a socket.
const listening = Effect.gen(function*() {
  const upstream = yield* makeReference({ maxRunning: 1 })
  assert.match(yield* upstream.listen(), /^http:\/\/127\.0\.0\.1:\d+$/)
})
await Effect.runPromise(Effect.scoped(listening))

// A scripted server in place of the provider.
const served = Effect.gen(function*() {
  const server = yield* OpenAiServer
  yield* server.reply({ calls: [{ name: "look", arguments: { at: "x" } }] })
  yield* server.models("m")
  const { client } = yield* GatewayTest
  const response = yield* client.execute(question)
  assert.match(yield* response.text, /"finish_reason":"tool_calls"/)
  yield* server.until((requests) => requests.every(({ outcome }) => outcome === "finished"))
  assert.equal((yield* server.requests).length, 1)
})
const Served = Layer.unwrap(
  Effect.map(
    OpenAiServer,
    ({ baseUrl }) =>
      GatewayTest.layerServer({ config: { accounts: [], upstream: { driver: "openai", base_url: baseUrl } } })
  )
)
await Effect.runPromise(served.pipe(Effect.provide(Layer.provideMerge(Served, OpenAiServer.layer))))
