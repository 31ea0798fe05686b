/**
 * Replies of a Responses server as a caller of the same contract sees them, over generated items, cuts and calls in the text: decoder,
 * assembly and renderer without a socket.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { assembleReply } from "../../../src/completion/assembleReply.ts"
import { eventDecoder } from "../../../src/contracts/responses/readReply.ts"
import { responseInfo } from "../../../src/contracts/responses/responseText.ts"
import { responseFrames } from "../../../src/contracts/responses/writeReply.ts"
import type { ReplyEvent } from "../../../src/domain/ReplyEvent.ts"
import type { UpstreamEvent } from "../../../src/domain/UpstreamEvent.ts"
import { sieve } from "../../../src/sieve/sieve.ts"
import { runs, seed } from "../../support/effort.ts"
import { callItem, eventsOf, messageItem, reasoningItem, responseOf } from "../../support/responsesServer.ts"

type Fields = { readonly [field: string]: unknown }

const info = responseInfo("5".repeat(32), 7, { model: "asked" }, new Map())
const tools = [{ name: "f", parameters: { type: "object" } }]
const callText = `<tool_call>{"name":"f","arguments":{"a":1}}</tool_call>`

/** What a caller gets of the server's events. */
const shown = (sent: ReadonlyArray<Fields>, hasTools: boolean) => {
  const decoder = eventDecoder({ passesEvents: true, onThinking: undefined, budget: undefined })
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
    promptTokens: () => 7,
    meter: undefined,
    keepSealed: undefined,
    keepSeal: undefined
  })
  let body = ""
  const { frames } = responseFrames(info, {
    now: () => 9_000,
    finalized: (text) => body = text,
    begun: undefined,
    compaction: undefined
  })
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
  events.map(({ call_id: _, id: _i, obfuscation: __, response, response_id: ___, status: _s, ...event }) => {
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

  it("is neither parsed nor written by the value where pieces differ in nothing but their text", () => {
    const sent = eventsOf(responseOf([messageItem("word".repeat(1_000))]))
    const { parse, stringify } = JSON
    let calls = 0
    Object.assign(JSON, {
      parse(text: string): unknown {
        calls++
        return parse(text)
      },
      stringify(value: unknown): string {
        if (typeof value === "object") calls++
        return stringify(value)
      }
    })
    try {
      assert.lengthOf(shown(sent, true).events, sent.length)
    } finally {
      Object.assign(JSON, { parse, stringify })
    }
    // The test itself writes each event once, and parses it once.
    assert.isAtMost(calls - 2 * sent.length, 50)
  })

  it("is written with every string of its events, whatever they say", () => {
    for (const id of ["\u0000text", "\u0000number", "0"]) {
      const sent = eventsOf(responseOf([messageItem("one two three", { id })]))
      const ids = shown(sent, false).events.flatMap((event) => event["delta"] === undefined ? [] : [event["item_id"]])
      assert.isAbove(ids.length, 1)
      assert.deepStrictEqual([...new Set(ids)], [id])
    }
  })

  /** The events of a message and a call, as a server sends them that leaves out all that it may. */
  const bare: ReadonlyArray<Fields> = [
    { type: "response.output_item.added", item: { type: "message", id: "msg_1", role: "assistant", content: [] } },
    { type: "response.content_part.added", item_id: "msg_1", part: { type: "output_text", text: "" } },
    { type: "response.output_text.delta", item_id: "msg_1", delta: "Hi" },
    { type: "response.output_text.done", item_id: "msg_1", text: "Hi" },
    { type: "response.content_part.done", item_id: "msg_1", part: { type: "output_text", text: "Hi" } },
    { type: "response.output_item.done", item: messageItem("Hi", { id: "msg_1" }) },
    { type: "response.output_item.added", output_index: 1, item: callItem("g", {}, { id: "fc_1", call_id: "call_1" }) },
    { type: "response.function_call_arguments.delta", output_index: 1, delta: "{}" },
    { type: "response.function_call_arguments.done", output_index: 1, arguments: "{}" },
    { type: "response.output_item.done", output_index: 1, item: callItem("g", {}, { id: "fc_1", call_id: "call_1" }) }
  ]
  const completed = { type: "response.completed", response: { id: "resp_server", model: "m", output: [] } }

  it("begins with an event that has the id and the status", () => {
    for (const response of [{ id: "resp_server" }, { id: "resp_server", object: "response", status: "queued" }]) {
      const { events } = shown([{ type: "response.created", response }, ...bare, completed], false)
      const [created] = events
      assert.deepInclude(created, { type: "response.created", id: "resp_server", status: "in_progress" })
      assert.deepInclude(created?.["response"], { id: "resp_server", object: "response" })
    }
  })

  it("begins so where the server begins with an item, or ends immediately", () => {
    for (const sent of [[...bare, completed], [completed]]) {
      const { events, response } = shown(sent, false)
      const [created] = events
      assert.deepInclude(created, { type: "response.created", sequence_number: 0, status: "in_progress" })
      assert.strictEqual(created?.["id"], response["id"])
      assert.deepInclude(created?.["response"], { id: response["id"], status: "in_progress", model: "asked" })
      assert.deepStrictEqual(events.map((event) => event["sequence_number"]), events.map((_, i) => i))
    }
  })

  it("has the contract's fields in each event where the server leaves them out", () => {
    const { events } = shown([{ type: "response.created", response: { id: "resp_server" } }, ...bare, completed], false)
    const inMessage = { response_id: "resp_server", output_index: 0, item_id: "msg_1", content_index: 0 }
    const inCall = { response_id: "resp_server", output_index: 1, item_id: "fc_1", call_id: "call_1" }
    const [, added, partAdded, delta, textDone, partDone, done, callAdded, piece, whole, callDone, last] = events
    for (const event of [partAdded, delta, textDone, partDone]) assert.deepInclude(event, inMessage)
    for (const event of [added, done]) assert.deepInclude(event, { response_id: "resp_server", output_index: 0 })
    for (const event of [callAdded, callDone]) {
      assert.deepInclude(event, { response_id: "resp_server", output_index: 1 })
    }
    for (const event of [piece, whole]) assert.deepInclude(event, inCall)
    assert.deepInclude(whole, { name: "g", arguments: "{}" })
    assert.deepInclude(last?.["response"], {
      id: "resp_server",
      object: "response",
      status: "completed",
      model: "asked",
      output_text: "Hi"
    })
  })

  it("keeps what the server says of its own accord in these fields", () => {
    const named = { response_id: "resp_other", item_id: "fc_1", output_index: 0, call_id: "call_other", name: "other" }
    const item = callItem("g", {}, { id: "fc_1", call_id: "call_1" })
    const { events } = shown([
      { type: "response.created", response: { id: "resp_server" } },
      { type: "response.output_item.added", output_index: 0, item },
      { type: "response.function_call_arguments.done", ...named, arguments: "{}" },
      { type: "response.output_item.done", output_index: 0, item },
      completed
    ], false)
    assert.deepInclude(events[2], named)
  })
})
