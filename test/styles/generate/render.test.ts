import { assert, describe, it } from "@effect/vitest"
import type { GenerateContentResponse } from "@google/genai"
import { ApiError, GoogleGenAI } from "@google/genai"
import * as Schema from "effect/Schema"
import * as fc from "fast-check"
import { GenerateChunk, GenerateResponse } from "../../../src/contracts/generate/schema.ts"
import {
  generateFailure,
  generateFrames,
  type GenerateReplyInfo,
  generateResponse
} from "../../../src/contracts/generate/writeReply.ts"
import { gatewayError } from "../../../src/domain/GatewayError.ts"
import { foldReply } from "../../../src/domain/Reply.ts"
import type { ReplyEvent } from "../../../src/domain/ReplyEvent.ts"
import * as Reply from "../../../src/domain/ReplyEvent.ts"
import { runs } from "../../support/effort.ts"
import { replies } from "../../support/replyEvents.ts"
import { parseFrames } from "../../support/sse.ts"

const info: GenerateReplyInfo = { id: "s1", model: "gemini-2.5-pro", thoughts: true, audioType: "audio/wav" }

const object = (events: ReadonlyArray<ReplyEvent>, of = info) => {
  const fold = foldReply()
  events.forEach(fold.push)
  return generateResponse(of, fold.reply())
}

const stream = (events: ReadonlyArray<ReplyEvent>, of = info): string => {
  const { frames } = generateFrames(of)
  const out: Array<string> = []
  for (const event of events) frames.push(event, out)
  frames.end(out)
  return out.join("")
}

/** The vendor's client over a reply of ours. */
const clientOf = (body: string, contentType: string) =>
  new GoogleGenAI({
    apiKey: "k",
    httpOptions: {
      fetch: () => Promise.resolve(new Response(body, { headers: { "content-type": contentType } }))
    }
  }).models

const request = { model: info.model, contents: "Hi" }

interface Seen {
  readonly text: string
  readonly thoughts: string
  readonly calls: ReadonlyArray<unknown>
  readonly finish: unknown
  readonly usage: unknown
  readonly model: unknown
  readonly id: unknown
}

/** What a caller of the SDK reads from one or several responses. */
const seen = (responses: ReadonlyArray<GenerateContentResponse>): Seen => {
  const parts = responses.flatMap((response) => response.candidates?.[0]?.content?.parts ?? [])
  const last = responses.at(-1)
  return {
    text: parts.filter((part) => part.thought !== true).map((part) => part.text ?? "").join(""),
    thoughts: parts.filter((part) => part.thought === true).map((part) => part.text ?? "").join(""),
    calls: responses.flatMap((response) => response.functionCalls ?? []),
    finish: last?.candidates?.[0]?.finishReason,
    usage: last?.usageMetadata,
    model: last?.modelVersion,
    id: last?.responseId
  }
}

const streamed = async (frames: string) => {
  const responses: Array<GenerateContentResponse> = []
  for await (const chunk of await clientOf(frames, "text/event-stream").generateContentStream(request)) {
    responses.push(chunk)
  }
  return seen(responses)
}

const whole = async (body: typeof GenerateResponse.Type) =>
  seen([await clientOf(JSON.stringify(body), "application/json").generateContent(request)])

const usage = Reply.UsageReported({ promptTokens: 12, completionTokens: 9, reasoningTokens: 4, cachedTokens: 2 })

const scripts: Record<string, ReadonlyArray<ReplyEvent>> = {
  text: [Reply.TextDelta("Hel"), Reply.TextDelta("lo\n"), usage, Reply.Finish("stop")],
  thoughts: [Reply.ReasoningDelta("Let me see."), Reply.TextDelta("42"), usage, Reply.Finish("stop")],
  calls: [
    Reply.TextDelta("Looking."),
    Reply.CallStarted(0, "call_0", "get_weather"),
    Reply.CallArguments(0, "{\n  \"city\":"),
    Reply.CallArguments(0, " \"Paris\"\n}"),
    Reply.CallFinished(0, "call_0", "get_weather", "{\n  \"city\": \"Paris\"\n}"),
    Reply.CallStarted(1, "call_1", "get_time"),
    Reply.CallArguments(1, "{}"),
    Reply.CallFinished(1, "call_1", "get_time", "{}"),
    usage,
    Reply.Finish("tool_calls")
  ],
  "cut-off": [
    Reply.CallStarted(0, "call_0", "write"),
    Reply.CallArguments(0, "{\"path\":\"a"),
    Reply.CallCutOff(0, "call_0", "write", "{\"path\":\"a"),
    usage,
    Reply.Finish("length")
  ]
}

describe("content-generation replies", () => {
  it("read the same through the vendor's SDK, streamed and not", () =>
    fc.assert(
      fc.asyncProperty(replies, fc.boolean(), async (events, thoughts) => {
        const of = { ...info, thoughts }
        assert.deepStrictEqual(await streamed(stream(events, of)), await whole(object(events, of)))
      }),
      { numRuns: runs(150) }
    ))

  it("are what their schemas say, without a field more", () =>
    fc.assert(
      fc.property(replies, (events) => {
        const strict = { onExcessProperty: "error" } as const
        Schema.decodeUnknownSync(GenerateResponse)(object(events), strict)
        for (const { data, event } of parseFrames(stream(events))) {
          assert.isUndefined(event)
          Schema.decodeUnknownSync(GenerateChunk)(JSON.parse(data), strict)
        }
      }),
      { numRuns: runs(100) }
    ))

  it("end with a reason and the counts, and say neither before", () =>
    fc.assert(
      fc.property(replies, (events) => {
        const chunks = parseFrames(stream(events)).map(({ data }) =>
          Schema.decodeUnknownSync(GenerateChunk)(JSON.parse(data))
        )
        const last = chunks.pop()
        assert.isDefined(last?.candidates?.[0]?.finishReason)
        assert.isDefined(last?.usageMetadata)
        for (const chunk of chunks) {
          assert.isUndefined(chunk.candidates?.[0]?.finishReason)
          assert.isUndefined(chunk.usageMetadata)
        }
      }),
      { numRuns: runs(100) }
    ))

  it("send a complete call in one chunk", () => {
    const { frames } = generateFrames(info)
    const sent = scripts["calls"]!.slice(1, 5).map((event) => {
      const out: Array<string> = []
      frames.push(event, out)
      return out.length
    })
    assert.deepStrictEqual(sent, [0, 0, 0, 1])
  })

  it("show nothing of a call that was cut off", async () => {
    const { calls, finish } = await streamed(stream(scripts["cut-off"]!))
    assert.deepStrictEqual(calls, [])
    assert.strictEqual(finish, "MAX_TOKENS")
  })

  it.each(
    [["stop", "STOP"], ["tool_calls", "STOP"], ["length", "MAX_TOKENS"], ["content_filter", "SAFETY"]] as const
  )("finish %s as %s", (reason, expected) => {
    assert.strictEqual(object([usage, Reply.Finish(reason)]).candidates?.[0]?.finishReason, expected)
  })

  it("count thoughts apart from the candidates", () => {
    assert.deepStrictEqual(object(scripts["thoughts"]!).usageMetadata, {
      promptTokenCount: 12,
      candidatesTokenCount: 5,
      thoughtsTokenCount: 4,
      totalTokenCount: 21,
      cachedContentTokenCount: 2
    })
  })

  it("are kept alive by comments, which the SDK passes over", async () => {
    const { frames, keepAlive } = generateFrames(info)
    const out: Array<string> = []
    for (const event of scripts["text"]!) {
      frames.push(event, out)
      out.push(keepAlive())
    }
    assert.deepStrictEqual(await streamed(out.join("")), await whole(object(scripts["text"]!)))
  })

  it("send a failure in the stream so that the SDK throws it", async () => {
    const failing = stream(scripts["text"]!.slice(0, 1)) +
      generateFailure(gatewayError("upstream_timeout", "The upstream fell silent"))
    const failure: unknown = await streamed(failing).catch((error: unknown) => error)
    assert.instanceOf(failure, ApiError)
    assert.strictEqual(failure.status, 503)
    assert.include(failure.message, "UNAVAILABLE")
  })
})
