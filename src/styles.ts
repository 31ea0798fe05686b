/**
 * `model-gateway/styles`: the client APIs alone, over completions of an app: for each its contract, and the handlers that add its routes to an
 * `HttpRouter`. Handlers need `Completion` and `Entrance`; the rest has defaults.
 */
import * as Layer from "effect/Layer"
import { Deadlines } from "./config/clock/Deadlines.ts"
import { WorkLimit } from "./http/WorkLimit.ts"
import { ChatGroup } from "./styles/chat/Api.ts"
import { ChatHandlers } from "./styles/chat/Handlers.ts"
import { EmbeddingsGroup } from "./styles/embeddings/Api.ts"
import { EmbeddingsHandlers } from "./styles/embeddings/Handlers.ts"
import { GenerateGroup } from "./styles/generate/Api.ts"
import { GenerateHandlers } from "./styles/generate/Handlers.ts"
import { MessagesGroup } from "./styles/messages/Api.ts"
import { MessagesHandlers } from "./styles/messages/Handlers.ts"

export type { Caller } from "./accounts/Lease.ts"
export { Completion } from "./completion/Completion.ts"
export type { CompletedReply, CompletionInput, CompletionOutput } from "./completion/Completion.ts"
export { completionBy, completionOf } from "./completion/completionOf.ts"
export { repliesOf } from "./completion/repliesOf.ts"
export { CurrentLimits } from "./config/limits.ts"
export type { Conversation } from "./domain/Conversation.ts"
export { GatewayError, gatewayError } from "./domain/GatewayError.ts"
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
export { CurrentEmbeddings, type Embeddings } from "./styles/shared/embeddings/Embeddings.ts"
export type { GivenDriver } from "./upstream/makeDriver.ts"

const ofProcess = Layer.merge(Deadlines.layer, WorkLimit.layer)

/** Chat completions: `POST /v1/chat/completions`. */
export const chat = { group: ChatGroup, handlers: Layer.provide(ChatHandlers, ofProcess) }

/** The Messages API: `POST /v1/messages`, its shortcuts, its counts of tokens and its models. */
export const messages = { group: MessagesGroup, handlers: Layer.provide(MessagesHandlers, ofProcess) }

/** The Gemini API: `POST /v1beta/models/MODEL:generateContent`, its streams, embeddings, counts of tokens and models. */
export const generate = { group: GenerateGroup, handlers: Layer.provide(GenerateHandlers, ofProcess) }

/** Embeddings: `POST /v1/embeddings`. `CurrentEmbeddings` makes them. */
export const embeddings = { group: EmbeddingsGroup, handlers: Layer.provide(EmbeddingsHandlers, ofProcess) }
