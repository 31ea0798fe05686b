/**
 * A messages server for tests: the scripted server, with the events and bodies of this contract.
 */
import { type Answer, json, type OpenAiServer, startOpenAiServer } from "./openaiServer.ts"

export { type Answer, json, type SeenRequest } from "./openaiServer.ts"

export interface MessagesServer extends OpenAiServer {
  /** The address without a version prefix. */
  readonly url: string
}

/** Starts a server on a free port. */
export const startMessagesServer = async (): Promise<MessagesServer> => {
  const server = await startOpenAiServer()
  const url = server.baseUrl.replace(/\/v1$/, "")
  return Object.defineProperty(server as MessagesServer, "url", { value: url })
}

type Fields = { readonly [field: string]: unknown }

/** Named events; text is sent as it is. */
export const events = (...values: ReadonlyArray<Fields | string>): string =>
  values.map((value) =>
    typeof value === "string" ? value : `event: ${String(value["type"])}\ndata: ${JSON.stringify(value)}\n\n`
  ).join("")

export const usage = {
  input_tokens: 11,
  cache_creation_input_tokens: 3,
  cache_read_input_tokens: 5,
  output_tokens: 7,
  service_tier: "standard",
  cache_creation: { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 0 },
  server_tool_use: null
}

/** The fields of a message beside its content. */
export const head: Fields = {
  id: "msg_server_1",
  type: "message",
  role: "assistant",
  model: "server-model",
  stop_sequence: null,
  container: null,
  diagnostics: null
}

const empty: { readonly [type: string]: Fields } = {
  text: { text: "" },
  thinking: { thinking: "", signature: "" },
  tool_use: { input: {} },
  server_tool_use: { input: {} },
  mcp_tool_use: { input: {} }
}

const pieces = (text: string, size: number): ReadonlyArray<string> =>
  Array.from({ length: Math.ceil(text.length / size) }, (_, i) => text.slice(i * size, (i + 1) * size))

/** The deltas of a block, as the vendor sends them. */
const deltasOf = (block: Fields): ReadonlyArray<Fields> => {
  switch (block["type"]) {
    case "text":
      return [
        ...pieces(String(block["text"]), 4).map((text) => ({ type: "text_delta", text })),
        ...(Array.isArray(block["citations"])
          ? block["citations"].map((citation: unknown) => ({ type: "citations_delta", citation }))
          : [])
      ]
    case "thinking":
      return [
        ...pieces(String(block["thinking"]), 4).map((thinking) => ({ type: "thinking_delta", thinking })),
        { type: "signature_delta", signature: block["signature"] }
      ]
    case "tool_use":
    case "server_tool_use":
    case "mcp_tool_use":
      return pieces(JSON.stringify(block["input"]), 5).map((partial_json) => ({
        type: "input_json_delta",
        partial_json
      }))
    default:
      return []
  }
}

/** How a message ends, and fields of the message beside its content. */
export interface MessageOptions {
  readonly stop?: Fields
  readonly usage?: Fields
  readonly message?: Fields
  /** Fields of the last event beside `delta` and `usage`. */
  readonly end?: Fields
}

/** The values of a streamed message. */
export const messageEvents = (
  content: ReadonlyArray<Fields>,
  { end = {}, message = {}, stop = {}, usage: counts = usage }: MessageOptions = {}
): ReadonlyArray<Fields> => [
  {
    type: "message_start",
    message: {
      ...head,
      ...message,
      content: [],
      stop_reason: null,
      stop_details: null,
      usage: { ...counts, output_tokens: 1 }
    }
  },
  { type: "ping" },
  ...content.flatMap((block, index) => [
    {
      type: "content_block_start",
      index,
      content_block: { ...block, ...empty[String(block["type"])], ...(block["citations"] ? { citations: [] } : {}) }
    },
    ...deltasOf(block).map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index }
  ]),
  {
    type: "message_delta",
    delta: { stop_reason: "end_turn", stop_sequence: null, stop_details: null, container: null, ...stop },
    usage: {
      input_tokens: counts["input_tokens"],
      cache_creation_input_tokens: counts["cache_creation_input_tokens"],
      cache_read_input_tokens: counts["cache_read_input_tokens"],
      output_tokens: counts["output_tokens"],
      server_tool_use: counts["server_tool_use"],
      output_tokens_details: counts["output_tokens_details"]
    },
    ...end
  },
  { type: "message_stop" }
]

/** A streamed message. */
export const streamedMessage = (content: ReadonlyArray<Fields>, options?: MessageOptions): Answer => ({
  pieces: [events(...messageEvents(content, options))]
})

/** A message of a server that does not stream. */
export const wholeMessage = (
  content: ReadonlyArray<Fields>,
  { end = {}, message = {}, stop = {}, usage: counts = usage }: MessageOptions = {}
): Answer =>
  json(200, {
    ...head,
    content,
    stop_reason: "end_turn",
    stop_details: null,
    ...message,
    ...stop,
    ...end,
    usage: counts
  })

/** An error in the vendor's form. */
export const failed = (status: number, type: string, message = "no", headers: Record<string, string> = {}): Answer =>
  json(status, { type: "error", error: { type, message } }, headers)

export const textBlock = (text: string): Fields => ({ type: "text", text })
