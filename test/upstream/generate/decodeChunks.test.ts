import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { chunkDecoder } from "../../../src/contracts/generate/readReply.ts"
import { defaultLimits } from "../../../src/domain/limits.ts"
import type { UpstreamEvent } from "../../../src/domain/UpstreamEvent.ts"
import { RequestBudget } from "../../../src/upstream/budget.ts"
import { replyDecoder } from "../../../src/upstream/decodeBody.ts"
import { chunk, frames } from "../../support/generateServer.ts"

const encoder = new TextEncoder()

const decode = (pieces: Iterable<Uint8Array>, limits: Partial<typeof defaultLimits> = {}) => {
  const budget = new RequestBudget({ ...defaultLimits, ...limits }, { monotonicTimeNanosUnsafe: () => 0n })
  const decoder = replyDecoder(chunkDecoder(), () => undefined, budget, undefined)
  const out: Array<UpstreamEvent> = []
  for (const piece of pieces) decoder.push(piece, out)
  decoder.end(out)
  return { out, failure: decoder.failure()?.kind }
}

const cutAt = (bytes: Uint8Array, at: ReadonlyArray<number>): ReadonlyArray<Uint8Array> => {
  const places = [0, ...[...at].map((place) => place % bytes.length).toSorted((a, b) => a - b), bytes.length]
  return places.slice(1).map((place, i) => bytes.subarray(places[i], place))
}

const rich = [
  chunk([{ text: "H", thought: true }]),
  chunk([{ text: "m. 東京", thought: true, thoughtSignature: "c2ln" }]),
  chunk([{ text: "🌍 " }, { inlineData: { mimeType: "image/png", data: "aGk=" } }]),
  chunk([{ functionCall: { id: "a", name: "f", args: { n: 1, city: "Zürich" } }, thoughtSignature: "Zm4=" }]),
  chunk([{ text: "" }], { finishReason: "STOP", safetyRatings: [{ category: "A" }] }, { createTime: "now" })
]

const tags = (events: ReadonlyArray<UpstreamEvent>) =>
  events.map((event) => event._tag === "UpstreamExtra" ? `${event._tag} ${event.at}` : event._tag)

describe("the decoder of a generate server's reply", () => {
  it("yields the events in order", () => {
    const { failure, out } = decode([encoder.encode(frames(...rich))])
    assert.isUndefined(failure)
    assert.deepStrictEqual(tags(out.filter(({ _tag }) => _tag !== "UpstreamUsage")), [
      "UpstreamExtra chunk",
      "UpstreamReasoning",
      "UpstreamReasoning",
      "UpstreamExtra reasoning",
      "UpstreamText",
      "UpstreamExtra block",
      "UpstreamCall",
      "UpstreamExtra chunk",
      "UpstreamExtra choice",
      "UpstreamExtra usage",
      "UpstreamFinish"
    ])
  })

  it("yields the same wherever the network cuts the bytes, as a stream, a list and a text", () => {
    const list = encoder.encode(JSON.stringify(rich))
    const stream = encoder.encode(frames(...rich))
    const expected = decode([stream])
    fc.assert(fc.property(fc.array(fc.nat(), { maxLength: 8 }), fc.constantFrom(stream, list), (at, bytes) => {
      assert.deepStrictEqual(decode(cutAt(bytes, at)), expected)
    }))
  })

  it("fails a reply without its end, wherever it is cut off", () => {
    const bytes = encoder.encode(frames(...rich.slice(0, 4)))
    fc.assert(fc.property(fc.integer({ min: 0, max: bytes.length }), (end) => {
      const { failure } = decode([bytes.subarray(0, end)])
      assert.include(["empty", "truncated", "malformed"], failure)
    }))
  })

  it("keeps every digit of a call's arguments", () => {
    const text =
      `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"id":12345678901234567890}}}]},` +
      `"finishReason":"STOP"}]}`
    const call = decode([encoder.encode(`data: ${text}\n\n`)]).out.find(({ _tag }) => _tag === "UpstreamCall")
    assert.deepInclude(call, { argumentsDelta: `{"id":12345678901234567890}` })
  })

  it("says once what the server repeats in every chunk", () => {
    const repeated = { safetyRatings: [{ category: "A" }] }
    const { out } = decode([encoder.encode(frames(
      chunk([{ text: "a" }], repeated),
      chunk([{ text: "b" }], repeated),
      chunk([], { finishReason: "STOP", ...repeated })
    ))])
    assert.lengthOf(out.filter((event) => event._tag === "UpstreamExtra" && event.at === "choice"), 1)
    assert.lengthOf(out.filter((event) => event._tag === "UpstreamExtra" && event.at === "chunk"), 1)
  })

  it.each([
    ["text", { text: "a".repeat(100) }],
    ["a picture", { inlineData: { mimeType: "image/png", data: "a".repeat(100) } }]
  ])("ends a reply with too much of %s by length", (_, part) => {
    const bytes = encoder.encode(frames(chunk([part]), chunk([], { finishReason: "STOP" })))
    const { out } = decode([bytes], { reply_chars: 50 })
    assert.deepInclude(out.at(-1), { _tag: "UpstreamFinish", reason: "length" })
  })

  it.each([
    ["a call without a name", chunk([{ functionCall: { args: {} } }])],
    ["a call with a list of arguments", chunk([{ functionCall: { name: "f", args: [1] } }])],
    ["a call with a long id", chunk([{ functionCall: { name: "f", id: "a".repeat(300) } }])]
  ])("fails at %s", (_, broken) => {
    assert.strictEqual(decode([encoder.encode(frames(broken))]).failure, "malformed")
  })

  it("takes any JSON without an exception", () => {
    fc.assert(fc.property(fc.array(fc.jsonValue(), { maxLength: 4 }), (values) => {
      decode([encoder.encode(frames(...values.map((value) => JSON.stringify(value))))])
      decode([encoder.encode(frames(
        ...values.map((value) => JSON.stringify({ candidates: [{ content: { parts: [value] }, finishReason: value }] }))
      ))])
    }))
  })
})
