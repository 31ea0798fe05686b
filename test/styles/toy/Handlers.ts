/**
 * The small style at work.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { FrameRenderer } from "../../../src/contracts/shared/FrameRenderer.ts"
import { type Conversation, plainConversation, Text } from "../../../src/domain/Conversation.ts"
import { GatewayError } from "../../../src/domain/GatewayError.ts"
import { replyOf } from "../../../src/domain/Reply.ts"
import type { ReplyEvent } from "../../../src/domain/ReplyEvent.ts"
import { businessMiddleware } from "../../../src/http/endpointMiddleware.ts"
import { groupRoutes, type HandlersOf } from "../../../src/http/groupRoutes.ts"
import { payloadReader } from "../../../src/http/jsonBody.ts"
import { respond } from "../../../src/http/reply.ts"
import { findModel, makeResponder } from "../../../src/styles/shared/responder.ts"
import { toyErrors, ToyGroup, ToyMiddleware } from "./Api.ts"

const { play } = ToyGroup.endpoints

const readBody = payloadReader(play)

const conversationOf = (text: string): Conversation => ({
  ...plainConversation,
  turns: [{ role: "user", parts: [Text(text)] }]
})

const failure = (error: GatewayError): string => `data: ${toyErrors.text(error)}\n\n`

const frames = (): FrameRenderer => ({
  keepAlive: () => ":\n\n",
  failure,
  frames: {
    push(event: ReplyEvent, out) {
      if (event._tag === "TextDelta") out.push(`data: ${JSON.stringify({ said: event.text })}\n\n`)
    },
    end() {}
  }
})

export const ToyHandlers = groupRoutes(
  ToyGroup,
  Effect.gen(function*() {
    const responder = yield* makeResponder
    return {
      play: Effect.fnUntraced(function*({ request }) {
        const body = yield* readBody(request)
        const current = yield* responder.currentRequest
        const stream = current.stats.stream = body.bit_by_bit === true
        const model = findModel(current, body.toy)
        if (model instanceof GatewayError) return yield* model
        return yield* responder.respond(current, model, conversationOf(body.say), {
          stream,
          whole: ({ events }) => {
            const { blocks } = replyOf(events)
            const said = blocks.map((block) => block._tag === "Text" ? block.text : "").join("")
            return Effect.succeed(respond(play, { said }))
          },
          frames,
          failure
        })
      })
    } satisfies HandlersOf<typeof ToyGroup>
  })
).pipe(Layer.provide(Layer.effect(ToyMiddleware, businessMiddleware(ToyMiddleware.facts))))
