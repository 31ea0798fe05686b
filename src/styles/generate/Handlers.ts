/**
 * The content-generation endpoints at work.
 */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Layer from "effect/Layer"
import { Deadlines } from "../../clock/Deadlines.ts"
import { keyOf } from "../../completion/admission.ts"
import { Completion } from "../../completion/Completion.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { inSlices } from "../../config/inSlices.ts"
import { estimateSliced } from "../../domain/estimateConversation.ts"
import { listedModels, resolveModel } from "../../domain/models.ts"
import { makeEmbeddings } from "../../embeddings/makeEmbeddings.ts"
import { counting } from "../../http/counting.ts"
import { directRoutes } from "../../http/directRoutes.ts"
import { businessEdge, publicEdge } from "../../http/edge.ts"
import { modelFault } from "../../http/itemLimits.ts"
import { apiId, modelNotFound, respond, wholeReply } from "../../http/reply.ts"
import { CurrentCaller, CurrentRequest } from "../../http/Request.ts"
import { shownModels } from "../../http/shownModels.ts"
import { streamReply } from "../../http/streamReply.ts"
import { KeyLimits } from "../../usage/KeyLimits.ts"
import type { EmbedContentRequest } from "./Api.ts"
import { GenerateGroup } from "./Api.ts"
import { decodeGenerate, showsThoughts } from "./decode.ts"
import { GenerateEdge, GeneratePublicEdge } from "./edges.ts"
import { contentTexts, embeddingReply, embeddingsReply } from "./embedContents.ts"
import { generateModel, modelName } from "./models.ts"
import { readBatchEmbedRequest, readCountRequest, readEmbedRequest, readGenerateRequest } from "./readRequest.ts"
import type { GenerateReplyInfo } from "./render.ts"
import { generateFailure, generateFrames, generateResponse } from "./render.ts"

// The compatible paths have the same bodies and replies.
const { endpoints } = GenerateGroup

interface Raw {
  readonly request: HttpServerRequest.HttpServerRequest
  readonly params: { readonly model: string }
}

/** Serves the group; errors are rendered by its edges. */
export const GenerateHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(GenerateGroup),
  "generate",
  Effect.fnUntraced(function*(handlers) {
    const completion = yield* Completion
    const deadlines = yield* Deadlines
    const config = yield* ConfigStore
    const keyLimits = yield* KeyLimits
    const shown = yield* shownModels
    const embeddings = yield* makeEmbeddings

    /** The native model of a requested name; notes both for the log. */
    const modelOf = Effect.fnUntraced(function*(requested: string) {
      const stats = yield* CurrentRequest
      const tooLong = modelFault(requested, config.unsafeCurrent().limits)
      if (tooLong !== undefined) return yield* tooLong
      stats.requestedModel = requested
      const model = resolveModel(config.unsafeCurrent().model_table, requested)
      if (model === undefined) return yield* modelNotFound(requested, config.unsafeCurrent().model_table)
      stats.model = model.id
      return model
    })

    /** What both methods do before they part. */
    const begin = Effect.fnUntraced(function*({ params, request }: Raw) {
      const caller = yield* CurrentCaller
      const stats = yield* CurrentRequest
      const requested = modelName(params.model)
      const model = yield* modelOf(requested)
      const body = yield* readGenerateRequest(request)
      const conversation = yield* Effect.fromResult(yield* inSlices(decodeGenerate(body)))
      const info = (id: string): GenerateReplyInfo => ({ id, model: requested, thoughts: showsThoughts(body) })
      return { open: completion.open({ caller, model, conversation, stats, whole: !stats.stream }), info }
    })

    const generate = Effect.fnUntraced(function*(raw: Raw) {
      const { info, open } = yield* begin(raw)
      const output = yield* open
      const reply = yield* wholeReply(output)
      return respond(endpoints.generateContent, generateResponse(info(output.id), reply))
    })

    const stream = Effect.fnUntraced(function*(raw: Raw) {
      const stats = yield* CurrentRequest
      stats.stream = true
      const { info, open } = yield* begin(raw)
      return yield* streamReply(
        open,
        (output) => generateFrames(info(output.id)),
        generateFailure,
        { deadlines, client: config.unsafeCurrent().upstream.timeouts.client * 1000 }
      )
    })

    const countTokens = Effect.fnUntraced(function*({ params, request }: Raw) {
      const model = yield* modelOf(modelName(params.model))
      const notAllowed = keyLimits.refuseModel(keyOf(yield* CurrentCaller), model)
      if (notAllowed !== undefined) return yield* notAllowed
      const body = yield* readCountRequest(request)
      const conversation = yield* Effect.fromResult(yield* inSlices(decodeGenerate(body)))
      return respond(endpoints.countTokens, { totalTokens: yield* counting(inSlices(estimateSliced(conversation))) })
    })

    /** Embeds the contents of requests, `field` being where the one at a place stands. */
    const embedAll = Effect.fnUntraced(function*(
      requested: string,
      requests: ReadonlyArray<typeof EmbedContentRequest.Type>,
      field: (place: number) => string
    ) {
      const { limits } = config.unsafeCurrent()
      const { dimensions, inputs } = yield* Effect.fromResult(
        yield* inSlices(contentTexts({ requested, requests, field, limits }))
      )
      const [caller, stats] = [yield* CurrentCaller, yield* CurrentRequest]
      return yield* embeddings.embed({ caller, model: yield* modelOf(requested), stats, inputs, dimensions })
    })

    const embedContent = Effect.fnUntraced(function*({ params, request }: Raw) {
      const unavailable = embeddings.unavailable()
      if (unavailable !== undefined) return yield* unavailable
      const body = yield* readEmbedRequest(request)
      return embeddingReply(yield* embedAll(modelName(params.model), [body], () => ""))
    })

    const batchEmbedContents = Effect.fnUntraced(function*({ params, request }: Raw) {
      const unavailable = embeddings.unavailable()
      if (unavailable !== undefined) return yield* unavailable
      const { requests } = yield* readBatchEmbedRequest(request)
      return embeddingsReply(yield* embedAll(modelName(params.model), requests, (place) => `requests[${place}].`))
    })

    return handlers
      .handleRaw("generateContent", generate)
      .handleRaw("generateContentV1", generate)
      .handleRaw("streamGenerateContent", stream)
      .handleRaw("streamGenerateContentV1", stream)
      .handleRaw("countTokens", countTokens)
      .handleRaw("countTokensV1", countTokens)
      .handleRaw("embedContent", embedContent)
      .handleRaw("embedContentV1", embedContent)
      .handleRaw("batchEmbedContents", batchEmbedContents)
      .handleRaw("batchEmbedContentsV1", batchEmbedContents)
      .handle(
        "listModels",
        () =>
          Effect.map(shown, (isShown) => ({
            models: listedModels(config.unsafeCurrent().model_table).filter(isShown).map((model) =>
              generateModel(model, embeddings.unavailable() === undefined)
            )
          }))
      )
      .handle("getModel", ({ params }) =>
        Effect.flatMap(shown, (isShown) => {
          const requested = modelName(params.model)
          const model = resolveModel(config.unsafeCurrent().model_table, requested)
          return model === undefined || !isShown(model)
            ? Effect.fail(modelNotFound(requested, config.unsafeCurrent().model_table))
            : Effect.succeed(generateModel(model, embeddings.unavailable() === undefined))
        }))
  })
).pipe(
  directRoutes(GenerateGroup),
  Layer.provide([
    Deadlines.layer,
    Layer.effect(GenerateEdge, businessEdge(GenerateEdge.facts)),
    Layer.succeed(GeneratePublicEdge, publicEdge(GeneratePublicEdge.facts))
  ])
)
