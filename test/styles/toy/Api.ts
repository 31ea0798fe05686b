/**
 * A small style as a contract: one text in, one text out, its own words for errors.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { errorShape } from "../../../src/contracts/shared/errorShapes.ts"
import { gatewayError } from "../../../src/domain/GatewayError.ts"
import { completing, documented } from "../../../src/http/documented.ts"
import type { EndpointPolicy } from "../../../src/http/EndpointPolicy.ts"
import { errorsOf } from "../../../src/http/errorShapes.ts"
import type { CurrentCaller, CurrentRequest } from "../../../src/http/RequestContext.ts"

export const toyErrors = errorShape(
  Schema.Struct({ broken: Schema.String, why: Schema.String, where: Schema.NullOr(Schema.String) })
    .annotate({ identifier: "ToyError" }),
  {
    render: ({ code, message, param }) => ({ broken: code, why: message, where: param }),
    revive: ({ where, why }) => gatewayError("invalid_request", why, { param: where ?? undefined })
  }
)

export class ToyMiddleware
  extends HttpApiMiddleware.Service<ToyMiddleware, { provides: CurrentCaller | CurrentRequest }>()(
    "test/ToyMiddleware",
    { error: errorsOf(toyErrors) }
  )
{
  static readonly facts: EndpointPolicy = { errors: toyErrors, access: "business", idHeader: "toy-id" }
}

export const ToyRequest = Schema.Struct({
  toy: Schema.NonEmptyString.annotate({ description: "The model that plays." }),
  say: Schema.NonEmptyString,
  bit_by_bit: Schema.optionalKey(Schema.Boolean)
}).annotate({ identifier: "ToyRequest" })

export const ToyReply = Schema.Struct({ said: Schema.String }).annotate({ identifier: "ToyReply" })

export class ToyGroup extends HttpApiGroup.make("toy").add(
  HttpApiEndpoint.post("play", "/toy/play", {
    payload: ToyRequest,
    success: [ToyReply, HttpApiSchema.StreamSse({ events: Schema.Struct({ data: Schema.fromJsonString(ToyReply) }) })]
  }).annotateMerge(documented({
    summary: "Play with a toy",
    errors: completing,
    example: { toy: "upstream-chat", say: "Hello" }
  }))
).middleware(ToyMiddleware).annotate(OpenApi.Description, "Toys") {}
