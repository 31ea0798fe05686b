/**
 * Handlers of embeddings in the content-generation style.
 */
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import { runCooperatively } from "../../config/clock/cooperative.ts"
import { modelName } from "../../contracts/generate/models.ts"
import type { EmbedContentRequest } from "../../contracts/generate/schema.ts"
import type { ServerFields } from "../../contracts/shared/Family.ts"
import type { GatewayError } from "../../domain/GatewayError.ts"
import type { NameFamily, Route } from "../../domain/routes.ts"
import { modelFault } from "../../http/bodyLimits.ts"
import type { Embeddings } from "../shared/embeddings/Embeddings.ts"
import type { makeResponder, RunningRequest } from "../shared/responder.ts"
import { contentTexts, embeddingReply, embeddingsReply, vendorInputs } from "./embedContents.ts"
import { readBatchEmbedRequest, readEmbedRequest } from "./readRequest.ts"

/** A request of a model that its path names. */
export interface Raw {
  readonly request: HttpServerRequest.HttpServerRequest
  readonly params: { readonly model: string }
}

type Responder = Effect.Success<typeof makeResponder>

/** Finds the model of a path, whose length no limit of bodies bounds. */
export const namedModel =
  ({ findModel }: Responder) =>
  (current: RunningRequest, requested: string, family?: NameFamily): Effect.Effect<Route, GatewayError> => {
    const fault = modelFault(requested, current.limits)
    return fault === undefined ? findModel(current, requested, family) : Effect.fail(fault)
  }

export const embeddingHandlers = (responder: Responder, embeddings: Embeddings) => {
  const modelOf = namedModel(responder)

  const requestForEmbeddings = Effect.flatMap(responder.currentRequest, (current) => {
    const unavailable = embeddings.unavailable()
    return unavailable === undefined ? Effect.succeed(current) : Effect.fail(unavailable)
  })

  /** Embeds the contents of requests; `field` returns the path of the request at an index. */
  const embedAll = Effect.fnUntraced(function*(
    current: RunningRequest,
    name: string,
    requests: ReadonlyArray<typeof EmbedContentRequest.Type>,
    fields: ServerFields | undefined,
    field: (index: number) => string
  ) {
    const { caller, request } = current
    const requested = modelName(name)
    const { dimensions, inputs } = yield* Effect.fromResult(
      yield* runCooperatively(contentTexts({ requested, requests, field, limits: current.limits }))
    )
    const model = yield* modelOf(current, requested, "embeddings")
    const own = vendorInputs({ requests, field })
    return yield* embeddings.embed({
      caller,
      model,
      request,
      inputs,
      dimensions,
      own,
      fields
    })
  })

  const embedContent = Effect.fnUntraced(function*({ params, request }: Raw) {
    const current = yield* requestForEmbeddings
    const { body, serverFields } = yield* readEmbedRequest(request)
    return embeddingReply(yield* embedAll(current, params.model, [body], serverFields, () => ""))
  })

  const batchEmbedContents = Effect.fnUntraced(function*({ params, request }: Raw) {
    const current = yield* requestForEmbeddings
    const { body, serverFields } = yield* readBatchEmbedRequest(request)
    const field = (index: number) => `requests[${index}].`
    return embeddingsReply(yield* embedAll(current, params.model, body.requests, serverFields, field))
  })

  return { batchEmbedContents, embedContent }
}
