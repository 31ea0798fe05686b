/**
 * The chat-completions endpoint at work.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as Layer from "effect/Layer"
import { Deadlines } from "../../clock/Deadlines.ts"
import { Completion } from "../../completion/Completion.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { inSlices } from "../../config/inSlices.ts"
import { resolveModel } from "../../domain/models.ts"
import { directRoutes } from "../../http/directRoutes.ts"
import { businessEdge } from "../../http/edge.ts"
import { bodyOf } from "../../http/jsonBody.ts"
import { apiId, modelNotFound, respond, wholeReply } from "../../http/reply.ts"
import { CurrentCaller, CurrentRequest } from "../../http/Request.ts"
import { streamReply } from "../../http/streamReply.ts"
import { OpenAiEdge } from "../shared/openaiEdges.ts"
import { ChatGroup } from "./Api.ts"
import { decodeChat } from "./decode.ts"
import { chatOutline, chatPieces } from "./outline.ts"
import { chatCompletion, chatFailure, chatFrames } from "./render.ts"

const { completions } = ChatGroup.endpoints

const readBody = bodyOf(completions, { outline: chatOutline, pieces: chatPieces })

/** Serves the group; errors are rendered by its edge. */
export const ChatHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(ChatGroup),
  "chat",
  Effect.fnUntraced(function*(handlers) {
    const completion = yield* Completion
    const deadlines = yield* Deadlines
    const config = yield* ConfigStore

    return handlers.handleRaw(
      "completions",
      Effect.fnUntraced(function*({ request }) {
        const caller = yield* CurrentCaller
        const stats = yield* CurrentRequest
        const body = yield* readBody(request)
        const current = config.unsafeCurrent()
        const model = resolveModel(current.model_table, body.model)
        stats.requestedModel = body.model
        stats.stream = body.stream === true
        if (model === undefined) return yield* modelNotFound(body.model, current.model_table)
        stats.model = model.id
        const conversation = yield* Effect.fromResult(yield* inSlices(decodeChat(body)))
        const created = Math.floor((yield* Clock.currentTimeMillis) / 1000)
        const open = completion.open({ caller, model, conversation, stats, whole: !stats.stream })
        if (!stats.stream) {
          const output = yield* open
          const reply = yield* wholeReply(output)
          return respond(
            completions,
            chatCompletion({ id: output.id, created, model: body.model }, reply)
          )
        }
        const includeUsage = body.stream_options?.include_usage === true
        return yield* streamReply(
          open,
          (output) => chatFrames({ id: output.id, created, model: body.model }, includeUsage),
          chatFailure,
          { deadlines, client: current.upstream.timeouts.client * 1000 }
        )
      })
    )
  })
).pipe(
  directRoutes(ChatGroup),
  Layer.provide([Deadlines.layer, Layer.effect(OpenAiEdge, businessEdge(OpenAiEdge.facts))])
)
