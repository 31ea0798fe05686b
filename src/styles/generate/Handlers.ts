/**
 * The content-generation endpoints at work.
 */
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Layer from "effect/Layer"
import type { CompletionOutput } from "../../completion/Completion.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { begunInSlices, inSlices } from "../../config/inSlices.ts"
import { GatewayError } from "../../domain/GatewayError.ts"
import { listedModels, type Model, modelNotFound, resolveModel } from "../../domain/models.ts"
import { replyOf } from "../../domain/Reply.ts"
import { businessEdge, publicEdge } from "../../http/edge.ts"
import { groupRoutes, type HandlersOf } from "../../http/groupRoutes.ts"
import { modelFault } from "../../http/itemLimits.ts"
import { respond } from "../../http/reply.ts"
import { shownModels } from "../../http/shownModels.ts"
import { type Begun, embeddingModel, findModel, makeAnswers } from "../shared/answers.ts"
import { makeEmbeddings } from "../shared/embeddings/makeEmbeddings.ts"
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
export const GenerateHandlers = groupRoutes(
  GenerateGroup,
  Effect.gen(function*() {
    const { answer, begun, countTokens, findAllowedModel } = yield* makeAnswers
    const config = yield* ConfigStore
    const shown = yield* shownModels
    const embeddings = yield* makeEmbeddings

    const resolve = (begun: Begun, requested: string, find: typeof findModel): Model | GatewayError =>
      modelFault(requested, begun.config.limits) ?? find(begun, requested)

    const generating = (stream: boolean) =>
      Effect.fnUntraced(function*({ params, request }: Raw) {
        const asked = yield* begun
        asked.stats.stream = stream
        const requested = modelName(params.model)
        const model = resolve(asked, requested, findModel)
        if (model instanceof GatewayError) return yield* model
        const body = yield* readGenerateRequest(request)
        const conversation = yield* Effect.fromResult(yield* begunInSlices(decodeGenerate(body)))
        const info = ({ id }: Pick<CompletionOutput, "id">): GenerateReplyInfo => ({
          id,
          model: requested,
          thoughts: showsThoughts(body)
        })
        return yield* answer(asked, model, conversation, {
          whole: (output) =>
            Effect.succeed(
              respond(endpoints.generateContent, generateResponse(info(output), replyOf(output.events)))
            ),
          frames: (output) => generateFrames(info(output)),
          failure: generateFailure
        })
      })
    const generate = generating(false)
    const stream = generating(true)

    const count = Effect.fnUntraced(function*({ params, request }: Raw) {
      const model = resolve(yield* begun, modelName(params.model), findAllowedModel)
      if (model instanceof GatewayError) return yield* model
      const body = yield* readCountRequest(request)
      const conversation = yield* Effect.fromResult(yield* begunInSlices(decodeGenerate(body)))
      return respond(endpoints.countTokens, { totalTokens: yield* countTokens(conversation) })
    })

    /** Embeds the contents of requests, `field` being where the one at a place stands. */
    const embedAll = Effect.fnUntraced(function*(
      asked: Begun,
      requested: string,
      requests: ReadonlyArray<typeof EmbedContentRequest.Type>,
      field: (place: number) => string
    ) {
      const { caller, config, stats } = asked
      const { limits } = config
      const { dimensions, inputs } = yield* Effect.fromResult(
        yield* inSlices(contentTexts({ requested, requests, field, limits }))
      )
      const model = resolve(asked, requested, (begun, name) => findModel(begun, name, embeddingModel))
      if (model instanceof GatewayError) return yield* model
      return yield* embeddings.embed({ caller, config, model, stats, inputs, dimensions })
    })

    const embedContent = Effect.fnUntraced(function*({ params, request }: Raw) {
      const asked = yield* begun
      const unavailable = embeddings.unavailable(asked.config)
      if (unavailable !== undefined) return yield* unavailable
      const body = yield* readEmbedRequest(request)
      return embeddingReply(yield* embedAll(asked, modelName(params.model), [body], () => ""))
    })

    const batchEmbedContents = Effect.fnUntraced(function*({ params, request }: Raw) {
      const asked = yield* begun
      const unavailable = embeddings.unavailable(asked.config)
      if (unavailable !== undefined) return yield* unavailable
      const { requests } = yield* readBatchEmbedRequest(request)
      return embeddingsReply(
        yield* embedAll(asked, modelName(params.model), requests, (place) => `requests[${place}].`)
      )
    })

    return {
      generateContent: generate,
      generateContentV1: generate,
      streamGenerateContent: stream,
      streamGenerateContentV1: stream,
      countTokens: count,
      countTokensV1: count,
      embedContent,
      embedContentV1: embedContent,
      batchEmbedContents,
      batchEmbedContentsV1: batchEmbedContents,
      listModels: () =>
        Effect.map(shown, (isShown) => {
          const current = config.unsafeCurrent()
          const embeds = embeddings.unavailable(current) === undefined
          return respond(endpoints.listModels, {
            models: listedModels(current.model_table).filter(isShown).map((model) => generateModel(model, embeds))
          })
        }),
      getModel: ({ params }) =>
        Effect.flatMap(shown, (isShown) => {
          const requested = modelName(params.model)
          const current = config.unsafeCurrent()
          const model = resolveModel(current.model_table, requested)
          return model === undefined || !isShown(model)
            ? Effect.fail(modelNotFound(requested, current.model_table))
            : Effect.succeed(
              respond(endpoints.getModel, generateModel(model, embeddings.unavailable(current) === undefined))
            )
        })
    } satisfies HandlersOf<typeof GenerateGroup>
  })
).pipe(
  Layer.provide([
    Layer.effect(GenerateEdge, businessEdge(GenerateEdge.facts)),
    Layer.succeed(GeneratePublicEdge, publicEdge(GeneratePublicEdge.facts))
  ])
)
