/**
 * A reply that an attempt has begun: as a stream, or whole. What its events tell is noted for the request's record, and the
 * attempt is closed, which gives the account back, as soon as the reply is over.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import type { Lease } from "../accounts/Accounts.ts"
import { classify } from "../domain/classifyUpstreamFailure.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import { fromPullOnce } from "../domain/stream/transduce.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { AttemptSpan } from "./attemptSpan.ts"
import type { Batch, CompletedReply, CompletionOutput } from "./CompletionInput.ts"
import type { RequestStats } from "./RequestStats.ts"

/** A reply that has begun. */
export interface OpenReply {
  readonly id: string
  readonly driver: string
  /** Events that have come already: all of them where the reply is wanted whole. */
  readonly first: Batch
  readonly next: Pull.Pull<Batch, UpstreamFailure | GatewayError>
  readonly lease: Lease
  /** Holds the lease and the upstream's connections. */
  readonly attempt: Scope.Closeable
  /** Whether leaving the upstream takes no time. */
  readonly isOver: () => boolean
  /** The request's own scope, which closes last. */
  readonly scope: Scope.Scope
  /** The credential is the caller's own token. */
  readonly direct: boolean
  readonly stats: RequestStats
  readonly span: AttemptSpan
}

/** Notes what events tell for the request's record. Returns true once they are the last ones. */
const noteEvents = (batch: Batch, stats: RequestStats, span: AttemptSpan): boolean => {
  span.events(batch)
  let isLast = false
  for (const event of batch) {
    if (event._tag === "UsageReported") stats.usage = event.usage
    else if (event._tag === "CallStarted") stats.calls++
    else if (event._tag === "CallCutOff") stats.brokenCalls++
    else if (event._tag === "Finish") {
      stats.finish = event.reason
      isLast = true
    }
  }
  return isLast
}

/** Milliseconds that the end of a reply waits until the upstream has been told to stop. */
const longestWait = 250

/**
 * Closes an attempt: leaves the upstream, then gives the account back. Once begun it runs to its end, also where the request is
 * interrupted. An upstream that must be notified is notified beside the reply: the request's scope waits for it, and `wait` for no
 * longer than one takes that answers at once.
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

/** The events to the end, or to the failure that the caller gets. The attempt is closed with the last events. */
const eventsOf = (reply: OpenReply): Pull.Pull<Batch, GatewayError> => {
  const { direct, first, lease, next, span, stats } = reply
  let unread: Batch | undefined = first
  /** What remains once the last events are out. */
  let end: Pull.Pull<never> | undefined
  const emit = (batch: Batch): Pull.Pull<Batch, GatewayError> =>
    noteEvents(batch, stats, span)
      ? closeAttempt(reply, Exit.void, (wait) => {
        end = wait === undefined ? Cause.done() : Effect.andThen(wait, Cause.done())
        return Effect.succeed(batch)
      })
      : Effect.succeed(batch)
  const close = (exit: Exit.Exit<unknown, unknown>, end: Pull.Pull<Batch, GatewayError>) =>
    closeAttempt(reply, exit, (wait) => wait === undefined ? end : Effect.andThen(wait, end))
  const fail = (error: GatewayError) => {
    span.failed(error.code)
    return close(Exit.fail(error), Effect.fail(error))
  }
  const read = Effect.matchCauseEffect(next, {
    onSuccess: emit,
    onFailure: (cause): Pull.Pull<Batch, GatewayError> => {
      const failure = Cause.findErrorOption(cause)
      if (failure._tag === "None") return close(Exit.failCause(cause), Effect.failCause(cause as Cause.Cause<never>))
      if (Cause.isDone(failure.value)) return close(Exit.void, Cause.done())
      if (failure.value._tag === "GatewayError") return fail(failure.value)
      const judged = classify(failure.value, { direct, mayRefresh: false, shown: true, secrets: lease.secrets() })
      return Effect.andThen(lease.report(judged.health, judged.retryAfter), Effect.suspend(() => fail(judged.error)))
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

/** The reply as a stream, for one reader. */
export const streamOf = (reply: OpenReply): CompletionOutput => ({
  id: reply.id,
  driver: reply.driver,
  events: fromPullOnce(eventsOf(reply))
})

/** The reply in one piece. */
export const wholeOf = (reply: OpenReply): Effect.Effect<CompletedReply> => {
  const { driver, first, id, span, stats } = reply
  noteEvents(first, stats, span)
  const whole = Effect.succeed({ id, driver, events: first })
  return closeAttempt(reply, Exit.void, (wait) => wait === undefined ? whole : Effect.andThen(wait, whole))
}
