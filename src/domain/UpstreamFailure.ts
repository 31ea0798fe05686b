/**
 * The facts of an upstream failure, as drivers state them. All consequences follow from `classify` (`classifyUpstreamFailure.ts`).
 */
import * as Schema from "effect/Schema"
import { FailureCause } from "./FailureCause.ts"
import { RefusedPart } from "./refusedParts.ts"

const phases = ["login", "session", "completion", "stream", "resume"] as const

/** The part of an exchange in which a failure occurred. */
export type FailurePhase = typeof phases[number]

const refusals = ["token", "rate", "login", "suspended", "lost_session", "busy", "length", "source", "other"] as const

/**
 * What a server refuses by a code of its contract. `token`: the call's token. `rate`: more requests for now. `login`: its credentials.
 * `suspended`: an account that it has closed. `lost_session`: a session that it does not have. `busy`: one more completion of the account at the
 * same time. `length`: the prompt. `source`: a source of a credential that has no token. `other`: a code for anything else.
 */
export type Refusal = typeof refusals[number]

/** A failure of an upstream call. Every field is a fact instead of a judgement. */
export class UpstreamFailure extends Schema.TaggedError<UpstreamFailure>()("UpstreamFailure", {
  phase: Schema.Literals(phases),
  /** A refusal by the service, a broken or missing reply, a time limit, a transport error, or a limit of the gateway. */
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
    // The request's budget of calls and bytes, and its time limit.
    "exhausted",
    "overdue",
    // The gateway ends its requests at shutdown.
    "shutting_down"
  ]),
  /** HTTP status of the response, if any. */
  status: Schema.optionalKey(Schema.Number),
  /** What the server refuses, where its contract has a code for that; absent where the HTTP status and `reason` say it. */
  refusal: Schema.optionalKey(Schema.Literals(refusals)),
  /** The upstream's code for it: `finish_reason` of a hint, `error.code` or `error.type` of a server. */
  reason: Schema.optionalKey(Schema.String),
  /** The server's own code, which callers of the same contract see. */
  serverCode: Schema.optionalKey(Schema.String),
  /** The upstream's own message: `msg`, `biz_msg`, `content` or `error.message`; never a page. */
  message: Schema.optionalKey(Schema.String),
  /** What the operator may change in the configuration; callers do not get it. */
  advice: Schema.optionalKey(Schema.String),
  /** The field of the request that the upstream names. */
  param: Schema.optionalKey(Schema.String),
  /** Parts of the request that the server refuses. */
  refused: Schema.optionalKey(Schema.Array(RefusedPart)),
  /** The JSON of the server's error, with an error object, for callers of the same protocol. */
  body: Schema.optionalKey(Schema.Unknown),
  /** The server's id of the request. */
  requestId: Schema.optionalKey(Schema.String),
  /** Seconds of the upstream's `Retry-After`. */
  retryAfter: Schema.optionalKey(Schema.Number),
  /** Milliseconds of the server's `retry-after-ms`. */
  retryAfterMs: Schema.optionalKey(Schema.Number),
  /** The server's `x-should-retry`. */
  shouldRetry: Schema.optionalKey(Schema.Boolean),
  /** The reply was asked for as a whole, so that the server was silent until its end. */
  isWhole: Schema.optionalKey(Schema.Boolean),
  /** The call had no credential, since no credential is configured. */
  anonymous: Schema.optionalKey(Schema.Boolean),
  /** The network's reason, or the beginning of a body that did not come from a model server. */
  cause: Schema.optionalKey(FailureCause)
}) {}
