/**
 * What is recorded of a request's attempts: in its stats, in its recording, and in the counts of accounts and upstreams. No decision
 * depends on it.
 */
import type { Lease } from "../accounts/Accounts.ts"
import type { Deadlines } from "../config/clock/Deadlines.ts"
import { type Classification, isOfUpstream } from "../domain/classifyUpstreamFailure.ts"
import { operatorMessage } from "../domain/GatewayError.ts"
import type { Target } from "../domain/routes.ts"
import type { RequestRecord } from "../recordings/RequestRecord.ts"
import type { Request } from "./Request.ts"
import {
  addBilled,
  type AnsweringTarget,
  type ExcludedTarget,
  nameOfTarget,
  noteFailure,
  type RecordedTry,
  type RequestStats,
  type TokensSoFar
} from "./RequestStats.ts"

/** Counts a failure of the account or its upstream. */
export const countFailure = (lease: Lease, failure: Classification): void => {
  if (!isOfUpstream(failure)) return
  lease.shown.failed(failure.class, operatorMessage(failure.error))
}

/** The record of a request's attempts. Times are monotonic milliseconds. */
export class AttemptsRecord {
  readonly #stats: RequestStats
  readonly #recording: RequestRecord | undefined
  readonly #deadlines: Deadlines["Service"]
  /** Stats name the targets. */
  readonly #showsUpstreams: boolean
  /** What counts unless a later attempt does: the tokens of the last one that was sent and not refused. */
  #unanswered: TokensSoFar | undefined
  /** What the stats listed as ignored before the first target added to it. */
  #ignored: readonly [ReadonlyArray<string> | undefined, number] | undefined
  /** The try that runs, and its start. */
  #current: RecordedTry | undefined
  #began = 0
  #target: AnsweringTarget | undefined
  /** The attempts of the request's earlier replies, and those that a rehearsal made fail. */
  #before: number

  constructor({ followers, stats }: Request, deadlines: Deadlines["Service"], showsUpstreams: boolean) {
    this.#stats = stats
    this.#recording = followers.recording
    this.#deadlines = deadlines
    this.#showsUpstreams = showsUpstreams
    this.#before = stats.attempts
  }

  /** Targets of the route do not get the request, for a reason each. A route bounds their number; the newest reason of a target counts. */
  excludes(targets: ReadonlyArray<ExcludedTarget>): void {
    if (targets.length === 0 || (!this.#showsUpstreams && this.#recording === undefined)) return
    const before = this.#stats.excluded ?? []
    const isNew = ({ target }: ExcludedTarget) => !targets.some((other) => other.target === target)
    this.#stats.excluded = [...before.filter(isNew), ...targets]
  }

  /** An attempt waits for a slot; `driver` comes from its first target. */
  queued(attempts: number, driver: string | undefined): void {
    this.#stats.attempts = this.#before + attempts
    this.#stats.driver ??= driver
    this.waits()
  }

  /** The request waits before an attempt. */
  waits(): void {
    this.#stats.waiting = { for: "queued", since: this.#deadlines.now() }
  }

  /** An attempt got no slot. */
  refused(attempts: number): void {
    this.#stats.attempts = this.#before + attempts
  }

  waited(millis: number): void {
    this.#stats.queued += millis
  }

  /** The request goes on without another slot: the last target that was tried answers. */
  leftQueue(): void {
    const stats = this.#stats
    if (stats.target === undefined || stats.waiting === undefined) return
    stats.queued += this.#deadlines.now() - stats.waiting.since
    stats.waiting = undefined
  }

  leased(lease: Lease): void {
    this.#stats.driver = lease.driver.name
    this.#stats.accountHash = lease.account?.hash
  }

  /** The attempt is on the account of the lease. */
  takes(lease: Lease): void {
    this.#recording?.leased(lease.account?.identifier)
  }

  /** A target may get the request; what the target before it ignored no longer counts. */
  choosesTarget(): void {
    const stats = this.#stats
    this.#ignored ??= [stats.ignored?.slice(), stats.ignoredMore]
    const [ignored, more] = this.#ignored
    stats.ignored = ignored?.slice()
    stats.ignoredMore = more
  }

  /** The upstream is called. */
  called(lease: Lease, target: Target, counts: "failovers" | "retries" | undefined, began: number): void {
    const stats = this.#stats
    if (counts !== undefined) stats[counts]++
    stats.upstreamCalled = true
    stats.serverLimits = undefined
    stats.failureClass = undefined
    stats.answered = false
    this.#target = { upstream: target.upstream, model: target.model.id }
    this.#began = began
    this.#current = this.#recorded(lease, target)
    lease.shown.began()
    stats.waiting = { for: "upstream", since: began }
  }

  /** The upstream has answered or failed after so many milliseconds. */
  over(took: number): void {
    this.#stats.waiting = undefined
    this.#stats.upstream += took
    if (this.#current !== undefined) this.#current.took = took
  }

  /** What the server says of its account's limits, as far as the caller gets it. */
  limits(headers: Readonly<Record<string, string>> | undefined): void {
    this.#stats.serverLimits = headers
  }

  /** The attempt made a reply. */
  answered(lease: Lease): void {
    const first = (this.#stats.firstEventAt ?? this.#deadlines.now()) - this.#began
    lease.shown.answered(first)
    this.#stats.answered = true
    if (this.#current !== undefined) this.#current.took = first
  }

  /** The gateway refused the attempt. */
  refusedBy(code: string): void {
    this.#stats.failureClass = code
    if (this.#current !== undefined) this.#current.cause = code
  }

  /** The attempt failed; `isUnsent` if the upstream has not taken the request. */
  failed(lease: Lease, failure: Classification, status: number | undefined, isUnsent: boolean): void {
    countFailure(lease, failure)
    this.#stats.failureClass = failure.class
    if (this.#current !== undefined) {
      this.#current.cause = failure.class
      this.#current.status = status
    }
    noteFailure(this.#stats, failure.error.cause)
    if (isUnsent) this.#stats.soFar = this.#unanswered
  }

  /** A target failed in a rehearsal. It has no call, and the target of the stats stays what it was. */
  rehearsed({ model: { id: model }, upstream }: Target, failure: Classification): void {
    const stats = this.#stats
    this.#before++
    stats.attempts++
    stats.rehearsed = (stats.rehearsed ?? 0) + 1
    const failures = stats.failures ??= []
    failures.push({
      ...this.#showsUpstreams ? { target: nameOfTarget({ model, upstream }) } : {},
      ...failure.error.cause
    })
    if (!this.#showsUpstreams && this.#recording === undefined) return
    const tries = stats.tries ??= []
    tries.push({
      upstream,
      model,
      account: "",
      isRehearsed: true,
      cause: failure.class,
      status: undefined,
      queued: 0,
      began: this.#deadlines.now() - stats.startedAt,
      took: 0
    })
  }

  /** Keeps the tokens of a failed attempt without its reply, which are charged. The attempt is closed. */
  keepTokens(): void {
    const stats = this.#stats
    const { soFar } = stats
    const usage = soFar?.usage()
    const isEstimated = soFar?.estimated() ?? true
    if (usage !== undefined && soFar?.isBilled !== true) addBilled(stats, usage, true, this.#target)
    this.#unanswered = usage === undefined
      ? undefined
      : { usage: () => usage, estimated: () => isEstimated, promptReported: () => false, isBilled: true }
    stats.soFar = this.#unanswered
  }

  #recorded(lease: Lease, { model, upstream }: Target): RecordedTry | undefined {
    const began = this.#began
    const recording = this.#recording
    const showsUpstreams = this.#showsUpstreams
    const stats = this.#stats
    if (showsUpstreams) stats.target = { upstream, model: model.id }
    // Metrics read the tries of several upstreams, and records those of every request.
    if (!showsUpstreams && recording === undefined) return undefined
    const recorded: RecordedTry = {
      upstream,
      model: model.id,
      account: lease.account?.identifier ?? "",
      isRehearsed: false,
      cause: undefined,
      status: undefined,
      queued: lease.waited,
      began: began - stats.startedAt,
      took: undefined
    }
    const tries = stats.tries ??= []
    tries.push(recorded)
    return recorded
  }
}
