/** Completions in process, without HTTP: whole, as a stream, with tools, and with the errors that callers get. */
import { NodeHttpClient, NodeServices } from "@effect/platform-node"
import { Effect, Layer, Stream } from "effect"
import { complete, completeStream, ConfigStore, GatewayServices, Reply } from "model-gateway"
import assert from "node:assert/strict"

const Services = GatewayServices.pipe(
  Layer.provideMerge(ConfigStore.layerMemory()),
  Layer.provide([NodeHttpClient.layerUndici, NodeServices.layer])
)

const program = Effect.gen(function*() {
  const whole = yield* complete({ model: "gpt-4o", prompt: "Hello there" })
  assert.match(Reply.replyText(whole), /“Hello there”/)
  assert.ok(whole.usage.completionTokens > 0)

  const events = yield* Stream.runCollect(completeStream({ model: "upstream-chat", prompt: "Hello again" }))
  assert.match(events.map((event) => event._tag === "TextDelta" ? event.text : "").join(""), /“Hello again”/)
  assert.equal(events.at(-1)?._tag, "Finish")

  const refused = yield* Effect.flip(complete({ model: "no-such-model", prompt: "Hello" }))
  assert.equal(refused.code, "model_not_found")
})

await Effect.runPromise(Effect.provide(program, Services))
