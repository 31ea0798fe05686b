/**
 * Handlers of the content-generation endpoints. The compatible paths share them.
 */
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Layer from "effect/Layer"
import { runCooperatively } from "../../config/clock/cooperative.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { generate } from "../../contracts/generate/contract.ts"
import { showsThoughts } from "../../contracts/generate/readRequest.ts"
import type { EmbedContentRequest } from "../../contracts/generate/schema.ts"
import { audioTypeOf } from "../../contracts/generate/translated.ts"
import type { ServerFields } from "../../contracts/shared/Family.ts"
import { catalogueOf } from "../../domain/catalogue.ts"
import type { GatewayError } from "../../domain/GatewayError.ts"
import { isAllowed, listedRoutes, resolveRoute, type Route, routeNotFound } from "../../domain/routes.ts"
import { modelFault } from "../../http/bodyLimits.ts"
import { businessMiddleware, publicMiddleware } from "../../http/endpointMiddleware.ts"
import { groupRoutes, type HandlersOf } from "../../http/groupRoutes.ts"
import { keptText, taggedReply } from "../../http/keptLists.ts"
import { bodyText, respond } from "../../http/reply.ts"
import { visibleModels } from "../../http/visibleModels.ts"
import { makeEmbeddings } from "../shared/embeddings/makeEmbeddings.ts"
import { GenerateMiddleware, GeneratePublicMiddleware } from "../shared/middleware.ts"
import {
  type AboutReply,
  conversationBy,
  findModel,
  formatBy,
  makeResponder,
  type RunningRequest
} from "../shared/responder.ts"
import { GenerateGroup } from "./Api.ts"
import { contentTexts, embeddingReply, embeddingsReply, vendorInputs } from "./embedContents.ts"
import { generateModel, modelName } from "./models.ts"
import { readBatchEmbedRequest, readCountRequest, readEmbedRequest, readGenerateRequest } from "./readRequest.ts"

const { endpoints } = GenerateGroup

interface Raw {
  readonly request: HttpServerRequest.HttpServerRequest
  readonly params: { readonly model: string }
}

export const GenerateHandlers = groupRoutes(
  GenerateGroup,
  Effect.gen(function*() {
    const responder = yield* makeResponder
    const config = yield* ConfigStore
    const shown = yield* visibleModels
    const embeddings = yield* makeEmbeddings

    /** Bounds the name before it is looked up: it comes in the path, which no body limit covers. */
    const resolve = (current: RunningRequest, requested: string, find: typeof findModel): Route | GatewayError =>
      modelFault(requested, current.config.limits) ?? find(current, requested)

    const generating = (stream: boolean) =>
      Effect.fnUntraced(function*({ params, request }: Raw) {
        const current = yield* responder.currentRequest
        current.stats.stream = stream
        const requested = modelName(params.model)
        const model = yield* responder.modelBy(current, () => resolve(current, requested, findModel))
        const sent = yield* readGenerateRequest(request)
        const conversation = yield* conversationBy(current, generate.readRequest, sent)
        const about = ({ id }: AboutReply) => ({
          id,
          model: requested,
          thoughts: showsThoughts(sent.body),
          audioType: audioTypeOf(sent.serverFields)
        })
        const format = formatBy({ id: current.request.id, stream }, endpoints.generateContent, generate, about)
        return yield* responder.respond(current, model, conversation, format)
      })
    const whole = generating(false)
    const stream = generating(true)

    const count = Effect.fnUntraced(function*({ params, request }: Raw) {
      const current = yield* responder.currentRequest
      const model = yield* responder.modelBy(current, () => resolve(current, modelName(params.model), findModel))
      const sent = yield* readCountRequest(request)
      const conversation = yield* conversationBy(current, generate.readRequest, sent)
      return respond(endpoints.countTokens, { totalTokens: yield* responder.countTokens(current, model, conversation) })
    })

    const requestForEmbeddings = Effect.flatMap(responder.currentRequest, (current) => {
      const unavailable = embeddings.unavailable(current.config)
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
        yield* runCooperatively(contentTexts({ requested, requests, field, limits: current.config.limits }))
      )
      const model = yield* responder.modelBy(
        current,
        () => resolve(current, requested, (request, name) => findModel(request, name, "embeddings"))
      )
      const own = vendorInputs({ requests, field })
      return yield* embeddings.embed({
        caller,
        config: current.config,
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

    return {
      generateContent: whole,
      generateContentV1: whole,
      streamGenerateContent: stream,
      streamGenerateContentV1: stream,
      countTokens: count,
      countTokensV1: count,
      embedContent,
      embedContentV1: embedContent,
      batchEmbedContents,
      batchEmbedContentsV1: batchEmbedContents,
      listModels: ({ request }) =>
        Effect.map(shown, (visible) => {
          const current = config.now()
          const render = () => {
            const embeds = embeddings.unavailable(current) === undefined
            const catalogue = catalogueOf(current)
            return bodyText(endpoints.listModels, {
              models: listedRoutes(current.route_table, visible.allowed)
                .map((route) => generateModel(route, catalogue.factsOf(route), embeds))
            })
          }
          return taggedReply(request, keptText(current, visible, "generate", render))
        }),
      getModel: ({ params }) =>
        Effect.flatMap(shown, ({ allowed }) => {
          const requested = modelName(params.model)
          const current = config.now()
          const model = resolveRoute(current.route_table, "usual", requested)
          return model === undefined || !isAllowed(allowed, model)
            ? Effect.fail(routeNotFound(current.route_table, allowed, requested, { inPath: true }))
            : Effect.succeed(
              respond(
                endpoints.getModel,
                generateModel(model, catalogueOf(current).factsOf(model), embeddings.unavailable(current) === undefined)
              )
            )
        })
    } satisfies HandlersOf<typeof GenerateGroup>
  })
).pipe(
  Layer.provide([
    Layer.effect(GenerateMiddleware, businessMiddleware(GenerateMiddleware.facts)),
    Layer.succeed(GeneratePublicMiddleware, publicMiddleware(GeneratePublicMiddleware.facts))
  ])
)
