/**
 * A reply on one lease: one turn with the upstream, and a second one that reminds the model when a call that was asked for
 * is missing. What a turn yields has been through the machines: calls, markers, stop sequences, usage, policy.
 */
import { isReadonlyArrayNonEmpty, type NonEmptyReadonlyArray } from "effect/Array"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Caller, Lease } from "../accounts/Accounts.ts"
import type { Captures } from "../captures/Captures.ts"
import type { ConfigStore } from "../config/ConfigStore.ts"
import { inSlices } from "../config/inSlices.ts"
import type { Conversation } from "../domain/Conversation.ts"
import { toolsEnabled } from "../domain/Conversation.ts"
import { estimateSliced } from "../domain/estimateConversation.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import { gatewayError } from "../domain/GatewayError.ts"
import type { Model } from "../domain/models.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import { compileStopSequences } from "../stream/stopSequences.ts"
import { reminder } from "../tools/declaration.ts"
import { reasoningCalls } from "../tools/reasoningCalls.ts"
import { sieve } from "../tools/sieve.ts"
import type { Budget } from "../upstream/budget.ts"
import { assembleReply } from "./assembleReply.ts"
import type { RequestStats } from "./RequestStats.ts"
import type { PolicyMachine } from "./toolPolicy.ts"
import { demandsCall, toolPolicy } from "./toolPolicy.ts"

/** Events that came together; never none. */
export type Batch = NonEmptyReadonlyArray<ReplyEvent>

/** A reply that the upstream has begun. */
export interface StartedReply<E> {
  readonly id: string
  /** The next events; `undefined` after the end. */
  readonly next: Effect.Effect<Batch | undefined, E>
}

interface ReplyInput {
  readonly caller: Caller
  readonly model: Model
  readonly conversation: Conversation
  readonly stats: RequestStats
  readonly budget: Budget
}

const violation = (conversation: Conversation): GatewayError =>
  gatewayError(
    "tool_choice_violation",
    conversation.toolChoice._tag === "Function"
      ? `The model did not call the function "${conversation.toolChoice.name}" that tool_choice asks for`
      : "The model made no tool call although tool_choice requires one",
    { param: "tool_choice" }
  )

/** Ids of a reply's calls: unlike those of any other reply, since a history holds the calls of many. */
const callIds = () => {
  const seed = crypto.randomUUID().replaceAll("-", "").slice(0, 20)
  return (index: number) => `call_${seed}${index}`
}

const withReminder = (conversation: Conversation): Conversation => ({
  ...conversation,
  turns: [...conversation.turns, {
    role: "system",
    parts: [{ _tag: "Text", text: reminder(conversation.toolChoice) }]
  }]
})

/** Makes the function that starts replies. The scope of a call holds the upstream's connections. */
export const replyStarter = (config: ConfigStore["Service"], captures: Captures["Service"]) => {
  const startTurn = Effect.fnUntraced(function*(
    { budget, caller, model, stats }: ReplyInput,
    lease: Lease,
    conversation: Conversation,
    policy: PolicyMachine | undefined
  ): Effect.fn.Return<StartedReply<UpstreamFailure>, UpstreamFailure, Scope.Scope> {
    const reply = yield* lease.driver.complete({
      model,
      conversation,
      credential: lease.credential,
      direct: caller._tag === "Direct",
      recorder: captures.recorder(lease.identifier, stats.id, stats.record),
      budget,
      onSession: lease.usedSession,
      onContinue: () => {
        stats.continues++
      }
    })
    const promptTokens = yield* inSlices(estimateSliced(conversation))
    const { tools } = conversation
    const enabled = toolsEnabled(conversation)
    const callId = callIds()
    const machine = assembleReply({
      sieve: enabled ? sieve({ tools, callId }) : undefined,
      reasoningCalls: enabled ? (reasoning) => reasoningCalls({ tools, callId }, reasoning) : undefined,
      stripMarkers: model.search && config.unsafeCurrent().compat.strip_reference_markers,
      stop: compileStopSequences(conversation.stop),
      singleCall: enabled && !conversation.parallelToolCalls,
      showReasoning: model.reasoning,
      addCall: () => budget.addCall(),
      callId,
      promptTokens: () => promptTokens
    })
    stats.soFar = machine
    const pull = yield* Stream.toPull(reply.events)
    const assembled: Array<ReplyEvent> = []
    let ended = false
    /** What the machine has made of the last chunk, after the policy. */
    const take = (): Array<ReplyEvent> => {
      ended ||= assembled.at(-1)?._tag === "Finish"
      if (policy === undefined) return assembled.splice(0)
      const out: Array<ReplyEvent> = []
      for (const event of assembled) policy.push(event, out)
      assembled.length = 0
      return out
    }
    const next: Effect.Effect<Batch | undefined, UpstreamFailure> = Effect.suspend(() => {
      if (ended) return Effect.undefined
      return Pull.matchEffect(pull, {
        onSuccess: (chunk) => {
          for (let i = 0; i < chunk.length; i++) machine.push(chunk[i]!, assembled)
          const batch = take()
          return isReadonlyArrayNonEmpty(batch) ? Effect.succeed(batch) : next
        },
        onFailure: Effect.failCause,
        onDone: () => {
          ended = true
          machine.end(assembled)
          const batch = take()
          return isReadonlyArrayNonEmpty(batch) ? Effect.succeed(batch) : Effect.undefined
        }
      })
    })
    return { id: reply.id, next }
  })

  return Effect.fnUntraced(function*(
    input: ReplyInput,
    lease: Lease
  ): Effect.fn.Return<StartedReply<UpstreamFailure | GatewayError>, UpstreamFailure, Scope.Scope> {
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
        return startTurn(input, lease, withReminder(conversation), policy).pipe(
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
}
