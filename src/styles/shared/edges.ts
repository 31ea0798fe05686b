/**
 * The middleware of the styles' endpoints. Each class states who may call and how errors are formatted.
 */
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import type { EdgeFacts } from "../../http/edgeFacts.ts"
import { generateErrors, messagesErrors, openaiErrors } from "../../http/errorShapes.ts"
import type { CurrentCaller, CurrentRequest } from "../../http/Request.ts"

interface ForCallers {
  provides: CurrentCaller | CurrentRequest
}

interface ForAll {
  provides: CurrentRequest
}

/** Chat completions, Responses and embeddings. */
export class OpenAiEdge extends HttpApiMiddleware.Service<OpenAiEdge, ForCallers>()(
  "model-gateway/styles/OpenAiEdge",
  { error: openaiErrors.errors }
) {
  static readonly facts: EdgeFacts = { errors: openaiErrors, access: "business" }
}

/** The model list of the chat-completions family, and health probes. */
export class OpenAiPublicEdge extends HttpApiMiddleware.Service<OpenAiPublicEdge, ForAll>()(
  "model-gateway/styles/OpenAiPublicEdge",
  { error: openaiErrors.errors }
) {
  static readonly facts: EdgeFacts = { errors: openaiErrors, access: "none" }
}

const messagesFamily = { errors: messagesErrors, idHeader: "request-id" }

/** Messages and their token counts. */
export class MessagesEdge extends HttpApiMiddleware.Service<MessagesEdge, ForCallers>()(
  "model-gateway/styles/MessagesEdge",
  { error: messagesErrors.errors }
) {
  static readonly facts: EdgeFacts = { ...messagesFamily, access: "business" }
}

/** The model list of the messages style; it is recorded as a model list, not as use of the style. */
export class MessagesPublicEdge extends HttpApiMiddleware.Service<MessagesPublicEdge, ForAll>()(
  "model-gateway/styles/MessagesPublicEdge",
  { error: messagesErrors.errors }
) {
  static readonly facts: EdgeFacts = { ...messagesFamily, access: "none", style: "models" }
}

/** Content generation, embeddings and token counts. */
export class GenerateEdge extends HttpApiMiddleware.Service<GenerateEdge, ForCallers>()(
  "model-gateway/styles/GenerateEdge",
  { error: generateErrors.errors }
) {
  static readonly facts: EdgeFacts = { errors: generateErrors, access: "generate" }
}

/** The model list of the content-generation style; it is recorded as a model list, not as use of the style. */
export class GeneratePublicEdge extends HttpApiMiddleware.Service<GeneratePublicEdge, ForAll>()(
  "model-gateway/styles/GeneratePublicEdge",
  { error: generateErrors.errors }
) {
  static readonly facts: EdgeFacts = { errors: generateErrors, access: "none", style: "models" }
}
