/**
 * Parses the frames and bodies of all styles into one form, and reports violations of their order.
 */
import { at, listAt, numberAt, parseJson, textAt } from "./json.ts"
import type { Style } from "./plan.ts"

/** A tool call of a reply; `text` is the raw arguments. */
export interface ReadCall {
  readonly name: string
  readonly text: string
}

/** An answer in one form for all styles. */
export interface Answer {
  readonly reasoning: string
  readonly text: string
  readonly calls: ReadonlyArray<ReadCall>
  /** In the chat style's terms: `stop`, `tool_calls`, `length`, `content_filter`; other reasons unchanged. */
  readonly finish: string | undefined
  /** `code` of an error, or the content-generation style's `status`. */
  readonly error: string | undefined
  /** The reply ended as its style requires. */
  readonly ended: boolean
  /** The reply's id. */
  readonly id: string
  /** Tokens of the reply, if the reply has them. */
  readonly tokens: number | undefined
  /** Violations of the order of frames. */
  readonly wrong: ReadonlyArray<string>
}

interface Draft {
  reasoning: string
  text: string
  calls: Array<{ name: string; text: string }>
  finish: string | undefined
  error: string | undefined
  ended: boolean
  id: string
  tokens: number | undefined
  wrong: Array<string>
}

const draft = (): Draft => ({
  reasoning: "",
  text: "",
  calls: [],
  finish: undefined,
  error: undefined,
  ended: false,
  id: "",
  tokens: undefined,
  wrong: []
})

const finishes: Readonly<Record<string, string>> = {
  completed: "stop",
  end_turn: "stop",
  tool_use: "tool_calls",
  max_tokens: "length",
  max_output_tokens: "length",
  refusal: "content_filter",
  STOP: "stop",
  MAX_TOKENS: "length",
  SAFETY: "content_filter",
  PROHIBITED_CONTENT: "content_filter"
}

const finishOf = (word: string): string | undefined => word === "" ? undefined : finishes[word] ?? word

const errorOf = (value: unknown): string | undefined => {
  const error = at(value, "error")
  if (typeof error !== "object" || error === null) return undefined
  return textAt(error, "code") || textAt(error, "status") || "an error without a code"
}

interface Frame {
  readonly event: string | undefined
  readonly data: string
}

/** The complete frames of a stream: the text up to the last blank line. */
export const framesOf = (text: string): ReadonlyArray<Frame> =>
  text.split("\n\n").slice(0, -1).flatMap((frame) => {
    let event: string | undefined
    const data: Array<string> = []
    for (const line of frame.split("\n")) {
      if (line.startsWith("event: ")) event = line.slice(7)
      else if (line.startsWith("data: ")) data.push(line.slice(6))
    }
    return data.length === 0 ? [] : [{ event, data: data.join("\n") }]
  })

const readResponse = (answer: Draft, response: unknown): void => {
  answer.id = textAt(response, "id")
  for (const item of listAt(response, "output")) {
    switch (textAt(item, "type")) {
      case "reasoning":
        for (const part of listAt(item, "summary")) answer.reasoning += textAt(part, "text")
        break
      case "message":
        for (const part of listAt(item, "content")) answer.text += textAt(part, "text")
        break
      case "function_call":
        answer.calls.push({ name: textAt(item, "name"), text: textAt(item, "arguments") })
    }
  }
  answer.tokens = numberAt(response, "usage", "output_tokens")
  const status = textAt(response, "status")
  answer.error = errorOf(response)
  answer.finish = status === "failed" ? undefined : status === "incomplete"
    ? finishOf(textAt(response, "incomplete_details", "reason"))
    : answer.calls.length > 0 && status === "completed"
    ? "tool_calls"
    : finishOf(status)
}

const readParts = (answer: Draft, value: unknown): void => {
  for (const part of listAt(value, "candidates", 0, "content", "parts")) {
    const call = at(part, "functionCall")
    if (call !== undefined) {
      answer.calls.push({ name: textAt(call, "name"), text: JSON.stringify(at(call, "args")) })
    } else if (at(part, "thought") === true) answer.reasoning += textAt(part, "text")
    else answer.text += textAt(part, "text")
  }
  const word = textAt(value, "candidates", 0, "finishReason")
  if (word !== "") answer.finish = finishOf(word)
  const candidates = numberAt(value, "usageMetadata", "candidatesTokenCount")
  if (candidates !== undefined) {
    answer.tokens = candidates + (numberAt(value, "usageMetadata", "thoughtsTokenCount") ?? 0)
  }
}

const wholes: Readonly<Record<Style, (answer: Draft, value: unknown) => void>> = {
  chat: (answer, value) => {
    const message = at(value, "choices", 0, "message")
    answer.id = textAt(value, "id")
    answer.reasoning = textAt(message, "reasoning_content")
    answer.text = textAt(message, "content")
    for (const call of listAt(message, "tool_calls")) {
      answer.calls.push({ name: textAt(call, "function", "name"), text: textAt(call, "function", "arguments") })
    }
    answer.finish = finishOf(textAt(value, "choices", 0, "finish_reason"))
    answer.tokens = numberAt(value, "usage", "completion_tokens")
  },
  responses: readResponse,
  messages: (answer, value) => {
    answer.id = textAt(value, "id")
    for (const block of listAt(value, "content")) {
      const type = textAt(block, "type")
      if (type === "thinking") answer.reasoning += textAt(block, "thinking")
      if (type === "text") answer.text += textAt(block, "text")
      if (type === "tool_use") {
        answer.calls.push({ name: textAt(block, "name"), text: JSON.stringify(at(block, "input")) })
      }
    }
    answer.finish = finishOf(textAt(value, "stop_reason"))
    answer.tokens = numberAt(value, "usage", "output_tokens")
  },
  generate: (answer, value) => {
    readParts(answer, value)
    if (listAt(value, "candidates").length > 0 && answer.finish === "stop" && answer.calls.length > 0) {
      answer.finish = "tool_calls"
    }
  }
}

/** Reads frames in order. Returns the violations of each. */
type Read = (answer: Draft, value: unknown, frame: Frame) => string | undefined

const readChat = (): Read => {
  let first = true
  return (answer, value) => {
    answer.error ??= errorOf(value)
    if (answer.error !== undefined) return undefined
    if (answer.finish !== undefined) return "a chunk after the finish reason"
    const delta = at(value, "choices", 0, "delta")
    const role = textAt(delta, "role")
    if (first !== (role === "assistant")) return "the role is not in the first chunk alone"
    first = false
    answer.id = textAt(value, "id")
    answer.reasoning += textAt(delta, "reasoning_content")
    answer.text += textAt(delta, "content")
    for (const call of listAt(delta, "tool_calls")) {
      const index = numberAt(call, "index") ?? -1
      if (index === answer.calls.length) answer.calls.push({ name: textAt(call, "function", "name"), text: "" })
      const known = answer.calls[index]
      if (known === undefined) return `a call with the index ${index}`
      known.text += textAt(call, "function", "arguments")
    }
    answer.finish = finishOf(textAt(value, "choices", 0, "finish_reason"))
    answer.tokens = numberAt(value, "usage", "completion_tokens")
    return undefined
  }
}

const readResponses = (): Read => {
  let sequence = 0
  let shown = ""
  return (answer, value, { event }) => {
    const type = textAt(value, "type")
    if (type !== event) return `the event ${event} has the type ${type}`
    if (numberAt(value, "sequence_number") !== sequence++) return `${type} is out of sequence`
    if (type === "response.output_text.delta") {
      shown += textAt(value, "delta")
      answer.text = shown
    }
    if (type === "response.reasoning_summary_text.delta") answer.reasoning += textAt(value, "delta")
    if (type === "response.completed" || type === "response.incomplete" || type === "response.failed") {
      const streamed = { reasoning: answer.reasoning, text: shown }
      answer.reasoning = ""
      answer.text = ""
      readResponse(answer, at(value, "response"))
      if (answer.text !== streamed.text) return "the text of the response is not what was streamed"
      if (answer.reasoning !== streamed.reasoning) return "the reasoning of the response is not what was streamed"
    }
    return undefined
  }
}

const readMessages = (): Read => {
  let open: { readonly index: number; readonly call: { name: string; text: string } | undefined } | undefined
  let blocks = 0
  return (answer, value, { event }) => {
    const type = textAt(value, "type")
    if (type !== event) return `the event ${event} has the type ${type}`
    switch (type) {
      case "message_start":
        if (answer.id !== "") return "a second message_start"
        answer.id = textAt(value, "message", "id")
        return undefined
      case "content_block_start": {
        const index = numberAt(value, "index") ?? -1
        if (open !== undefined || index !== blocks++) return `a block ${index} that is out of order`
        const isCall = textAt(value, "content_block", "type") === "tool_use"
        const call = isCall ? { name: textAt(value, "content_block", "name"), text: "" } : undefined
        if (call !== undefined) answer.calls.push(call)
        open = { index, call }
        return undefined
      }
      case "content_block_delta": {
        if (open === undefined || numberAt(value, "index") !== open.index) return "a delta of a block that is not open"
        const delta = at(value, "delta")
        answer.reasoning += textAt(delta, "thinking")
        answer.text += textAt(delta, "text")
        if (open.call !== undefined) open.call.text += textAt(delta, "partial_json")
        return undefined
      }
      case "content_block_stop":
        if (open === undefined || numberAt(value, "index") !== open.index) return "the stop of a block that is not open"
        open = undefined
        return undefined
      case "message_delta":
        if (open !== undefined) return "the end before a block's end"
        answer.finish = finishOf(textAt(value, "delta", "stop_reason"))
        answer.tokens = numberAt(value, "usage", "output_tokens")
        return undefined
      case "message_stop":
        answer.ended = true
        return undefined
      case "error":
        answer.error = errorOf(value)
        answer.ended = true
        return undefined
      default:
        return type === "ping" ? undefined : `an event ${type}`
    }
  }
}

const readGenerate = (): Read => (answer, value) => {
  if (answer.ended) return "a chunk after the last"
  answer.error = errorOf(value)
  readParts(answer, value)
  answer.ended = answer.error !== undefined || answer.finish !== undefined
  if (answer.finish === "stop" && answer.calls.length > 0) answer.finish = "tool_calls"
  return undefined
}

const readers: Readonly<Record<Style, () => Read>> = {
  chat: readChat,
  responses: readResponses,
  messages: readMessages,
  generate: readGenerate
}

/** Reads a stream that may be incomplete. */
export const readStream = (style: Style, text: string): Answer => {
  const answer = draft()
  const read = readers[style]()
  const needsDone = style === "chat" || style === "responses"
  for (const frame of framesOf(text)) {
    if (needsDone && frame.data === "[DONE]") {
      answer.ended = answer.finish !== undefined || answer.error !== undefined
      if (!answer.ended) answer.wrong.push("[DONE] without an end")
      continue
    }
    if (answer.ended) answer.wrong.push("a frame after the end")
    const value = parseJson(frame.data)
    const wrong = value === undefined
      ? `a frame that is no JSON: ${frame.data.slice(0, 80)}`
      : read(answer, value, frame)
    if (wrong !== undefined) answer.wrong.push(wrong)
  }
  return answer
}

/** Reads the body of a whole reply. */
export const readWhole = (style: Style, text: string): Answer => {
  const answer = draft()
  const value = parseJson(text)
  if (value === undefined) {
    answer.wrong.push(`a body that is no JSON: ${text.slice(0, 80)}`)
    return answer
  }
  answer.error = errorOf(value)
  if (answer.error === undefined) wholes[style](answer, value)
  answer.ended = true
  return answer
}
