/**
 * The one way from a conversation to its reply: an account, attempts with failover, the reply's events.
 *
 * `open` returns at the first reply event, or at the last one of a reply that is wanted whole. Until then a failed attempt
 * has shown nothing and may be tried again elsewhere; from then on a failure is one of the events' stream.
 */
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Caller, Lease } from "../accounts/Accounts.ts"
import { Accounts } from "../accounts/Accounts.ts"
import { Captures } from "../captures/Captures.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import { classify } from "../domain/classifyUpstreamFailure.ts"
import type { Conversation } from "../domain/Conversation.ts"
import { toolsEnabled } from "../domain/Conversation.ts"
import { estimateConversation } from "../domain/estimateConversation.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import { gatewayError, invalidRequest } from "../domain/GatewayError.ts"
import type { Model } from "../domain/models.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import { compileStopSequences } from "../stream/stopSequences.ts"
import { reminder } from "../tools/declaration.ts"
import { reasoningCalls } from "../tools/reasoningCalls.ts"
import { sieve } from "../tools/sieve.ts"
import { assembleReply } from "./assembleReply.ts"
import type { RequestStats } from "./RequestStats.ts"
import type { PolicyMachine } from "./toolPolicy.ts"
import { demandsCall, toolPolicy } from "./toolPolicy.ts"

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

/** Attempts of one request, the first included (behaviour: failover). */
const mostAttempts = 3

type Batch = NonEmptyReadonlyArray<ReplyEvent>

/** One upstream completion that has begun to answer. */
interface Turn {
  readonly id: string
  /** The next events; `undefined` after the end. */
  readonly next: Effect.Effect<Batch | undefined, UpstreamFailure>
}

const isFilled = <A>(batch: ReadonlyArray<A>): batch is NonEmptyReadonlyArray<A> => batch.length > 0

/** Fails what ended without anything to show, and what was withdrawn before anything was. */
const checkFirst = (batch: Batch | undefined): Effect.Effect<Batch, UpstreamFailure> => {
  if (batch === undefined) return Effect.fail(new UpstreamFailure({ phase: "stream", kind: "empty" }))
  const last = batch[batch.length - 1]!
  if (last._tag !== "Finish" || batch.some(isShown)) return Effect.succeed(batch)
  if (last.reason === "content_filter") {
    return Effect.fail(new UpstreamFailure({ phase: "stream", kind: "withdrawn" }))
  }
  // A stop sequence at the very start makes a reply without text that is whole all the same.
  if (last.reason === "stop_sequence" || last.reason === "length") return Effect.succeed(batch)
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

    /** Starts one upstream completion and the machines over its events. */
    const startTurn = Effect.fnUntraced(function*(
      input: CompletionInput,
      lease: Lease,
      conversation: Conversation,
      policy: PolicyMachine | undefined
    ) {
      const reply = yield* lease.driver.complete({
        model: input.model,
        conversation,
        credential: lease.credential,
        recorder: captures.recorder(lease.account, input.stats.id),
        onSession: lease.usedSession,
        onContinue: () => {
          input.stats.continues++
        }
      })
      const enabled = toolsEnabled(conversation)
      const seed = input.stats.id.replaceAll("-", "").slice(-18)
      const callId = (index: number) => `call_${seed}${index}`
      const machine = assembleReply({
        sieve: enabled ? sieve({ tools: conversation.tools, callId }) : undefined,
        reasoningCalls: enabled
          ? (reasoning) => reasoningCalls({ tools: conversation.tools, callId }, reasoning)
          : undefined,
        stripMarkers: input.model.search && config.unsafeCurrent().compat.strip_reference_markers,
        stop: compileStopSequences(conversation.stop),
        singleCall: enabled && !conversation.parallelToolCalls,
        callId,
        promptTokens: () => estimateConversation(conversation)
      })
      const pull = yield* Stream.toPull(reply.events)
      const assembled: Array<ReplyEvent> = []
      let ended = false
      const collect = (): Array<ReplyEvent> => {
        const out: Array<ReplyEvent> = []
        if (policy === undefined) {
          for (const event of assembled) out.push(event)
        } else {
          for (const event of assembled) policy.push(event, out)
        }
        ended ||= assembled.length > 0 && assembled[assembled.length - 1]!._tag === "Finish"
        assembled.length = 0
        return out
      }
      const next: Effect.Effect<Batch | undefined, UpstreamFailure> = Effect.suspend(() => {
        if (ended) return Effect.undefined
        return Effect.matchCauseEffect(pull, {
          onSuccess: (chunk) => {
            for (let i = 0; i < chunk.length; i++) machine.push(chunk[i]!, assembled)
            const batch = collect()
            return isFilled(batch) ? Effect.succeed(batch) : next
          },
          onFailure: (cause) => {
            const failure = Cause.findErrorOption(cause)
            if (failure._tag === "Some" && Cause.isDone(failure.value)) {
              ended = true
              machine.end(assembled)
              const batch = collect()
              return isFilled(batch) ? Effect.succeed(batch) : Effect.undefined
            }
            return Effect.failCause(cause as Cause.Cause<UpstreamFailure>)
          }
        })
      })
      const turn: Turn = { id: reply.id, next }
      return turn
    })

    /** The reply on one lease: one turn, and a second one that reminds the model when a demanded call is missing. */
    const startReply = Effect.fnUntraced(function*(input: CompletionInput, lease: Lease) {
      const { conversation } = input
      if (!toolsEnabled(conversation) || !demandsCall(conversation.toolChoice)) {
        return yield* startTurn(input, lease, conversation, undefined)
      }
      const scope = yield* Effect.scope
      let policy = toolPolicy(conversation.toolChoice, false)
      let turn = yield* startTurn(input, lease, conversation, policy)
      let second = false
      const next: Effect.Effect<Batch | undefined, UpstreamFailure | GatewayError> = Effect.suspend(() =>
        Effect.flatMap(turn.next, (batch): Effect.Effect<Batch | undefined, UpstreamFailure | GatewayError> => {
          if (batch !== undefined || !policy.violated()) return Effect.succeed(batch)
          if (second) return Effect.fail(violation(conversation))
          second = true
          policy = toolPolicy(conversation.toolChoice, true)
          const reminded: Conversation = {
            ...conversation,
            turns: [...conversation.turns, {
              role: "system",
              parts: [{ _tag: "Text", text: reminder(conversation.toolChoice) }]
            }]
          }
          return startTurn(input, lease, reminded, policy).pipe(
            Scope.provide(scope),
            Effect.flatMap((started) => {
              turn = started
              return next
            })
          )
        })
      )
      return { id: turn.id, next }
    })

    /** The reply on one lease, up to the first events that show something. */
    const begin = Effect.fnUntraced(function*(input: CompletionInput, lease: Lease) {
      const reply = yield* startReply(input, lease)
      const first = yield* Effect.flatMap(reply.next, checkFirst)
      return { reply, first }
    })

    const open = Effect.fn("Completion.open")(function*(input: CompletionInput) {
      const { caller, conversation, stats, whole = false } = input
      yield* checkToolChoice(conversation)
      const scope = yield* Effect.scope
      const avoid = new Set<string>()
      let stay: string | undefined
      /** Accounts whose token was replaced: each may have that once. */
      const refreshed = new Set<string | undefined>()
      let spent = 0
      /** What the attempt before came to: when no account is left because of that, it is the cause to tell. */
      let before: GatewayError | undefined
      const budget = config.unsafeCurrent().upstream.timeouts.attempts * 1000
      for (;;) {
        const attempt = yield* Scope.fork(scope)
        stats.attempts++
        const lease = yield* accounts.lease(caller, { avoid, stay }).pipe(
          Effect.mapError((error) =>
            error.code === before?.code
              ? gatewayError(error.code, before.message, { retryAfter: error.retryAfter })
              : error
          ),
          Scope.provide(attempt)
        )
        stats.queued += lease.waited
        stats.accountHash = lease.accountHash
        const began = yield* Clock.currentTimeMillis
        const result = yield* Effect.gen(function*() {
          const { first, reply } = yield* begin(input, lease).pipe(
            Effect.timeoutOrElse({
              duration: Math.max(1, budget - spent),
              orElse: () => Effect.fail(new UpstreamFailure({ phase: "completion", kind: "timeout" }))
            })
          )
          stats.firstEventAt = yield* Clock.currentTimeMillis
          stats.upstream = stats.firstEventAt - began
          yield* lease.report(undefined, undefined)
          const batches = whole ? yield* collect(first, reply.next) : [first]
          return { reply, batches }
        }).pipe(Scope.provide(attempt), Effect.result)
        if (result._tag === "Success") {
          const { batches, reply } = result.success
          const output: CompletionOutput = {
            id: reply.id,
            driver: lease.driver.name,
            events: replyStream(batches, reply.next, lease, attempt, input)
          }
          return output
        }
        spent += (yield* Clock.currentTimeMillis) - began
        const failure = result.failure
        if (failure._tag === "GatewayError") return yield* failure
        const judged = classify(failure, {
          direct: caller._tag === "Direct",
          mayRefresh: !refreshed.has(lease.account) && lease.driver.capabilities.login,
          shown: false
        })
        const refresh = judged.retry === "here_after_refresh"
        // The pool learns of it before the slot is free: whoever waits must not be given the account that has just failed.
        yield* lease.report(judged.health, judged.retryAfter)
        if (refresh) yield* lease.refreshToken
        yield* Scope.close(attempt, Exit.void)
        before = judged.error
        if (judged.retry === "no" || stats.attempts >= mostAttempts || spent >= budget) return yield* judged.error
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
    })

    return Completion.of({ open })
  })

  static readonly layer: Layer.Layer<Completion, never, Accounts | Captures | ConfigStore> = Layer.effect(
    Completion,
    Completion.make
  )
}

const violation = (conversation: Conversation): GatewayError =>
  gatewayError(
    "tool_choice_violation",
    conversation.toolChoice._tag === "Function"
      ? `The model did not call the function "${conversation.toolChoice.name}" that tool_choice asks for`
      : "The model made no tool call although tool_choice requires one",
    { param: "tool_choice" }
  )

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

/** A reply as a stream, from the batches that have come on; gives the lease back as soon as it is over. */
const replyStream = (
  batches: ReadonlyArray<Batch>,
  next: Effect.Effect<Batch | undefined, UpstreamFailure | GatewayError>,
  lease: Lease,
  attempt: Scope.Closeable,
  { caller, stats }: CompletionInput
): Stream.Stream<ReplyEvent, GatewayError> => {
  let taken = 0
  let ended = false
  const note = (batch: Batch) => {
    for (const event of batch) {
      if (event._tag === "UsageReported") stats.usage = event.usage
      else if (event._tag === "CallStarted") stats.calls++
      else if (event._tag === "CallCutOff") stats.brokenCalls++
      else if (event._tag === "Finish") {
        stats.finish = event.reason
        ended = true
      }
    }
    return batch
  }
  const pull = Effect.suspend((): Effect.Effect<Batch, GatewayError | Cause.Done<void>> => {
    if (taken < batches.length) return Effect.succeed(note(batches[taken++]!))
    if (ended) return Cause.done()
    return next.pipe(
      Effect.catch((failure): Effect.Effect<never, GatewayError> => {
        if (failure._tag === "GatewayError") return Effect.fail(failure)
        const judged = classify(failure, { direct: caller._tag === "Direct", mayRefresh: false, shown: true })
        return Effect.andThen(lease.report(judged.health, judged.retryAfter), Effect.fail(judged.error))
      }),
      Effect.flatMap((batch) => batch === undefined ? Cause.done() : Effect.succeed(note(batch)))
    )
  })
  return Stream.onExit(Stream.fromPull(Effect.succeed(pull)), (exit) => Scope.close(attempt, exit))
}
