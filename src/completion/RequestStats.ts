/**
 * What is learned of a request while it runs, for its log line, its `Server-Timing` and the metrics. One mutable record a
 * request: it is written on the way and read once at the end.
 */
import type { FinishReason } from "../domain/ReplyEvent.ts"
import type { Usage } from "../domain/Usage.ts"

/** Times are monotonic milliseconds, which no calendar knows; counts start at 0. */
export interface RequestStats {
  readonly id: string
  readonly startedAt: number
  style: string | undefined
  /** The model as asked for, and the one it resolved to. */
  requestedModel: string | undefined
  model: string | undefined
  stream: boolean
  accountHash: string | undefined
  attempts: number
  failovers: number
  /** Time spent in the queue, over all attempts. */
  queued: number
  /** Time from the first lease to the first reply event. */
  upstream: number | undefined
  firstEventAt: number | undefined
  usage: Usage | undefined
  finish: FinishReason | undefined
  /** HTTP status of the reply; `undefined` when the caller left before there was one. */
  status: number | undefined
  /** Code of the error that the caller was told, in the stream too. */
  error: string | undefined
  /** Rounds that continued or resumed the reply. */
  continues: number
  calls: number
  /** Calls that broke off or could not be repaired. */
  brokenCalls: number
}

/** A record for a request that starts now. */
export const makeRequestStats = (id: string, startedAt: number): RequestStats => ({
  id,
  startedAt,
  style: undefined,
  requestedModel: undefined,
  model: undefined,
  stream: false,
  accountHash: undefined,
  attempts: 0,
  failovers: 0,
  queued: 0,
  upstream: undefined,
  firstEventAt: undefined,
  usage: undefined,
  finish: undefined,
  status: undefined,
  error: undefined,
  continues: 0,
  calls: 0,
  brokenCalls: 0
})
