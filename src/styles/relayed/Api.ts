/**
 * Contract of the relayed endpoints: requests and replies of an OpenAI-compatible server that go through as they are. The schemas
 * document the usual fields; the gateway reads `model` only.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { openaiErrors } from "../../contracts/shared/openaiErrors.ts"
import { optional } from "../../domain/schemas.ts"
import { documented, relaying } from "../../http/documented.ts"
import { OpenAiMiddleware } from "../shared/middleware.ts"
import { relayedEndpoints } from "./endpoints.ts"

const model = Schema.NonEmptyString.annotate({
  description: "An id of `upstream.models`, an alias, a native model id, or a well-known model of this endpoint."
})

const stream = optional(Schema.Boolean).annotate({ description: "Answer with server-sent events, if the server can." })

const prompts = Schema.Union([
  Schema.String,
  Schema.Array(Schema.String),
  Schema.Array(Schema.Int),
  Schema.Array(Schema.Array(Schema.Int))
])

const texts = Schema.Union([Schema.String, Schema.Array(Schema.String)])

const file = Schema.String.annotate({ description: "The file.", format: "binary" })

/** The body as it is read. */
export const RelayedBody = Schema.Struct({
  model: Schema.optionalKey(Schema.NonEmptyString),
  stream: Schema.optionalKey(Schema.Unknown)
})

/** A reply of the server. */
const Reply = Schema.Record(Schema.String, Schema.Json).annotate({ description: "The server's reply." })

/** A streamed reply: the server's events, or the error of a reply that fails. */
const Events = HttpApiSchema.StreamSse({
  events: Schema.Struct({
    data: Schema.Union([
      Schema.Literal("[DONE]"),
      Schema.fromJsonString(Schema.Union([Schema.Record(Schema.String, Schema.Json), openaiErrors.body]))
    ])
  })
})

const at = <const Path extends string>(endpoint: { readonly path: Path }): `/v1${Path}` => `/v1${endpoint.path}`

const { completions, edits, images, moderations, rerank, score, speech, transcriptions, translations } =
  relayedEndpoints

const asItIs = "Goes to an OpenAI-compatible server as it is; only the model's name is the server's."

const asItIsWithFile =
  "Goes to an OpenAI-compatible server as it is; only the model's name is the server's. With `model` before the file, the file is " +
  "passed on while it arrives."

/** The documents of an endpoint. */
const relayed = (summary: string, example: object, description = asItIs) =>
  documented({ summary, description, errors: relaying, example })

/** The relayed endpoints. */
export class RelayedGroup extends HttpApiGroup.make("carried").add(
  HttpApiEndpoint.post("completions", at(completions), {
    payload: Schema.Struct({ model, prompt: prompts, stream, max_tokens: optional(Schema.Int) }),
    success: [Reply, Events]
  }).annotateMerge(
    relayed("Complete a text", { model: "gpt-3.5-turbo-instruct", prompt: "Once upon a time", max_tokens: 16 })
  ),
  HttpApiEndpoint.post("rerank", at(rerank), {
    payload: Schema.Struct({
      model,
      query: Schema.String,
      documents: Schema.Array(Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Json)])),
      top_n: optional(Schema.Int)
    }),
    success: Reply
  }).annotateMerge(
    relayed("Rank documents", {
      model: "bge-reranker-v2-m3",
      query: "What is a gateway?",
      documents: ["A door in a wall.", "A fruit."]
    })
  ),
  HttpApiEndpoint.post("score", at(score), {
    payload: Schema.Struct({ model, text_1: texts, text_2: texts }),
    success: Reply
  }).annotateMerge(
    relayed("Score pairs of texts", {
      model: "bge-reranker-v2-m3",
      text_1: "What is a gateway?",
      text_2: ["A door in a wall.", "A fruit."]
    })
  ),
  HttpApiEndpoint.post("moderations", at(moderations), {
    payload: Schema.Struct({
      model: optional(model),
      input: Schema.Union([texts, Schema.Array(Schema.Record(Schema.String, Schema.Json))])
    }),
    success: Reply
  }).annotateMerge(
    relayed("Classify texts and pictures", { model: "omni-moderation-latest", input: "A friendly text." })
  ),
  HttpApiEndpoint.post("images", at(images), {
    payload: Schema.Struct({ model: optional(model), prompt: Schema.String, n: optional(Schema.Int), stream }),
    success: [Reply, Events]
  }).annotateMerge(relayed("Make pictures", { model: "gpt-image-1", prompt: "A gate in a garden wall" })),
  HttpApiEndpoint.post("edits", at(edits), {
    payload: Schema.Struct({ model, image: file, prompt: Schema.String }).pipe(HttpApiSchema.asMultipart()),
    success: [Reply, Events]
  }).annotateMerge(
    relayed(
      "Edit pictures",
      { model: "gpt-image-1", image: "(file)", prompt: "Add a gate" },
      `${asItIsWithFile} JSON with addresses of pictures is accepted too.`
    )
  ),
  HttpApiEndpoint.post("speech", at(speech), {
    payload: Schema.Struct({ model, input: Schema.String, voice: Schema.String }),
    success: HttpApiSchema.StreamUint8Array({ contentType: "audio/mpeg" })
  }).annotateMerge(relayed("Speak a text", { model: "tts-1", input: "Hello", voice: "alloy" })),
  HttpApiEndpoint.post("transcriptions", at(transcriptions), {
    payload: Schema.Struct({ model, file }).pipe(HttpApiSchema.asMultipart()),
    success: [Reply, Events]
  }).annotateMerge(relayed("Transcribe speech", { model: "whisper-1", file: "(file)" }, asItIsWithFile)),
  HttpApiEndpoint.post("translations", at(translations), {
    payload: Schema.Struct({ model, file }).pipe(HttpApiSchema.asMultipart()),
    success: Reply
  }).annotateMerge(relayed("Translate speech", { model: "whisper-1", file: "(file)" }, asItIsWithFile))
).middleware(OpenAiMiddleware).annotate(
  OpenApi.Description,
  "Other endpoints of OpenAI-compatible servers, whose requests and replies go through as they are"
) {}
