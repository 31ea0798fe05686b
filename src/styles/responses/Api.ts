/**
 * The Responses style as a contract: request schemas and the endpoints (spec "Chat-completions style", `/v1/responses`).
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as Schema from "effect/Schema"
import { OpenAiEdge } from "../shared/openaiEdges.ts"
import { ResponseFrame } from "./events.ts"
import { InputItem, InputMessage, JsonObject, optional, otherTypes } from "./items.ts"
import { ResponseObject, TextFormat } from "./ResponseObject.ts"

const functionFields = {
  name: Schema.NonEmptyString,
  description: optional(Schema.String),
  parameters: optional(JsonObject),
  strict: optional(Schema.Boolean)
}

/** A declared tool. Tools of other types than functions and custom ones are accepted and declare nothing. */
export const ResponseTool = Schema.Union([
  Schema.Struct({ type: Schema.Literal("function"), ...functionFields }),
  // As chat completions writes it.
  Schema.Struct({ type: Schema.Literal("function"), function: Schema.Struct(functionFields) }),
  Schema.Struct({
    type: Schema.Literal("custom"),
    name: Schema.NonEmptyString,
    description: optional(Schema.String),
    format: optional(Schema.Struct({
      type: Schema.String,
      syntax: optional(Schema.String),
      definition: optional(Schema.String)
    }))
  }),
  otherTypes(new Set(["function", "custom"]))
]).annotate({ identifier: "ResponseTool" })

/** The types of `tool_choice` that mean something here. */
export const choiceTypes: ReadonlySet<string> = new Set(["function", "custom", "allowed_tools"])

/** `tool_choice` of a request. */
export const ResponseToolChoice = Schema.Union([
  Schema.Literals(["auto", "none", "required"]),
  Schema.Struct({ type: Schema.Literals(["function", "custom"]), name: Schema.String }),
  Schema.Struct({ type: Schema.Literal("function"), function: Schema.Struct({ name: Schema.String }) }),
  Schema.Struct({
    type: Schema.Literal("allowed_tools"),
    mode: Schema.Literals(["auto", "required"]),
    tools: Schema.Array(Schema.Struct({ type: Schema.String, name: optional(Schema.String) }))
  }),
  otherTypes(choiceTypes)
])

/** Body of `POST /v1/responses`; fields that are not named here are accepted and ignored. */
export const ResponseRequest = Schema.Struct({
  model: Schema.NonEmptyString,
  input: optional(
    Schema.Union([Schema.String, Schema.Array(Schema.Union([Schema.String, InputItem])), InputItem])
  ),
  messages: optional(Schema.NonEmptyArray(InputMessage)),
  instructions: optional(Schema.String),
  stream: optional(Schema.Boolean),
  store: optional(Schema.Boolean),
  previous_response_id: optional(Schema.String),
  conversation: optional(Schema.Union([Schema.String, Schema.Struct({ id: Schema.String })])),
  prompt: optional(Schema.Struct({ id: Schema.String })),
  tools: optional(Schema.Array(ResponseTool)),
  tool_choice: optional(ResponseToolChoice),
  parallel_tool_calls: optional(Schema.Boolean),
  text: optional(Schema.Struct({ format: optional(TextFormat), verbosity: optional(Schema.String) })),
  reasoning: optional(Schema.Struct({ effort: optional(Schema.String), summary: optional(Schema.String) })),
  max_output_tokens: optional(Schema.Int),
  max_tool_calls: optional(Schema.Int),
  stop: optional(Schema.Union([Schema.String, Schema.Array(Schema.String)])),
  temperature: optional(Schema.Finite),
  top_p: optional(Schema.Finite),
  top_k: optional(Schema.Finite),
  seed: optional(Schema.Int),
  presence_penalty: optional(Schema.Finite),
  frequency_penalty: optional(Schema.Finite),
  top_logprobs: optional(Schema.Int),
  metadata: optional(Schema.Record(Schema.String, Schema.String)),
  prompt_cache_key: optional(Schema.String),
  safety_identifier: optional(Schema.String),
  service_tier: optional(Schema.String),
  user: optional(Schema.String)
}).annotate({ identifier: "ResponseRequest" })

export type ResponseRequest = typeof ResponseRequest.Type

/** A page of the items that a response was made from. */
export const InputItemList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(JsonObject),
  first_id: Schema.NullOr(Schema.String),
  last_id: Schema.NullOr(Schema.String),
  has_more: Schema.Boolean
}).annotate({ identifier: "ResponseInputItemList" })

const params = { id: Schema.NonEmptyString }

/** The Responses endpoints. */
export class ResponsesGroup extends HttpApiGroup.make("responses").add(
  HttpApiEndpoint.post("create", "/v1/responses", {
    payload: ResponseRequest,
    success: [ResponseObject, HttpApiSchema.StreamSse({ events: ResponseFrame })]
  }),
  HttpApiEndpoint.get("retrieve", "/v1/responses/:id", {
    params,
    query: { stream: Schema.optionalKey(Schema.String) },
    success: ResponseObject
  }),
  HttpApiEndpoint.delete("remove", "/v1/responses/:id", {
    params,
    success: Schema.Struct({ id: Schema.String, object: Schema.Literal("response"), deleted: Schema.Literal(true) })
  }),
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
  })
).middleware(OpenAiEdge) {}
