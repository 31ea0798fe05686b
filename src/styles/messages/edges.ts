/**
 * The edges of the messages style.
 */
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import type { EdgeFacts } from "../../http/edgeFacts.ts"
import { messagesErrors } from "../../http/errorShapes.ts"
import type { CurrentCaller, CurrentRequest } from "../../http/Request.ts"

const family = { errors: messagesErrors, idHeader: "request-id" }

/** Messages and their token counts. */
export class MessagesEdge extends HttpApiMiddleware.Service<
  MessagesEdge,
  { provides: CurrentCaller | CurrentRequest }
>()("model-gateway/styles/MessagesEdge", { error: messagesErrors.errors }) {
  static readonly facts: EdgeFacts = { ...family, access: "business" }
}

/** The model list, which is no usage of the style. */
export class MessagesPublicEdge extends HttpApiMiddleware.Service<MessagesPublicEdge, { provides: CurrentRequest }>()(
  "model-gateway/styles/MessagesPublicEdge",
  { error: messagesErrors.errors }
) {
  static readonly facts: EdgeFacts = { ...family, access: "none", style: "models" }
}
