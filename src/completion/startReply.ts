/**
 * A reply on one lease: one turn with the upstream, and a second one that reminds the model when a call that was asked for
 * is missing. What a turn yields has been through the machines: calls, markers, stop sequences, usage, policy.
 */
import { isReadonlyArrayNonEmpty, type NonEmptyReadonlyArray } from "effect/Array"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import type { Caller, Lease } from "../accounts/Accounts.ts"
import type { Captures } from "../captures/Captures.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import { begunInSlices, inSlices } from "../config/inSlices.ts"
import type { Conversation } from "../domain/Conversation.ts"
import { toolsEnabled } from "../domain/Conversation.ts"
import { estimateConversation, estimateSliced } from "../domain/estimateConversation.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import { gatewayError } from "../domain/GatewayError.ts"
import type { Model } from "../domain/models.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import { type UpstreamEvent, UpstreamFinish } from "../domain/UpstreamEvent.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import { pieceChars } from "../stream/slices.ts"
import { compileStopSequences } from "../stream/stopSequences.ts"
import { reminder } from "../tools/declaration.ts"
import { ReasoningCalls } from "../tools/reasoningCalls.ts"
import { sieve } from "../tools/sieve.ts"
import type { Budget } from "../upstream/budget.ts"
import { pullOf } from "../upstream/pullOf.ts"
import type { CompletionReply } from "../upstream/Upstream.ts"
import { assembleReply, type ReplyMachine } from "./assembleReply.ts"
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
  /** Leaving the upstream takes no time. */
  readonly isOver: () => boolean
}

interface ReplyInput {
  /** The configuration that the request began with. */
  readonly config: GatewayConfig
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
  let seed: string | undefined
  return (index: number) => `call_${seed ??= crypto.randomUUID().replaceAll("-", "").slice(0, 20)}${index}`
}

const withReminder = (conversation: Conversation): Conversation => ({
  ...conversation,
  turns: [...conversation.turns, {
    role: "system",
    parts: [{ _tag: "Text", text: reminder(conversation.toolChoice) }]
  }]
})

/** One turn with the upstream, as it runs. */
interface Turn {
  readonly id: string
  readonly next: Effect.Effect<Batch | undefined, UpstreamFailure>
  readonly isOver: () => boolean
}

/** Characters up to which a prompt's tokens are estimated whether or not they are asked for: one slice of work. */
const shortPrompt = pieceChars

/** Whether a prompt is so long that counting it is worth avoiding. */
const isLong = ({ turns }: Conversation): boolean => {
  let characters = 0
  for (const { parts } of turns) {
    for (const part of parts) {
      if (part._tag === "Result") return true
      if (part._tag === "Text" || part._tag === "Reasoning") characters += part.text.length
      else if (part._tag === "Call") characters += part.arguments.length
      if (characters > shortPrompt) return true
    }
  }
  return false
}

/** Whether the events of a chunk tell the prompt's tokens. */
const tellPrompt = (chunk: ReadonlyArray<UpstreamEvent>): boolean =>
  chunk.some((event) => event._tag === "UpstreamUsage" && event.usage.promptTokens !== undefined)

const mayTakeAWhile = () => false

/**
 * Runs the upstream's events through the machines of a turn. `estimate` counts the prompt's tokens ahead of the end where the
 * upstream has not told them; `undefined` where they are known.
 */
const turnOf = (
  { id, isOver = mayTakeAWhile }: CompletionReply,
  pull: Pull.Pull<NonEmptyReadonlyArray<UpstreamEvent>, UpstreamFailure>,
  machine: ReplyMachine,
  policy: PolicyMachine | undefined,
  budget: Budget,
  estimate: Effect.Effect<unknown> | undefined
): Turn => {
  let ended = false
  let counting = estimate
  /** Goes on once the prompt's tokens are known, where the end is near that tells them. */
  const counted = (isTold: boolean, go: () => Turn["next"]): Turn["next"] => {
    const work = counting
    if (work === undefined) return go()
    counting = undefined
    return isTold || machine.promptTold() ? go() : Effect.flatMap(work, go)
  }
  /** What the machine has made of the last chunk, after the policy. */
  const take = (assembled: Array<ReplyEvent>): Array<ReplyEvent> => {
    ended ||= assembled.at(-1)?._tag === "Finish"
    if (policy === undefined) return assembled
    const out: Array<ReplyEvent> = []
    for (const event of assembled) policy.push(event, out)
    return out
  }
  const read: Turn["next"] = Pull.matchEffect(pull, {
    onSuccess: (chunk) =>
      counting !== undefined && chunk[chunk.length - 1]!._tag === "UpstreamFinish"
        ? counted(tellPrompt(chunk), () => push(chunk))
        : push(chunk),
    onFailure: Effect.failCause,
    onDone: () => counted(false, end)
  })
  const push = (chunk: ReadonlyArray<UpstreamEvent>): Turn["next"] => {
    const assembled: Array<ReplyEvent> = []
    for (let i = 0; i < chunk.length; i++) machine.push(chunk[i]!, assembled)
    if (!budget.hold(machine.held + (policy?.held ?? 0))) machine.push(UpstreamFinish("length"), assembled)
    const batch = take(assembled)
    return isReadonlyArrayNonEmpty(batch) ? Effect.succeed(batch) : ended ? Effect.undefined : read
  }
  const end = (): Turn["next"] => {
    ended = true
    const assembled: Array<ReplyEvent> = []
    machine.end(assembled)
    const batch = take(assembled)
    return isReadonlyArrayNonEmpty(batch) ? Effect.succeed(batch) : Effect.undefined
  }
  return { id, next: Effect.suspend(() => ended ? Effect.undefined : read), isOver }
}

/** Starts a reply on a lease. */
export type ReplyStarter = ReturnType<typeof replyStarter>

/**
 * Makes the function that starts replies. The scope, which is also the one that it is started in, holds the upstream's
 * connections.
 */
export const replyStarter = (captures: Captures["Service"]) => {
  const startTurn = (
    { budget, caller, config, model, stats }: ReplyInput,
    lease: Lease,
    conversation: Conversation,
    policy: PolicyMachine | undefined,
    scope: Scope.Scope
  ): Effect.Effect<Turn, UpstreamFailure, Scope.Scope> =>
    Effect.flatMap(
      lease.driver.complete({
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
      }),
      (reply) => {
        const { tools } = conversation
        const enabled = toolsEnabled(conversation)
        const singleCall = enabled && !conversation.parallelToolCalls
        // What ends a reply in the midst of a chunk has no time to count.
        const isLate = isLong(conversation) && conversation.stop.length === 0 && !singleCall
        const estimate = isLate ? inSlices(estimateSliced(conversation)) : undefined
        const start = (pull: Pull.Pull<NonEmptyReadonlyArray<UpstreamEvent>, UpstreamFailure>): Turn => {
          const callId = callIds()
          const machine = assembleReply({
            sieve: enabled ? sieve({ tools, callId }) : undefined,
            reasoningCalls: enabled ? () => new ReasoningCalls(tools) : undefined,
            stripMarkers: model.search && config.compat.strip_reference_markers,
            stop: compileStopSequences(conversation.stop),
            singleCall,
            showReasoning: model.reasoning,
            addCall: () => budget.addCall(),
            callId,
            promptTokens: () => estimateConversation(conversation)
          })
          stats.soFar = machine
          return turnOf(reply, pull, machine, policy, budget, estimate)
        }
        return Effect.flatMapEager(
          isLate ? Effect.succeed(0) : begunInSlices(estimateSliced(conversation)),
          () =>
            reply.pull === undefined
              ? Effect.map(pullOf(reply.events, scope), start)
              : Effect.succeed(start(reply.pull))
        )
      }
    )

  return (
    input: ReplyInput,
    lease: Lease,
    scope: Scope.Scope
  ): Effect.Effect<StartedReply<UpstreamFailure | GatewayError>, UpstreamFailure, Scope.Scope> => {
    const { conversation } = input
    if (!toolsEnabled(conversation) || !demandsCall(conversation.toolChoice)) {
      return startTurn(input, lease, conversation, undefined, scope)
    }
    let policy = toolPolicy(conversation.toolChoice, false)
    return Effect.map(startTurn(input, lease, conversation, policy, scope), (first) => {
      let turn = first
      let second = false
      const next: Effect.Effect<Batch | undefined, UpstreamFailure | GatewayError> = Effect.suspend(() =>
        Effect.flatMap(turn.next, (batch): Effect.Effect<Batch | undefined, UpstreamFailure | GatewayError> => {
          if (batch !== undefined || !policy.violated()) return Effect.succeed(batch)
          if (second) return Effect.fail(violation(conversation))
          second = true
          policy = toolPolicy(conversation.toolChoice, true)
          return Effect.flatMap(
            Scope.provide(startTurn(input, lease, withReminder(conversation), policy, scope), scope),
            (started) => {
              turn = started
              return next
            }
          )
        })
      )
      return { id: turn.id, next, isOver: () => turn.isOver() }
    })
  }
}
