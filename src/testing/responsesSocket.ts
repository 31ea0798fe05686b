/**
 * The events and bodies of the Responses API, as a scripted server sends them.
 */
import { type Answer, json } from "./openAiSocket.ts"

/** An object of JSON. */
export type Fields = { readonly [field: string]: unknown }

/** Named events, as the vendor sends them. Text is sent as it is. */
export const events = (...values: ReadonlyArray<Fields | string>): string =>
  values.map((value) =>
    typeof value === "string" ? value : `event: ${String(value["type"])}\ndata: ${JSON.stringify(value)}\n\n`
  ).join("")

export const usage = {
  input_tokens: 11,
  input_tokens_details: { cached_tokens: 5, cache_write_tokens: 0 },
  output_tokens: 7,
  output_tokens_details: { reasoning_tokens: 2 },
  total_tokens: 18
}

/** A response of the server, with fields that it has beside those of the gateway. */
export const responseOf = (output: ReadonlyArray<Fields>, more: Fields = {}): Fields => ({
  id: "resp_server_1",
  object: "response",
  created_at: 1_700_000_000,
  status: "completed",
  completed_at: 1_700_000_001,
  error: null,
  incomplete_details: null,
  model: "server-model-2026",
  output,
  usage,
  billing: { payer: "developer" },
  tools: [],
  ...more
})

/** Items by the vendor's ids. */
export const messageItem = (text: string, more: Fields = {}): Fields => ({
  id: "msg_1",
  type: "message",
  status: "completed",
  role: "assistant",
  content: [{ type: "output_text", text, annotations: [], logprobs: [] }],
  ...more
})

export const callItem = (name: string, args: unknown, more: Fields = {}): Fields => ({
  id: `fc_${name}`,
  type: "function_call",
  status: "completed",
  call_id: `call_${name}`,
  name,
  arguments: typeof args === "string" ? args : JSON.stringify(args),
  ...more
})

export const reasoningItem = (summary: string, more: Fields = {}): Fields => ({
  id: "rs_1",
  type: "reasoning",
  status: "completed",
  summary: [{ type: "summary_text", text: summary }],
  encrypted_content: "c2VhbA==",
  ...more
})

/** Cuts a text or a summary into the pieces of its events. */
export type Cut = (text: string) => ReadonlyArray<string>

const inPieces = (size: number): Cut => (text) =>
  Array.from({ length: Math.ceil(text.length / size) }, (_, i) => text.slice(i * size, (i + 1) * size))

const pieces = inPieces(4)

const records = (value: unknown): ReadonlyArray<Fields> => Array.isArray(value) ? value as ReadonlyArray<Fields> : []

/** The events of an item between its first and its last one. */
const inItem = (item: Fields, output_index: number, cut: Cut): ReadonlyArray<Fields> => {
  const place = { item_id: item["id"], output_index }
  switch (item["type"]) {
    case "message":
      return records(item["content"]).flatMap((part, content_index): ReadonlyArray<Fields> => {
        const inPart = { ...place, content_index }
        if (part["type"] === "refusal") {
          const refusal = String(part["refusal"])
          return [
            { type: "response.content_part.added", ...inPart, part: { ...part, refusal: "" } },
            ...pieces(refusal).map((delta) => ({ type: "response.refusal.delta", ...inPart, delta })),
            { type: "response.refusal.done", ...inPart, refusal },
            { type: "response.content_part.done", ...inPart, part }
          ]
        }
        const text = String(part["text"])
        return [
          { type: "response.content_part.added", ...inPart, part: { ...part, text: "", annotations: [] } },
          ...cut(text).map((delta) => ({
            type: "response.output_text.delta",
            ...inPart,
            delta,
            logprobs: [],
            obfuscation: "xxxx"
          })),
          ...records(part["annotations"]).map((annotation, annotation_index) => ({
            type: "response.output_text.annotation.added",
            ...inPart,
            annotation_index,
            annotation
          })),
          { type: "response.output_text.done", ...inPart, text, logprobs: [] },
          { type: "response.content_part.done", ...inPart, part }
        ]
      })
    case "reasoning":
      return records(item["summary"]).flatMap((part, summary_index) => {
        const inPart = { ...place, summary_index }
        const text = String(part["text"])
        return [
          { type: "response.reasoning_summary_part.added", ...inPart, part: { ...part, text: "" } },
          ...cut(text).map((delta) => ({ type: "response.reasoning_summary_text.delta", ...inPart, delta })),
          { type: "response.reasoning_summary_text.done", ...inPart, text },
          { type: "response.reasoning_summary_part.done", ...inPart, part }
        ]
      })
    case "function_call":
      return [
        ...inPieces(5)(String(item["arguments"])).map((delta) => ({
          type: "response.function_call_arguments.delta",
          ...place,
          delta
        })),
        {
          type: "response.function_call_arguments.done",
          ...place,
          name: item["name"],
          arguments: item["arguments"]
        }
      ]
    default:
      return []
  }
}

const begun = (item: Fields): Fields => ({
  ...item,
  ...("status" in item ? { status: "in_progress" } : {}),
  ...("content" in item ? { content: [] } : {}),
  ...("summary" in item ? { summary: [] } : {}),
  ...("arguments" in item ? { arguments: "" } : {})
})

/** The events before the first item. */
export const opening = (response: Fields): ReadonlyArray<Fields> => {
  const started = { ...response, status: "in_progress", completed_at: null, output: [], usage: null }
  return [
    { type: "response.created", sequence_number: 0, response: started },
    { type: "response.in_progress", sequence_number: 1, response: started }
  ]
}

const typeOf = (response: Fields): string => `response.${String(response["status"])}`

/** The events of a response, numbered as the vendor numbers them. */
export const eventsOf = (response: Fields, cut: Cut = pieces): ReadonlyArray<Fields> => {
  const all: ReadonlyArray<Fields> = [
    ...opening(response),
    ...records(response["output"]).flatMap((item, output_index) => [
      { type: "response.output_item.added", output_index, item: begun(item) },
      ...inItem(item, output_index, cut),
      { type: "response.output_item.done", output_index, item }
    ]),
    { type: typeOf(response), response }
  ]
  return all.map((event, sequence_number) => ({ ...event, sequence_number }))
}

/** A streamed reply of this response. */
export const streamed = (response: Fields): Answer => ({ pieces: [events(...eventsOf(response))] })

/** A reply that comes whole. */
export const whole = (response: Fields): Answer => json(200, response)
