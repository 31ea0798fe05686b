/**
 * A reply as a stream of events, which notes what it learns for the request's record and gives the account back.
 */
import * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Lease } from "../accounts/Accounts.ts"
import { classify } from "../domain/classifyUpstreamFailure.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { AttemptSpan } from "./attemptSpan.ts"
import type { RequestStats } from "./RequestStats.ts"
import type { Batch } from "./startReply.ts"

/** What a stream goes on from. */
export interface OpenReply {
  /** Events that have come already. */
  readonly first: Batch
  /** The next ones; `undefined` after the end. */
  readonly next: Effect.Effect<Batch | undefined, UpstreamFailure | GatewayError>
  readonly lease: Lease
  /** Holds the lease and the upstream's connections; closed as soon as the reply is over. */
  readonly attempt: Scope.Closeable
  /** Leaving the upstream takes no time. */
  readonly isOver: () => boolean
  /** The request's own, which is over last. */
  readonly scope: Scope.Scope
  /** The credential is the caller's own token. */
  readonly direct: boolean
  readonly stats: RequestStats
  readonly span: AttemptSpan
}

/** Notes what events tell for the request's record; true once they are the last ones. */
export const noteEvents = (batch: Batch, stats: RequestStats, span: AttemptSpan): boolean => {
  span.events(batch)
  let ended = false
  for (const event of batch) {
    if (event._tag === "UsageReported") stats.usage = event.usage
    else if (event._tag === "CallStarted") stats.calls++
    else if (event._tag === "CallCutOff") stats.brokenCalls++
    else if (event._tag === "Finish") {
      stats.finish = event.reason
      ended = true
    }
  }
  return ended
}

/** A reply that is whole waits for this long, in milliseconds, until the upstream has heard so. */
const longestWait = 250

/**
 * Closes an attempt: leaves the upstream, then gives the account back. Once begun it goes to its end, whoever leaves meanwhile.
 * An upstream that has to be told is told beside the reply, which waits for no longer than one takes that answers at once; the
 * request's scope waits for all of it.
 */
export const closeAttempt = (
  { attempt, isOver, scope }: Pick<OpenReply, "attempt" | "isOver" | "scope">,
  exit: Exit.Exit<unknown, unknown>
): Effect.Effect<unknown> =>
  isOver()
    ? Scope.close(attempt, exit)
    : Effect.flatMap(
      Effect.forkIn(Scope.close(attempt, exit), scope, { startImmediately: true, uninterruptible: true }),
      (closing) => Effect.timeoutOption(Fiber.await(closing), longestWait)
    )

/** The events of a reply, batch by batch. */
export type Events = Pull.Pull<Batch, GatewayError>

/**
 * The events to the end, or to the failure that the caller is told, for one reader. The attempt is closed with them; whoever
 * leaves in the midst closes it himself.
 */
export const replyPull = (reply: OpenReply): Events => {
  const { direct, first, lease, next, span, stats } = reply
  let taken = false
  let ended = false
  const note = (batch: Batch) => {
    ended = noteEvents(batch, stats, span)
    return batch
  }
  const over = (exit: Exit.Exit<unknown, unknown>, end: Events): Events =>
    Effect.andThen(closeAttempt(reply, exit), end)
  const read: Events = Effect.matchEffect(next, {
    onSuccess: (batch): Events => batch === undefined ? over(Exit.void, Cause.done()) : Effect.succeed(note(batch)),
    onFailure: (failure): Events => {
      if (failure._tag === "GatewayError") {
        span.failed(failure.code)
        return over(Exit.fail(failure), Effect.fail(failure))
      }
      const judged = classify(failure, { direct, mayRefresh: false, shown: true, secrets: lease.secrets() })
      span.failed(judged.error.code)
      return Effect.flatMap(
        lease.report(judged.health, judged.retryAfter),
        () => over(Exit.fail(judged.error), Effect.fail(judged.error))
      )
    }
  })
  return Effect.suspend(() => {
    if (taken) return ended ? over(Exit.void, Cause.done()) : read
    taken = true
    return Effect.succeed(note(first))
  })
}

/** The same as a stream: whoever leaves it in the midst closes its scope, and with it the attempt. */
export const replyStream = (pull: Events, attempt: Scope.Closeable): Stream.Stream<ReplyEvent, GatewayError> =>
  Stream.fromChannel(
    Channel.fromTransform((_, scope) =>
      Effect.as(Scope.addFinalizerExit(scope, (exit) => Scope.close(attempt, exit)), pull)
    )
  )
