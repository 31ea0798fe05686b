/**
 * A recorded reply put together: its text, reasoning, calls and end, read from the frames of its style or from the rounds with the
 * upstream. A reply that was cut off has what arrived. The work is linear in the recorded bytes, which `requests.max_body_bytes` bounds.
 */
import { isRecord } from "../domain/json.ts"
import { type Cooperative, Slice } from "../domain/stream/cooperative.ts"
import { type RecordedReplyRound, replyEvents } from "./capturePreview.ts"
import { type Frame, isEventStream } from "./frames.ts"

/** A call, and the time of its last frame: milliseconds since the request began; 0 for the upstream's side. */
interface RecordedCall {
  readonly id: string
  readonly name: string
  readonly arguments: string
  readonly at_ms: number
}

/** A reply put together. */
export interface AssembledReply {
  readonly text: string
  readonly reasoning: string
  /** In the order in which they begin; a call that was cut off is incomplete. */
  readonly calls: ReadonlyArray<RecordedCall>
  /** Why the reply ended, as its side names it; `undefined` if it did not end. */
  readonly finish: string | undefined
}

type Json = Readonly<Record<string, unknown>>

const objectsIn = (value: unknown): ReadonlyArray<Json> => Array.isArray(value) ? value.filter(isRecord) : []
const objectIn = (value: unknown): Json => isRecord(value) ? value : {}
const textIn = (value: unknown): string => typeof value === "string" ? value : ""
const jsonIn = (value: unknown): string => value === undefined ? "{}" : JSON.stringify(value)

/** The objects of a JSON text; a whole body may be a list of chunks. */
const parse = (text: string): ReadonlyArray<Json> => {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? objectsIn(value) : [objectIn(value)]
  } catch {
    return []
  }
}

/** The joined `data` lines of an event. Most events are one such line, which needs no splitting. */
const dataOf = (event: string): string => {
  const end = event.indexOf("\n")
  if (event.startsWith("data:") && end !== -1 && end >= event.length - 2 && !event.includes("\r")) {
    return event.slice("data:".length, end)
  }
  return event.split(/\r\n|\r|\n/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim())
    .join("\n")
}

/** Collects a reply from its parts. */
class Collector {
  text = ""
  reasoning = ""
  finish: string | undefined = undefined
  readonly #calls = new Map<unknown, { id: string; name: string; arguments: string; at_ms: number }>()

  /** Adds a part of the call that `key` identifies within its reply. */
  add(
    key: unknown,
    at_ms: number,
    part: { readonly id?: string; readonly name?: string; readonly arguments?: string }
  ) {
    const call = this.#calls.get(key) ?? { id: "", name: "", arguments: "", at_ms }
    this.#calls.set(key, {
      id: call.id || (part.id ?? ""),
      name: call.name || (part.name ?? ""),
      arguments: call.arguments + (part.arguments ?? ""),
      at_ms
    })
  }

  /** Sets a whole call. */
  whole(key: unknown, call: RecordedCall) {
    this.#calls.set(key, call)
  }

  ended(reason: unknown) {
    if (typeof reason === "string") this.finish = reason
  }

  reply(): AssembledReply {
    const { finish, reasoning, text } = this
    return { text, reasoning, calls: [...this.#calls.values()], finish }
  }
}

type Reader = (value: Json, at_ms: number, collector: Collector) => void

const readChat: Reader = (value, at_ms, collector) => {
  const [choice] = objectsIn(value["choices"])
  if (choice === undefined) return
  const message = objectIn(choice["delta"] ?? choice["message"])
  collector.text += textIn(message["content"]) + textIn(message["refusal"])
  collector.reasoning += textIn(message["reasoning_content"])
  collector.ended(choice["finish_reason"])
  objectsIn(message["tool_calls"]).forEach((call, place) => {
    const called = objectIn(call["function"])
    collector.add(call["index"] ?? place, at_ms, {
      id: textIn(call["id"]),
      name: textIn(called["name"]),
      arguments: textIn(called["arguments"])
    })
  })
}

/** The field with the arguments of a call's item; `undefined` for other items. */
const argumentsOf = (item: Json): "arguments" | "input" | undefined =>
  item["type"] === "function_call" ? "arguments" : item["type"] === "custom_tool_call" ? "input" : undefined

const readWholeResponse: Reader = (response, at_ms, collector) => {
  objectsIn(response["output"]).forEach((item, place) => {
    for (const part of objectsIn(item["content"])) {
      if (item["type"] === "message") collector.text += textIn(part["text"]) + textIn(part["refusal"])
    }
    for (const part of objectsIn(item["summary"])) collector.reasoning += textIn(part["text"])
    readItem(item, place, at_ms, collector)
  })
  endResponse(response, collector)
}

const readItem = (item: Json, key: unknown, at_ms: number, collector: Collector) => {
  const field = argumentsOf(item)
  if (field === undefined) return
  collector.whole(key, {
    id: textIn(item["call_id"]),
    name: textIn(item["name"]),
    arguments: textIn(item[field]),
    at_ms
  })
}

const endResponse = (response: Json, collector: Collector) => {
  if (response["status"] === "in_progress") return
  collector.ended(objectIn(response["incomplete_details"])["reason"] ?? response["status"])
}

const readResponses: Reader = (value, at_ms, collector) => {
  const key = value["output_index"]
  switch (value["type"]) {
    case undefined:
      readWholeResponse(value, at_ms, collector)
      return
    case "response.output_text.delta":
    case "response.refusal.delta":
      collector.text += textIn(value["delta"])
      return
    case "response.reasoning_summary_text.delta":
    case "response.reasoning_text.delta":
      collector.reasoning += textIn(value["delta"])
      return
    case "response.function_call_arguments.delta":
    case "response.custom_tool_call_input.delta":
      collector.add(key, at_ms, { arguments: textIn(value["delta"]) })
      return
    case "response.output_item.added":
    case "response.output_item.done":
      readItem(objectIn(value["item"]), key, at_ms, collector)
      return
    case "response.completed":
    case "response.incomplete":
    case "response.failed":
      endResponse(objectIn(value["response"]), collector)
  }
}

const readMessages: Reader = (value, at_ms, collector) => {
  const index = value["index"]
  const block = objectIn(value["content_block"])
  const delta = objectIn(value["delta"])
  if (value["type"] === "content_block_start" && block["type"] === "tool_use") {
    collector.add(index, at_ms, { id: textIn(block["id"]), name: textIn(block["name"]) })
  } else if (delta["type"] === "input_json_delta") {
    collector.add(index, at_ms, { arguments: textIn(delta["partial_json"]) })
  }
  collector.text += textIn(delta["text"])
  collector.reasoning += textIn(delta["thinking"])
  collector.ended(delta["stop_reason"] ?? value["stop_reason"])
  for (const part of objectsIn(value["content"])) {
    collector.text += textIn(part["text"])
    collector.reasoning += textIn(part["thinking"])
    if (part["type"] !== "tool_use") continue
    const id = textIn(part["id"])
    collector.whole(id, { id, name: textIn(part["name"]), arguments: jsonIn(part["input"]), at_ms })
  }
}

const readGenerate: Reader = (value, at_ms, collector) => {
  const [candidate] = objectsIn(value["candidates"])
  if (candidate === undefined) return
  for (const part of objectsIn(objectIn(candidate["content"])["parts"])) {
    collector[part["thought"] === true ? "reasoning" : "text"] += textIn(part["text"])
    if (!isRecord(part["functionCall"])) continue
    const { args, id, name } = part["functionCall"]
    collector.whole({}, { id: textIn(id), name: textIn(name), arguments: jsonIn(args), at_ms })
  }
  collector.ended(candidate["finishReason"])
}

const readers: Readonly<Record<string, Reader>> = {
  chat: readChat,
  responses: readResponses,
  messages: readMessages,
  generate: readGenerate
}

/** The reply that the client received; `undefined` for styles whose replies are no conversation. */
export function* assembleReply(
  style: string,
  frames: ReadonlyArray<Frame>,
  contentType: string | undefined,
  slice = new Slice()
): Cooperative<AssembledReply | undefined> {
  const read = readers[style]
  if (read === undefined) return undefined
  const stream = isEventStream(contentType)
  const collector = new Collector()
  for (const frame of frames) {
    if (slice.add(1, frame.data.length)) yield slice.end()
    for (const value of parse(stream ? dataOf(frame.data) : frame.data)) read(value, frame.at_ms, collector)
  }
  return collector.reply()
}

/** The reply as the upstream sent it over the rounds of one try; calls that a model writes as text are text. */
export function* assembleRounds(rounds: ReadonlyArray<RecordedReplyRound>): Cooperative<AssembledReply> {
  const collector = new Collector()
  for (const event of yield* replyEvents(rounds)) {
    switch (event._tag) {
      case "UpstreamText":
        collector.text += event.text
        break
      case "UpstreamReasoning":
        collector.reasoning += event.text
        break
      case "UpstreamCall":
        collector.add(event.index, 0, {
          id: event.id ?? "",
          name: event.name ?? "",
          arguments: event.argumentsDelta
        })
        break
      case "UpstreamFinish":
        collector.finish = event.reason
    }
  }
  return collector.reply()
}
