/**
 * `model-gateway/styles`: the client APIs alone, over completions of an app: for each its contract, and the handlers that add its routes to an
 * `HttpRouter`. Handlers need `Completion` and `Entrance`; the rest has defaults.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { Deadlines } from "./config/clock/Deadlines.ts"
import { LastingEncryption } from "./config/LastingEncryption.ts"
import { gatewayError } from "./domain/GatewayError.ts"
import { WorkLimit } from "./http/WorkLimit.ts"
import { ChatGroup } from "./styles/chat/Api.ts"
import { ChatHandlers } from "./styles/chat/Handlers.ts"
import { EmbeddingsGroup } from "./styles/embeddings/Api.ts"
import { EmbeddingsHandlers } from "./styles/embeddings/Handlers.ts"
import { GenerateGroup } from "./styles/generate/Api.ts"
import { GenerateHandlers } from "./styles/generate/Handlers.ts"
import { MessagesGroup } from "./styles/messages/Api.ts"
import { MessagesHandlers } from "./styles/messages/Handlers.ts"
import { ResponsesGroup } from "./styles/responses/Api.ts"
import { ResponsesStore } from "./styles/responses/store/ResponsesStore.ts"

export type { Caller } from "./accounts/Lease.ts"
export { Completion } from "./completion/Completion.ts"
export type { CompletedReply, CompletionInput, CompletionOutput } from "./completion/Completion.ts"
export { completionBy, completionOf } from "./completion/completionOf.ts"
export { repliesOf } from "./completion/repliesOf.ts"
export { CurrentLimits } from "./config/limits.ts"
export type { Conversation } from "./domain/Conversation.ts"
export { GatewayError } from "./domain/GatewayError.ts"
export { defaultLimits, type Limits } from "./domain/limits.ts"
export {
  CallArguments,
  CallCutOff,
  CallFinished,
  CallStarted,
  Finish,
  ReasoningDelta,
  type ReplyEvent,
  TextDelta,
  type Usage,
  UsageReported
} from "./domain/ReplyEvent.ts"
export {
  UpstreamCall,
  type UpstreamEvent,
  UpstreamFinish,
  UpstreamReasoning,
  UpstreamText,
  UpstreamUsage
} from "./domain/UpstreamEvent.ts"
export { UpstreamFailure } from "./domain/UpstreamFailure.ts"
export { Entrance } from "./http/Entrance.ts"
export { CurrentServing, type Serving, servingModels } from "./http/Serving.ts"
export type { OpenResponse, ResponsesStoreShape, StoredResponse } from "./styles/responses/store/ResponsesStore.ts"
export { CurrentEmbeddings, type Embeddings } from "./styles/shared/embeddings/Embeddings.ts"
export type { GivenDriver } from "./upstream/makeDriver.ts"

const nothingStored = ResponsesStore.of({
  get: () => Effect.undefined,
  put: () => Effect.void,
  openUnsafe: () => ({ finalizeUnsafe: () => undefined, written: () => undefined }),
  remove: () => Effect.succeed(false),
  held: Effect.succeed({ count: 0, bytes: 0 })
})

/** The store of the app, if it has one. */
const storedResponses = Layer.effect(
  ResponsesStore,
  Effect.map(Effect.serviceOption(ResponsesStore), Option.getOrElse(() => nothingStored))
)

const noCompactions = Layer.succeed(LastingEncryption, {
  seal: () => Effect.fail(gatewayError("invalid_request", "Conversations are not compacted here")),
  open: () => undefined
})

const ofProcess = Layer.merge(Deadlines.layer, WorkLimit.layer)

/** Chat completions: `POST /v1/chat/completions`. */
export const chat = { group: ChatGroup, handlers: Layer.provide(ChatHandlers, ofProcess) }

/**
 * The Responses API: `POST /v1/responses`. `ResponsesStore` stores responses; nothing does by default. Nothing is compacted. The handlers are
 * loaded when they are built.
 */
export const responses = {
  group: ResponsesGroup,
  handlers: Layer.unwrap(
    Effect.map(
      Effect.promise(() => import("./styles/responses/Handlers.ts")),
      ({ ResponsesHandlers }) =>
        Layer.provide(ResponsesHandlers, Layer.mergeAll(ofProcess, storedResponses, noCompactions))
    )
  )
}

/** The Messages API: `POST /v1/messages`, its shortcuts, its counts of tokens and its models. */
export const messages = { group: MessagesGroup, handlers: Layer.provide(MessagesHandlers, ofProcess) }

/** The Gemini API: `POST /v1beta/models/MODEL:generateContent`, its streams, embeddings, counts of tokens and models. */
export const generate = { group: GenerateGroup, handlers: Layer.provide(GenerateHandlers, ofProcess) }

/** Embeddings: `POST /v1/embeddings`. `CurrentEmbeddings` makes them. */
export const embeddings = { group: EmbeddingsGroup, handlers: Layer.provide(EmbeddingsHandlers, ofProcess) }

export { gatewayError, ResponsesStore }
