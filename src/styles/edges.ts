/**
 * The edges of the styles as middlewares: who calls and how a failure is worded. A group takes one of them.
 */
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as Layer from "effect/Layer"
import type { Callers } from "../accounts/Callers.ts"
import { businessEdge, publicEdge } from "../http/edge.ts"
import { openaiErrors } from "../http/errorSchemas.ts"
import { openaiShape } from "../http/errorShapes.ts"
import type { CurrentCaller, CurrentRequest } from "../http/Request.ts"

/** Chat completions, Responses and embeddings. */
export class OpenAiEdge extends HttpApiMiddleware.Service<OpenAiEdge, { provides: CurrentCaller | CurrentRequest }>()(
  "model-gateway/styles/OpenAiEdge",
  { error: openaiErrors }
) {
  static readonly layer: Layer.Layer<OpenAiEdge, never, Callers> = Layer.effect(OpenAiEdge, businessEdge(openaiShape))
}

/** Model lists and health probes. */
export class OpenAiPublicEdge extends HttpApiMiddleware.Service<OpenAiPublicEdge, { provides: CurrentRequest }>()(
  "model-gateway/styles/OpenAiPublicEdge",
  { error: openaiErrors }
) {
  static readonly layer: Layer.Layer<OpenAiPublicEdge> = Layer.succeed(OpenAiPublicEdge, publicEdge(openaiShape))
}
