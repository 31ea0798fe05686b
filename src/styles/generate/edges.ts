/**
 * The edges of the content-generation style.
 */
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import type { EdgeFacts } from "../../http/edgeFacts.ts"
import { generateErrors } from "../../http/errorShapes.ts"
import type { CurrentCaller, CurrentRequest } from "../../http/Request.ts"

/** Content generation and its token counts. */
export class GenerateEdge extends HttpApiMiddleware.Service<
  GenerateEdge,
  { provides: CurrentCaller | CurrentRequest }
>()("model-gateway/styles/GenerateEdge", { error: generateErrors.errors }) {
  static readonly facts: EdgeFacts = { errors: generateErrors, access: "generate" }
}

/** The model list, which is no usage of the style. */
export class GeneratePublicEdge extends HttpApiMiddleware.Service<GeneratePublicEdge, { provides: CurrentRequest }>()(
  "model-gateway/styles/GeneratePublicEdge",
  { error: generateErrors.errors }
) {
  static readonly facts: EdgeFacts = { errors: generateErrors, access: "none", style: "models" }
}
