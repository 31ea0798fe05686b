/**
 * The edges of the styles as middlewares: who calls and how a failure is worded. A group takes one of them.
 */
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as Layer from "effect/Layer"
import type { Callers } from "../accounts/Callers.ts"
import { businessEdge, publicEdge } from "../http/edge.ts"
import { generateErrors, messagesErrors, openaiErrors } from "../http/errorSchemas.ts"
import { generateShape, messagesShape, openaiShape } from "../http/errorShapes.ts"
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

/** Header in which the messages style's SDK looks for the request's id. */
const messagesIdHeader = "request-id"

/** Messages and their token counts. */
export class MessagesEdge extends HttpApiMiddleware.Service<
  MessagesEdge,
  { provides: CurrentCaller | CurrentRequest }
>()("model-gateway/styles/MessagesEdge", { error: messagesErrors }) {
  static readonly layer: Layer.Layer<MessagesEdge, never, Callers> = Layer.effect(
    MessagesEdge,
    businessEdge(messagesShape, messagesIdHeader)
  )
}

/** The messages style's model list. */
export class MessagesPublicEdge extends HttpApiMiddleware.Service<MessagesPublicEdge, { provides: CurrentRequest }>()(
  "model-gateway/styles/MessagesPublicEdge",
  { error: messagesErrors }
) {
  static readonly layer: Layer.Layer<MessagesPublicEdge> = Layer.succeed(
    MessagesPublicEdge,
    publicEdge(messagesShape, messagesIdHeader)
  )
}

/** Content generation and its token counts. */
export class GenerateEdge extends HttpApiMiddleware.Service<
  GenerateEdge,
  { provides: CurrentCaller | CurrentRequest }
>()("model-gateway/styles/GenerateEdge", { error: generateErrors }) {
  static readonly layer: Layer.Layer<GenerateEdge, never, Callers> = Layer.effect(
    GenerateEdge,
    businessEdge(generateShape)
  )
}

/** The content-generation style's model list. */
export class GeneratePublicEdge extends HttpApiMiddleware.Service<GeneratePublicEdge, { provides: CurrentRequest }>()(
  "model-gateway/styles/GeneratePublicEdge",
  { error: generateErrors }
) {
  static readonly layer: Layer.Layer<GeneratePublicEdge> = Layer.succeed(GeneratePublicEdge, publicEdge(generateShape))
}
