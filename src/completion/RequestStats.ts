/**
 * What is learned of a request while it runs, for its log line, its `Server-Timing` and the metrics. One mutable record a
 * request: it is written on the way and read once at the end.
 */
import type { Effect } from "effect/Effect"
import type { HeldBytes } from "../config/limits.ts"
import type { FailureCause } from "../domain/FailureCause.ts"
import type { FinishReason, Usage } from "../domain/ReplyEvent.ts"
import type { RequestRecord } from "../recordings/requests/RequestRecord.ts"
import type { RateLimits } from "../usage/rateLimits.ts"
import { none } from "../usage/UsageEntry.ts"
import type { UsageSoFar } from "./assembleReply.ts"

/** Times are monotonic milliseconds, which no calendar knows; counts start at 0. */
export interface RequestStats {
  readonly id: string
  readonly startedAt: number
  style: string | undefined
  /** The model as asked for, and the one it resolved to. */
  requestedModel: string | undefined
  model: string | undefined
  stream: boolean
  /** Id of the caller's key, or what stands for it; `none` while nobody is known. */
  key: string
  /** When its key's limits admitted it: milliseconds of Unix time. */
  admittedAt: number | undefined
  /** What is left of the key's limits, as far as it has any. */
  rateLimits: RateLimits | undefined
  accountHash: string | undefined
  /** Whether an account was there, so that the upstream was called. */
  upstreamCalled: boolean
  attempts: number
  /** Attempts on another account after a failure, and those on the same server where there is no other. */
  failovers: number
  retries: number
  /** Time spent in the queue, over all attempts. */
  queued: number
  /** Time spent with the upstream, over all attempts: up to the first reply event, or the last of a whole reply. */
  upstream: number
  /** What is waited for, and since when; part of `queued` or `upstream` when it is over. */
  waiting: { readonly for: "queued" | "upstream"; readonly since: number } | undefined
  /** The driver that answers, or is to. */
  driver: string | undefined
  /** The path, where no route takes it. */
  path: string | undefined
  firstEventAt: number | undefined
  usage: Usage | undefined
  /** The tokens of a reply that has begun, until `usage` tells them. */
  soFar: Pick<UsageSoFar, "usage" | "estimated"> | undefined
  finish: FinishReason | undefined
  /** HTTP status of the reply; `undefined` when the caller left before there was one. */
  status: number | undefined
  /** Code of the error that the caller was told, in the stream too. */
  error: string | undefined
  /** Why the upstream failed, where that is what the caller was told. */
  cause: FailureCause | undefined
  /** Rounds that continued or resumed the reply. */
  continues: number
  calls: number
  /** Calls that broke off or could not be repaired. */
  brokenCalls: number
  /** Where the request is one for embeddings: whether all vectors were made. */
  embedding: "begun" | "done" | undefined
  /** What is kept of the request for operators to look at; `undefined` where nothing is. */
  record: RequestRecord | undefined
  /** Bytes that the reply holds among those of all requests, from when a completion was asked for. */
  held: HeldBytes | undefined
  /** Takes the record when the request is over, its body included; run once by whoever began the record. */
  ended: (() => Effect<void>) | undefined
}

/** A record for a request that starts now. */
export const makeRequestStats = (id: string, startedAt: number): RequestStats => ({
  id,
  startedAt,
  style: undefined,
  requestedModel: undefined,
  model: undefined,
  stream: false,
  key: none,
  admittedAt: undefined,
  rateLimits: undefined,
  accountHash: undefined,
  upstreamCalled: false,
  attempts: 0,
  failovers: 0,
  retries: 0,
  queued: 0,
  upstream: 0,
  waiting: undefined,
  driver: undefined,
  path: undefined,
  firstEventAt: undefined,
  usage: undefined,
  soFar: undefined,
  finish: undefined,
  status: undefined,
  error: undefined,
  cause: undefined,
  continues: 0,
  calls: 0,
  brokenCalls: 0,
  embedding: undefined,
  record: undefined,
  held: undefined,
  ended: undefined
})

/** Whether a reply that began has no end. */
const isCutShort = ({ attempts, embedding, finish }: RequestStats): boolean =>
  embedding === undefined ? attempts > 0 && finish === undefined : embedding === "begun"

/** How a request ended: the code of its error, that the caller left, how the reply finished, or just `ok`. */
export const outcomeOf = (stats: RequestStats): string =>
  stats.error !== undefined
    ? stats.error
    : stats.status === undefined || (stats.status === 200 && isCutShort(stats))
    ? "client_left"
    : stats.finish ?? "ok"
