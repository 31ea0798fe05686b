/**
 * A fault that the reference upstream can be asked for. What each name does stands in `faults.ts`.
 */

/** Faults that answer a call in place of the call itself. */
export const answerFaults = [
  "no-token",
  "token-invalid",
  "token-expired",
  "rate-limited",
  "trouble",
  "wrong-credentials",
  "suspended",
  "no-session",
  "busy",
  "too-long",
  "refused",
  "html",
  "empty",
  "broken-json",
  "no-data",
  "not-a-stream",
  "reset-before-headers",
  "hang-before-headers"
] as const

/** Faults that let the call happen and spoil how its reply is carried. */
export const carrierFaults = ["slow", "wrong-content-type"] as const

/** Faults of what a reply says. */
export const replyFaults = [
  "long-line",
  "empty-fragment",
  "unknown-parts",
  "endless-incomplete"
] as const

/** Faults of an event stream. */
export const streamFaults = [
  "empty-stream",
  "reset-before-events",
  "hang-before-events",
  "reset-mid-stream",
  "hang-mid-stream",
  "cut-off",
  "no-status",
  "broken-line",
  "hint",
  "toast",
  "content-filter",
  "timeout-status",
  "error-status",
  "no-ready",
  "no-close",
  "done",
  "done-only",
  "linger",
  "crlf",
  "cr",
  "comments",
  "retry-lines",
  "multi-line-data",
  "no-space",
  "chatter",
  "trickle",
  "split-utf8",
  "disagree",
  "nothing-new",
  "incomplete-nothing"
] as const

export type AnswerFault = typeof answerFaults[number]
export type CarrierFault = typeof carrierFaults[number]
export type ReplyFault = typeof replyFaults[number]
export type StreamFault = typeof streamFaults[number]
export type FaultName = AnswerFault | CarrierFault | ReplyFault | StreamFault

/** Every fault by name. */
export const faultNames: ReadonlyArray<FaultName> = [...answerFaults, ...carrierFaults, ...replyFaults, ...streamFaults]

/** A fault with what can be said about it; each name has its own defaults for what is left out. */
export interface Fault {
  readonly name: FaultName
  /** How many pieces of the round leave before it happens. */
  readonly after?: number | undefined
  /** HTTP status of the reply. */
  readonly status?: number | undefined
  /** Seconds of a `Retry-After` header. */
  readonly retryAfter?: number | undefined
  /** Envelope `code`. */
  readonly code?: number | undefined
  /** Envelope `biz_code`. */
  readonly bizCode?: number | undefined
  /** The words that the upstream gives. */
  readonly message?: string | undefined
  /** `finish_reason` of a hint. */
  readonly reason?: string | undefined
  /** Milliseconds. */
  readonly millis?: number | undefined
  /** Size of a long line. */
  readonly bytes?: number | undefined
}
