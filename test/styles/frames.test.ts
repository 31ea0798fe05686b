/**
 * What is sent, frame by frame and object by object: nothing but what the styles' schemas say (which have the types of the
 * vendors' SDKs, see `vendorTypes`), in the order that the vendors' protocols ask for.
 */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { ChatChunk, ChatCompletion } from "../../src/contracts/chat/schema.ts"
import { generateErrors } from "../../src/contracts/generate/clientErrors.ts"
import { GenerateChunk, GenerateResponse } from "../../src/contracts/generate/schema.ts"
import { messagesErrors } from "../../src/contracts/messages/errors.ts"
import { Message, MessagesStreamEvent } from "../../src/contracts/messages/schema.ts"
import { ResponseEvent } from "../../src/contracts/responses/events.ts"
import { ResponseObject } from "../../src/contracts/responses/ResponseObject.ts"
import { openaiErrors } from "../../src/contracts/shared/openaiErrors.ts"
import { parseFrames, type SseFrame } from "../support/sse.ts"
import { type Ask, styleClients, type StyleName, styleNames } from "../support/styleClients.ts"
import { overheard } from "../support/webGateway.ts"
import { replies } from "./replies.ts"
import { base, useGateway } from "./support.ts"

const fetch = useGateway()

/** Reads JSON that may have no field beyond the schema's. */
const strictly = <S extends Schema.ConstraintDecoder<unknown>>(schema: S) => {
  const decode = Schema.decodeUnknownSync(schema, { onExcessProperty: "error" })
  return (text: string): S["Type"] => decode(JSON.parse(text))
}

const objects: Readonly<Record<StyleName, (text: string) => unknown>> = {
  chat: strictly(ChatCompletion),
  responses: strictly(ResponseObject),
  messages: strictly(Message),
  generate: strictly(GenerateResponse)
}

const chunk = strictly(Schema.Union([ChatChunk, openaiErrors.body]))
const responseEvent = strictly(ResponseEvent)
const messagesEvent = strictly(MessagesStreamEvent)
const generateChunk = strictly(Schema.Union([GenerateChunk, generateErrors.body]))

/** Each style's order of frames; gives how the reply ended. */
const streams: Readonly<Record<StyleName, (frames: ReadonlyArray<SseFrame>) => string>> = {
  chat: (frames) => {
    assert.deepStrictEqual(frames.at(-1), { event: undefined, data: "[DONE]" })
    const all = frames.slice(0, -1).map(({ data }) => chunk(data))
    const ids = new Set<string>()
    let calls = 0
    const finish = all.map((each, i) => {
      if ("error" in each) {
        assert.strictEqual(i, all.length - 1)
        return each.error.code
      }
      ids.add(`${each.id} ${each.created} ${each.model}`)
      const { choices: [choice, ...others], usage } = each
      assert.deepStrictEqual(others, [])
      const { delta, finish_reason } = choice!
      if (i === 0) assert.deepStrictEqual(delta, { role: "assistant" })
      else if (finish_reason !== null) assert.deepStrictEqual(delta, {})
      else assert.lengthOf(Object.keys(delta), 1)
      for (const call of delta.tool_calls ?? []) {
        if (call.id === undefined) {
          assert.deepStrictEqual(Object.keys(call), ["index", "function"])
          assert.deepStrictEqual(Object.keys(call.function), ["arguments"])
          assert.strictEqual(call.index, calls - 1)
        } else {
          assert.isNotEmpty(call.function.name)
          assert.strictEqual(call.index, calls++)
        }
      }
      assert.strictEqual(usage !== undefined, finish_reason !== null)
      assert.strictEqual(finish_reason !== null, i === all.length - 1)
      return finish_reason
    }).at(-1)
    assert.strictEqual(ids.size, 1)
    return String(finish)
  },
  responses: (frames) => {
    assert.deepStrictEqual(frames.at(-1), { event: undefined, data: "[DONE]" })
    const events = frames.slice(0, -1).map(({ data, event }, i) => {
      const read = responseEvent(data)
      assert.strictEqual(read.type, event)
      assert.strictEqual(read.sequence_number, i)
      return read
    })
    const [created, running] = events
    assert(created?.type === "response.created" && running?.type === "response.in_progress")
    const last = events.at(-1)!
    const open = new Map<number, string>()
    let items = 0
    for (const event of events.slice(2, -1)) {
      assert("response_id" in event, event.type)
      assert.strictEqual(event.response_id, created.id)
      if (event.type === "response.output_item.added") {
        assert.strictEqual(event.output_index, items++)
        open.set(event.output_index, event.item.id)
        continue
      }
      const id = "item" in event ? event.item.id : event.item_id
      assert.strictEqual(id, open.get(event.output_index), event.type)
      if (event.type === "response.output_item.done") open.delete(event.output_index)
    }
    assert("response" in last)
    assert.strictEqual(last.response.id, created.id)
    for (const item of last.response.output) {
      if ("status" in item && item.status === "completed") assert.notInclude([...open.values()], item.id)
    }
    return last.response.error?.code ?? last.type
  },
  messages: (frames) => {
    const events = frames.map(({ data, event }) => {
      const read = messagesEvent(data)
      assert.strictEqual(read.type, event)
      return read
    })
    assert.strictEqual(events[0]?.type, "message_start")
    let open: number | undefined
    let blocks = 0
    let ended: string | undefined
    events.slice(1).forEach((event, i) => {
      switch (event.type) {
        case "content_block_start":
          assert.isUndefined(open)
          open = blocks++
          assert.strictEqual(event.index, open)
          return
        case "content_block_delta":
          assert.strictEqual(event.index, open)
          return
        case "content_block_stop":
          assert.strictEqual(event.index, open)
          open = undefined
          return
        case "message_delta":
          assert.isUndefined(open)
          assert.strictEqual(i, events.length - 3)
          ended = String(event.delta.stop_reason)
          return
        case "message_stop":
          assert.strictEqual(i, events.length - 2)
          return
        case "error":
          assert.strictEqual(i, events.length - 2)
          ended = event.error.code
          return
        case "ping":
        case "message_start":
          assert.fail(event.type)
      }
    })
    return String(ended)
  },
  generate: (frames) => {
    const ids = new Set<string>()
    const ends = frames.map(({ data, event }) => {
      assert.isUndefined(event)
      const read = generateChunk(data)
      if ("error" in read) return read.error.status
      ids.add(`${read.responseId} ${read.modelVersion}`)
      const [candidate, ...others] = read.candidates ?? []
      assert.deepStrictEqual(others, [])
      assert.strictEqual(read.usageMetadata !== undefined, candidate!.finishReason !== undefined)
      return candidate!.finishReason
    })
    assert.deepStrictEqual(ends.slice(0, -1).filter((end) => end !== undefined), [])
    assert.strictEqual(ids.size, 1)
    return String(ends.at(-1))
  }
}

const sent = async (style: StyleName, way: "whole" | "streamed", ask: Ask, apiKey?: string) => {
  const heard = overheard(fetch)
  await styleClients(base, { fetch: heard.fetch, ...(apiKey === undefined ? {} : { apiKey }) })[style][way](ask)
  return heard.said()
}

const failures: Readonly<Record<StyleName, string>> = {
  chat: "upstream_error",
  responses: "upstream_error",
  messages: "upstream_error",
  generate: "UNAVAILABLE"
}

const errorBodies: Readonly<Record<StyleName, (text: string) => unknown>> = {
  chat: strictly(openaiErrors.body),
  responses: strictly(openaiErrors.body),
  messages: strictly(messagesErrors.body),
  generate: strictly(generateErrors.body)
}

describe.each(styleNames)("what is sent in the style %s", (style) => {
  it.each(replies)("keeps to its schemas and its order: $name", async ({ ask }) => {
    objects[style](await sent(style, "whole", ask))
    const ended = streams[style](parseFrames(await sent(style, "streamed", ask)))
    assert.notMatch(ended, /error|fail/)
  })

  it("keeps to them when it fails", async () => {
    const ask = { content: "!count 5\n!fault error-status after=3" }
    const token = "a-token"
    assert.strictEqual(streams[style](parseFrames(await sent(style, "streamed", ask, token))), failures[style])
    errorBodies[style](await sent(style, "whole", ask, token))
  })
})
