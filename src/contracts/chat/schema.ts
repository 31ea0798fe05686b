/**
 * Schemas of the chat-completions contract: request, reply and stream (spec "Chat-completions style").
 */
import * as Schema from "effect/Schema"
import { optional, ParsedObject } from "../../domain/schemas.ts"
import { chatMessage, toolCall } from "../shared/chatFamily.ts"
import { cacheMarks, functionsOnly, streamOptionsFields } from "../shared/chatFields.ts"
import { refusedByDecoder } from "../shared/Family.ts"
import { openaiErrors } from "../shared/openaiErrors.ts"
import { request } from "../shared/requestSchema.ts"
import { serverWords } from "../shared/thinking.ts"

/** A call in an assistant message. */
export const ToolCall = toolCall(Schema.String)

/** A message of the conversation. */
export const ChatMessage = chatMessage(ToolCall).annotate({ identifier: "ChatMessage" })

/** A declared tool. */
export const ChatTool = Schema.Struct({
  type: Schema.Literal("function"),
  function: Schema.Struct({
    name: Schema.NonEmptyString,
    description: optional(Schema.String),
    parameters: optional(ParsedObject),
    strict: optional(Schema.Boolean)
  })
}).annotate({ identifier: "ChatTool", ...request({ fields: cacheMarks }) })

/** A tool of a kind that only some servers have: sent to them as it stands. */
const ServerTool = Schema.StructWithRest(
  Schema.Struct({
    type: Schema.String.check(Schema.makeFilter((type: string) => type !== "function" && type !== "custom")).pipe(
      Schema.brand("ServerTool")
    )
  }),
  [ParsedObject]
)

export const AnyChatTool = Schema.Union([ChatTool, ServerTool])
  .annotate(request({ kinds: { rows: { custom: functionsOnly } } }))

/** `tool_choice` of a chat request. */
export const ChatToolChoice = Schema.Union([
  Schema.Literals(["auto", "none", "required"]),
  Schema.Struct({ type: Schema.Literal("function"), function: Schema.Struct({ name: Schema.String }) })
]).annotate(request({
  kinds: { rows: { custom: functionsOnly, allowed_tools: refusedByDecoder("Declare the allowed tools only.") } }
}))

/** `response_format` of a chat request. */
export const ResponseFormat = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("json_schema"),
    json_schema: Schema.Struct({
      name: optional(Schema.String),
      description: optional(Schema.String),
      schema: optional(ParsedObject),
      strict: optional(Schema.Boolean)
    })
  }),
  Schema.Struct({ type: Schema.Literals(["text", "json_object"]) })
])

/** Body of `POST /v1/chat/completions`; fields that are not named here are accepted and ignored. */
export const ChatRequest = Schema.Struct({
  model: Schema.NonEmptyString.annotate({
    description: "A native model id, an alias, or a name of a well-known model family."
  }),
  messages: Schema.NonEmptyArray(ChatMessage).annotate({
    description: "The conversation so far.",
    ...request({ counted: "turns" })
  }),
  stream: optional(Schema.Boolean).annotate({ description: "Answer with server-sent events; false by default." }),
  stream_options: optional(Schema.Struct({ include_usage: optional(Schema.Boolean) }))
    .annotate(request({ fields: streamOptionsFields })),
  tools: optional(Schema.Array(AnyChatTool)).annotate({ description: "Functions that the model may call." }),
  tool_choice: optional(ChatToolChoice).annotate({
    description: "`auto` (the default), `none`, `required`, or one function."
  }),
  parallel_tool_calls: optional(Schema.Boolean),
  n: optional(Schema.Int).annotate({
    description: "How many choices the reply has, 1 by default. More than one needs a server of chat completions."
  }),
  stop: optional(Schema.Union([Schema.String, Schema.Array(Schema.String)])).annotate({
    description: "Sequences that end the reply before they appear.",
    ...request({ counted: "stops" })
  }),
  response_format: optional(ResponseFormat).annotate({
    description: "Asks for JSON, or for JSON that a schema describes."
  }),
  temperature: optional(Schema.Finite).annotate({ description: "Accepted; its effect depends on the upstream." }),
  top_p: optional(Schema.Finite).annotate({ description: "Accepted; its effect depends on the upstream." }),
  top_k: optional(Schema.Finite),
  max_tokens: optional(Schema.Int),
  max_completion_tokens: optional(Schema.Int),
  seed: optional(Schema.Int).annotate({ description: "Accepted; its effect depends on the upstream." }),
  presence_penalty: optional(Schema.Finite),
  frequency_penalty: optional(Schema.Finite),
  logit_bias: optional(Schema.Record(Schema.String, Schema.Finite)).annotate(request({ counted: "map" })),
  ...serverWords,
  reasoning_effort: optional(Schema.String).annotate({ description: "How much to think; `none` is not at all." })
}).annotate({ identifier: "ChatRequest" })

/** Token counts of a chat reply. */
export const ChatUsage = Schema.Struct({
  prompt_tokens: Schema.Int,
  completion_tokens: Schema.Int,
  total_tokens: Schema.Int,
  prompt_tokens_details: Schema.Struct({ cached_tokens: Schema.Int }),
  completion_tokens_details: Schema.Struct({ reasoning_tokens: Schema.Int })
}).annotate({ identifier: "ChatUsage" })

const FinishReason = Schema.Literals(["stop", "tool_calls", "length", "content_filter"])

const tokenFields = { token: Schema.String, bytes: Schema.NullOr(Schema.Array(Schema.Int)), logprob: Schema.Finite }
const TokenLogprob = Schema.Struct({ ...tokenFields, top_logprobs: Schema.Array(Schema.Struct(tokenFields)) })

/** Log probabilities of a reply's tokens, as the server sends them. */
export const ChatLogprobs = Schema.Struct({
  content: Schema.NullOr(Schema.Array(TokenLogprob)),
  refusal: Schema.NullOr(Schema.Array(TokenLogprob))
})

/** An annotation of a reply's text, as the server sends it. */
export const ChatAnnotation = Schema.Struct({
  type: Schema.Literal("url_citation"),
  url_citation: Schema.Struct({
    start_index: Schema.Int,
    end_index: Schema.Int,
    title: Schema.String,
    url: Schema.String
  })
})

/** A call in a reply. */
export const ChatToolCall = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("function"),
  function: Schema.Struct({ name: Schema.String, arguments: Schema.String }),
  extra_content: Schema.optionalKey(ParsedObject)
})

/** Reply of a chat request without `stream`. Other fields of the server's reply stand where the server has them. */
export const ChatCompletion = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("chat.completion"),
  created: Schema.Int,
  model: Schema.String,
  choices: Schema.Array(Schema.Struct({
    index: Schema.Int,
    message: Schema.Struct({
      role: Schema.Literal("assistant"),
      content: Schema.NullOr(Schema.String),
      refusal: Schema.NullOr(Schema.String),
      annotations: Schema.Array(ChatAnnotation),
      reasoning_content: Schema.optionalKey(Schema.String),
      tool_calls: Schema.optionalKey(Schema.Array(ChatToolCall))
    }),
    logprobs: Schema.NullOr(ChatLogprobs),
    finish_reason: FinishReason
  })),
  usage: ChatUsage
}).annotate({ identifier: "ChatCompletion" })

/** One chunk of a streamed chat reply. */
export const ChatChunk = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("chat.completion.chunk"),
  created: Schema.Int,
  model: Schema.String,
  choices: Schema.Array(Schema.Struct({
    index: Schema.Int,
    delta: Schema.Struct({
      role: Schema.optionalKey(Schema.Literal("assistant")),
      content: Schema.optionalKey(Schema.String),
      refusal: Schema.optionalKey(Schema.String),
      annotations: Schema.optionalKey(Schema.Array(ChatAnnotation)),
      reasoning_content: Schema.optionalKey(Schema.String),
      tool_calls: Schema.optionalKey(Schema.Array(Schema.Struct({
        index: Schema.Int,
        id: Schema.optionalKey(Schema.String),
        type: Schema.optionalKey(Schema.Literal("function")),
        function: Schema.Struct({ name: Schema.optionalKey(Schema.String), arguments: Schema.String }),
        extra_content: Schema.optionalKey(ParsedObject)
      })))
    }),
    logprobs: Schema.NullOr(ChatLogprobs),
    finish_reason: Schema.NullOr(FinishReason)
  })),
  usage: Schema.optionalKey(Schema.NullOr(ChatUsage))
}).annotate({ identifier: "ChatChunk" })

/** One event of the stream: a chunk, the error of a failed reply, or the marker that ends the stream. */
export const ChatEvent = Schema.Struct({
  data: Schema.Union([
    Schema.Literal("[DONE]"),
    Schema.fromJsonString(Schema.Union([ChatChunk, openaiErrors.body]))
  ])
})
