/**
 * The edges of the styles as middlewares: who calls and how a failure is worded. A group takes one of them; `edgeLayers.ts`
 * has what they do.
 */
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import { generateErrors, messagesErrors, openaiErrors } from "../http/errorShapes.ts"
import type { CurrentCaller, CurrentRequest } from "../http/Request.ts"

/** Chat completions, Responses and embeddings. */
export class OpenAiEdge extends HttpApiMiddleware.Service<OpenAiEdge, { provides: CurrentCaller | CurrentRequest }>()(
  "model-gateway/styles/OpenAiEdge",
  { error: openaiErrors.errors }
) {}

/** Model lists and health probes. */
export class OpenAiPublicEdge extends HttpApiMiddleware.Service<OpenAiPublicEdge, { provides: CurrentRequest }>()(
  "model-gateway/styles/OpenAiPublicEdge",
  { error: openaiErrors.errors }
) {}

/** Messages and their token counts. */
export class MessagesEdge extends HttpApiMiddleware.Service<
  MessagesEdge,
  { provides: CurrentCaller | CurrentRequest }
>()("model-gateway/styles/MessagesEdge", { error: messagesErrors.errors }) {}

/** The messages style's model list. */
export class MessagesPublicEdge extends HttpApiMiddleware.Service<MessagesPublicEdge, { provides: CurrentRequest }>()(
  "model-gateway/styles/MessagesPublicEdge",
  { error: messagesErrors.errors }
) {}

/** Content generation and its token counts. */
export class GenerateEdge extends HttpApiMiddleware.Service<
  GenerateEdge,
  { provides: CurrentCaller | CurrentRequest }
>()("model-gateway/styles/GenerateEdge", { error: generateErrors.errors }) {}

/** The content-generation style's model list. */
export class GeneratePublicEdge extends HttpApiMiddleware.Service<GeneratePublicEdge, { provides: CurrentRequest }>()(
  "model-gateway/styles/GeneratePublicEdge",
  { error: generateErrors.errors }
) {}
