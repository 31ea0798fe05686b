import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { eventDecoder } from "../../../src/contracts/messages/readReply.ts"
import { defaultLimits } from "../../../src/domain/limits.ts"
import type { UpstreamEvent } from "../../../src/domain/UpstreamEvent.ts"
import { RequestBudget } from "../../../src/upstream/budget.ts"
import { replyDecoder } from "../../../src/upstream/decodeBody.ts"
import { runs } from "../../support/effort.ts"
import { events, messageEvents } from "../../support/messagesServer.ts"

const encoder = new TextEncoder()

/** What a body in these pieces yields. Adjacent pieces of a text are joined. */
const decode = (pieces: ReadonlyArray<Uint8Array>) => {
  const budget = new RequestBudget(defaultLimits, { monotonicTimeNanosUnsafe: () => 0n })
  const decoder = replyDecoder(eventDecoder(), () => undefined, budget, undefined)
  const out: Array<UpstreamEvent> = []
  for (const piece of pieces) decoder.push(piece, out)
  decoder.end(out)
  return { events: joined(out), failure: decoder.failure() }
}

const joined = (all: ReadonlyArray<UpstreamEvent>): ReadonlyArray<UpstreamEvent> => {
  const out: Array<UpstreamEvent> = []
  for (const event of all) {
    const last = out.at(-1)
    if (event._tag === "UpstreamText" && last?._tag === "UpstreamText") {
      out[out.length - 1] = { ...last, text: last.text + event.text }
    } else if (event._tag === "UpstreamReasoning" && last?._tag === "UpstreamReasoning") {
      out[out.length - 1] = { ...last, text: last.text + event.text }
    } else if (event._tag === "UpstreamCall" && last?._tag === "UpstreamCall" && last.index === event.index) {
      out[out.length - 1] = { ...last, argumentsDelta: last.argumentsDelta + event.argumentsDelta }
    } else out.push(event)
  }
  return out
}

const decodeText = (body: string) => decode([encoder.encode(body)])

const content = [
  { type: "thinking", thinking: "Zwei und zwei 🌍", signature: "c2ln" },
  { type: "text", text: "Vier — 四" },
  { type: "server_tool_use", id: "s", name: "web_search", input: { query: "ä" } },
  { type: "web_search_tool_result", tool_use_id: "s", content: [] },
  { type: "tool_use", id: "toolu_1", name: "f", input: { a: [1, "ö"] } }
]
const stream = events(...messageEvents(content, { stop: { stop_reason: "tool_use" } }))

const start = { type: "message_start", message: { id: "m", type: "message", role: "assistant", content: [] } }
const textStart = { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }
const textDelta = (text: string) => ({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } })
const blockStop = { type: "content_block_stop", index: 0 }
const end = {
  type: "message_delta",
  delta: { stop_reason: "end_turn", stop_sequence: null },
  usage: { output_tokens: 1 }
}
const stop = { type: "message_stop" }

const textOf = ({ events }: ReturnType<typeof decodeText>) =>
  events.map((event) => event._tag === "UpstreamText" ? event.text : "").join("")

describe("the decoder of a messages server's events", () => {
  it("yields the same in every cut", () => {
    const expected = decodeText(stream)
    assert.isUndefined(expected.failure)
    const bytes = encoder.encode(stream)
    fc.assert(
      fc.property(fc.array(fc.nat({ max: bytes.length }), { maxLength: 12 }), (positions) => {
        const sorted = [...new Set([0, ...positions, bytes.length])].toSorted((a, b) => a - b)
        const pieces = sorted.slice(1).map((at, i) => bytes.subarray(sorted[i], at))
        assert.deepStrictEqual(decode(pieces), expected)
      }),
      { numRuns: runs(60) }
    )
  })

  it("yields text, sealed thinking, blocks, calls, counts and the end, in order", () => {
    const found = decodeText(stream).events.flatMap((event): ReadonlyArray<unknown> =>
      event._tag === "UpstreamExtra"
        ? event.at === "reasoning" || event.at === "block" ? [[event.at, event.value]] : []
        : event._tag === "UpstreamUsage"
        ? []
        : [event]
    )
    assert.deepStrictEqual(found, [
      { _tag: "UpstreamReasoning", text: "Zwei und zwei 🌍" },
      ["reasoning", content[0]],
      { _tag: "UpstreamText", text: "Vier — 四" },
      ["block", content[2]],
      ["block", content[3]],
      { _tag: "UpstreamCall", index: 0, id: "toolu_1", name: "f", argumentsDelta: `{"a":[1,"ö"]}` },
      { _tag: "UpstreamFinish", reason: "tool_calls" }
    ])
    const usages = decodeText(stream).events.flatMap((event) => event._tag === "UpstreamUsage" ? [event.usage] : [])
    assert.deepInclude(usages[0], {
      promptTokens: 19,
      cachedTokens: 5,
      cacheWriteTokens: 3,
      completionTokens: undefined
    })
    assert.deepInclude(usages.at(-1), { promptTokens: 19, cachedTokens: 5, cacheWriteTokens: 3, completionTokens: 7 })
  })

  it("yields of a whole body what a stream yields", () => {
    const whole = JSON.stringify({ id: "m", type: "message", role: "assistant", content, stop_reason: "tool_use" })
    const kinds = (body: string) =>
      decodeText(body).events.filter(({ _tag }) => _tag !== "UpstreamExtra" && _tag !== "UpstreamUsage")
    assert.deepStrictEqual(kinds(whole), kinds(stream))
  })

  it("keeps the counts that the last event leaves out", () => {
    const { events: found } = decodeText(
      events(
        {
          ...start,
          message: { ...start.message, usage: { input_tokens: 3, cache_read_input_tokens: 2, output_tokens: 1 } }
        },
        textStart,
        textDelta("a"),
        blockStop,
        { ...end, usage: { output_tokens: 9, input_tokens: null } },
        stop
      )
    )
    const last = found.findLast((event) => event._tag === "UpstreamUsage")
    assert.deepInclude(last?._tag === "UpstreamUsage" ? last.usage : {}, { promptTokens: 5, completionTokens: 9 })
  })

  it.each([
    ["without the start of a message", [textStart, textDelta("a"), blockStop, end, stop]],
    ["without the starts of blocks", [start, textDelta("a"), end, stop]],
    ["without the ends of blocks", [start, textStart, textDelta("a"), end, stop]],
    ["without the end of the message", [start, textStart, textDelta("a"), blockStop, end]],
    ["without a reason", [start, textStart, textDelta("a"), blockStop, stop]],
    ["with events of later versions", [start, { type: "future" }, textStart, textDelta("a"), blockStop, end, stop]],
    ["with an error after its end", [start, textStart, textDelta("a"), end, { type: "error", error: { type: "x" } }]],
    ["with the sentinel of others", [start, textStart, textDelta("a"), blockStop, end, "data: [DONE]\n\n"]]
  ])("accepts a stream %s", (_, values) => {
    const reply = decodeText(events(...values))
    assert.isUndefined(reply.failure)
    assert.strictEqual(textOf(reply), "a")
    assert.deepStrictEqual(reply.events.at(-1), { _tag: "UpstreamFinish", reason: "stop" })
  })

  it.each([
    ["truncated", [start, textStart, textDelta("a")]],
    ["empty", []],
    ["empty", [{ type: "ping" }]],
    ["malformed", [start, "data: {oops\n\n"]],
    ["malformed", [start, "data: 1\n\n"]],
    ["refused", [start, { type: "error", error: { type: "overloaded_error", message: "busy" } }]],
    ["refused", [start, "event: error\ndata: {\"error\":{\"message\":\"busy\"}}\n\n"]]
  ])("fails as %s: %j", (kind, values) => {
    const { events: found, failure } = decodeText(events(...values))
    assert.strictEqual(failure?.kind, kind)
    assert.isFalse(found.some(({ _tag }) => _tag === "UpstreamFinish"))
  })

  it("gives a call without arguments an empty object, and takes those that stand in its start", () => {
    const call = (input: object) => ({
      type: "content_block_start",
      index: 0,
      content_block: { type: "tool_use", id: "c", name: "f", input }
    })
    for (const [input, text] of [[{}, "{}"], [{ a: 1 }, `{"a":1}`]] as const) {
      const { events: found } = decodeText(events(start, call(input), blockStop, end, stop))
      assert.deepInclude(found.find(({ _tag }) => _tag === "UpstreamCall"), { argumentsDelta: text })
    }
  })

  it("never throws on strange values", () => {
    const strange = fc.oneof(
      fc.jsonValue(),
      fc.record({
        type: fc.constantFrom(
          "message_start",
          "content_block_start",
          "content_block_delta",
          "content_block_stop",
          "message_delta"
        ),
        message: fc.jsonValue(),
        content_block: fc.oneof(
          fc.jsonValue(),
          fc.record({ type: fc.constantFrom("text", "thinking", "tool_use", "x") })
        ),
        delta: fc.oneof(
          fc.jsonValue(),
          fc.record({
            type: fc.constantFrom(
              "text_delta",
              "thinking_delta",
              "input_json_delta",
              "citations_delta",
              "signature_delta"
            ),
            text: fc.jsonValue(),
            citation: fc.jsonValue()
          })
        ),
        usage: fc.jsonValue()
      }, { requiredKeys: ["type"] })
    )
    fc.assert(
      fc.property(fc.array(strange, { maxLength: 12 }), (values) => {
        decodeText(values.map((value) => `data: ${JSON.stringify(value)}\n\n`).join(""))
      }),
      { numRuns: runs(100) }
    )
  })
})
