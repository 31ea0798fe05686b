/**
 * Starts a reply on a lease: one turn with the upstream, and a second turn with a reminder if a demanded call is missing. The
 * events of a turn pass through the reply's machines: calls, markers, stop sequences, usage, tool policy.
 */
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Caller, Lease } from "../accounts/Accounts.ts"
import { isDirect } from "../accounts/Lease.ts"
import { runCooperatively, startCooperatively } from "../config/clock/cooperative.ts"
import { contractOfStyle } from "../contracts/contractOf.ts"
import { contracts } from "../contracts/contracts.ts"
import { clientNames } from "../contracts/shared/validHistory.ts"
import { type Conversation, Text, toolsEnabled } from "../domain/Conversation.ts"
import { estimateConversation, estimateCooperatively, isLong } from "../domain/estimateConversation.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import type { Maker } from "../domain/makers.ts"
import type { Model } from "../domain/models.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import { sealedThinking } from "../domain/sealed.ts"
import { compileStopSequences } from "../domain/stream/stopSequences.ts"
import { type ChunkPull, mapPull, once, transduce } from "../domain/stream/transduce.ts"
import type { UpstreamEvent } from "../domain/UpstreamEvent.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import { isWholeFor } from "../domain/VendorFields.ts"
import type { Captures } from "../recordings/Captures.ts"
import { reminder } from "../sieve/declaration.ts"
import { ReasoningCalls } from "../sieve/reasoningCalls.ts"
import { sieve } from "../sieve/sieve.ts"
import type { RequestBudget } from "../upstream/budget.ts"
import { askedBy, type Credential, type Driver } from "../upstream/Upstream.ts"
import { assembleReply, isTurnDone, Turn, type TurnMachine } from "./assembleReply.ts"
import { ChoiceTurns, type TurnMaker } from "./choices.ts"
import { noteIgnored, replyPath } from "./ignored.ts"
import type { Request } from "./Request.ts"
import type { SealedCalls } from "./SealedCalls.ts"
import { asksAgain } from "./SentPrompt.ts"
import { cacheName } from "./stickiness.ts"
import { asksTwice, checksChoice, type PolicyMachine, toolPolicy } from "./toolPolicy.ts"
import { forDriver } from "./unsentFields.ts"

/** A reply that the upstream has started. */
interface StartedReply {
  readonly id: string
  /** The reply's events; an empty reply fails before the first one. */
  readonly events: Stream.Stream<ReplyEvent, UpstreamFailure | GatewayError>
  /** True if closing the upstream connection needs no other request. */
  readonly isOver: () => boolean
  /** True if the server has counted what its cache had of the prompt. */
  readonly isCacheReported: () => boolean
}

interface ReplyInput {
  /** Reference markers of searches are cut out of the text. */
  readonly stripsMarkers: boolean
  readonly caller: Caller
  readonly model: Model
  readonly conversation: Conversation
  readonly request: Request
  readonly budget: RequestBudget
  /** The caller gets the reply as a whole. */
  readonly isWhole: boolean
  /** The lease's driver, or the one that it chose for the request. */
  readonly driver: Driver
  /** Tokens from which the server keeps a prompt; `undefined` where no cache is watched. */
  readonly leastCached: number | undefined
  /** The tokens of output that strict limits have reserved for a turn; `undefined` without such limits. */
  readonly most: number | undefined
  /** Receives the paths of what the driver has not sent because the server refuses it, in the server's words. */
  readonly onChanged: (paths: ReadonlyArray<string>) => void
}

/** What a reply needs of its lease. */
export interface ReplyLease extends Pick<Lease, "account" | "upstream"> {
  readonly credential: Credential
  readonly registerSession: Lease["registerSession"] | undefined
}

/** The account of a lease, as what it makes is compared with. */
export const makerOf = ({ account, upstream }: Pick<Lease, "account" | "upstream">): Maker => ({
  upstream,
  account: account?.hash ?? "",
  organization: account?.organization()
})

const violation = (conversation: Conversation): GatewayError =>
  gatewayError(
    "tool_choice_violation",
    conversation.toolChoice._tag === "Function"
      ? `The model did not call the function "${conversation.toolChoice.name}" that tool_choice asks for`
      : "The model made no tool call although tool_choice requires one",
    { param: "tool_choice" }
  )

/** Makes ids for a reply's calls that are unique across replies, because a history contains the calls of many. */
const callIds = () => {
  let seed: string | undefined
  return (index: number) => `call_${seed ??= crypto.randomUUID().replaceAll("-", "").slice(0, 20)}${index}`
}

const withReminder = (conversation: Conversation): Conversation => ({
  ...conversation,
  turns: [...conversation.turns, { role: "system", parts: [Text(reminder(conversation.toolChoice))] }]
})

/** The client's names of tools, by those of the server; `undefined` if they are the same. */
const namesBack = (conversation: Conversation, driver: Driver): ReadonlyMap<string, string> | undefined => {
  const contract = askedBy(driver)
  return contract === undefined || isWholeFor(conversation, driver.contract)
    ? undefined
    : clientNames(conversation, contracts[contract].facts.limits)
}

/** True if a chunk reports the prompt's tokens. */
const reportsPrompt = (chunk: ReadonlyArray<UpstreamEvent>): boolean =>
  chunk.some((event) => event._tag === "UpstreamUsage" && event.usage.promptTokens !== undefined)

const mayTakeAWhile = () => false

/**
 * Estimates the prompt's tokens before the end of the reply, unless the upstream has reported them: a long prompt takes many
 * slices of work, and the synchronous machine that uses the estimate cannot wait.
 */
const countingBeforeEnd = (isReported: () => boolean, count: Effect.Effect<unknown>) => {
  let isCounted = false
  const counted = <A, E>(then: Effect.Effect<A, E>, isReported: boolean): Effect.Effect<A, E> => {
    if (isCounted || isReported) return then
    isCounted = true
    return Effect.andThen(count, then)
  }
  return mapPull((pull: ChunkPull<UpstreamEvent, UpstreamFailure>) =>
    Effect.matchCauseEffect(pull, {
      onSuccess: (chunk) =>
        counted(
          Effect.succeed(chunk),
          chunk[chunk.length - 1]!._tag !== "UpstreamFinish" || isReported() || reportsPrompt(chunk)
        ),
      onFailure: (cause) => counted(Effect.failCause(cause), !Pull.isDoneCause(cause) || isReported())
    })
  )
}

/** Writes of a reply to the shared store. They end before the events that follow from them leave. */
class Writes {
  #pending: Effect.Effect<void> | undefined

  add(write: Effect.Effect<void> | undefined): void {
    if (write !== undefined) this.#pending = this.#pending === undefined ? write : Effect.andThen(this.#pending, write)
  }

  readonly before = mapPull((pull: ChunkPull<ReplyEvent, UpstreamFailure>) =>
    Effect.flatMap(pull, (chunk) => {
      const pending = this.#pending
      this.#pending = undefined
      return pending === undefined ? Effect.succeed(chunk) : Effect.as(pending, chunk)
    })
  )
}

export type ReplyStarter = ReturnType<typeof replyStarter>

/** Makes the function that starts a reply on a lease, within the scope that holds the upstream's connections. */
export const replyStarter = (
  captures: Pick<Captures["Service"], "recorder">,
  sealed: Pick<SealedCalls, "isShared" | "keep" | "keepMaker">
) => {
  const startTurn = (
    { budget, caller, driver, isWhole, leastCached, model, most, onChanged, request, stripsMarkers }: ReplyInput,
    lease: ReplyLease,
    conversation: Conversation,
    makePolicy: (() => PolicyMachine) | undefined
  ): Effect.Effect<StartedReply, UpstreamFailure, Scope.Scope> => {
    return Effect.flatMap(
      driver.complete({
        model,
        conversation: forDriver(conversation, driver),
        client: contractOfStyle(request.style)?.id,
        credential: lease.credential,
        direct: isDirect(lease),
        callerHeaders: request.callerHeaders,
        cacheName: () => cacheName(caller.owner, request.identity, conversation),
        hasSession: request.identity?.session !== undefined,
        leastCached,
        recorder: captures.recorder(
          { identifier: lease.account?.identifier, upstream: lease.upstream },
          request.id,
          request.followers.recording
        ),
        isWhole,
        budget,
        onSession: lease.registerSession,
        onChanged,
        onContinue: () => {
          request.stats.continues++
        }
      }),
      ({ events, id, isOver = mayTakeAWhile, organization }) => {
        if (organization !== undefined) lease.account?.learnOrganization(organization)
        const names = namesBack(conversation, driver)
        // The model may write calls as text too, by the names that it knows.
        const tools = names === undefined ? conversation.tools : [
          ...conversation.tools,
          ...Array.from(names, ([name, own]) => ({ ...conversation.tools.find((tool) => tool.name === own), name }))
        ]
        const enabled = toolsEnabled(conversation)
        const singleCall = enabled && !conversation.parallelToolCalls && !isWholeFor(conversation, driver.contract)
        // A stop sequence or a single call may end the reply within a chunk, too late to estimate in slices.
        const isLate = isLong(conversation) && conversation.stop.length === 0 && !singleCall
        const writes = new Writes()
        const wantsThinking = driver.contract !== undefined && contracts[driver.contract].facts.wantsThinking
        const maker = driver.capabilities.seals === undefined ? undefined : makerOf(lease)
        const makeTurn: TurnMaker = (most, heldBeside) => {
          const callId = callIds()
          const assembly = assembleReply({
            sieve: enabled ? sieve({ tools, callId }) : undefined,
            reasoningCalls: enabled ? () => new ReasoningCalls(tools) : undefined,
            stripMarkers: model.search && stripsMarkers,
            stop: compileStopSequences(conversation.stop),
            singleCall,
            showReasoning: model.reasoning !== false,
            addCall: () => budget.addCall(),
            callId,
            keepSealed: (callId, sealedFields, thinking) => {
              const fields = wantsThinking && thinking !== ""
                ? { ...sealedFields, ...sealedThinking(thinking) }
                : sealedFields
              if (Object.keys(fields).length === 0) return
              writes.add(sealed.keep(caller.owner, callId, { upstream: lease.upstream, fields, maker }))
            },
            keepSeal: maker && ((seal) => writes.add(sealed.keepMaker(caller.owner, seal, maker))),
            promptTokens: () => estimateConversation(conversation),
            meter: undefined
          })
          return new Turn(assembly, makePolicy?.(), budget, {
            style: request.style,
            most,
            names,
            heldBeside,
            onUnknownEnd: (word) => noteIgnored(request.stats, `${replyPath}.finish:${word}`)
          })
        }
        const machine: TurnMachine = conversation.choices === 1
          ? makeTurn(most, undefined)
          : new ChoiceTurns(conversation, most, makeTurn)
        request.stats.soFar = machine
        // The reply ends with the turn's last event, where readers stop, unless another turn may follow.
        const isDone = makePolicy === undefined ? undefined : isTurnDone
        const assembled = transduce<UpstreamEvent, ReplyEvent, never, TurnMachine>(once(machine), isDone)
        const turn = (events: Stream.Stream<UpstreamEvent, UpstreamFailure>) =>
          sealed.isShared ? writes.before(assembled(events)) : assembled(events)
        const estimate = estimateCooperatively(conversation)
        const leavesZeroOut = driver.contract !== undefined && contracts[driver.contract].facts.leavesZeroOut
        const isCacheReported = () => leavesZeroOut ? machine.promptReported() : machine.cacheReported()
        if (isLate) {
          const counting = countingBeforeEnd(() => machine.promptReported(), runCooperatively(estimate))
          return Effect.succeed({ id, events: turn(counting(events)), isOver, isCacheReported })
        }
        return Effect.mapEager(
          startCooperatively(estimate),
          () => ({ id, events: turn(events), isOver, isCacheReported })
        )
      }
    )
  }

  /** One turn, and a second one with a reminder if the demanded call is missing and may be asked for again. */
  const startDemanding = (
    input: ReplyInput,
    lease: ReplyLease,
    scope: Scope.Scope
  ): Effect.Effect<StartedReply, UpstreamFailure, Scope.Scope> => {
    const { conversation, driver } = input
    const start = (conversation: Conversation, isSecond: boolean) => {
      const policies: Array<PolicyMachine> = []
      const makePolicy = () => {
        const policy = toolPolicy(conversation.toolChoice, isSecond)
        policies.push(policy)
        return policy
      }
      const violated = () => policies.some((policy) => policy.violated())
      return Effect.map(startTurn(input, lease, conversation, makePolicy), (turn) => ({ turn, violated }))
    }
    /** The events of a turn, followed by `next` after a violation. */
    const withNext = (
      { turn, violated }: Effect.Success<ReturnType<typeof start>>,
      next: () => StartedReply["events"]
    ): StartedReply["events"] => Stream.concat(turn.events, Stream.suspend(() => violated() ? next() : Stream.empty))
    return Effect.map(start(conversation, false), (first) => {
      let { isCacheReported, isOver } = first.turn
      const { budget, model: { id: model }, request: { stats } } = input
      const fail = () => Stream.fail(violation(conversation))
      const second = () => {
        asksAgain(stats, budget, { upstream: lease.upstream, model }, () => estimateConversation(conversation))
        return Stream.unwrap(
          Effect.map(Scope.provide(start(withReminder(conversation), true), scope), (second) => {
            isOver = second.turn.isOver
            isCacheReported = second.turn.isCacheReported
            return withNext(second, fail)
          })
        )
      }
      return {
        id: first.turn.id,
        events: withNext(first, asksTwice(conversation, driver.contract) ? second : fail),
        isOver: () => isOver(),
        isCacheReported: () => isCacheReported()
      }
    })
  }

  return (
    input: ReplyInput,
    lease: ReplyLease,
    scope: Scope.Scope
  ): Effect.Effect<StartedReply, UpstreamFailure, Scope.Scope> => {
    const { conversation, driver } = input
    return checksChoice(conversation, driver.contract)
      ? startDemanding(input, lease, scope)
      : startTurn(input, lease, conversation, undefined)
  }
}
