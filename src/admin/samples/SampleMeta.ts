/**
 * `meta.json` of a sample: what was asked, and where each round lies in `upstream.stream.sse`.
 */
import * as Schema from "effect/Schema"
import type { CaptureChain } from "../../recordings/captures/CapturedRound.ts"

/** Whoever copies samples about may have changed one: a number that no file can have is none of ours. */
const FilePlace = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** 40 }))

const RoundMeta = Schema.Struct({
  capture_id: Schema.String,
  /** `completion` or `continue`. */
  label: Schema.String,
  url: Schema.String,
  /** 0 where no reply came. */
  status_code: Schema.Int,
  content_type: Schema.NullOr(Schema.String),
  request_body: Schema.String,
  /** Where the round's bytes begin, and how many there are. */
  offset: FilePlace,
  length: FilePlace,
  /** The reply was longer than the captures' limit: these bytes are its beginning. */
  truncated: Schema.Boolean,
  /** False where the round was still running when it was saved. */
  complete: Schema.Boolean
})

/** The chat-completions request that a sample was captured with. */
export const SampleRequest = Schema.Struct({
  model: Schema.String,
  messages: Schema.Json,
  stream: Schema.Boolean
})

export const SampleMeta = Schema.Struct({
  sample_id: Schema.String,
  /** ISO 8601. */
  created_at: Schema.String.check(Schema.makeFilter((text) => Number.isFinite(Date.parse(text)))),
  protocol: Schema.Literals(["session", "openai"]),
  chain_key: Schema.String,
  capture_ids: Schema.Array(Schema.String),
  round_count: Schema.Int,
  /** `null` for a sample that was saved out of the captures. */
  request: Schema.NullOr(SampleRequest),
  rounds: Schema.Array(RoundMeta),
  /** SHA-256 of `upstream.stream.sse`, in hex. */
  upstream_sha256: Schema.String
}).annotate({ identifier: "SampleMeta" })

/** The `rounds` of a chain whose bytes are written one round after another. */
export const roundsOf = (chain: CaptureChain): typeof SampleMeta.Type.rounds => {
  let offset = 0
  return chain.map((round) => {
    const meta = {
      capture_id: round.id,
      label: round.label,
      url: round.url,
      status_code: round.status,
      content_type: round.contentType ?? null,
      request_body: round.requestBody,
      offset,
      length: round.bytes.length,
      truncated: round.truncated,
      complete: round.closed
    }
    offset += round.bytes.length
    return meta
  })
}
