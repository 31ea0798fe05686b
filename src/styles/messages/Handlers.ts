/**
 * Handlers of the messages endpoints. The shortcut paths share them.
 */
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Layer from "effect/Layer"
import { startCooperatively } from "../../config/clock/cooperative.ts"
import { messages } from "../../contracts/messages/contract.ts"
import { findMessagesModel, messagesModelList } from "../../contracts/messages/models.ts"
import { asksForThinking } from "../../contracts/messages/readRequest.ts"
import { catalogueOf } from "../../domain/catalogue.ts"
import type { Conversation } from "../../domain/Conversation.ts"
import { estimateCooperatively } from "../../domain/estimateConversation.ts"
import { ForwardedHeaders } from "../../domain/forwardedHeaders.ts"
import { showsMessagesThinking } from "../../domain/models.ts"
import { businessMiddleware, publicMiddleware } from "../../http/endpointMiddleware.ts"
import { groupRoutes, type HandlersOf } from "../../http/groupRoutes.ts"
import { bodyText, respond } from "../../http/reply.ts"
import { MessagesMiddleware, MessagesPublicMiddleware } from "../shared/middleware.ts"
import { makeModelLists } from "../shared/modelLists.ts"
import { type AboutReply, conversationBy, formatBy, makeResponder } from "../shared/responder.ts"
import { MessagesGroup } from "./Api.ts"
import { readCountRequest, readMessagesRequest } from "./readRequest.ts"

interface Raw {
  readonly request: HttpServerRequest.HttpServerRequest
}

const { endpoints } = MessagesGroup

/** The headers of the contract: an open list, of which a server of the same contract gets all. */
const ofContract = new ForwardedHeaders(["anthropic-*"])

/** The conversation with the caller's headers of the contract, such as the choice of the vendor's unfinished features. */
const withHeaders = (
  conversation: Conversation,
  headers: HttpServerRequest.HttpServerRequest["headers"]
): Conversation => {
  const own = ofContract.of(headers)
  const { vendorFields } = conversation
  return own === undefined || vendorFields === undefined
    ? conversation
    : { ...conversation, vendorFields: { ...vendorFields, headers: own } }
}

export const MessagesHandlers = groupRoutes(
  MessagesGroup,
  Effect.gen(function*() {
    const responder = yield* makeResponder
    const models = yield* makeModelLists("messages", "id", {
      list: (served, allowed) =>
        bodyText(endpoints.listModels, messagesModelList(served.route_table, catalogueOf(served), allowed)),
      find: (served, allowed, requested) => {
        const entry = findMessagesModel(served.route_table, catalogueOf(served), allowed, requested)
        return entry && bodyText(endpoints.getModel, entry)
      }
    })

    const create = Effect.fnUntraced(function*({ request }: Raw) {
      const sent = yield* readMessagesRequest(request)
      const { body } = sent
      const current = yield* responder.currentRequest
      const stream = current.stats.stream = body.stream === true
      const model = yield* responder.findModel(current, body.model, "mapped")
      const conversation = withHeaders(yield* conversationBy(current, messages.readRequest, sent), request.headers)
      const promptTokens = stream ? yield* startCooperatively(estimateCooperatively(conversation)) : 0
      const about = ({ id }: AboutReply) => ({
        id: `msg_${id}`,
        model: body.model,
        thinking: showsMessagesThinking(body.model, model, asksForThinking(body)),
        requestId: current.request.id,
        promptTokens
      })
      return yield* responder.respond(
        current,
        model,
        conversation,
        formatBy({ id: current.request.id, stream }, endpoints.create, messages, about)
      )
    })

    const count = Effect.fnUntraced(function*({ request }: Raw) {
      const sent = yield* readCountRequest(request)
      const { body } = sent
      const current = yield* responder.currentRequest
      const model = yield* responder.findModel(current, body.model, "mapped")
      const conversation = withHeaders(yield* conversationBy(current, messages.readRequest, sent), request.headers)
      return respond(endpoints.countTokens, {
        input_tokens: yield* responder.countTokens(current, model, conversation)
      })
    })

    return {
      create,
      createV1: create,
      createShort: create,
      countTokens: count,
      countTokensV1: count,
      countTokensShort: count,
      listModels: models.list,
      getModel: ({ params }) => models.get(params.id)
    } satisfies HandlersOf<typeof MessagesGroup>
  })
).pipe(
  Layer.provide([
    Layer.effect(MessagesMiddleware, businessMiddleware(MessagesMiddleware.facts)),
    Layer.succeed(MessagesPublicMiddleware, publicMiddleware(MessagesPublicMiddleware.facts))
  ])
)
