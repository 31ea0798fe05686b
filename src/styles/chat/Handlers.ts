/**
 * Handler of the chat-completions endpoint.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { chat } from "../../contracts/chat/contract.ts"
import { businessMiddleware } from "../../http/endpointMiddleware.ts"
import { groupRoutes, type HandlersOf } from "../../http/groupRoutes.ts"
import { OpenAiMiddleware } from "../shared/middleware.ts"
import { type AboutReply, conversationBy, formatBy, makeResponder } from "../shared/responder.ts"
import { ChatGroup } from "./Api.ts"
import { readChatRequest } from "./readRequest.ts"

const { completions } = ChatGroup.endpoints

export const ChatHandlers = groupRoutes(
  ChatGroup,
  Effect.gen(function*() {
    const responder = yield* makeResponder

    return {
      completions: Effect.fnUntraced(function*({ request }) {
        const sent = yield* readChatRequest(request)
        const { body } = sent
        const current = yield* responder.currentRequest
        const stream = current.stats.stream = body.stream === true
        const model = yield* responder.findModel(current, body.model)
        const conversation = yield* conversationBy(current, chat.readRequest, sent)
        const includeUsage = body.stream_options?.include_usage === true
        const about = ({ id }: AboutReply) => ({ id, created: current.created, model: body.model, includeUsage })
        return yield* responder.respond(
          current,
          model,
          conversation,
          formatBy({ id: current.request.id, stream }, completions, chat, about)
        )
      })
    } satisfies HandlersOf<typeof ChatGroup>
  })
).pipe(
  Layer.provide(Layer.effect(OpenAiMiddleware, businessMiddleware(OpenAiMiddleware.facts)))
)
