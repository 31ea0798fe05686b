/**
 * The tool calls of a recorded reply, read from the frames of its style.
 */
import { isRecord } from "../domain/json.ts"
import type { Frame } from "./frames.ts"

/** A call, and the time of its last frame: milliseconds since the request began. */
interface RecordedCall {
  readonly id: string
  readonly name: string
  readonly arguments: string
  readonly at_ms: number
}

type Json = Readonly<Record<string, unknown>>

const objectsIn = (value: unknown): ReadonlyArray<Json> => Array.isArray(value) ? value.filter(isRecord) : []
const objectIn = (value: unknown): Json => isRecord(value) ? value : {}
const textIn = (value: unknown): string => typeof value === "string" ? value : ""
const jsonIn = (value: unknown): string => value === undefined ? "{}" : JSON.stringify(value)

const parse = (text: string): Json => {
  try {
    const value: unknown = JSON.parse(text)
    return objectIn(value)
  } catch {
    return {}
  }
}

/** The JSON of a frame: the `data` lines of an event, or the whole body. */
const valueOf = ({ data }: Frame, stream: boolean): Json =>
  parse(
    stream
      ? data.split(/\r\n|\r|\n/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim()).join(
        "\n"
      )
      : data
  )

/** Collects calls from their parts; the key identifies a call within its reply. */
const makeCollector = () => {
  const calls = new Map<unknown, { id: string; name: string; arguments: string; at_ms: number }>()
  return {
    add(
      key: unknown,
      at_ms: number,
      part: { readonly id?: string; readonly name?: string; readonly arguments?: string }
    ) {
      const call = calls.get(key) ?? { id: "", name: "", arguments: "", at_ms }
      calls.set(key, {
        id: call.id || (part.id ?? ""),
        name: call.name || (part.name ?? ""),
        arguments: call.arguments + (part.arguments ?? ""),
        at_ms
      })
    },
    whole(key: unknown, call: RecordedCall) {
      calls.set(key, call)
    },
    calls: (): ReadonlyArray<RecordedCall> => [...calls.values()]
  }
}

type Collector = ReturnType<typeof makeCollector>

const readChat = (value: Json, at_ms: number, collector: Collector) => {
  for (const choice of objectsIn(value["choices"])) {
    const calls = objectsIn(objectIn(choice["delta"] ?? choice["message"])["tool_calls"])
    calls.forEach((call, place) => {
      const called = objectIn(call["function"])
      collector.add(call["index"] ?? place, at_ms, {
        id: textIn(call["id"]),
        name: textIn(called["name"]),
        arguments: textIn(called["arguments"])
      })
    })
  }
}

const readResponses = (value: Json, at_ms: number, collector: Collector) => {
  const items = value["type"] === "response.output_item.done" ? [objectIn(value["item"])] : objectsIn(value["output"])
  for (const item of items) {
    if (item["type"] !== "function_call") continue
    const id = textIn(item["call_id"])
    collector.whole(id, { id, name: textIn(item["name"]), arguments: textIn(item["arguments"]), at_ms })
  }
}

const readMessages = (value: Json, at_ms: number, collector: Collector) => {
  const index = value["index"]
  const block = objectIn(value["content_block"])
  const delta = objectIn(value["delta"])
  if (value["type"] === "content_block_start" && block["type"] === "tool_use") {
    collector.add(index, at_ms, { id: textIn(block["id"]), name: textIn(block["name"]) })
  } else if (delta["type"] === "input_json_delta") {
    collector.add(index, at_ms, { arguments: textIn(delta["partial_json"]) })
  }
  for (const part of objectsIn(value["content"])) {
    if (part["type"] !== "tool_use") continue
    const id = textIn(part["id"])
    collector.whole(id, { id, name: textIn(part["name"]), arguments: jsonIn(part["input"]), at_ms })
  }
}

const readGenerate = (value: Json, at_ms: number, collector: Collector) => {
  for (const candidate of objectsIn(value["candidates"])) {
    for (const part of objectsIn(objectIn(candidate["content"])["parts"])) {
      if (!isRecord(part["functionCall"])) continue
      const { args, id, name } = part["functionCall"]
      collector.whole({}, { id: textIn(id), name: textIn(name), arguments: jsonIn(args), at_ms })
    }
  }
}

const readers: Readonly<Record<string, (value: Json, at_ms: number, collector: Collector) => void>> = {
  chat: readChat,
  responses: readResponses,
  messages: readMessages,
  generate: readGenerate
}

/** The calls in the order in which they begin; a call that was cut off is incomplete. */
export const toolCallsOf = (
  style: string,
  frames: ReadonlyArray<Frame>,
  stream: boolean
): ReadonlyArray<RecordedCall> => {
  const read = readers[style]
  if (read === undefined) return []
  const collector = makeCollector()
  for (const frame of frames) read(valueOf(frame, stream), frame.at_ms, collector)
  return collector.calls()
}
