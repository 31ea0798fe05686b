/**
 * The one way from a conversation to its reply: an account, attempts with failover, the reply's events.
 *
 * `open` returns at the first reply event, or at the last one of a reply that is wanted whole. Until then a failed attempt
 * has shown nothing and may be tried again elsewhere; from then on a failure is one of the events' stream.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { Caller, Lease } from "../accounts/Accounts.ts"
import { Accounts } from "../accounts/Accounts.ts"
import { Captures } from "../captures/Captures.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import { holdBytes } from "../config/CurrentLimits.ts"
import { inSlices } from "../config/inSlices.ts"
import { classify } from "../domain/classifyUpstreamFailure.ts"
import type { Conversation } from "../domain/Conversation.ts"
import { estimateConversation, estimateSliced } from "../domain/estimateConversation.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import { gatewayError, invalidRequest } from "../domain/GatewayError.ts"
import type { Model } from "../domain/models.ts"
import { monotonicMillis } from "../domain/monotonicMillis.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import { Budget } from "../upstream/budget.ts"
import { KeyLimits } from "../usage/KeyLimits.ts"
import { admitRequest, keyOf } from "./admission.ts"
import { attemptSpan } from "./attemptSpan.ts"
import { replyStream } from "./replyStream.ts"
import type { RequestStats } from "./RequestStats.ts"
import type { Batch } from "./startReply.ts"
import { replyStarter } from "./startReply.ts"

/** What a style hands down. */
export interface CompletionInput {
  readonly caller: Caller
  readonly model: Model
  readonly conversation: Conversation
  readonly stats: RequestStats
  /** The caller gets the reply in one piece: none of it is shown before its end, so that every failure may be tried again. */
  readonly whole?: boolean
}

/** A reply that has begun. */
export interface CompletionOutput {
  /** The upstream session's id, by which the reply goes. */
  readonly id: string
  /** The name of the driver that answers; `embedded` for the upstream inside the gateway. */
  readonly driver: string
  /**
   * The reply; ends with `Finish`, or fails. Its chunks are never empty and the first one is there already. The account is
   * given back when the stream ends, fails or is left.
   */
  readonly events: Stream.Stream<ReplyEvent, GatewayError>
}

const tooMuchHeld = gatewayError(
  "rate_limit_exceeded",
  "Too many large replies are being made (limits.buffered_bytes)",
  { retryAfter: 5 }
)

/** Attempts of one request, the first included (behaviour: failover). */
const mostAttempts = 3

/** Fails what ended without anything to show, and what was withdrawn before anything was. */
const checkFirst = (batch: Batch | undefined): Effect.Effect<Batch, UpstreamFailure> => {
  if (batch === undefined) return Effect.fail(new UpstreamFailure({ phase: "stream", kind: "empty" }))
  const last = batch[batch.length - 1]!
  if (last._tag !== "Finish" || batch.some(isShown)) return Effect.succeed(batch)
  if (last.reason === "content_filter") {
    return Effect.fail(new UpstreamFailure({ phase: "stream", kind: "withdrawn" }))
  }
  // A stop sequence at the very start makes a reply without text that is whole all the same.
  if (last.reason === "stop_sequence") return Effect.succeed(batch)
  return Effect.fail(new UpstreamFailure({ phase: "stream", kind: "empty" }))
}

/** Waits for all that follows the first events. */
const collect = Effect.fnUntraced(function*<E>(first: Batch, next: Effect.Effect<Batch | undefined, E>) {
  const batches: Array<Batch> = [first]
  for (;;) {
    const batch = yield* next
    if (batch === undefined) return batches
    batches.push(batch)
  }
})

const isShown = (event: ReplyEvent): boolean => event._tag !== "UsageReported" && event._tag !== "Finish"

/** Runs completions. */
export class Completion extends Context.Service<Completion, {
  /**
   * Opens a reply. Fails with the caller's error when nothing could be shown; the scope holds the account and the
   * connection, and closing it early stops the upstream.
   */
  readonly open: (input: CompletionInput) => Effect.Effect<CompletionOutput, GatewayError, Scope.Scope>
}>()("model-gateway/completion/Completion") {
  static readonly make = Effect.gen(function*() {
    const accounts = yield* Accounts
    const config = yield* ConfigStore
    const captures = yield* Captures
    const keyLimits = yield* KeyLimits
    const startReply = replyStarter(config, captures)

    /** The reply on one lease, up to the first events that show something. */
    const begin = Effect.fnUntraced(function*(input: CompletionInput, lease: Lease, budget: Budget) {
      const reply = yield* startReply({ ...input, budget }, lease)
      const first = yield* Effect.flatMap(reply.next, checkFirst)
      return { reply, first }
    })

    // Not a traced function: that takes a stack trace at each call, traced or not.
    const open = Effect.fnUntraced(function*(input: CompletionInput) {
      const { caller, conversation, stats, whole = false } = input
      stats.record?.decoded(conversation)
      yield* checkToolChoice(conversation)
      if (keyLimits.countsTokens(keyOf(caller))) yield* inSlices(estimateSliced(conversation))
      const refusal = admitRequest(keyLimits, input, () => estimateConversation(conversation))
      if (refusal !== undefined) return yield* refusal
      const scope = yield* Effect.scope
      const avoid = new Set<string>()
      let stay: string | undefined
      /** Accounts whose token was replaced: each may have that once. */
      const refreshed = new Set<string | undefined>()
      let spent = 0
      /** What the attempt before came to: when no account is left because of that, it is the cause to tell. */
      let before: GatewayError | undefined
      const clock = yield* Clock.Clock
      const { limits, upstream } = config.unsafeCurrent()
      const most = upstream.timeouts.attempts * 1000
      const held = whole ? yield* holdBytes : undefined
      if (held?.add(0) === false) return yield* tooMuchHeld
      /** What the request may cost, from its first lease on. */
      let budget: Budget | undefined
      for (;;) {
        const attempt = yield* Scope.fork(scope)
        stats.attempts++
        stats.driver = config.unsafeCurrent().upstream.driver
        stats.waiting = { for: "queued", since: monotonicMillis(clock) }
        const lease = yield* accounts.lease(caller, { avoid, stay, style: stats.style }).pipe(
          Effect.mapError((error) =>
            error.code === before?.code
              ? gatewayError(error.code, before.message, { retryAfter: error.retryAfter })
              : error
          ),
          Scope.provide(attempt)
        )
        stats.queued += lease.waited
        stats.driver = lease.driver.name
        stats.accountHash = lease.accountHash
        stats.upstreamCalled = true
        stats.record?.leased(lease.identifier)
        const span = yield* attemptSpan({
          model: input.model,
          conversation,
          driver: lease.driver.name,
          accountHash: lease.accountHash,
          attempt: stats.attempts,
          captureContent: config.unsafeCurrent().telemetry.capture_content
        }).pipe(Scope.provide(attempt))
        budget ??= new Budget(limits, clock, held)
        const cost = budget
        const began = monotonicMillis(clock)
        stats.waiting = { for: "upstream", since: began }
        const result = yield* Effect.gen(function*() {
          const { first, reply } = yield* begin(input, lease, cost).pipe(
            Effect.timeoutOrElse({
              duration: Math.max(1, most - spent),
              orElse: () => Effect.fail(new UpstreamFailure({ phase: "completion", kind: "timeout" }))
            })
          )
          stats.firstEventAt = monotonicMillis(clock)
          stats.record?.progressed()
          yield* lease.report(undefined, undefined)
          const batches = whole ? yield* collect(first, reply.next) : [first]
          return { reply, batches }
        }).pipe(span.within, Scope.provide(attempt), Effect.result)
        stats.waiting = undefined
        stats.upstream += monotonicMillis(clock) - began
        if (result._tag === "Success") {
          const { batches, reply } = result.success
          const output: CompletionOutput = {
            id: reply.id,
            driver: lease.driver.name,
            events: replyStream({
              batches,
              next: span.within(reply.next),
              lease,
              attempt,
              direct: caller._tag === "Direct",
              stats,
              span
            })
          }
          return output
        }
        spent += monotonicMillis(clock) - began
        const failure = result.failure
        // Nobody has seen anything of it.
        stats.soFar = undefined
        if (failure._tag === "GatewayError") {
          span.failed(failure.code)
          return yield* failure
        }
        const judged = classify(failure, {
          direct: caller._tag === "Direct",
          mayRefresh: !refreshed.has(lease.account) && lease.driver.capabilities.login,
          shown: false,
          secrets: lease.secrets()
        })
        span.failed(judged.error.code)
        const refresh = judged.retry === "here_after_refresh"
        // The pool learns of it before the slot is free: whoever waits must not be given the account that has just failed.
        yield* lease.report(judged.health, judged.retryAfter)
        if (refresh) yield* lease.refreshToken
        yield* Scope.close(attempt, Exit.void)
        before = judged.error
        if (judged.retry === "no" || stats.attempts >= mostAttempts || spent >= most) return yield* judged.error
        if (refresh) {
          refreshed.add(lease.account)
          stay = lease.account
          continue
        }
        if (caller._tag === "Managed" && caller.target !== undefined) return yield* judged.error
        stay = undefined
        if (lease.account !== undefined) avoid.add(lease.account)
        stats.failovers++
      }
    }, Effect.withSpan("Completion.open", {}, { captureStackTrace: false }))

    return Completion.of({ open })
  })

  static readonly layer: Layer.Layer<Completion, never, Accounts | Captures | ConfigStore | KeyLimits> = Layer.effect(
    Completion,
    Completion.make
  )
}

const checkToolChoice = (conversation: Conversation): Effect.Effect<void, GatewayError> => {
  const choice = conversation.toolChoice
  if (choice._tag === "Required" && conversation.tools.length === 0) {
    return Effect.fail(invalidRequest("tool_choice requires a call but no tools are declared", "tool_choice"))
  }
  if (choice._tag === "Function" && !conversation.tools.some((tool) => tool.name === choice.name)) {
    return Effect.fail(
      invalidRequest(`tool_choice names "${choice.name}", which is not declared in tools`, "tool_choice")
    )
  }
  return Effect.void
}
