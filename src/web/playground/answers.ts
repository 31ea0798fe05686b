/**
 * Collects replies of each style from the events of a stream or a whole body.
 */
import { list, record, string } from "../state/json.ts"
import type { Answer, Call, Style } from "./conversation.ts"

type GrowingCall = { -readonly [Field in keyof Call]: string }

/** A reply while it arrives. */
interface Growing {
  text: string
  reasoning: string
  finish: string | undefined
  error: string | undefined
  tokens: Answer["tokens"]
  /** Calls by their index in the reply. */
  readonly calls: Map<number | string, GrowingCall>
}

type Take = (growing: Growing, value: Readonly<Record<string, unknown>>) => void

const callAt = (growing: Growing, place: number | string): GrowingCall => {
  const known = growing.calls.get(place)
  if (known !== undefined) return known
  const added = { id: "", name: "", arguments: "" }
  growing.calls.set(place, added)
  return added
}

const chat: Take = (growing, value) => {
  const choice = record(list(value["choices"])[0])
  const part = record(choice["delta"] ?? choice["message"])
  growing.text += string(part["content"])
  growing.reasoning += string(part["reasoning_content"])
  for (const [index, entry] of list(part["tool_calls"]).entries()) {
    const given = record(entry)
    const call = callAt(growing, typeof given["index"] === "number" ? given["index"] : index)
    const named = record(given["function"])
    call.id ||= string(given["id"])
    call.name ||= string(named["name"])
    call.arguments += string(named["arguments"])
  }
  if (typeof choice["finish_reason"] === "string") growing.finish = choice["finish_reason"]
}

const outputItem = (growing: Growing, item: Readonly<Record<string, unknown>>, place: number | string): void => {
  if (item["type"] === "function_call") {
    const call = Object.assign(callAt(growing, place), { id: string(item["call_id"]), name: string(item["name"]) })
    call.arguments = string(item["arguments"]) || call.arguments
  }
}

const textOf = (parts: unknown): string => list(parts).map((part) => string(record(part)["text"])).join("")

const responses: Take = (growing, value) => {
  const place = typeof value["output_index"] === "number" ? value["output_index"] : 0
  switch (value["type"]) {
    case "response.output_text.delta":
      growing.text += string(value["delta"])
      return
    case "response.reasoning_summary_text.delta":
      growing.reasoning += string(value["delta"])
      return
    case "response.function_call_arguments.delta":
      callAt(growing, place).arguments += string(value["delta"])
      return
    case "response.output_item.added":
    case "response.output_item.done":
      outputItem(growing, record(value["item"]), place)
      return
    case "response.completed":
    case "response.incomplete":
    case "response.failed": {
      const response = record(value["response"])
      growing.finish = string(response["status"])
      if (value["type"] === "response.failed") growing.error = string(record(response["error"])["message"])
      return
    }
    default:
  }
  if (value["object"] !== "response" || value["type"] !== undefined) return
  growing.finish = string(value["status"])
  for (const [index, entry] of list(value["output"]).entries()) {
    const item = record(entry)
    outputItem(growing, item, index)
    if (item["type"] === "message") growing.text += textOf(item["content"])
    if (item["type"] === "reasoning") growing.reasoning += textOf(item["summary"])
  }
}

const messages: Take = (growing, value) => {
  const place = typeof value["index"] === "number" ? value["index"] : 0
  const start = (block: Readonly<Record<string, unknown>>, at: number, whole: boolean) => {
    if (block["type"] === "text") growing.text += string(block["text"])
    if (block["type"] === "thinking") growing.reasoning += string(block["thinking"])
    if (block["type"] === "tool_use") {
      const call = Object.assign(callAt(growing, at), { id: string(block["id"]), name: string(block["name"]) })
      if (whole) call.arguments = JSON.stringify(block["input"] ?? {})
    }
  }
  switch (value["type"]) {
    case "content_block_start":
      return start(record(value["content_block"]), place, false)
    case "content_block_delta": {
      const delta = record(value["delta"])
      growing.text += string(delta["text"])
      growing.reasoning += string(delta["thinking"])
      if (delta["type"] === "input_json_delta") callAt(growing, place).arguments += string(delta["partial_json"])
      return
    }
    case "message_delta": {
      const reason = record(value["delta"])["stop_reason"]
      if (typeof reason === "string") growing.finish = reason
      return
    }
    case "message":
      for (const [index, block] of list(value["content"]).entries()) start(record(block), index, true)
      if (typeof value["stop_reason"] === "string") growing.finish = value["stop_reason"]
      return
    default:
  }
}

const generate: Take = (growing, value) => {
  const candidate = record(list(value["candidates"])[0])
  for (const entry of list(record(candidate["content"])["parts"])) {
    const part = record(entry)
    if (part["thought"] === true) growing.reasoning += string(part["text"])
    else growing.text += string(part["text"])
    if (part["functionCall"] !== undefined) {
      const { args, id, name } = record(part["functionCall"])
      const call = { id: string(id), name: string(name), arguments: JSON.stringify(args ?? {}) }
      growing.calls.set(growing.calls.size, call)
    }
  }
  if (typeof candidate["finishReason"] === "string") growing.finish = candidate["finishReason"]
}

/** The counts of tokens in any style's shape; the last ones count. */
const takeTokens = (growing: Growing, value: Readonly<Record<string, unknown>>): void => {
  const inner = record(value["response"] ?? value["message"])
  const usage = record(value["usage"] ?? value["usageMetadata"] ?? inner["usage"])
  const count = (...names: ReadonlyArray<string>) =>
    names.map((name) => usage[name]).find((found) => typeof found === "number")
  const prompt = count("prompt_tokens", "input_tokens", "promptTokenCount") ?? growing.tokens?.prompt
  const completion = count("completion_tokens", "output_tokens", "candidatesTokenCount") ?? growing.tokens?.completion
  if (prompt === undefined && completion === undefined) return
  growing.tokens = { prompt: prompt ?? 0, completion: completion ?? 0 }
}

const takes: Readonly<Record<Style, Take>> = { chat, responses, messages, generate }

/** The message of an error in any style's shape; `undefined` if the value is not an error. */
export const errorOf = (value: unknown): string | undefined => {
  const { detail, error } = record(value)
  const { code, message = detail, type } = record(error)
  if (typeof message !== "string" || message === "") return undefined
  const name = string(code) || string(type)
  return name === "" ? message : `${name}: ${message}`
}

/** Collects a reply of a style. */
export const collect = (style: Style) => {
  const growing: Growing = {
    text: "",
    reasoning: "",
    finish: undefined,
    error: undefined,
    tokens: undefined,
    calls: new Map()
  }
  return {
    /** Adds the data of an event, or a whole body. */
    take: (value: unknown): void => {
      const error = errorOf(value)
      if (error !== undefined) growing.error = error
      else {
        takes[style](growing, record(value))
        takeTokens(growing, record(value))
      }
    },
    /** The reply so far. */
    answer: (): Answer => ({
      text: growing.text,
      reasoning: growing.reasoning,
      finish: growing.finish,
      error: growing.error,
      tokens: growing.tokens,
      calls: [...growing.calls.values()].map((call, index): Call => ({
        ...call,
        id: call.id || `call_${index}`,
        arguments: call.arguments || "{}"
      }))
    })
  }
}
