/** The style of the toy contract: `POST /toy/say`. */
import * as Effect from "effect/Effect"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { completing, documented } from "../../../src/http/documented.ts"
import { businessMiddleware } from "../../../src/http/endpointMiddleware.ts"
import type { EndpointPolicy } from "../../../src/http/EndpointPolicy.ts"
import { errorsOf } from "../../../src/http/errorShapes.ts"
import { groupRoutes, type HandlersOf } from "../../../src/http/groupRoutes.ts"
import { requestReader } from "../../../src/http/jsonBody.ts"
import type { CurrentCaller, CurrentRequest } from "../../../src/http/RequestContext.ts"
import { conversationBy, formatBy, makeResponder } from "../../../src/styles/shared/responder.ts"
import type { Style } from "../../../src/styles/Style.ts"
import { toy, toyErrors, ToyReply, ToyRequest } from "./contract.ts"
import { toyName } from "./names.ts"

class ToyMiddleware extends HttpApiMiddleware.Service<ToyMiddleware, { provides: CurrentCaller | CurrentRequest }>()(
  "test/ToyMiddleware",
  { error: errorsOf(toyErrors) }
) {
  static readonly facts: EndpointPolicy = { errors: toyErrors, idHeader: "toy-id", access: "business" }
}

class ToyGroup extends HttpApiGroup.make(toyName).add(
  HttpApiEndpoint.post("say", "/toy/say", {
    payload: ToyRequest,
    success: [
      ToyReply,
      HttpApiSchema.StreamSse({ events: Schema.Struct({ data: Schema.fromJsonString(Schema.Array(Schema.Json)) }) })
    ]
  }).annotateMerge(documented({ summary: "Say something", errors: completing, example: { m: "bear", t: [[1, "Hi"]] } }))
).middleware(ToyMiddleware).annotate(OpenApi.Description, "Toys") {}

const { say } = ToyGroup.endpoints

const readToyRequest = requestReader(say, { family: toy.request })

export const ToyHandlers = groupRoutes(
  ToyGroup,
  Effect.gen(function*() {
    const responder = yield* makeResponder
    return {
      say: Effect.fnUntraced(function*({ request }) {
        const sent = yield* readToyRequest(request)
        const current = yield* responder.currentRequest
        const stream = current.stats.stream = sent.body.s === true
        const model = yield* responder.findModel(current, sent.body.m)
        const conversation = yield* conversationBy(current, toy.readRequest, sent)
        const format = formatBy({ id: current.request.id, stream }, say, toy, () => undefined)
        return yield* responder.respond(current, model, conversation, format)
      })
    } satisfies HandlersOf<typeof ToyGroup>
  })
).pipe(Layer.provide(Layer.effect(ToyMiddleware, businessMiddleware(ToyMiddleware.facts))))

export const toyStyle = {
  group: ToyGroup,
  basePaths: ["/toy"],
  operation: "chat"
} as const satisfies Style
