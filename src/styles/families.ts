/** The contracts of all requests whose bodies are read by a vendor's table. */
import type { Family } from "../contracts/shared/Family.ts"
import { chatFamily } from "./chat/readRequest.ts"
import { embeddingsFamily } from "./embeddings/Handlers.ts"
import { embedFamily, generateFamily } from "./generate/readRequest.ts"
import { messagesFamily } from "./messages/readRequest.ts"
import { responsesFamily } from "./responses/readRequest.ts"

export const families: ReadonlyArray<Family> = [
  chatFamily,
  embeddingsFamily,
  responsesFamily,
  messagesFamily,
  generateFamily,
  embedFamily
]
