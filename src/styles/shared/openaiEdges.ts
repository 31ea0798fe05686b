/**
 * The edges of the chat-completions family.
 */
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import type { EdgeFacts } from "../../http/edgeFacts.ts"
import { openaiErrors } from "../../http/errorShapes.ts"
import type { CurrentCaller, CurrentRequest } from "../../http/Request.ts"

/** Chat completions, Responses and embeddings. */
export class OpenAiEdge extends HttpApiMiddleware.Service<OpenAiEdge, { provides: CurrentCaller | CurrentRequest }>()(
  "model-gateway/styles/OpenAiEdge",
  { error: openaiErrors.errors }
) {
  static readonly facts: EdgeFacts = { errors: openaiErrors, access: "business" }
}

/** Model lists and health probes. */
export class OpenAiPublicEdge extends HttpApiMiddleware.Service<OpenAiPublicEdge, { provides: CurrentRequest }>()(
  "model-gateway/styles/OpenAiPublicEdge",
  { error: openaiErrors.errors }
) {
  static readonly facts: EdgeFacts = { errors: openaiErrors, access: "none" }
}
