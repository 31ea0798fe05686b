/**
 * Contract of the messages style: endpoints, on the prefixed paths and the shortcuts (spec
 * "Messages style").
 */
import * as Effect from "effect/Effect"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import {
  CountTokensRequest,
  Message,
  MessagesModel,
  MessagesModelList,
  MessagesRequest,
  MessagesStreamEvent,
  TokenCount
} from "../../contracts/messages/schema.ts"
import { completing, documented, finding, reading } from "../../http/documented.ts"
import { MessagesMiddleware, MessagesPublicMiddleware } from "../shared/middleware.ts"

/** The default of the version header (spec "Versioning"). */
const defaultVersion = "2023-06-01"

/** The version headers, the vendor's own included. They are accepted and change nothing. */
const versionHeaders = {
  "msgcompat-version": Schema.String.pipe(Schema.withDecodingDefaultKey(Effect.succeed(defaultVersion))),
  "anthropic-version": Schema.optionalKey(Schema.String)
}

const example = {
  model: "msgcompat-sonnet-4-5",
  messages: [{ role: "user", content: "Say hello in one short sentence." }]
}

const create = {
  headers: versionHeaders,
  payload: MessagesRequest,
  success: [
    Message,
    HttpApiSchema.StreamSse({
      events: Schema.Struct({ event: Schema.String, data: Schema.fromJsonString(MessagesStreamEvent) })
    })
  ]
} as const

const createDocs = (summary: string) =>
  documented({
    summary,
    description: "`max_tokens` defaults to 8192. With `stream` the reply is a stream of named events.",
    errors: completing,
    example: { ...example, max_tokens: 1024 }
  })

const countTokens = { headers: versionHeaders, payload: CountTokensRequest, success: TokenCount }

const countDocs = (summary: string) =>
  documented({
    summary,
    description: "By the upstream if it counts tokens, otherwise an estimate by the gateway.",
    errors: completing,
    example
  })

/** The messages endpoints; the model list needs no credential unless `auth.public_models` is off. */
export class MessagesGroup extends HttpApiGroup.make("messages").add(
  HttpApiEndpoint.post("create", "/msgcompat/v1/messages", create).annotateMerge(createDocs("Create a message")),
  HttpApiEndpoint.post("createV1", "/v1/messages", create).annotateMerge(createDocs("Create a message (shortcut)")),
  HttpApiEndpoint.post("createShort", "/messages", create).annotateMerge(createDocs("Create a message (shortcut)")),
  HttpApiEndpoint.post("countTokens", "/msgcompat/v1/messages/count_tokens", countTokens)
    .annotateMerge(countDocs("Count the tokens of a message")),
  HttpApiEndpoint.post("countTokensV1", "/v1/messages/count_tokens", countTokens)
    .annotateMerge(countDocs("Count the tokens of a message (shortcut)")),
  HttpApiEndpoint.post("countTokensShort", "/messages/count_tokens", countTokens)
    .annotateMerge(countDocs("Count the tokens of a message (shortcut)"))
).middleware(MessagesMiddleware).add(
  HttpApiEndpoint.get("listModels", "/msgcompat/v1/models", { success: MessagesModelList }).annotateMerge(
    documented({ summary: "List the models of the Messages API", errors: reading })
  ).middleware(MessagesPublicMiddleware),
  HttpApiEndpoint.get("getModel", "/msgcompat/v1/models/:id", {
    params: { id: Schema.NonEmptyString },
    success: MessagesModel
  }).annotateMerge(documented({
    summary: "Read one of the models of the Messages API",
    errors: finding
  })).middleware(MessagesPublicMiddleware)
).annotate(
  OpenApi.Description,
  "The Messages API; `/v1/messages` and `/messages` are shortcuts of `/msgcompat/v1/messages`"
) {}
