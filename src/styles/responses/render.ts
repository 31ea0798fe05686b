/**
 * From the canonical reply to Responses frames (spec "Responses-style stream") and to the response object.
 *
 * One machine makes both, so that they cannot differ: a reply that is not streamed is the object that the machine settles on.
 */
import type { GatewayError } from "../../domain/GatewayError.ts"
import type { FinishReason, ReplyEvent, Usage } from "../../domain/ReplyEvent.ts"
import type { FrameRenderer } from "../../http/FrameRenderer.ts"
import { outputItemId, responseId } from "./ids.ts"
import type { ResponseInfo, ResponseState } from "./responseText.ts"
import { inProgressText, responseText } from "./responseText.ts"
import { customInput } from "./tools.ts"

/** The item that is growing. `text` stands as it does between the quotes of a JSON string. */
type OpenItem =
  | {
    readonly kind: "message" | "reasoning"
    readonly id: string
    /** The fields that place an event in the item, and the beginning of its delta frames. */
    readonly place: string
    readonly delta: string
    text: string
  }
  | {
    readonly kind: "call"
    readonly id: string
    readonly callId: string
    readonly name: string
    readonly custom: boolean
    readonly place: string
    readonly delta: string
  }

/** A renderer that also knows the response as an object. */
export interface ResponseRenderer extends FrameRenderer {
  /** Settles a response whose caller has gone; does nothing when it is final. */
  readonly cancel: () => void
}

export interface RenderOptions {
  /** The clock's milliseconds. */
  readonly now: () => number
  /** Told the response object as JSON text once it is final, before the frames that say so are out. */
  readonly settled: (body: string) => void
}

const escaped = (text: string): string => JSON.stringify(text).slice(1, -1)

const textPart = (text: string): string => `{"type":"output_text","text":"${text}","annotations":[],"logprobs":[]}`

const summaryPart = (text: string): string => `{"type":"summary_text","text":"${text}"}`

const messageItem = (id: string, status: string, content: string): string =>
  `{"id":"${id}","type":"message","status":"${status}","role":"assistant","content":[${content}]}`

const reasoningItem = (id: string, status: string, summary: string): string =>
  `{"id":"${id}","type":"reasoning","status":"${status}","summary":[${summary}]}`

const callItem = (item: Extract<OpenItem, { readonly kind: "call" }>, status: string, payload: string): string => {
  const [type, field] = item.custom ? ["custom_tool_call", "input"] : ["function_call", "arguments"]
  return `{"id":"${item.id}","type":"${type}","status":"${status}","call_id":${JSON.stringify(item.callId)},"name":${
    JSON.stringify(item.name)
  },"${field}":${JSON.stringify(payload)}}`
}

const incompleteReasons = {
  stop: null,
  stop_sequence: null,
  tool_calls: null,
  length: "max_output_tokens",
  content_filter: "content_filter"
} as const satisfies Record<FinishReason, ResponseState["incomplete"]>

const done = "data: [DONE]\n\n"

/** Starts the renderer of one response. */
export const responseFrames = (info: ResponseInfo, options: RenderOptions): ResponseRenderer => {
  const response = `"response_id":"${responseId(info.seed)}"`
  let sequence = 0
  let begun = false
  let settled = false
  let open: OpenItem | undefined
  /** Items begun so far; those that were cut off count, but are not in the output. */
  let begunItems = 0
  const output: Array<string> = []
  let text = ""
  let usage: Usage | undefined
  /** Blank text that is an item only if more comes of it: between calls it would be an empty message. */
  let blank = ""

  const frame = (type: string, fields: string): string =>
    `event: ${type}\ndata: {"type":"${type}","sequence_number":${sequence++},${fields}}\n\n`
  const deltaHead = (type: string, fields: string): string =>
    `event: ${type}\ndata: {"type":"${type}",${fields},"sequence_number":`
  const deltaFrame = (head: string, delta: string): string => `${head}${sequence++},"delta":"${delta}"}\n\n`

  const begin = (out: Array<string>) => {
    if (begun) return
    begun = true
    const object = inProgressText(info)
    out.push(
      frame("response.created", `"id":"${responseId(info.seed)}","status":"in_progress","response":${object}`),
      frame("response.in_progress", `"response":${object}`)
    )
  }

  const openText = (kind: "message" | "reasoning", out: Array<string>) => {
    const index = begunItems++
    const id = outputItemId(info.seed, kind, index)
    const item = `${response},"output_index":${index}`
    const isMessage = kind === "message"
    const place = `${item},"item_id":"${id}","${isMessage ? "content_index" : "summary_index"}":0`
    const part = isMessage ? textPart("") : summaryPart("")
    const added = isMessage ? messageItem(id, "in_progress", "") : reasoningItem(id, "in_progress", "")
    out.push(
      frame("response.output_item.added", `${item},"item":${added}`),
      frame(
        isMessage ? "response.content_part.added" : "response.reasoning_summary_part.added",
        `${place},"part":${part}`
      )
    )
    const delta = isMessage
      ? deltaHead("response.output_text.delta", `${place},"logprobs":[]`)
      : deltaHead("response.reasoning_summary_text.delta", place)
    open = { kind, id, place, delta, text: "" }
    return open
  }

  const growText = (kind: "message" | "reasoning", delta: string, out: Array<string>) => {
    if (open?.kind !== kind) {
      closeText("completed", out)
      openText(kind, out)
    }
    if (open === undefined || open.kind === "call") return
    const piece = escaped(delta)
    open.text += piece
    if (kind === "message") text += piece
    out.push(deltaFrame(open.delta, piece))
  }

  /** The item that is growing, as it stands; nothing of a call may look runnable before it is whole. */
  const textItem = (item: OpenItem, status: "completed" | "incomplete"): string | undefined =>
    item.kind === "call"
      ? undefined
      : item.kind === "message"
      ? messageItem(item.id, status, textPart(item.text))
      : reasoningItem(item.id, status, summaryPart(item.text))

  const closeText = (status: "completed" | "incomplete", out: Array<string>) => {
    const closing = open
    const item = closing === undefined ? undefined : textItem(closing, status)
    if (closing === undefined || closing.kind === "call" || item === undefined) return
    open = undefined
    if (closing.kind === "message") {
      out.push(
        frame("response.output_text.done", `${closing.place},"text":"${closing.text}","logprobs":[]`),
        frame("response.content_part.done", `${closing.place},"part":${textPart(closing.text)}`)
      )
    } else {
      out.push(
        frame("response.reasoning_summary_text.done", `${closing.place},"text":"${closing.text}"`),
        frame("response.reasoning_summary_part.done", `${closing.place},"part":${summaryPart(closing.text)}`)
      )
    }
    const index = begunItems - 1
    output.push(item)
    out.push(frame("response.output_item.done", `${response},"output_index":${index},"item":${item}`))
  }

  const openCall = (callId: string, name: string, out: Array<string>) => {
    closeText("completed", out)
    blank = ""
    const index = begunItems++
    const custom = info.customTools.has(name)
    const id = outputItemId(info.seed, custom ? "custom_tool_call" : "function_call", index)
    const item = `${response},"output_index":${index}`
    const place = `${item},"item_id":"${id}","call_id":${JSON.stringify(callId)}`
    const delta = deltaHead(
      custom ? "response.custom_tool_call_input.delta" : "response.function_call_arguments.delta",
      place
    )
    open = { kind: "call", id, callId, name, custom, place, delta }
    out.push(frame("response.output_item.added", `${item},"item":${callItem(open, "in_progress", "")}`))
  }

  const closeCall = (args: string, out: Array<string>) => {
    const call = open
    if (call?.kind !== "call") return
    open = undefined
    const index = begunItems - 1
    const name = `"name":${JSON.stringify(call.name)}`
    const payload = call.custom ? customInput(args) : args
    if (call.custom) {
      // The text stands inside the JSON of the arguments: it is whole when they are.
      out.push(
        deltaFrame(call.delta, escaped(payload)),
        frame("response.custom_tool_call_input.done", `${call.place},${name},"input":${JSON.stringify(payload)}`)
      )
    } else {
      out.push(
        frame("response.function_call_arguments.done", `${call.place},${name},"arguments":${JSON.stringify(payload)}`)
      )
    }
    const item = callItem(call, "completed", payload)
    output.push(item)
    out.push(frame("response.output_item.done", `${response},"output_index":${index},"item":${item}`))
  }

  const settle = (state: Pick<ResponseState, "status" | "error" | "incomplete">): string => {
    const unfinished = open === undefined ? undefined : textItem(open, "incomplete")
    const body = responseText(info, {
      ...state,
      completedAt: state.status === "completed" ? Math.floor(options.now() / 1000) : null,
      output: unfinished === undefined ? output : [...output, unfinished],
      text,
      usage
    })
    settled = true
    options.settled(body)
    return body
  }

  const finish = (reason: FinishReason, out: Array<string>) => {
    const incomplete = incompleteReasons[reason]
    const status = incomplete === null ? "completed" : "incomplete"
    if (blank !== "" && output.length === 0) growText("message", blank, out)
    closeText(status, out)
    const body = settle({ status, error: null, incomplete })
    out.push(frame(`response.${status}`, `"response":${body}`), done)
  }

  return {
    keepAlive: () => ": keep-alive\n\n",
    failure(error: GatewayError) {
      const out: Array<string> = []
      begin(out)
      const body = settle({ status: "failed", error, incomplete: null })
      out.push(frame("response.failed", `"response":${body}`), done)
      return out.join("")
    },
    cancel() {
      if (!settled) settle({ status: "cancelled", error: null, incomplete: null })
    },
    frames: {
      push(event: ReplyEvent, out) {
        begin(out)
        switch (event._tag) {
          case "TextDelta": {
            if (open?.kind !== "message") {
              const before = blank
              if (event.text.trim() === "") {
                blank += event.text
                return
              }
              blank = ""
              return growText("message", before + event.text, out)
            }
            return growText("message", event.text, out)
          }
          case "ReasoningDelta":
            return growText("reasoning", event.text, out)
          case "CallStarted":
            return openCall(event.id, event.name, out)
          case "CallArguments":
            if (open?.kind === "call" && !open.custom) out.push(deltaFrame(open.delta, escaped(event.delta)))
            return
          case "CallFinished":
            return closeCall(event.arguments, out)
          case "CallCutOff":
            // Without its end the item never looks whole, and it is not in the output.
            open = undefined
            return
          case "UsageReported":
            usage = event.usage
            return
          case "Finish":
            return finish(event.reason, out)
        }
      },
      end() {}
    }
  }
}
