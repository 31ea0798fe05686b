/**
 * Contract of the Responses style: endpoints (spec "Chat-completions style", `/v1/responses`).
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { ResponseFrame } from "../../contracts/responses/events.ts"
import { ResponseObject } from "../../contracts/responses/ResponseObject.ts"
import { CompactedResponse, InputItemList, ResponseRequest } from "../../contracts/responses/schema.ts"
import { completing, documented, finding, reading } from "../../http/documented.ts"
import { OpenAiMiddleware, UncountedMiddleware } from "../shared/middleware.ts"

const params = { id: Schema.NonEmptyString }

/** The Responses endpoints. */
export class ResponsesGroup extends HttpApiGroup.make("responses").add(
  HttpApiEndpoint.post("create", "/v1/responses", {
    payload: ResponseRequest,
    success: [ResponseObject, HttpApiSchema.StreamSse({ events: ResponseFrame })]
  }).annotateMerge(documented({
    summary: "Create a response",
    description: "The response is stored for `responses.store_ttl_seconds` and readable by the key that created it.",
    errors: completing,
    example: { model: "upstream-chat", instructions: "You are brief.", input: "Say hello in one short sentence." }
  })),
  HttpApiEndpoint.post("countTokens", "/v1/responses/input_tokens", {
    payload: ResponseRequest,
    success: Schema.Struct({ object: Schema.Literal("response.input_tokens"), input_tokens: Schema.Int })
  }).annotateMerge(documented({
    summary: "Count the input tokens of a response",
    description: "By the upstream if it counts tokens, otherwise an estimate by the gateway.",
    errors: completing,
    example: { model: "upstream-chat", input: "Say hello in one short sentence." }
  })),
  HttpApiEndpoint.post("compact", "/v1/responses/compact", {
    payload: ResponseRequest,
    success: CompactedResponse
  }).annotateMerge(documented({
    summary: "Compact a conversation",
    description:
      "The model writes a summary, which the next request sends in place of the conversation. Nothing is stored.",
    errors: completing,
    example: { model: "upstream-chat", input: "Say hello in one short sentence." }
  })),
  HttpApiEndpoint.get("retrieve", "/v1/responses/:id", {
    params,
    query: { stream: Schema.optionalKey(Schema.String) },
    success: ResponseObject
  }).annotateMerge(documented({
    summary: "Read a stored response",
    errors: [...finding, "invalid_request"]
  })),
  HttpApiEndpoint.delete("remove", "/v1/responses/:id", {
    params,
    success: Schema.Struct({ id: Schema.String, object: Schema.Literal("response"), deleted: Schema.Literal(true) })
  }).annotateMerge(documented({ summary: "Delete a stored response", errors: finding })),
  HttpApiEndpoint.get("inputItems", "/v1/responses/:id/input_items", {
    params,
    query: {
      limit: Schema.optionalKey(
        Schema.FiniteFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 1, maximum: 100 }))
      ),
      order: Schema.optionalKey(Schema.Literals(["asc", "desc"])),
      after: Schema.optionalKey(Schema.String)
    },
    success: InputItemList
  }).annotateMerge(documented({
    summary: "List the input items of a stored response",
    errors: [...finding, "invalid_request"]
  }))
).middleware(OpenAiMiddleware).add(
  HttpApiEndpoint.get("connect", "/v1/responses", {
    success: HttpApiSchema.Empty(101)
  }).annotateMerge(documented({
    summary: "Open a WebSocket for responses",
    description:
      "With `Upgrade: websocket`. Each message `{\"type\":\"response.create\",…}` has the fields of a POST; its events come as messages.",
    errors: [...reading, "invalid_request", "rate_limit_exceeded", "upgrade_required"]
  })).middleware(UncountedMiddleware)
).annotate(OpenApi.Description, "Responses, stored and streamed") {}
