/**
 * Completions in process, without HTTP: the same accounts, failover, tools and limits as every request has.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Caller } from "../accounts/Accounts.ts"
import { Completion } from "../completion/Completion.ts"
import type { CompletionInput, CompletionOutput } from "../completion/Completion.ts"
import { makeRequestStats } from "../completion/RequestStats.ts"
import { CurrentRequestWatch } from "../completion/RequestWatch.ts"
import { UsageRecorder } from "../completion/UsageRecorder.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { Conversation } from "../domain/Conversation.ts"
import { Text } from "../domain/Conversation.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import { modelNotFound, resolveModel } from "../domain/models.ts"
import { type Reply, replyOf } from "../domain/Reply.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import { monotonicMillis } from "../domain/time.ts"
import { RequestMetrics } from "../server/observability/requestMetrics.ts"
import { embeddedKey } from "../usage/UsageEntry.ts"

/** What is to be completed. Whatever of the conversation is left out is as a caller who says nothing of it has it. */
export interface InProcessRequest extends Partial<Omit<Conversation, "turns">> {
  /** A native id, an alias, or a name of a well-known family. */
  readonly model: string
  /** The turns so far, or what the user says. */
  readonly prompt: string | Conversation["turns"]
  /** Whose token or which account to use; by default the pool chooses. */
  readonly caller?: Caller | undefined
}

/** A whole reply and the id that it goes by. */
export interface InProcessReply extends Reply {
  readonly id: string
}

const owner = "in-process"
const pooled: Caller = { _tag: "Managed", owner, target: undefined }

const conversationOf = ({ caller: _, model: _model, prompt, ...rest }: InProcessRequest): Conversation => ({
  turns: typeof prompt === "string" ? [{ role: "user", parts: [Text(prompt)] }] : prompt,
  tools: rest.tools ?? [],
  toolChoice: rest.toolChoice ?? { _tag: "Auto" },
  parallelToolCalls: rest.parallelToolCalls ?? true,
  stop: rest.stop ?? [],
  sampling: rest.sampling ?? {},
  output: rest.output
})

/**
 * Asks for a completion; `ask` says in which form. What was learned of the request goes to the `CurrentRequestWatch` when the
 * scope closes.
 */
const asked = Effect.fnUntraced(function*<A>(
  request: InProcessRequest,
  ask: (
    completion: Completion["Service"],
    input: CompletionInput
  ) => Effect.Effect<A, GatewayError, Scope.Scope>
) {
  const completion = yield* Completion
  const config = (yield* ConfigStore).unsafeCurrent()
  const watch = yield* CurrentRequestWatch
  const stats = makeRequestStats(
    `req_${crypto.randomUUID().replaceAll("-", "")}`,
    monotonicMillis(yield* Clock.Clock)
  )
  stats.style = owner
  stats.key = embeddedKey
  const recorder = Option.getOrUndefined(yield* Effect.serviceOption(UsageRecorder))
  const metrics = Option.getOrUndefined(yield* Effect.serviceOption(RequestMetrics))
  stats.requestedModel = request.model
  yield* Effect.addFinalizer(() => {
    recorder?.ended(stats)
    metrics?.count(stats)
    return watch.ended(stats, undefined)
  })
  const model = resolveModel(config.model_table, request.model)
  if (model === undefined) return yield* modelNotFound(request.model, config.model_table)
  stats.model = model.id
  const noteFailure = (error: GatewayError) =>
    Effect.sync(() => {
      stats.status = error.status
      stats.error = error.code
      stats.cause = error.cause
    })
  const output = yield* Effect.tapError(
    ask(completion, {
      caller: request.caller ?? pooled,
      model,
      conversation: conversationOf(request),
      stats,
      config
    }),
    noteFailure
  )
  stats.status = 200
  return { output, noteFailure }
})

/** Opens a reply: succeeds at its first event. The scope holds the account. */
export const openReply = (
  request: InProcessRequest
): Effect.Effect<CompletionOutput, GatewayError, Completion | ConfigStore | Scope.Scope> =>
  Effect.map(
    asked(request, (completion, input) => completion.stream(input)),
    ({ noteFailure, output }) => ({ ...output, events: Stream.tapError(output.events, noteFailure) })
  )

/** The whole reply. */
export const complete = (
  request: InProcessRequest
): Effect.Effect<InProcessReply, GatewayError, Completion | ConfigStore> =>
  asked(request, (completion, input) => completion.whole(input)).pipe(
    Effect.map(({ output }) => ({ id: output.id, ...replyOf(output.events) })),
    Effect.scoped
  )

/** The reply as it comes; leaving the stream stops the upstream. */
export const completeStream = (
  request: InProcessRequest
): Stream.Stream<ReplyEvent, GatewayError, Completion | ConfigStore> =>
  Stream.unwrap(Effect.map(openReply(request), (output) => output.events))
