/**
 * The handlers of all styles with their middleware. They are apart from the list of styles, so that the contract can be used
 * without them; a style without handlers here is a compile error in `server/Gateway.ts`.
 */
import * as Layer from "effect/Layer"
import { layerEntrance } from "../http/gatewayEntrance.ts"
import { layerServing } from "../http/gatewayServing.ts"
import { ChatHandlers } from "./chat/Handlers.ts"
import { EmbeddingsHandlers } from "./embeddings/Handlers.ts"
import { GenerateHandlers } from "./generate/Handlers.ts"
import { MessagesHandlers } from "./messages/Handlers.ts"
import { ModelsHandlers } from "./models/Handlers.ts"
import { RelayedHandlers } from "./relayed/Handlers.ts"
import { ResponsesHandlers } from "./responses/Handlers.ts"
import { layerEmbeddings } from "./shared/embeddings/makeEmbeddings.ts"
import { UsageHandlers } from "./usage/Handlers.ts"

/** What the gateway's styles need beside completions: who calls, models and embeddings, by the configuration. */
export const layerStyles = Layer.mergeAll(layerEntrance, layerServing, layerEmbeddings)

export const StyleHandlers = Layer.mergeAll(
  ChatHandlers,
  ResponsesHandlers,
  EmbeddingsHandlers,
  RelayedHandlers,
  MessagesHandlers,
  GenerateHandlers,
  ModelsHandlers,
  UsageHandlers
).pipe(Layer.provide(layerStyles))
