/**
 * What went wrong upstream, as facts that drivers state, and what follows from them: one pure function with ordered rules.
 *
 * Drivers only produce facts; retry, failover, account health, status and message all come from `classify`.
 */
import * as Schema from "effect/Schema"
import { FailureCause } from "./FailureCause.ts"

/** Where in an exchange the failure was seen. */
export type FailurePhase = "login" | "session" | "completion" | "stream" | "resume"

/** A failure of an upstream call. Every field is a fact; none is a judgement. */
export class UpstreamFailure extends Schema.TaggedError<UpstreamFailure>()("UpstreamFailure", {
  phase: Schema.Literals(["login", "session", "completion", "stream", "resume"]),
  /** What was seen: a refusal by the service, a broken or missing reply, a time limit, or a transport error. */
  kind: Schema.Literals([
    "refused",
    "malformed",
    "empty",
    "timeout",
    "transport",
    "truncated",
    "withdrawn",
    "gave_up",
    "disagrees",
    // The gateway's own limits: it made all calls, or read all bytes, that a request may cost; its time is up.
    "exhausted",
    "overdue",
    // The gateway stops, and ends what still runs.
    "shutting_down"
  ]),
  /** HTTP status of the reply, where there was one. */
  status: Schema.optionalKey(Schema.Number),
  /** Envelope `code` other than 0. */
  code: Schema.optionalKey(Schema.Number),
  /** Envelope `biz_code` other than 0. */
  bizCode: Schema.optionalKey(Schema.Number),
  /** A word that the upstream gave for it: `finish_reason` of a hint, `error.code` or `error.type` of a server. */
  reason: Schema.optionalKey(Schema.String),
  /** The upstream's own message: `msg`, `biz_msg`, `content` or `error.message`; never a page. */
  message: Schema.optionalKey(Schema.String),
  /** Seconds of the upstream's `Retry-After`. */
  retryAfter: Schema.optionalKey(Schema.Number),
  /** The call went out without a credential: none is configured. */
  anonymous: Schema.optionalKey(Schema.Boolean),
  /** What the network told, or how an answer that was none began. */
  cause: Schema.optionalKey(FailureCause)
}) {}
