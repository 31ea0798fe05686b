/**
 * What serves the styles, their edges included. The contract comes without it: a style of the list that is not here leaves
 * the gateway's routes with a group that nothing serves, which the compiler says.
 */
import * as Layer from "effect/Layer"
import { ChatHandlers } from "./chat/Handlers.ts"
import { EmbeddingsHandlers } from "./embeddings/Handlers.ts"
import { GenerateHandlers } from "./generate/Handlers.ts"
import { MessagesHandlers } from "./messages/Handlers.ts"
import { ModelsHandlers } from "./models/Handlers.ts"
import { ResponsesHandlers } from "./responses/Handlers.ts"

export const StyleHandlers = Layer.mergeAll(
  ChatHandlers,
  ResponsesHandlers,
  EmbeddingsHandlers,
  MessagesHandlers,
  GenerateHandlers,
  ModelsHandlers
)
