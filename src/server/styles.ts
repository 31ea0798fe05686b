/**
 * The handlers of all styles.
 */
import * as Layer from "effect/Layer"
import { ChatHandlers } from "../styles/chat/Handlers.ts"
import { EmbeddingsHandlers } from "../styles/embeddings/Handlers.ts"
import { GenerateHandlers } from "../styles/generate/Handlers.ts"
import { MessagesHandlers } from "../styles/messages/Handlers.ts"
import { ModelsHandlers } from "../styles/models/Handlers.ts"
import { ResponsesHandlers } from "../styles/responses/Handlers.ts"

export const StyleHandlers = Layer.mergeAll(
  ChatHandlers,
  ResponsesHandlers,
  EmbeddingsHandlers,
  MessagesHandlers,
  GenerateHandlers,
  ModelsHandlers
)
