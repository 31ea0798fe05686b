/**
 * What each frame of a reply adds to it: text, reasoning, calls, the end, tokens. The form of a frame says which style or driver it is of,
 * so both sides are read alike. Unknown frames add nothing.
 */
import { list, parsed, record, string } from "../../state/json.ts"

/** A part of a reply. `call`: the name of a call that begins; `arguments`: a piece of its arguments. */
export interface Part {
  readonly kind: "text" | "reasoning" | "call" | "arguments" | "finish" | "usage" | "error"
  readonly text: string
}

/** A frame that was read: its parts, and the name of its event or form for frames without parts. */
export interface ReadFrame {
  readonly name: string
  readonly parts: ReadonlyArray<Part>
}

type Json = Readonly<Record<string, unknown>>
type Out = Array<Part>

/** Adds a part, unless it is empty. */
const add = (out: Out, kind: Part["kind"], text: unknown): void => {
  if (typeof text === "string" && text !== "") out.push({ kind, text })
}

const addJson = (out: Out, value: unknown): void =>
  add(out, "arguments", value === undefined ? "" : JSON.stringify(value))

/** Prompt and completion tokens as `12 + 34`; an unknown count is left out. */
const addUsage = (out: Out, ...counts: ReadonlyArray<unknown>): void => {
  const known = counts.filter((count): count is number => typeof count === "number")
  if (known.some((count) => count > 0)) add(out, "usage", known.join(" + "))
}

const addError = (out: Out, error: unknown): void =>
  add(out, "error", string(error) || string(record(error)["message"]) || string(record(error)["code"]))

const readChat = (value: Json, out: Out): void => {
  for (const choice of list(value["choices"]).map(record)) {
    const message = record(choice["delta"] ?? choice["message"])
    add(out, "reasoning", message["reasoning_content"] ?? message["reasoning"])
    add(out, "text", message["content"])
    add(out, "text", message["refusal"])
    for (const call of list(message["tool_calls"])) {
      const called = record(record(call)["function"])
      add(out, "call", called["name"])
      add(out, "arguments", called["arguments"])
    }
    add(out, "finish", choice["finish_reason"])
  }
  const usage = record(value["usage"])
  addUsage(out, usage["prompt_tokens"], usage["completion_tokens"])
}

const readItem = (item: Json, whole: boolean, out: Out): void => {
  if (item["type"] === "function_call" || item["type"] === "custom_tool_call") add(out, "call", item["name"])
  if (!whole) return
  for (const part of list(item["summary"])) add(out, "reasoning", record(part)["text"])
  for (const part of list(item["content"]).map(record)) {
    add(out, item["type"] === "reasoning" ? "reasoning" : "text", part["text"] ?? part["refusal"])
  }
  add(out, "arguments", item["arguments"] ?? item["input"])
}

const endResponse = (response: Json, out: Out): void => {
  if (response["status"] === "in_progress" || response["status"] === "queued") return
  add(out, "finish", record(response["incomplete_details"])["reason"] ?? response["status"])
  addError(out, response["error"])
  const usage = record(response["usage"])
  addUsage(out, usage["input_tokens"], usage["output_tokens"])
}

const readResponses = (value: Json, out: Out): void => {
  switch (value["type"]) {
    case "response.output_text.delta":
    case "response.refusal.delta":
      return add(out, "text", value["delta"])
    case "response.reasoning_summary_text.delta":
    case "response.reasoning_text.delta":
      return add(out, "reasoning", value["delta"])
    case "response.function_call_arguments.delta":
    case "response.custom_tool_call_input.delta":
      return add(out, "arguments", value["delta"])
    case "response.output_item.added":
      return readItem(record(value["item"]), false, out)
    case "response.completed":
    case "response.incomplete":
    case "response.failed":
      return endResponse(record(value["response"]), out)
    default:
      return undefined
  }
}

const readResponse = (response: Json, out: Out): void => {
  for (const item of list(response["output"])) readItem(record(item), true, out)
  endResponse(response, out)
}

const readBlock = (block: Json, out: Out): void => {
  add(out, "reasoning", block["thinking"])
  add(out, "text", block["text"])
  if (block["type"] === "tool_use") add(out, "call", block["name"])
}

const readMessages = (value: Json, out: Out): void => {
  switch (value["type"]) {
    case "message":
      for (const block of list(value["content"]).map(record)) {
        readBlock(block, out)
        if (block["type"] === "tool_use") addJson(out, block["input"])
      }
      break
    case "content_block_start":
      readBlock(record(value["content_block"]), out)
      break
    case "content_block_delta":
      readBlock(record(value["delta"]), out)
      add(out, "arguments", record(value["delta"])["partial_json"])
      break
  }
  add(out, "finish", record(value["delta"])["stop_reason"] ?? value["stop_reason"])
  const usage = record(value["usage"] ?? record(value["message"])["usage"])
  addUsage(out, usage["input_tokens"], usage["output_tokens"])
}

const readGenerate = (value: Json, out: Out): void => {
  const candidate = record(list(value["candidates"])[0])
  for (const part of list(record(candidate["content"])["parts"]).map(record)) {
    add(out, part["thought"] === true ? "reasoning" : "text", part["text"])
    const call = record(part["functionCall"])
    add(out, "call", call["name"])
    addJson(out, call["args"])
  }
  add(out, "finish", candidate["finishReason"] ?? record(value["promptFeedback"])["blockReason"])
  const usage = record(value["usageMetadata"])
  addUsage(out, usage["promptTokenCount"], usage["candidatesTokenCount"])
}

/** The deepest nesting of batches that is read. */
const deepest = 8

/** Reads patches of the session protocol. A patch without a path goes on at that of the patch before it. */
class SessionReader {
  #path = ""
  #operation = "SET"
  /** The kinds of the document's fragments. */
  #kinds: Array<Part["kind"] | undefined> = []
  /** Characters of each channel that were added: a snapshot repeats them. */
  readonly #added = { text: 0, reasoning: 0 }

  read(patch: Json, out: Out, base = "", depth = 0): void {
    const { o, p, v } = patch
    const response = record(v)["response"]
    if (p === undefined && o === undefined && response !== undefined) return this.#snapshot(record(response), out)
    if (typeof p === "string") this.#path = base === "" || p.startsWith("response") ? p : `${base}/${p}`
    if (typeof o === "string" && o !== "") this.#operation = o
    const path = this.#path.split("/").filter((segment) => segment !== "")
    if (Array.isArray(v) && (this.#operation === "BATCH" || path.join("/") === "response")) {
      if (depth >= deepest) return
      this.#operation = "SET"
      for (const each of v) this.read(record(each), out, path.join("/"), depth + 1)
      this.#path = ""
      this.#operation = "SET"
      return
    }
    this.#change(path.slice(path[0] === "response" ? 1 : 0), v, out)
  }

  #grow(kind: "text" | "reasoning", text: string, out: Out): void {
    this.#added[kind] += text.length
    add(out, kind, text)
  }

  #fragment(value: unknown, out: Out): void {
    const fragment = record(value)
    const kind = fragment["type"] === "RESPONSE" ? "text" : fragment["type"] === "THINK" ? "reasoning" : undefined
    this.#kinds.push(kind)
    if (kind !== undefined) this.#grow(kind, string(fragment["content"]), out)
  }

  #snapshot(response: Json, out: Out): void {
    this.#path = ""
    this.#operation = "SET"
    this.#kinds = []
    const before = { ...this.#added }
    const parts: Out = []
    this.#added.text = this.#added.reasoning = 0
    this.#change(["thinking_content"], response["thinking_content"], parts)
    this.#change(["content"], response["content"], parts)
    this.#change(["fragments"], response["fragments"], parts)
    for (const { kind, text } of parts) {
      if (kind !== "text" && kind !== "reasoning") continue
      const known = Math.min(before[kind], text.length)
      before[kind] -= known
      add(out, kind, text.slice(known))
    }
    this.#change(["status"], response["status"], out)
  }

  #change(path: ReadonlyArray<string>, value: unknown, out: Out): void {
    const [name, place, field] = path
    switch (name) {
      case "fragments":
        if (place === undefined) { for (const each of list(value)) this.#fragment(each, out) }
        else if (field === undefined) this.#fragment(value, out)
        else if (field === "content") {
          const kind = this.#kinds.at(Number(place))
          if (kind === "text" || kind === "reasoning") this.#grow(kind, string(value), out)
        }
        return
      case "content":
        return this.#grow("text", string(value), out)
      case "thinking_content":
        return this.#grow("reasoning", string(value), out)
      case "status":
        return value === "WIP" || value === "PENDING" ? undefined : add(out, "finish", value)
      case "accumulated_token_usage":
        return addUsage(out, value)
      case "token_usage":
        return addUsage(out, record(value)["prompt_tokens"], record(value)["completion_tokens"] ?? value)
      default:
        return undefined
    }
  }
}

const responseTypes = /^response\./
const messageTypes = new Set([
  "message",
  "message_start",
  "message_delta",
  "message_stop",
  "content_block_start",
  "content_block_delta",
  "content_block_stop",
  "ping"
])

/** The data of a frame: the `data` lines of an event, or the whole body. */
export const dataOf = (frame: string): { readonly event: string; readonly data: string } => {
  const lines = frame.split(/\r\n|\r|\n/)
  if (!lines.some((line) => /^(?:data|event|id|retry)?:/.test(line))) return { event: "", data: frame.trim() }
  const field = (name: string) =>
    lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).replace(/^ /, ""))
  return { event: field("event").at(-1) ?? "", data: field("data").join("\n") }
}

/** Reads the frames of one reply in their order. */
export class FrameReader {
  readonly #session = new SessionReader()

  read(frame: string): ReadFrame {
    const { data, event } = dataOf(frame)
    const value = parsed(data)
    const out: Out = []
    const values = Array.isArray(value) ? value.map(record) : [record(value)]
    const names = values.map((each) => this.#value(each, out))
    return {
      name: event || names.find((name) => name !== "") || (value === undefined ? data.slice(0, 40) : ""),
      parts: out
    }
  }

  /** Reads one value, and returns the name of its form. */
  #value(value: Json, out: Out): string {
    const type = string(value["type"])
    if (value["error"] !== undefined && value["error"] !== null && value["object"] !== "response") {
      addError(out, value["error"])
    } else if (type === "error") addError(out, value)
    const data = record(value["data"])
    if (typeof value["code"] === "number" && value["code"] !== 0) addError(out, value["msg"])
    else if (typeof data["biz_code"] === "number" && data["biz_code"] !== 0) addError(out, data["biz_msg"])
    if (responseTypes.test(type)) readResponses(value, out)
    else if (value["object"] === "response") readResponse(value, out)
    else if (messageTypes.has(type)) readMessages(value, out)
    else if (value["choices"] !== undefined) readChat(value, out)
    else if (value["candidates"] !== undefined || value["usageMetadata"] !== undefined) readGenerate(value, out)
    else if ("v" in value) this.#session.read(value, out)
    return type || string(value["object"]) || string(value["p"])
  }
}

/** Characters of text, reasoning and calls that parts add. */
export const lengthOf = (parts: ReadonlyArray<Part>): number => {
  let length = 0
  for (const { kind, text } of parts) {
    if (kind === "text" || kind === "reasoning" || kind === "arguments" || kind === "call") length += text.length
  }
  return length
}
