/**
 * Handlers of the content-generation endpoints. The compatible paths share them.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { generate } from "../../contracts/generate/contract.ts"
import { generateModel, modelName } from "../../contracts/generate/models.ts"
import { showsThoughts } from "../../contracts/generate/readRequest.ts"
import { audioTypeOf } from "../../contracts/generate/translated.ts"
import { isAllowed } from "../../domain/allowedRoutes.ts"
import { catalogueOf } from "../../domain/catalogue.ts"
import { listedRoutes } from "../../domain/routeLists.ts"
import { resolveRoute } from "../../domain/routes.ts"
import { businessMiddleware, publicMiddleware } from "../../http/endpointMiddleware.ts"
import { groupRoutes, type HandlersOf } from "../../http/groupRoutes.ts"
import { bodyText, respond } from "../../http/reply.ts"
import { CurrentEmbeddings } from "../shared/embeddings/Embeddings.ts"
import { GenerateMiddleware, GeneratePublicMiddleware } from "../shared/middleware.ts"
import { makeModelLists } from "../shared/modelLists.ts"
import { type AboutReply, conversationBy, formatBy, makeResponder } from "../shared/responder.ts"
import { GenerateGroup } from "./Api.ts"
import { embeddingHandlers, namedModel, type Raw } from "./embeddingHandlers.ts"
import { readCountRequest, readGenerateRequest } from "./readRequest.ts"

const { endpoints } = GenerateGroup

export const GenerateHandlers = groupRoutes(
  GenerateGroup,
  Effect.gen(function*() {
    const responder = yield* makeResponder
    const embeddings = yield* CurrentEmbeddings
    const modelOf = namedModel(responder)
    const { batchEmbedContents, embedContent } = embeddingHandlers(responder, embeddings)
    const embeds = () => embeddings.unavailable() === undefined
    const models = yield* makeModelLists("generate", "model", {
      list: (served, allowed) => {
        const catalogue = catalogueOf(served)
        return bodyText(endpoints.listModels, {
          models: listedRoutes(served.route_table, allowed)
            .map((route) => generateModel(route, catalogue.factsOf(route), embeds()))
        })
      },
      find: (served, allowed, requested) => {
        const model = resolveRoute(served.route_table, "usual", requested)
        return model === undefined || !isAllowed(allowed, model)
          ? undefined
          : bodyText(endpoints.getModel, generateModel(model, catalogueOf(served).factsOf(model), embeds()))
      }
    })

    const generating = (stream: boolean) =>
      Effect.fnUntraced(function*({ params, request }: Raw) {
        const current = yield* responder.currentRequest
        current.stats.stream = stream
        const requested = modelName(params.model)
        const model = yield* modelOf(current, requested)
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
      const model = yield* modelOf(current, modelName(params.model))
      const sent = yield* readCountRequest(request)
      const conversation = yield* conversationBy(current, generate.readRequest, sent)
      return respond(endpoints.countTokens, { totalTokens: yield* responder.countTokens(current, model, conversation) })
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
      listModels: models.list,
      getModel: ({ params }) => models.get(modelName(params.model))
    } satisfies HandlersOf<typeof GenerateGroup>
  })
).pipe(
  Layer.provide([
    Layer.effect(GenerateMiddleware, businessMiddleware(GenerateMiddleware.facts)),
    Layer.succeed(GeneratePublicMiddleware, publicMiddleware(GeneratePublicMiddleware.facts))
  ])
)
