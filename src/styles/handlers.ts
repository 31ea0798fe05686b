/**
 * The handlers of all styles with their middleware. They are apart from the list of styles, so that the contract can be used
 * without them; a style without handlers here is a compile error in `server/Gateway.ts`.
 */
import * as Layer from "effect/Layer"
import { ChatHandlers } from "./chat/Handlers.ts"
import { EmbeddingsHandlers } from "./embeddings/Handlers.ts"
import { GenerateHandlers } from "./generate/Handlers.ts"
import { MessagesHandlers } from "./messages/Handlers.ts"
import { ModelsHandlers } from "./models/Handlers.ts"
import { RelayedHandlers } from "./relayed/Handlers.ts"
import { ResponsesHandlers } from "./responses/Handlers.ts"
import { UsageHandlers } from "./usage/Handlers.ts"

export const StyleHandlers = Layer.mergeAll(
  ChatHandlers,
  ResponsesHandlers,
  EmbeddingsHandlers,
  RelayedHandlers,
  MessagesHandlers,
  GenerateHandlers,
  ModelsHandlers,
  UsageHandlers
)
