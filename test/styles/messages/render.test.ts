import Anthropic, { APIError } from "@anthropic-ai/sdk"
import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import * as fc from "fast-check"
import { Message, MessagesStreamEvent } from "../../../src/contracts/messages/schema.ts"
import {
  messageObject,
  messagesFailure,
  messagesFrames,
  type MessagesReplyInfo
} from "../../../src/contracts/messages/writeReply.ts"
import { gatewayError } from "../../../src/domain/GatewayError.ts"
import { foldReply } from "../../../src/domain/Reply.ts"
import type { ReplyEvent } from "../../../src/domain/ReplyEvent.ts"
import * as Reply from "../../../src/domain/ReplyEvent.ts"
import { runs } from "../../support/effort.ts"
import { replies } from "../../support/replyEvents.ts"
import { parseFrames } from "../../support/sse.ts"

const info: MessagesReplyInfo = { id: "msg_1", model: "msgcompat-opus-4-6", thinking: true, requestId: "req_1" }
const fast: MessagesReplyInfo = { ...info, model: "msgcompat-haiku-4-5", thinking: false }

const object = (events: ReadonlyArray<ReplyEvent>, of = info) => {
  const fold = foldReply()
  events.forEach(fold.push)
  return messageObject(of, fold.reply())
}

const stream = (events: ReadonlyArray<ReplyEvent>, of = info): string => {
  const { frames } = messagesFrames(of, 7)
  const out: Array<string> = []
  for (const event of events) frames.push(event, out)
  frames.end(out)
  return out.join("")
}

const eventNames = (text: string) => parseFrames(text).map((frame) => frame.event)

/** The vendor's client over a reply of ours. */
const clientOf = (body: string, contentType: string) =>
  new Anthropic({
    apiKey: "k",
    maxRetries: 0,
    logLevel: "off",
    fetch: () =>
      Promise.resolve(new Response(body, { headers: { "content-type": contentType, "request-id": "req_1" } }))
  })
const request = { model: info.model, max_tokens: 10, messages: [{ role: "user" as const, content: "Hi" }] }

const accumulated = async (frames: string) => {
  const { parsed_output: _, ...message } = await clientOf(frames, "text/event-stream").messages.stream(request)
    .finalMessage()
  return JSON.parse(JSON.stringify(message))
}

type DeepReadonly<T> = T extends ReadonlyArray<infer A> ? ReadonlyArray<DeepReadonly<A>>
  : T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
  : T

const usage = Reply.UsageReported({ promptTokens: 12, completionTokens: 9, reasoningTokens: 4, cachedTokens: 2 })
const call = (index: number, name: string, ...deltas: ReadonlyArray<string>): ReadonlyArray<ReplyEvent> => [
  Reply.CallStarted(index, `call_${index}`, name),
  ...deltas.map((delta) => Reply.CallArguments(index, delta)),
  Reply.CallFinished(index, `call_${index}`, name, deltas.join(""))
]

const scripts: Record<string, ReadonlyArray<ReplyEvent>> = {
  text: [Reply.TextDelta("Hel"), Reply.TextDelta("lo\n"), usage, Reply.Finish("stop")],
  thinking: [
    Reply.ReasoningDelta("Let me "),
    Reply.ReasoningDelta("see."),
    Reply.TextDelta("42"),
    usage,
    Reply.Finish("stop")
  ],
  calls: [
    Reply.TextDelta("Looking. "),
    ...call(0, "get_weather", "{\"city\":", "\"Paris\"}"),
    Reply.TextDelta("\n"),
    ...call(1, "get_time", "{}"),
    usage,
    Reply.Finish("tool_calls")
  ]
}

describe("messages replies", () => {
  it("are accumulated by the vendor's SDK to the object that is sent without a stream", () =>
    fc.assert(
      fc.asyncProperty(replies, fc.boolean(), async (events, thinking) => {
        const of = { ...info, thinking }
        // As it is sent: a call's integers have more digits than numbers hold.
        const sent: unknown = JSON.parse(JSON.stringify(object(events, of)))
        assert.deepStrictEqual<unknown>(await accumulated(stream(events, of)), sent)
      }),
      { numRuns: runs(150) }
    ))

  it("are what the vendor's types say", async () => {
    const { usage: { service_tier, ...counts }, ...rest } = object(scripts["calls"]!)
    assert.isNull(service_tier)
    const message: DeepReadonly<Anthropic.Message> = { ...rest, usage: { ...counts, service_tier } }
    const received = await clientOf(JSON.stringify(message), "application/json").messages.create(request)
    const { _request_id, ...body } = received
    assert.strictEqual(_request_id, "req_1")
    assert.deepStrictEqual(body, message)
  })

  it("are what their schemas say, without a field more", () =>
    fc.assert(
      fc.property(replies, (events) => {
        const strict = { onExcessProperty: "error" } as const
        Schema.decodeUnknownSync(Message)(object(events), strict)
        for (const { data, event } of parseFrames(stream(events))) {
          assert.strictEqual(Schema.decodeUnknownSync(MessagesStreamEvent)(JSON.parse(data), strict).type, event)
        }
      }),
      { numRuns: runs(100) }
    ))

  it("come in the order of the spec, each block opened, filled and closed under its own index", () =>
    fc.assert(
      fc.property(replies, (events) => {
        const frames = parseFrames(stream(events)).map(({ data }) =>
          Schema.decodeUnknownSync(MessagesStreamEvent)(JSON.parse(data))
        )
        assert.strictEqual(frames.shift()?.type, "message_start")
        assert.strictEqual(frames.pop()?.type, "message_stop")
        assert.strictEqual(frames.pop()?.type, "message_delta")
        let blocks = 0
        let open: string | undefined
        for (const frame of frames) {
          switch (frame.type) {
            case "content_block_start":
              assert.isUndefined(open)
              assert.strictEqual(frame.index, blocks)
              open = frame.content_block.type
              break
            case "content_block_delta":
              assert.strictEqual(frame.index, blocks)
              assert.strictEqual(
                frame.delta.type,
                open === "tool_use" ? "input_json_delta" : `${String(open)}_delta`
              )
              break
            case "content_block_stop":
              assert.strictEqual(frame.index, blocks++)
              open = undefined
              break
            default:
              assert.fail(`${frame.type} within the content`)
          }
        }
        assert.isUndefined(open)
      }),
      { numRuns: runs(100) }
    ))

  it("give the same frames however many events a network chunk brings", () =>
    fc.assert(
      fc.property(replies, (events) => {
        const { frames } = messagesFrames(info, 7)
        const text = events.map((event) => {
          const out: Array<string> = []
          frames.push(event, out)
          return out.join("")
        })
        assert.strictEqual(text.join(""), stream(events))
      }),
      { numRuns: runs(30) }
    ))

  it("show no reasoning for models that the spec does not name, and no seam in the text around it", async () => {
    const events = [
      Reply.TextDelta("a"),
      Reply.ReasoningDelta("hm"),
      Reply.TextDelta("b"),
      usage,
      Reply.Finish("stop")
    ]
    assert.deepStrictEqual(object(events, fast).content, [{ type: "text", text: "ab", citations: null }])
    assert.notInclude(stream(events, fast), "thinking_delta")
    assert.deepStrictEqual(await accumulated(stream(events, fast)), object(events, fast))
  })

  it("never carry a signature", () => {
    assert.notInclude(stream(scripts["thinking"]!), "signature_delta")
    assert.deepInclude(object(scripts["thinking"]!).content[0], { type: "thinking", signature: "" })
  })

  it("begin immediately where the first thing is reasoning that is not shown", () => {
    const out: Array<string> = []
    messagesFrames(fast, 7).frames.push(Reply.ReasoningDelta("hm"), out)
    assert.deepStrictEqual(eventNames(out.join("")), ["message_start"])
  })

  it("make no block of blank text beside another block", () => {
    const events = [
      Reply.TextDelta("\n"),
      ...call(0, "f", "{}"),
      Reply.TextDelta(" \n"),
      usage,
      Reply.Finish("tool_calls")
    ]
    assert.deepStrictEqual(object(events).content.map((block) => block.type), ["tool_use"])
    assert.deepStrictEqual(eventNames(stream(events)), [
      "message_start",
      "content_block_start",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop"
    ])
  })

  it("keep the blanks before a text", () => {
    const events = [Reply.TextDelta("\n"), Reply.TextDelta(" "), Reply.TextDelta("x"), usage, Reply.Finish("stop")]
    assert.deepStrictEqual(object(events).content, [{ type: "text", text: "\n x", citations: null }])
  })

  it("count cached tokens apart from the other input", () => {
    const { usage } = object(scripts["text"]!)
    assert.strictEqual(usage.input_tokens, 10)
    assert.strictEqual(usage.cache_read_input_tokens, 2)
    assert.strictEqual(usage.output_tokens, 9)
    assert.deepStrictEqual(usage.output_tokens_details, { thinking_tokens: 4 })
  })

  it("are kept alive by pings, which the SDK passes over", async () => {
    const renderer = messagesFrames(info, 7)
    const out: Array<string> = [renderer.keepAlive()]
    for (const event of scripts["text"]!) {
      renderer.frames.push(event, out)
      out.push(renderer.keepAlive())
    }
    assert.deepStrictEqual(eventNames(out.join("")).slice(0, 2), ["message_start", "content_block_start"])
    assert.strictEqual(eventNames(out.join("")).filter((name) => name === "ping").length, 4)
    assert.deepStrictEqual(await accumulated(out.join("")), object(scripts["text"]!))
  })

  it("send a failure in the stream so that the SDK throws it", async () => {
    const error = gatewayError("upstream_timeout", "The upstream fell silent")
    const out: Array<string> = []
    messagesFrames(info, 7).frames.push(Reply.TextDelta("a"), out)
    const frames = out.join("") + messagesFrames(info, 7).failure(error)
    assert.strictEqual(messagesFailure("req_1")(error), messagesFrames(info, 7).failure(error))
    const failure: unknown = await accumulated(frames).catch((error: unknown) => error)
    assert.instanceOf(failure, APIError)
    assert.deepStrictEqual(failure.error, {
      type: "error",
      error: {
        type: "service_unavailable_error",
        message: "The upstream fell silent",
        code: "upstream_timeout",
        param: null
      },
      request_id: "req_1"
    })
    assert.strictEqual(failure.type, "service_unavailable_error")
  })
})
