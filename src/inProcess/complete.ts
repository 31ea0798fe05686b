/**
 * Completions without HTTP, with the same accounts, failover, tools and limits as HTTP requests.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Caller } from "../accounts/Accounts.ts"
import { Completion, type CompletionInput, type CompletionOutput } from "../completion/Completion.ts"
import { beginRequest } from "../completion/Request.ts"
import { CurrentRequestWatch } from "../completion/RequestStats.ts"
import { UsageRecorder } from "../completion/UsageRecorder.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import { type Conversation, noSampling, plainConversation, type Sampling, Text } from "../domain/Conversation.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import { type Reply, replyOf } from "../domain/Reply.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import { routeNotFound } from "../domain/routeNotFound.ts"
import { resolveRoute } from "../domain/routes.ts"
import { embeddedKey } from "../domain/usageNames.ts"
import { RequestMetrics } from "../server/observability/requestMetrics.ts"

/** The sampling of a request of an app, which names what it sets alone. */
interface GivenSampling {
  readonly sampling: Partial<Sampling>
}

/** A completion request. Omitted fields of the conversation have the defaults of an HTTP request. */
export interface InProcessRequest extends Partial<Omit<Conversation, "turns" | "sampling"> & GivenSampling> {
  /** A native id, an alias, or a name of a well-known family. */
  readonly model: string
  /** The turns so far, or the text of one user message. */
  readonly prompt: string | Conversation["turns"]
  /** The token or account to use; by default the pool chooses. */
  readonly caller?: Caller | undefined
}

/** A whole reply and its id. */
export interface InProcessReply extends Reply {
  readonly id: string
}

const owner = "in-process"
const pooled: Caller = { _tag: "Managed", owner, target: undefined }

const conversationOf = ({ prompt, sampling, ...rest }: InProcessRequest): Conversation => ({
  ...plainConversation,
  turns: typeof prompt === "string" ? [{ role: "user", parts: [Text(prompt)] }] : prompt,
  tools: rest.tools ?? [],
  toolChoice: rest.toolChoice ?? plainConversation.toolChoice,
  parallelToolCalls: rest.parallelToolCalls ?? true,
  stop: rest.stop ?? [],
  sampling: { ...noSampling, ...sampling },
  output: rest.output
})

/**
 * Runs a completion; `run` opens it as a stream or collects it. When the scope closes, the request's stats go to the
 * `CurrentRequestWatch`, the usage recorder and the metrics.
 */
const runCompletion = Effect.fnUntraced(function*<A>(
  request: InProcessRequest,
  run: (
    completion: Completion["Service"],
    input: CompletionInput
  ) => Effect.Effect<A, GatewayError, Scope.Scope>
) {
  const completion = yield* Completion
  const config = (yield* ConfigStore).now()
  const watch = yield* CurrentRequestWatch
  const id = `req_${crypto.randomUUID().replaceAll("-", "")}`
  const running = yield* beginRequest({ id, style: owner, key: embeddedKey })
  const { stats } = running
  const recorder = Option.getOrUndefined(yield* Effect.serviceOption(UsageRecorder))
  const metrics = Option.getOrUndefined(yield* Effect.serviceOption(RequestMetrics))
  stats.requestedModel = request.model
  yield* Effect.addFinalizer(() => {
    recorder?.ended(stats)
    metrics?.count(stats)
    return watch.ended(stats, undefined)
  })
  const model = resolveRoute(config.route_table, "usual", request.model)
  if (model === undefined) return yield* routeNotFound(config.route_table, undefined, request.model)
  stats.model = model.id
  const noteFailure = (error: GatewayError) =>
    Effect.sync(() => {
      stats.status = error.status
      stats.error = error.code
      stats.cause = error.cause
    })
  const output = yield* Effect.tapError(
    run(completion, {
      caller: request.caller ?? pooled,
      model,
      conversation: conversationOf(request),
      request: running,
      kept: false
    }),
    noteFailure
  )
  stats.status = 200
  return { output, noteFailure }
})

/** Opens a streamed reply; succeeds at its first event. The account stays leased until the scope closes. */
export const openReply = (
  request: InProcessRequest
): Effect.Effect<CompletionOutput, GatewayError, Completion | ConfigStore | Scope.Scope> =>
  Effect.map(
    runCompletion(request, (completion, input) => completion.stream(input)),
    ({ noteFailure, output }) => ({ ...output, events: Stream.tapError(output.events, noteFailure) })
  )

/** Runs a completion and returns the whole reply. */
export const complete = (
  request: InProcessRequest
): Effect.Effect<InProcessReply, GatewayError, Completion | ConfigStore> =>
  runCompletion(request, (completion, input) => completion.whole(input)).pipe(
    Effect.map(({ output }) => ({ id: output.id, ...replyOf(output.events) })),
    Effect.scoped
  )

/** Streams the reply; interrupting the stream cancels the upstream request. */
export const completeStream = (
  request: InProcessRequest
): Stream.Stream<ReplyEvent, GatewayError, Completion | ConfigStore> =>
  Stream.unwrap(Effect.map(openReply(request), (output) => output.events))
