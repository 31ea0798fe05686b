/** The events of which a server would make a whole response, for one that answers whole. */
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import { endOf } from "../shared/ends.ts"

/** An event with its type. */
type Event = JsonRecord & { readonly type: string }

const at = (item: JsonRecord, output_index: number) =>
  typeof item["id"] === "string" ? { item_id: item["id"], output_index } : { output_index }

const records = (value: unknown): ReadonlyArray<JsonRecord> => Array.isArray(value) ? value.filter(isRecord) : []

const textOf = (value: unknown): string => typeof value === "string" ? value : ""

/** An item before it has content. */
const begun = (item: JsonRecord): JsonRecord => {
  const empty: JsonRecord = { ...item }
  if (Object.hasOwn(item, "status")) empty["status"] = "in_progress"
  for (const field of ["content", "summary"]) if (Array.isArray(item[field])) empty[field] = []
  for (const field of ["arguments", "input"]) if (typeof item[field] === "string") empty[field] = ""
  return empty
}

/** The events of a part of a message's content. */
function* partEvents(part: JsonRecord, place: JsonRecord): Generator<Event> {
  const { type } = part
  if (type === "output_text") {
    const text = textOf(part["text"])
    const logprobs = Array.isArray(part["logprobs"]) ? part["logprobs"] as ReadonlyArray<unknown> : []
    yield { type: "response.content_part.added", ...place, part: { ...part, text: "", annotations: [], logprobs: [] } }
    if (text !== "") yield { type: "response.output_text.delta", ...place, delta: text, logprobs }
    for (const [annotation_index, annotation] of records(part["annotations"]).entries()) {
      yield { type: "response.output_text.annotation.added", ...place, annotation_index, annotation }
    }
    yield { type: "response.output_text.done", ...place, text, logprobs }
  } else if (type === "refusal") {
    const refusal = textOf(part["refusal"])
    yield { type: "response.content_part.added", ...place, part: { ...part, refusal: "" } }
    if (refusal !== "") yield { type: "response.refusal.delta", ...place, delta: refusal }
    yield { type: "response.refusal.done", ...place, refusal }
  } else yield { type: "response.content_part.added", ...place, part }
  yield { type: "response.content_part.done", ...place, part }
}

function* thinkingEvents(item: JsonRecord, place: JsonRecord): Generator<Event> {
  for (const [summary_index, part] of records(item["summary"]).entries()) {
    const inPart = { ...place, summary_index }
    const text = textOf(part["text"])
    yield { type: "response.reasoning_summary_part.added", ...inPart, part: { ...part, text: "" } }
    if (text !== "") yield { type: "response.reasoning_summary_text.delta", ...inPart, delta: text }
    yield { type: "response.reasoning_summary_text.done", ...inPart, text }
    yield { type: "response.reasoning_summary_part.done", ...inPart, part }
  }
  for (const [content_index, part] of records(item["content"]).entries()) {
    const inPart = { ...place, content_index }
    const text = textOf(part["text"])
    if (text !== "") yield { type: "response.reasoning_text.delta", ...inPart, delta: text }
    yield { type: "response.reasoning_text.done", ...inPart, text }
  }
}

function* itemEvents(item: JsonRecord, output_index: number): Generator<Event> {
  const place = at(item, output_index)
  yield { type: "response.output_item.added", output_index, item: begun(item) }
  switch (item["type"]) {
    case "message":
      for (const [content_index, part] of records(item["content"]).entries()) {
        yield* partEvents(part, { ...place, content_index })
      }
      break
    case "reasoning":
      yield* thinkingEvents(item, place)
      break
    case "function_call": {
      const text = textOf(item["arguments"])
      const { name } = item
      if (text !== "") yield { type: "response.function_call_arguments.delta", ...place, delta: text }
      yield { type: "response.function_call_arguments.done", ...place, name, arguments: text }
      break
    }
    case "custom_tool_call": {
      const input = textOf(item["input"])
      if (input !== "") yield { type: "response.custom_tool_call_input.delta", ...place, delta: input }
      yield { type: "response.custom_tool_call_input.done", ...place, input }
      break
    }
    default:
  }
  yield { type: "response.output_item.done", output_index, item }
}

const lastTypes: ReadonlyMap<string, string> = new Map([
  ["completed", "response.completed"],
  ["incomplete", "response.incomplete"],
  ["cancelled", "response.cancelled"]
])

/** The name of a response's last event, by its status. Servers that leave out the status have finished. */
export const lastTypeOf = ({ status }: JsonRecord): string => {
  if (typeof status !== "string" || status === "") return "response.completed"
  return lastTypes.get(status) ?? (endOf(status, new Map()) === undefined ? "response.failed" : "response.incomplete")
}

/** The events of a whole response, numbered from 0. */
export function* eventsOf(response: JsonRecord): Generator<Event> {
  let sequence_number = 0
  const started = { ...response, status: "in_progress", output: [], usage: null }
  yield { type: "response.created", sequence_number: sequence_number++, response: started }
  yield { type: "response.in_progress", sequence_number: sequence_number++, response: started }
  for (const [index, item] of records(response["output"]).entries()) {
    for (const event of itemEvents(item, index)) yield { ...event, sequence_number: sequence_number++ }
  }
  yield { type: lastTypeOf(response), sequence_number, response }
}
