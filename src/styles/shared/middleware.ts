/**
 * The middleware of the styles' endpoints. Each class states who may call and how errors are formatted.
 */
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import { generateErrors } from "../../contracts/generate/clientErrors.ts"
import { messagesErrors } from "../../contracts/messages/errors.ts"
import { openaiErrors } from "../../contracts/shared/openaiErrors.ts"
import type { EndpointPolicy } from "../../http/EndpointPolicy.ts"
import { errorsOf } from "../../http/errorShapes.ts"
import type { CurrentCaller, CurrentRequest } from "../../http/RequestContext.ts"

interface ForCallers {
  provides: CurrentCaller | CurrentRequest
}

interface ForAll {
  provides: CurrentRequest
}

/** Chat completions, Responses and embeddings. */
export class OpenAiMiddleware extends HttpApiMiddleware.Service<OpenAiMiddleware, ForCallers>()(
  "model-gateway/styles/OpenAiMiddleware",
  { error: errorsOf(openaiErrors) }
) {
  static readonly facts: EndpointPolicy = { errors: openaiErrors, access: "business" }
}

/** Health probes. */
export class OpenAiPublicMiddleware extends HttpApiMiddleware.Service<OpenAiPublicMiddleware, ForAll>()(
  "model-gateway/styles/OpenAiPublicMiddleware",
  { error: errorsOf(openaiErrors) }
) {
  static readonly facts: EndpointPolicy = { errors: openaiErrors, access: "none" }
}

const messagesFamily = { errors: messagesErrors, idHeader: "request-id" }

/** Whether a request for the list of models is one of Anthropic's clients: by the version, or by the header of its key alone. */
export const isAnthropicForm = (headers: { readonly [name: string]: string | undefined }): boolean =>
  headers["anthropic-version"] !== undefined ||
  (headers["authorization"] === undefined && (headers["x-api-key"] ?? "").trim() !== "")

/** The model list, in the form of the caller. */
export class ModelsMiddleware extends HttpApiMiddleware.Service<ModelsMiddleware, ForAll>()(
  "model-gateway/styles/ModelsMiddleware",
  { error: errorsOf(openaiErrors) }
) {
  static readonly facts: EndpointPolicy = {
    errors: openaiErrors,
    access: "none",
    inForm: (headers) => isAnthropicForm(headers) ? messagesFamily : undefined
  }
}

/** Requests that are no usage themselves: the usage of the caller's key, and the opening of a WebSocket. */
export class UncountedMiddleware extends HttpApiMiddleware.Service<UncountedMiddleware, ForCallers>()(
  "model-gateway/styles/UncountedMiddleware",
  { error: errorsOf(openaiErrors) }
) {
  static readonly facts: EndpointPolicy = { errors: openaiErrors, access: "business", unrecorded: true }
}

/** Messages and their token counts. */
export class MessagesMiddleware extends HttpApiMiddleware.Service<MessagesMiddleware, ForCallers>()(
  "model-gateway/styles/MessagesMiddleware",
  { error: errorsOf(messagesErrors) }
) {
  static readonly facts: EndpointPolicy = { ...messagesFamily, access: "business" }
}

/** The model list of the messages style; it is recorded as a model list, not as use of the style. */
export class MessagesPublicMiddleware extends HttpApiMiddleware.Service<MessagesPublicMiddleware, ForAll>()(
  "model-gateway/styles/MessagesPublicMiddleware",
  { error: errorsOf(messagesErrors) }
) {
  static readonly facts: EndpointPolicy = { ...messagesFamily, access: "none", style: "models" }
}

/** Content generation, embeddings and token counts. */
export class GenerateMiddleware extends HttpApiMiddleware.Service<GenerateMiddleware, ForCallers>()(
  "model-gateway/styles/GenerateMiddleware",
  { error: errorsOf(generateErrors) }
) {
  static readonly facts: EndpointPolicy = { errors: generateErrors, access: "anyForm" }
}

/** The model list of the content-generation style; it is recorded as a model list, not as use of the style. */
export class GeneratePublicMiddleware extends HttpApiMiddleware.Service<GeneratePublicMiddleware, ForAll>()(
  "model-gateway/styles/GeneratePublicMiddleware",
  { error: errorsOf(generateErrors) }
) {
  static readonly facts: EndpointPolicy = { errors: generateErrors, access: "none", style: "models" }
}
