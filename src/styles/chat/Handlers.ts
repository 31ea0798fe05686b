/**
 * Handler of the chat-completions endpoint.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { CompletionOutput } from "../../completion/Completion.ts"
import { noteIgnored } from "../../completion/ignored.ts"
import { startCooperatively } from "../../config/clock/cooperative.ts"
import { decodeChat } from "../../contracts/chat/readRequest.ts"
import { chatCompletion, chatFailure, chatFrames } from "../../contracts/chat/writeReply.ts"
import { Faults } from "../../contracts/shared/Faults.ts"
import { replyOf } from "../../domain/Reply.ts"
import { businessMiddleware } from "../../http/endpointMiddleware.ts"
import { groupRoutes, type HandlersOf } from "../../http/groupRoutes.ts"
import { withRest } from "../../http/jsonBody.ts"
import { respond } from "../../http/reply.ts"
import { OpenAiMiddleware } from "../shared/middleware.ts"
import { findModel, makeResponder } from "../shared/responder.ts"
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
        const model = yield* responder.modelBy(current, () => findModel(current, body.model))
        const faults = new Faults(sent.bodyVendorFields)
        const conversation = yield* Effect.fromResult(yield* startCooperatively(decodeChat(body, faults)))
        for (const path of faults.ignored) noteIgnored(current.stats, path)
        const info = ({ id }: Pick<CompletionOutput, "id">) => ({ id, created: current.created, model: body.model })
        return yield* responder.respond(current, model, withRest(conversation, sent), {
          stream,
          whole: (output) => Effect.succeed(respond(completions, chatCompletion(info(output), replyOf(output.events)))),
          frames: (output) => chatFrames(info(output), body.stream_options?.include_usage === true),
          failure: chatFailure
        })
      })
    } satisfies HandlersOf<typeof ChatGroup>
  })
).pipe(
  Layer.provide(Layer.effect(OpenAiMiddleware, businessMiddleware(OpenAiMiddleware.facts)))
)
