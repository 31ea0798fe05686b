/**
 * What happens between a request and its reply, in every style: who asks and under which configuration is settled once, the
 * model is found by its name, and the conversation's reply goes out whole or as a stream.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as Scope from "effect/Scope"
import type { Caller } from "../../accounts/Accounts.ts"
import { keyOf } from "../../completion/admission.ts"
import type { CompletedReply, CompletionOutput } from "../../completion/Completion.ts"
import { Completion } from "../../completion/Completion.ts"
import type { RequestStats } from "../../completion/RequestStats.ts"
import { Deadlines } from "../../config/clock/Deadlines.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import { inSlices } from "../../config/inSlices.ts"
import type { Conversation } from "../../domain/Conversation.ts"
import { estimateSliced } from "../../domain/estimateConversation.ts"
import { GatewayError } from "../../domain/GatewayError.ts"
import { type Model, modelNotFound, resolveEmbeddingModel, resolveModel } from "../../domain/models.ts"
import type { FrameRenderer } from "../../http/FrameRenderer.ts"
import { OwnWork } from "../../http/OwnWork.ts"
import { CurrentCaller, CurrentRequest } from "../../http/Request.ts"
import { streamReply } from "../../http/streamReply.ts"
import { KeyLimits } from "../../usage/KeyLimits.ts"

/** A request that has begun. All that it does is by the configuration that was in effect then. */
export interface Begun {
  readonly caller: Caller
  readonly stats: RequestStats
  readonly config: GatewayConfig
  /** Seconds since 1970, for what a reply says of when it was made. */
  readonly created: number
}

/** How a style words one reply. */
export interface Wording {
  /** The reply in one piece. */
  readonly whole: (
    output: CompletedReply
  ) => Effect.Effect<HttpServerResponse.HttpServerResponse, GatewayError>
  /** Starts the renderer of a stream. */
  readonly frames: (output: CompletionOutput) => FrameRenderer
  /** The frames of a failure before there is a reply. */
  readonly failure: (error: GatewayError) => string
  /** The renderer keeps all of the reply's text until its end. */
  readonly keepsText?: boolean
}

/** Opens a completion. */
export type Opening = Effect.Effect<CompletionOutput, GatewayError, Scope.Scope>

/** The model that a style takes a name for. */
export type ResolveModel = (config: GatewayConfig, requested: string) => Model | undefined

const byTable: ResolveModel = ({ model_table }, requested) => resolveModel(model_table, requested)

/** The model that makes embeddings. */
export const embeddingModel: ResolveModel = ({ model_table }, requested) =>
  resolveEmbeddingModel(model_table, requested)

/** The model that a request names, or why there is none; the request's record has both names. */
export const findModel = (
  { config, stats }: Begun,
  requested: string,
  resolve: ResolveModel = byTable
): Model | GatewayError => {
  stats.requestedModel = requested
  const model = resolve(config, requested)
  if (model === undefined) return modelNotFound(requested, config.model_table)
  stats.model = model.id
  return model
}

/** What styles answer by; build it once. */
export const makeAnswers = Effect.gen(function*() {
  const completion = yield* Completion
  const deadlines = yield* Deadlines
  const store = yield* ConfigStore
  const keyLimits = yield* KeyLimits
  const { inTurn } = yield* OwnWork

  return {
    /** The request that runs. */
    begun: Effect.withFiberSucceed<Begun, CurrentCaller | CurrentRequest>((fiber) => ({
      caller: Context.getUnsafe(fiber.context, CurrentCaller),
      stats: Context.getUnsafe(fiber.context, CurrentRequest),
      config: store.unsafeCurrent(),
      created: Math.floor(fiber.getRef(Clock.Clock).currentTimeMillisUnsafe() / 1000)
    })),

    /** The same as `findModel`, for requests that are admitted without a completion. */
    findAllowedModel: (begun: Begun, requested: string, resolve?: ResolveModel): Model | GatewayError => {
      const model = findModel(begun, requested, resolve)
      return model instanceof GatewayError ? model : keyLimits.refuseModel(keyOf(begun.caller), model) ?? model
    },

    /** Answers a conversation: whole, or as a stream where the request's record says so. `around` sees a stream's opening. */
    answer: (
      { caller, config, stats }: Begun,
      model: Model,
      conversation: Conversation,
      { failure, frames, keepsText = false, whole }: Wording,
      around?: (opening: Opening) => Opening
    ) => {
      const input = { caller, model, conversation, stats, config, kept: keepsText }
      if (!stats.stream) return Effect.flatMap(completion.whole(input), whole)
      const opening = completion.stream(input)
      const timeout = config.upstream.timeouts.client * 1000
      return streamReply(around === undefined ? opening : around(opening), frames, failure, deadlines, timeout)
    },

    /** An estimate of a conversation's tokens, in its turn among all that work on the gateway's own processor. */
    countTokens: (conversation: Conversation): Effect.Effect<number> => inTurn(inSlices(estimateSliced(conversation)))
  }
})
