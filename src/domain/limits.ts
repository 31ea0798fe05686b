/**
 * The limits of a request and its reply: fields, defaults and ranges. The configuration's group `limits` is generated from this table.
 *
 * The defaults leave room for agents, which send prompts of 2 MB, 5,000 messages, 400 tools with large schemas and arguments of 1 MB,
 * and get replies of 30 minutes and 2 MB.
 */

/** A limit's default, its permitted range, and its description in forms. */
export interface LimitRange {
  readonly description: string
  readonly value: number
  readonly minimum: number
  readonly maximum: number
}

const KiB = 1024
const MiB = 1024 * KiB
const GiB = 1024 * MiB

const range = (value: number, minimum: number, maximum: number, description: string): LimitRange => ({
  value,
  minimum,
  maximum,
  description
})

/** Characters are UTF-16 units. */
export const limitRanges = {
  body_bytes: range(32 * MiB, 64 * KiB, 256 * MiB, "Bytes of a request body."),
  body_seconds: range(30, 1, 3600, "Seconds of silence while a request body arrives."),
  body_bytes_per_second: range(
    KiB,
    1,
    16 * MiB,
    "Least speed of a request body, on average and after its first `limits.body_seconds`."
  ),
  body_total_seconds: range(600, 1, 86_400, "Seconds within which a whole request body must arrive."),
  buffered_bytes: range(
    512 * MiB,
    64 * MiB,
    64 * GiB,
    "Bytes of bodies, prompts, whole replies and clients' queues, over all requests."
  ),
  depth: range(200, 16, 1000, "Nesting of a request body."),
  values: range(
    1_000_000,
    10_000,
    16_000_000,
    "JSON values of a request body; an empty list or object counts as two. Each takes 64 bytes of `limits.buffered_bytes`."
  ),
  messages: range(20_000, 100, 1_000_000, "Entries of `messages`, `input` or `contents`."),
  parts: range(100_000, 100, 5_000_000, "Content parts, calls and results of a request together."),
  tools: range(1024, 1, 20_000, "Declared functions."),
  tool_bytes: range(MiB, KiB, 64 * MiB, "Characters of one tool's JSON."),
  tools_bytes: range(8 * MiB, KiB, 64 * MiB, "Characters of all tools' JSON."),
  stop_sequences: range(16, 1, 64, "Number of stop sequences."),
  stop_chars: range(512, 1, 4096, "Characters of one stop sequence."),
  model_chars: range(256, 64, 1024, "Characters of a model name."),
  embedding_inputs: range(2048, 1, 1_000_000, "Inputs of one embeddings request."),
  embedding_chars: range(4 * MiB, KiB, 256 * MiB, "Characters of all inputs; a token counts as 4."),
  embedding_numbers: range(4 * MiB, KiB, 256 * MiB, "Inputs × `dimensions`."),
  reply_chars: range(
    16 * MiB,
    64 * KiB,
    GiB,
    "Characters of text, reasoning and arguments of a reply, over all rounds."
  ),
  reply_calls: range(1024, 1, 20_000, "Calls of a reply."),
  reply_bytes: range(GiB, MiB, 64 * GiB, "Bytes read from the upstream for one request, comments included."),
  reply_seconds: range(3600, 1, 86_400, "Seconds from the lease to the reply's end, over all rounds."),
  progress_seconds: range(600, 1, 86_400, "Seconds without a new character while the client reads."),
  client_queue_bytes: range(MiB, 64 * KiB, 64 * MiB, "Bytes of frames that wait for one client."),
  connections: range(20_000, 16, 1_000_000, "Client sockets."),
  key_websockets: range(
    256,
    1,
    20_000,
    "WebSocket connections of one key, or of one address with direct tokens, to one node."
  ),
  websocket_seconds: range(3600, 60, 86_400, "Age of a WebSocket connection; it is closed between its turns."),
  websocket_bytes: range(
    128 * MiB,
    MiB,
    64 * GiB,
    "Bytes of the conversations that all WebSocket connections to one node keep."
  ),
  stored_responses: range(10_000, 10, 1_000_000, "Stored responses of all clients."),
  stored_bytes: range(128 * MiB, MiB, 64 * GiB, "Bytes of stored responses of all clients.")
} as const satisfies { readonly [field: string]: LimitRange }

/** The limits in force. */
export type Limits = { readonly [Field in keyof typeof limitRanges]: number }

/** The limits without configuration. */
export const defaultLimits: Limits = Object.fromEntries(
  Object.entries(limitRanges).map(([field, { value }]) => [field, value])
) as Limits
