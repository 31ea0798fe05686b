/**
 * Replies of a Responses server as a caller of the same contract sees them, over generated items, cuts and calls in the text: decoder,
 * assembly and renderer without a socket.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { assembleReply } from "../../../src/completion/assembleReply.ts"
import type { ReplyEvent } from "../../../src/domain/ReplyEvent.ts"
import type { UpstreamEvent } from "../../../src/domain/UpstreamEvent.ts"
import { sieve } from "../../../src/sieve/sieve.ts"
import { responseFrames } from "../../../src/styles/responses/render.ts"
import { responseInfo } from "../../../src/styles/responses/responseText.ts"
import { eventDecoder } from "../../../src/upstream/responses/decodeEvents.ts"
import { runs, seed } from "../../support/effort.ts"
import { callItem, eventsOf, messageItem, reasoningItem, responseOf } from "../../support/responsesServer.ts"

type Fields = { readonly [field: string]: unknown }

const info = responseInfo("5".repeat(32), 7, { model: "asked" }, new Map())
const tools = [{ name: "f", parameters: { type: "object" } }]
const callText = `<tool_call>{"name":"f","arguments":{"a":1}}</tool_call>`

/** What a caller gets of the server's events. */
const shown = (sent: ReadonlyArray<Fields>, hasTools: boolean) => {
  const decoder = eventDecoder({ passesEvents: true })
  let count = 0
  const assembly = assembleReply({
    sieve: hasTools ? sieve({ tools, callId: () => `call_text_${count++}` }) : undefined,
    reasoningCalls: undefined,
    stripMarkers: false,
    stop: undefined,
    singleCall: false,
    showReasoning: true,
    addCall: () => true,
    callId: (index) => `call_made_${index}`,
    promptTokens: () => 7
  })
  let body = ""
  const { frames } = responseFrames(info, { now: () => 9_000, finalized: (text) => body = text })
  const out: Array<string> = []
  const upstream: Array<UpstreamEvent> = []
  const events: Array<ReplyEvent> = []
  const pass = () => {
    for (const event of upstream.splice(0)) assembly.push(event, events)
    for (const event of events.splice(0)) frames.push(event, out)
  }
  for (const event of sent) {
    decoder.push({ event: undefined, data: JSON.stringify(event) }, upstream)
    pass()
  }
  decoder.end(upstream)
  pass()
  assert.isUndefined(decoder.failure())
  const texts = out.join("").split("\n\n").filter((frame) => frame !== "")
  assert.strictEqual(texts.pop(), "data: [DONE]")
  return {
    events: texts.map((frame) => JSON.parse(frame.slice(frame.indexOf("\ndata: ") + "\ndata: ".length)) as Fields),
    response: JSON.parse(body) as Fields & { readonly output: ReadonlyArray<Fields> }
  }
}

const words = fc.array(
  fc.constantFrom("a ", "<", "<tool", "_call>", "{}", "\n", " b", "é🌍", "</tool_call>"),
  { maxLength: 8 }
).map((pieces) => pieces.join(""))

const textArbitrary = fc.tuple(words, fc.boolean(), words).map(([before, calls, after]) =>
  before + (calls ? callText : "") + after
)

const items = fc.array(
  fc.oneof(
    textArbitrary.map((text) => ({ kind: "message" as const, text })),
    fc.constantFrom({ kind: "call" as const }, { kind: "reasoning" as const }, { kind: "other" as const })
  ),
  { minLength: 1, maxLength: 5 }
).map((kinds) =>
  kinds.map((each, i): Fields => {
    switch (each.kind) {
      case "message":
        return messageItem(each.text, { id: `msg_${i}` })
      case "call":
        return callItem("g", { i }, { id: `fc_${i}`, call_id: `call_${i}` })
      case "reasoning":
        return reasoningItem("Hm.", { id: `rs_${i}` })
      case "other":
        return { type: "web_search_call", id: `ws_${i}`, status: "completed", action: {} }
    }
  })
)

const numbered = (events: ReadonlyArray<Fields>) => events.map((event, i) => ({ ...event, sequence_number: i }))

/** The server's events without what the gateway adds and leaves out. */
const plain = (events: ReadonlyArray<Fields>) =>
  events.map(({ call_id: _, obfuscation: __, response, response_id: ___, ...event }) => {
    if (response === undefined) return event
    const { model: _m, output_text: _t, ...rest } = response as Fields
    return { ...event, response: rest }
  })

const options = { seed, numRuns: runs(100) }

describe("the reply of a server of the same contract", () => {
  it("is the server's, event by event, without tools", () => {
    fc.assert(
      fc.property(items, (output) => {
        const sent = eventsOf(responseOf(output))
        const { events, response } = shown(sent, false)
        assert.deepStrictEqual(plain(events), plain(numbered(sent)))
        assert.deepStrictEqual(response.output, output)
      }),
      options
    )
  })

  it("has contiguous numbers and indexes with tools, and its events make its items", () => {
    fc.assert(
      fc.property(items, (output) => {
        const { events, response } = shown(eventsOf(responseOf(output)), true)
        assert.deepStrictEqual(events.map((event) => event["sequence_number"]), events.map((_, i) => i))
        const of = (type: string) => events.filter((event) => event["type"] === `response.${type}`)
        const added = of("output_item.added")
        const done = of("output_item.done")
        assert.deepStrictEqual(added.map((event) => event["output_index"]), added.map((_, i) => i))
        assert.deepStrictEqual(done.map((event) => event["output_index"]), done.map((_, i) => i))
        const items: ReadonlyArray<unknown> = done.map(({ item }) => item)
        assert.deepStrictEqual(items, response.output)
        assert.deepStrictEqual(events.at(-1)?.["response"], response)
        const text = of("output_text.delta").map(({ delta }) => delta).join("")
        assert.strictEqual(text, response["output_text"])
        for (const event of events) {
          const item = added.find((each) => each["output_index"] === event["output_index"])?.["item"] as
            | Fields
            | undefined
          if ("item_id" in event) assert.strictEqual(event["item_id"], item?.["id"])
        }
      }),
      options
    )
  })

  it("has every item of the server, and every call in the text as a call", () => {
    fc.assert(
      fc.property(items, (output) => {
        const { response } = shown(eventsOf(responseOf(output)), true)
        const others = (list: ReadonlyArray<Fields>) =>
          list.filter(({ name, type }) => type !== "message" && name !== "f")
        assert.deepStrictEqual(others(response.output), others(output))
        assert.notInclude(JSON.stringify(response.output), `\\"name\\":\\"f\\"`)
        const calls = JSON.stringify(output).split(`\\"name\\":\\"f\\"`).length - 1
        assert.lengthOf(response.output.filter(({ name }) => name === "f"), calls)
      }),
      options
    )
  })
})
