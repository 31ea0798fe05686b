/**
 * The limits of a request and its reply: their fields, defaults and ranges. The configuration's group `limits` is made of
 * this table, so a limit stands here and nowhere else.
 *
 * No honest client meets the defaults: agent runs have prompts of 2 MB, 5,000 messages, 400 tools with large schemas,
 * arguments of 1 MB, replies of 30 minutes and 2 MB.
 */

/** A limit's default and the range that the configuration may set. */
export interface LimitRange {
  readonly value: number
  readonly minimum: number
  readonly maximum: number
}

const KiB = 1024
const MiB = 1024 * KiB
const GiB = 1024 * MiB

const range = (value: number, minimum: number, maximum: number): LimitRange => ({ value, minimum, maximum })

/** Characters are UTF-16 units, sizes bytes, times seconds. */
export const limitRanges = {
  /** Bytes of a request body. */
  body_bytes: range(32 * MiB, 64 * KiB, 256 * MiB),
  /** Seconds of silence while a request body comes. */
  body_seconds: range(30, 1, 3600),
  /** Bytes of bodies, prompts, whole replies and clients' queues, over all requests. */
  buffered_bytes: range(512 * MiB, 64 * MiB, 64 * GiB),
  /** Nesting of a request body. */
  depth: range(200, 16, 1000),
  /** Entries of `messages`, `input` or `contents`. */
  messages: range(20_000, 100, 1_000_000),
  /** Content parts, calls and results of a request in sum. */
  parts: range(100_000, 100, 5_000_000),
  /** Declared functions. */
  tools: range(1024, 1, 20_000),
  /** Characters of one tool's JSON. */
  tool_bytes: range(MiB, KiB, 64 * MiB),
  /** Characters of all tools' JSON. */
  tools_bytes: range(8 * MiB, KiB, 64 * MiB),
  /** Number of stop sequences. */
  stop_sequences: range(16, 1, 64),
  /** Characters of one stop sequence. */
  stop_chars: range(512, 1, 4096),
  /** Characters of a model's name. */
  model_chars: range(256, 64, 1024),
  /** Inputs of one embeddings request. */
  embedding_inputs: range(2048, 1, 1_000_000),
  /** Characters of all inputs; a token counts as 4. */
  embedding_chars: range(4 * MiB, KiB, 256 * MiB),
  /** Inputs × `dimensions`. */
  embedding_numbers: range(4 * MiB, KiB, 256 * MiB),
  /** Characters of text, reasoning and arguments of a reply, over all rounds. */
  reply_chars: range(16 * MiB, 64 * KiB, GiB),
  /** Calls of a reply. */
  reply_calls: range(1024, 1, 20_000),
  /** Bytes read from the upstream for one request, comments included. */
  reply_bytes: range(GiB, MiB, 64 * GiB),
  /** Seconds from the lease to the reply's end, over all rounds. */
  reply_seconds: range(3600, 1, 86_400),
  /** Seconds without a new character while the client reads. */
  progress_seconds: range(600, 1, 86_400),
  /** Bytes of frames that wait for one client. */
  client_queue_bytes: range(MiB, 64 * KiB, 64 * MiB),
  /** Client sockets. */
  connections: range(20_000, 16, 1_000_000),
  /** Stored responses of all callers. */
  stored_responses: range(10_000, 10, 1_000_000),
  /** Bytes of stored responses of all callers. */
  stored_bytes: range(128 * MiB, MiB, 64 * GiB)
} as const satisfies { readonly [field: string]: LimitRange }

/** The limits in force. */
export type Limits = { readonly [Field in keyof typeof limitRanges]: number }

/** The limits where nothing is configured. */
export const defaultLimits: Limits = Object.fromEntries(
  Object.entries(limitRanges).map(([field, { value }]) => [field, value])
) as Limits
