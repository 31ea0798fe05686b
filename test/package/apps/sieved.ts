/** Only the sieve, on a stream of text from outside the gateway. */
import { Effect, Stream } from "effect"
import { sieveStream } from "model-gateway/sieve"
import { encodeSse, makeSseDecoder, transduce } from "model-gateway/transducer"
import assert from "node:assert/strict"

const tools = [{ name: "weather" }]

const text = Stream.make(
  "One moment.\n<tool_c",
  "all>{\"name\": \"weather\", \"argu",
  "ments\": {\"city\": \"Paris\"}}</tool_call>"
)

const events = await Effect.runPromise(Stream.runCollect(sieveStream({ tools })(text)))
assert.equal(events.map((event) => event._tag === "TextDelta" ? event.text : "").join("").trim(), "One moment.")
const call = events.find((event) => event._tag === "CallFinished")
assert.deepEqual(call, {
  _tag: "CallFinished",
  index: 0,
  id: "call_0",
  name: "weather",
  arguments: "{\"city\": \"Paris\"}"
})

const bytes = Stream.make(new TextEncoder().encode(encodeSse("greeting", "hello")))
const frames = await Effect.runPromise(Stream.runCollect(transduce(makeSseDecoder)(bytes)))
assert.equal(frames[0]?.data, "hello")
