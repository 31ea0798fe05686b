import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import * as fc from "fast-check"
import OpenAI from "openai"
import type { Response as SdkResponse, ResponseStreamEvent } from "openai/resources/responses/responses"
import { ResponseEvent } from "../../../src/contracts/responses/events.ts"
import { ResponseObject } from "../../../src/contracts/responses/ResponseObject.ts"
import { responseInfo } from "../../../src/contracts/responses/responseText.ts"
import type { ResponseRequest } from "../../../src/contracts/responses/schema.ts"
import { toolNames } from "../../../src/contracts/responses/tools.ts"
import { responseFrames } from "../../../src/contracts/responses/writeReply.ts"
import { gatewayError } from "../../../src/domain/GatewayError.ts"
import type { ReplyEvent } from "../../../src/domain/ReplyEvent.ts"
import * as Reply from "../../../src/domain/ReplyEvent.ts"
import { runs } from "../../support/effort.ts"
import { replies } from "../../support/replyEvents.ts"
import { parseFrames } from "../../support/sse.ts"

const seed = "0123456789abcdef0123456789abcdef"
const request: ResponseRequest = {
  model: "gpt-5",
  input: "Hi",
  instructions: "Be \"brief\".",
  tools: [
    { type: "function", name: "get_weather", parameters: { type: "object" } },
    { type: "custom", name: "patch" }
  ]
}
const info = responseInfo(seed, 7, request, toolNames(request.tools ?? []).targets)

/** The frames of a reply, and the object that it settles on. */
const render = (events: ReadonlyArray<ReplyEvent>, then?: (renderer: ReturnType<typeof start>) => string) => {
  const bodies: Array<string> = []
  const renderer = start((body) => bodies.push(body))
  const out: Array<string> = []
  for (const event of events) renderer.frames.push(event, out)
  renderer.frames.end(out)
  if (then !== undefined) out.push(then(renderer))
  assert.isAtMost(bodies.length, 1, "a response is finalized once")
  return { frames: out.join(""), body: bodies[0] ?? "" }
}
const start = (finalized: (body: string) => void) =>
  responseFrames(info, { now: () => 9000, finalized, begun: undefined, compaction: undefined })

const strict = { onExcessProperty: "error" } as const
const object = (body: string) => Schema.decodeUnknownSync(ResponseObject)(JSON.parse(body), strict)
const eventsOf = (frames: string) => {
  const list = parseFrames(frames)
  assert.deepStrictEqual(list.at(-1), { event: undefined, data: "[DONE]" })
  return list.slice(0, -1).map(({ data, event }) => {
    const decoded = Schema.decodeUnknownSync(ResponseEvent)(JSON.parse(data), strict)
    assert.strictEqual(decoded.type, event)
    return decoded
  })
}

/** The vendor's client over a reply of ours. */
const clientOf = (body: string, contentType: string) =>
  new OpenAI({
    apiKey: "k",
    maxRetries: 0,
    logLevel: "off",
    fetch: () => Promise.resolve(new Response(body, { headers: { "content-type": contentType } }))
  })

/** What the SDK's accumulator makes of frames, without the fields that it adds for its own parser. */
const accumulated = async (frames: string) => {
  const response = await clientOf(frames, "text/event-stream").responses.stream({ model: "gpt-5", input: "Hi" })
    .finalResponse()
  const own = JSON.parse(
    JSON.stringify(response),
    (key, value) => key === "parsed" || key === "parsed_arguments" || key === "output_parsed" ? undefined : value
  )
  return JSON.stringify(own)
}
const parsed = (json: string): unknown => JSON.parse(json)

const usage = Reply.UsageReported({ promptTokens: 12, completionTokens: 9, reasoningTokens: 4, cachedTokens: 2 })
const call = (index: number, name: string, ...deltas: ReadonlyArray<string>): ReadonlyArray<ReplyEvent> => [
  Reply.CallStarted(index, `call_${index}`, name),
  ...deltas.map((delta) => Reply.CallArguments(index, delta)),
  Reply.CallFinished(index, `call_${index}`, name, deltas.join(""))
]

const scripts: Record<string, ReadonlyArray<ReplyEvent>> = {
  text: [Reply.TextDelta("Hel"), Reply.TextDelta("lo\n"), usage, Reply.Finish("stop")],
  calls: [
    Reply.TextDelta("Looking. "),
    ...call(0, "get_weather", "{\"city\":", "\"Paris\"}"),
    Reply.TextDelta("\n"),
    ...call(1, "patch", "{\"input\":", "\"+a\\n-b\"}"),
    Reply.TextDelta("Done."),
    usage,
    Reply.Finish("tool_calls")
  ],
  "cut-off": [
    Reply.TextDelta("Writing. "),
    Reply.CallStarted(0, "call_0", "write"),
    Reply.CallArguments(0, "{\"path\":\"a"),
    Reply.CallCutOff(0, "call_0", "write", "{\"path\":\"a"),
    usage,
    Reply.Finish("length")
  ],
  withdrawn: [Reply.TextDelta("Well"), usage, Reply.Finish("content_filter")]
}

type DeepReadonly<T> = T extends ReadonlyArray<infer A> ? ReadonlyArray<DeepReadonly<A>>
  : T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
  : T

// What follows from the request is as open as the request; the vendor closes its own lists of values there.
type Echoed = "tools" | "tool_choice" | "error" | "reasoning" | "service_tier" | "text"

/** Compiles only while every event and every response is what the vendor's types say. */
const asSdkEvent = (event: Exclude<typeof ResponseEvent.Type, { readonly response: unknown }>) =>
  event satisfies DeepReadonly<ResponseStreamEvent>
const asSdkResponse = ({ usage, ...response }: typeof ResponseObject.Type) =>
  ({ ...response, ...(usage === null ? {} : { usage }) }) satisfies DeepReadonly<Omit<SdkResponse, Echoed>>

/** The fields that the vendor's type marks as required; the list compiles only while it is complete. */
type RequiredKeys<T> = { readonly [K in keyof T as {} extends Pick<T, K> ? never : K]: true }
const required: RequiredKeys<SdkResponse> = {
  id: true,
  access_programs: true,
  output_text: true,
  created_at: true,
  error: true,
  incomplete_details: true,
  instructions: true,
  metadata: true,
  model: true,
  object: true,
  output: true,
  parallel_tool_calls: true,
  temperature: true,
  tool_choice: true,
  tools: true,
  top_p: true
}

describe("Responses replies", () => {
  it("are accumulated by the vendor's SDK to the object that is sent without a stream", () =>
    fc.assert(
      fc.asyncProperty(replies, async (events) => {
        const { body, frames } = render(events)
        assert.deepStrictEqual(parsed(await accumulated(frames)), parsed(body))
      }),
      { numRuns: runs(150) }
    ))

  it("are accumulated item by item to the output of the last event", () =>
    fc.assert(
      fc.asyncProperty(replies, async (events) => {
        const { body, frames } = render(events)
        const parts = frames.split(/(?=^event: response\.(?:completed|incomplete)$)/m)
        assert.strictEqual(parts.length, 2)
        const before: { output: unknown; output_text: string } = JSON.parse(
          await accumulated(`${parts[0]}data: [DONE]\n\n`)
        )
        assert.deepStrictEqual(before.output, JSON.parse(body).output)
        assert.strictEqual(before.output_text, JSON.parse(body).output_text)
      }),
      { numRuns: runs(100) }
    ))

  it("are what their schemas and the vendor's types say, without a field more", () =>
    fc.assert(
      fc.property(replies, (events) => {
        const { body, frames } = render(events)
        const response = asSdkResponse(object(body))
        for (const key of Object.keys(required)) assert.property(response, key)
        for (const event of eventsOf(frames)) {
          if ("response" in event) asSdkResponse(event.response)
          else asSdkEvent(event)
        }
      }),
      { numRuns: runs(100) }
    ))

  it("come in the order of the spec: numbered, each item opened, filled and closed under its own ids", () =>
    fc.assert(
      fc.property(replies, (events) => {
        const { body, frames } = render(events)
        const list = eventsOf(frames)
        list.forEach((event, i) => assert.strictEqual(event.sequence_number, i))
        assert.deepStrictEqual(list.slice(0, 2).map((event) => event.type), [
          "response.created",
          "response.in_progress"
        ])
        assert.deepInclude(list[0], { id: `resp_${seed}`, status: "in_progress" })
        const last = list.at(-1)!
        assert("response" in last)
        assert.deepStrictEqual(last.response, object(body))
        assert.strictEqual(last.type, `response.${last.response.status}`)

        const done: Array<unknown> = []
        let open: { id: string; callId: string | undefined; deltas: string; steps: Array<string> } | undefined
        for (const event of list.slice(2, -1)) {
          assert("output_index" in event)
          assert.strictEqual(event.response_id, `resp_${seed}`)
          assert.strictEqual(event.output_index, done.length)
          if (event.type === "response.output_item.added") {
            assert.isUndefined(open)
            assert.propertyVal(event.item, "status", "in_progress")
            const callId = "call_id" in event.item ? event.item.call_id : undefined
            open = { id: event.item.id, callId, deltas: "", steps: [] }
            continue
          }
          assert(open !== undefined)
          if (event.type === "response.output_item.done") {
            assert.strictEqual(event.item.id, open.id)
            done.push(event.item)
            const steps = open.steps.filter((step, i) => step !== open?.steps[i - 1])
            assert.deepStrictEqual(steps, stepsOf[event.item.type])
            open = undefined
            continue
          }
          assert.strictEqual(event.item_id, open.id)
          open.steps.push(event.type)
          if ("call_id" in event) assert.strictEqual(event.call_id, open.callId)
          if ("delta" in event) open.deltas += event.delta
          if ("text" in event) assert.strictEqual(event.text, open.deltas)
          if ("input" in event) assert.strictEqual(event.input, open.deltas)
          if ("arguments" in event) assert.strictEqual(event.arguments, open.deltas)
        }
        assert.isUndefined(open)
        assert.deepStrictEqual(
          done.map((item) => ({ ...(item as object), status: "" })),
          last.response.output.map((item) => ({ ...item, status: "" }))
        )
      }),
      { numRuns: runs(150) }
    ))

  it("give the same frames however many events a network chunk brings", () =>
    fc.assert(
      fc.property(replies, (events) => {
        const { frames } = start(() => {})
        const text = events.map((event) => {
          const out: Array<string> = []
          frames.push(event, out)
          return out.join("")
        })
        assert.strictEqual(text.join(""), render(events).frames)
      }),
      { numRuns: runs(30) }
    ))

  it("keep text, calls and reasoning as items of their own, in order", () => {
    const { output, output_text } = object(render(scripts["calls"]!).body)
    assert.deepStrictEqual(output.map((item) => item.type), [
      "message",
      "function_call",
      "custom_tool_call",
      "message"
    ])
    assert.strictEqual(output_text, "Looking. Done.")
  })

  it("carry a custom tool's call as the text that it is called with", () => {
    const { output } = object(render(scripts["calls"]!).body)
    assert.deepInclude(output[2], { type: "custom_tool_call", call_id: "call_1", name: "patch", input: "+a\n-b" })
  })

  it("say why they are incomplete", () => {
    const cut = object(render(scripts["cut-off"]!).body)
    assert.strictEqual(cut.status, "incomplete")
    assert.deepStrictEqual(cut.incomplete_details, { reason: "max_output_tokens" })
    const withdrawn = object(render(scripts["withdrawn"]!).body)
    assert.strictEqual(withdrawn.status, "incomplete")
    assert.deepStrictEqual(withdrawn.incomplete_details, { reason: "content_filter" })
    assert.propertyVal(withdrawn.output[0], "status", "incomplete")
  })

  it("never let a call that was cut off look runnable", async () => {
    const { body, frames } = render(scripts["cut-off"]!)
    assert.deepStrictEqual(object(body).output.map((item) => item.type), ["message"])
    assert.notInclude(frames, "response.function_call_arguments.done")
    const doneItems = eventsOf(frames).filter((event) => event.type === "response.output_item.done")
    assert.deepStrictEqual(doneItems.map((event) => event.item.type), ["message"])
    assert.deepStrictEqual(parsed(await accumulated(frames)), parsed(body))
  })

  it("make no message of blank text beside another item, and keep the blanks before a text", () => {
    const beside = object(
      render([Reply.TextDelta("\n"), ...call(0, "f", "{}"), Reply.TextDelta(" \n"), usage, Reply.Finish("tool_calls")])
        .body
    )
    assert.deepStrictEqual(beside.output.map((item) => item.type), ["function_call"])
    const before = object(
      render([Reply.TextDelta("\n"), Reply.TextDelta(" "), Reply.TextDelta("x"), usage, Reply.Finish("stop")]).body
    )
    assert.strictEqual(before.output_text, "\n x")
    const alone = object(render([Reply.TextDelta(" "), usage, Reply.Finish("stop")]).body)
    assert.strictEqual(alone.output_text, " ")
  })

  it("put characters together that the events cut in two", () => {
    const { body } = render([Reply.TextDelta("a\ud83d"), Reply.TextDelta("\ude00b"), usage, Reply.Finish("stop")])
    assert.strictEqual(object(body).output_text, "a😀b")
  })

  it("echo the request, with the fields that the SDK requires of a tool", () => {
    const response = object(render(scripts["text"]!).body)
    assert.strictEqual(response.instructions, "Be \"brief\".")
    assert.deepStrictEqual(response.tools, [
      { type: "function", name: "get_weather", description: null, parameters: { type: "object" }, strict: null },
      { type: "custom", name: "patch" }
    ])
    assert.deepStrictEqual(response.usage, {
      input_tokens: 12,
      input_tokens_details: { cached_tokens: 2, cache_write_tokens: 0 },
      output_tokens: 9,
      output_tokens_details: { reasoning_tokens: 4 },
      total_tokens: 21
    })
  })

  it("send a failure as response.failed, with the output before it", async () => {
    const error = gatewayError("upstream_timeout", "The upstream fell silent")
    const { body, frames } = render(
      [...call(0, "f", "{}"), Reply.TextDelta("Wel"), Reply.TextDelta("l")],
      (renderer) => renderer.failure(error)
    )
    const last = eventsOf(frames).at(-1)!
    assert(last.type === "response.failed")
    assert.deepStrictEqual(last.response.error, {
      code: "upstream_timeout",
      message: "The upstream fell silent",
      type: "service_unavailable_error",
      param: null
    })
    assert.deepStrictEqual(last.response.output.map((item) => [item.type, "status" in item ? item.status : ""]), [
      ["function_call", "completed"],
      ["message", "incomplete"]
    ])
    assert.notInclude(frames, "response.completed")
    assert.deepStrictEqual(last.response, object(body))
    assert.deepStrictEqual(parsed(await accumulated(frames)), parsed(body))
  })

  it("send a failure before the first event in a complete stream", () => {
    const error = gatewayError("tool_choice_violation", "No call")
    const { frames } = render([], (renderer) => renderer.failure(error))
    assert.deepStrictEqual(eventsOf(frames).map((event) => event.type), [
      "response.created",
      "response.in_progress",
      "response.failed"
    ])
  })

  it("are left as cancelled, with nothing of a call that is not whole", () => {
    const { body } = render(
      [Reply.TextDelta("Hm. "), Reply.CallStarted(0, "call_0", "f"), Reply.CallArguments(0, "{\"a\"")],
      (renderer) => {
        renderer.cancel()
        renderer.cancel()
        return ""
      }
    )
    const response = object(body)
    assert.strictEqual(response.status, "cancelled")
    assert.deepStrictEqual(response.output.map((item) => item.type), ["message"])
  })

  it("are not cancelled once they are final", () => {
    const { body } = render(scripts["text"]!, (renderer) => {
      renderer.cancel()
      return ""
    })
    assert.strictEqual(object(body).status, "completed")
  })
})

const stepsOf: Record<string, ReadonlyArray<string>> = {
  message: [
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done"
  ],
  reasoning: [
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.reasoning_summary_part.done"
  ],
  function_call: ["response.function_call_arguments.delta", "response.function_call_arguments.done"],
  custom_tool_call: ["response.custom_tool_call_input.delta", "response.custom_tool_call_input.done"]
}
