/**
 * The messages endpoints at work.
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
import { isSlowMessagesModel, resolveMessagesModel } from "../../domain/models.ts"
import { counting } from "../../http/counting.ts"
import { directRoutes } from "../../http/directRoutes.ts"
import { businessEdge, publicEdge } from "../../http/edge.ts"
import { bodyOf } from "../../http/jsonBody.ts"
import { apiId, modelNotFound, respond, wholeReply } from "../../http/reply.ts"
import { CurrentCaller, CurrentRequest } from "../../http/Request.ts"
import { shownModels } from "../../http/shownModels.ts"
import { streamReply } from "../../http/streamReply.ts"
import { KeyLimits } from "../../usage/KeyLimits.ts"
import { MessagesGroup } from "./Api.ts"
import { decodeMessages } from "./decode.ts"
import { MessagesEdge, MessagesPublicEdge } from "./edges.ts"
import { findMessagesModel, messagesModelList } from "./models.ts"
import { messagesOutline, messagesPieces } from "./outline.ts"
import type { MessagesReplyInfo } from "./render.ts"
import { messageObject, messagesFailure, messagesFrames } from "./render.ts"

interface Raw {
  readonly request: HttpServerRequest.HttpServerRequest
}

// The shortcuts have the same bodies and replies.
const { endpoints } = MessagesGroup

const largeBodies = { outline: messagesOutline, pieces: messagesPieces }
const readBody = bodyOf(endpoints.create, largeBodies)
const readCount = bodyOf(endpoints.countTokens, largeBodies)

/** Serves the group; errors are rendered by its edges. */
export const MessagesHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(MessagesGroup),
  "messages",
  Effect.fnUntraced(function*(handlers) {
    const completion = yield* Completion
    const deadlines = yield* Deadlines
    const config = yield* ConfigStore
    const keyLimits = yield* KeyLimits
    const shown = yield* shownModels

    /** The native model of a requested name; notes both for the log. */
    const modelOf = Effect.fnUntraced(function*(requested: string) {
      const stats = yield* CurrentRequest
      const { model_table, msgcompat_mapping } = config.unsafeCurrent()
      stats.requestedModel = requested
      const model = resolveMessagesModel(model_table, msgcompat_mapping, requested)
      if (model === undefined) return yield* modelNotFound(requested, model_table)
      stats.model = model.id
      return model
    })

    const create = Effect.fnUntraced(function*({ request }: Raw) {
      const caller = yield* CurrentCaller
      const stats = yield* CurrentRequest
      const body = yield* readBody(request)
      stats.stream = body.stream === true
      const model = yield* modelOf(body.model)
      const conversation = yield* Effect.fromResult(yield* inSlices(decodeMessages(body)))
      const open = completion.open({ caller, model, conversation, stats, whole: !stats.stream })
      const info = (id: string): MessagesReplyInfo => ({
        id: `msg_${id}`,
        model: body.model,
        thinking: isSlowMessagesModel(body.model),
        requestId: stats.id
      })
      if (!stats.stream) {
        const output = yield* open
        const reply = yield* wholeReply(output)
        return respond(endpoints.create, messageObject(info(output.id), reply))
      }
      const promptTokens = yield* inSlices(estimateSliced(conversation))
      return yield* streamReply(
        open,
        (output) => messagesFrames(info(output.id), promptTokens),
        messagesFailure(stats.id),
        { deadlines, client: config.unsafeCurrent().upstream.timeouts.client * 1000 }
      )
    })

    const countTokens = Effect.fnUntraced(function*({ request }: Raw) {
      const body = yield* readCount(request)
      const model = yield* modelOf(body.model)
      const notAllowed = keyLimits.refuseModel(keyOf(yield* CurrentCaller), model)
      if (notAllowed !== undefined) return yield* notAllowed
      const conversation = yield* Effect.fromResult(yield* inSlices(decodeMessages(body)))
      return respond(endpoints.countTokens, { input_tokens: yield* counting(inSlices(estimateSliced(conversation))) })
    })

    return handlers
      .handleRaw("create", create)
      .handleRaw("createV1", create)
      .handleRaw("createShort", create)
      .handleRaw("countTokens", countTokens)
      .handleRaw("countTokensV1", countTokens)
      .handleRaw("countTokensShort", countTokens)
      .handle("listModels", () =>
        Effect.map(shown, (isShown) => {
          const { model_table, msgcompat_mapping } = config.unsafeCurrent()
          return messagesModelList(model_table, msgcompat_mapping, isShown)
        }))
      .handle("getModel", ({ params }) =>
        Effect.flatMap(shown, (isShown) => {
          const { model_table, msgcompat_mapping } = config.unsafeCurrent()
          const entry = findMessagesModel(model_table, msgcompat_mapping, isShown, params.id)
          return entry === undefined ? Effect.fail(modelNotFound(params.id, model_table, "id")) : Effect.succeed(entry)
        }))
  })
).pipe(
  directRoutes(MessagesGroup),
  Layer.provide([
    Deadlines.layer,
    Layer.effect(MessagesEdge, businessEdge(MessagesEdge.facts)),
    Layer.succeed(MessagesPublicEdge, publicEdge(MessagesPublicEdge.facts))
  ])
)
