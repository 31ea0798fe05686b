/**
 * Contract of the chat-completions style: the endpoint (spec "Chat-completions style").
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import { ChatCompletion, ChatEvent, ChatRequest } from "../../contracts/chat/schema.ts"
import { completing, documented } from "../../http/documented.ts"
import { OpenAiMiddleware } from "../shared/middleware.ts"

/** The chat-completions endpoint. */
export class ChatGroup extends HttpApiGroup.make("chat").add(
  HttpApiEndpoint.post("completions", "/v1/chat/completions", {
    payload: ChatRequest,
    success: [ChatCompletion, HttpApiSchema.StreamSse({ events: ChatEvent })]
  }).annotateMerge(documented({
    summary: "Create a chat completion",
    description:
      "With `stream` the reply is a stream of chunks that ends with `data: [DONE]`. Tool calls that the model " +
      "writes as text are returned as `tool_calls`; streams send them as soon as they are certain.",
    errors: completing,
    example: {
      model: "upstream-chat",
      messages: [{ role: "user", content: "Say hello in one short sentence." }],
      tools: [{
        type: "function",
        function: {
          name: "weather",
          description: "The weather",
          parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
        }
      }]
    }
  }))
).middleware(OpenAiMiddleware).annotate(OpenApi.Description, "Chat completions") {}
