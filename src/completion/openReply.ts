/**
 * A reply that an attempt has started: as a stream, or whole. Its events update the request's stats. The attempt is closed as
 * soon as the reply is over, which releases the account.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { Lease } from "../accounts/Accounts.ts"
import { isDirect } from "../accounts/Lease.ts"
import { classify } from "../domain/classifyUpstreamFailure.ts"
import { plainContext } from "../domain/failureRules.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { Maker } from "../domain/makers.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import { type ChunkPull, mapPull } from "../domain/stream/transduce.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { AttemptSpan } from "./attemptSpan.ts"
import { countFailure } from "./AttemptsRecord.ts"
import type { CacheWatch } from "./CacheWatch.ts"
import type { Batch, CompletedReply, CompletionOutput } from "./CompletionInput.ts"
import { isFarOfModel } from "./farWait.ts"
import type { Request } from "./Request.ts"
import { noteFailure, type RequestStats } from "./RequestStats.ts"
import type { ServerWords } from "./serverWords.ts"
import { makerOf } from "./startReply.ts"
import { noteUnshown } from "./unshownExtras.ts"

/** A reply that has started. */
export interface OpenReply {
  readonly id: string
  readonly driver: string
  /** The events received so far; all events of a whole reply. */
  readonly first: Batch
  /** The events that follow; a whole reply has taken them. */
  readonly rest: Stream.Stream<ReplyEvent, UpstreamFailure | GatewayError>
  readonly lease: Lease
  /** Holds the lease and the upstream's connections. */
  readonly attempt: Scope.Closeable
  /** True if closing the upstream connection needs no other request. */
  readonly isOver: () => boolean
  /** True if the server has counted what its cache had of the prompt. */
  readonly isCacheReported: () => boolean
  /** Learns the usage of the reply; `undefined` where no cache is watched. */
  readonly cache: CacheWatch | undefined
  /** The request's own scope, which closes last. */
  readonly scope: Scope.Scope
  readonly words: ServerWords
  readonly request: Request
  /** `undefined` while tracing is off. */
  readonly span: AttemptSpan | undefined
}

/** Updates the stats from a batch of events. Returns true if the batch ends the reply. */
const noteEvents = (batch: Batch, { cache, isCacheReported, request, span }: OpenReply): boolean => {
  const { stats } = request
  span?.events(batch)
  let isLast = false
  for (const event of batch) {
    if (event._tag === "UsageReported") {
      stats.usage = event.usage
      stats.promptCache = cache?.answered(event.usage, isCacheReported())
    } else if (event._tag === "CallStarted") stats.calls++
    else if (event._tag === "CallCutOff") stats.brokenCalls++
    else if (event._tag === "ReplyExtra") noteUnshown(event, request)
    else if (event._tag === "Finish") {
      stats.finish = event.reason
      isLast = true
    }
  }
  return isLast
}

/** Milliseconds that the end of a reply waits for the upstream to acknowledge the stop. */
const longestWait = 250

/**
 * Closes an attempt: leaves the upstream, then releases the account. Closing is uninterruptible. If the upstream must be
 * notified, closing runs in a fiber of the request's scope, and `wait` waits at most `longestWait` for it.
 */
const closeAttempt = <A, E>(
  { attempt, isOver, scope }: OpenReply,
  exit: Exit.Exit<unknown, unknown>,
  then: (wait: Effect.Effect<unknown> | undefined) => Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  isOver()
    ? Effect.flatMap(Scope.close(attempt, exit), () => then(undefined))
    : Effect.flatMap(
      Effect.forkIn(Scope.close(attempt, exit), scope, { startImmediately: true, uninterruptible: true }),
      (closing) => then(Effect.timeoutOption(Fiber.await(closing), longestWait))
    )

/** Notes a failure within a reply, and reports it to the pool; returns the error to send. */
export const brokenOff = (
  lease: Lease,
  words: ServerWords,
  failure: UpstreamFailure,
  stats: RequestStats
): Effect.Effect<GatewayError> => {
  const passing = words.passing(lease)
  const judged = classify(failure, {
    ...plainContext,
    ...words.naming(lease),
    direct: isDirect(lease),
    shown: true,
    keyless: lease.account?.isKeyless === true,
    passing,
    keepsCode: passing !== undefined,
    secrets: lease.credential.secrets()
  })
  countFailure(lease, judged)
  noteFailure(stats, judged.error.cause)
  const retryAfter = isFarOfModel(lease, judged) ? undefined : judged.retryAfter
  return Effect.as(lease.report(judged.health, retryAfter), judged.error)
}

/** Pulls the first events and those that follow, up to the end or the failure. The attempt is closed with the last events. */
const eventsOf = (
  reply: OpenReply,
  rest: ChunkPull<ReplyEvent, UpstreamFailure | GatewayError>
): ChunkPull<ReplyEvent, GatewayError> => {
  const { first, lease, request: { stats }, span, words } = reply
  let unread: Batch | undefined = first
  /** The result of the pull after the last events. */
  let end: Pull.Pull<never> | undefined
  const emit = (batch: Batch): ChunkPull<ReplyEvent, GatewayError> =>
    noteEvents(batch, reply)
      ? closeAttempt(reply, Exit.void, (wait) => {
        end = wait === undefined ? Cause.done() : Effect.andThen(wait, Cause.done())
        return Effect.succeed(batch)
      })
      : Effect.succeed(batch)
  const close = (exit: Exit.Exit<unknown, unknown>, end: ChunkPull<ReplyEvent, GatewayError>) =>
    closeAttempt(reply, exit, (wait) => wait === undefined ? end : Effect.andThen(wait, end))
  const fail = (error: GatewayError) => {
    span?.failed(error.code)
    return close(Exit.fail(error), Effect.fail(error))
  }
  const read = Effect.matchCauseEffect(rest, {
    onSuccess: emit,
    onFailure: (cause): ChunkPull<ReplyEvent, GatewayError> => {
      const failure = Cause.findErrorOption(cause)
      if (failure._tag === "None") return close(Exit.failCause(cause), Effect.failCause(cause as Cause.Cause<never>))
      if (Cause.isDone(failure.value)) return close(Exit.void, Cause.done())
      if (failure.value._tag === "GatewayError") return fail(failure.value)
      return Effect.flatMap(brokenOff(lease, words, failure.value, stats), fail)
    }
  })
  return Effect.suspend(() => {
    if (end !== undefined) return end
    if (unread === undefined) return read
    const batch = unread
    unread = undefined
    return emit(batch)
  })
}

/** The account of a lease whose server can store responses. */
const storing = (lease: Lease): Maker | undefined =>
  lease.driver.capabilities.seals === undefined ? undefined : makerOf(lease)

/** The reply as a stream, for one reader. */
export const streamOf = (reply: OpenReply): CompletionOutput => ({
  id: reply.id,
  driver: reply.driver,
  maker: storing(reply.lease),
  events: reply.rest.pipe(mapPull((rest) => eventsOf(reply, reply.span === undefined ? rest : reply.span.inSpan(rest))))
})

/** The reply in one piece. */
export const wholeOf = (reply: OpenReply): Effect.Effect<CompletedReply> => {
  const { driver, first, id, lease } = reply
  noteEvents(first, reply)
  const whole = Effect.succeed({ id, driver, maker: storing(lease), events: first })
  return closeAttempt(reply, Exit.void, (wait) => wait === undefined ? whole : Effect.andThen(wait, whole))
}
