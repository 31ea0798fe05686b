/**
 * Schemas of a Responses request, and of compactions and lists of items (spec "Responses-style").
 */
import * as Schema from "effect/Schema"
import { optional, ParsedObject } from "../../domain/schemas.ts"
import { opaque, passed } from "../shared/Family.ts"
import { reads, request } from "../shared/requestSchema.ts"
import { serverWords } from "../shared/thinking.ts"
import { callableFields, functionFields as vendorsFunctionFields, otherTools, reasoningFields } from "./family.ts"
import { InputItem, InputMessage, otherTypes, OutputCompaction } from "./items.ts"
import { ResponseUsage, TextFormat } from "./ResponseObject.ts"

const functionFields = {
  name: Schema.NonEmptyString,
  description: optional(Schema.String),
  parameters: optional(ParsedObject),
  strict: optional(Schema.Boolean)
}

const callableTools = [
  Schema.Struct({ type: Schema.Literal("function"), ...functionFields })
    .annotate(request({ fields: vendorsFunctionFields })),
  // The form of chat completions.
  Schema.Struct({ type: Schema.Literal("function"), function: Schema.Struct(functionFields) }),
  Schema.Struct({
    type: Schema.Literal("custom"),
    name: Schema.NonEmptyString,
    description: optional(Schema.String),
    format: optional(
      Schema.Struct({
        type: Schema.String,
        syntax: optional(Schema.String),
        definition: optional(Schema.String)
      }).annotate(request({
        kinds: { rows: { text: reads(["type"]), grammar: reads(["type", "syntax", "definition"]) } }
      }))
    )
  }).annotate(request({ fields: callableFields }))
] as const

/** A tool of a namespace. */
export const NamespaceMember = Schema.Union([...callableTools, otherTypes(new Set(["function", "custom"]))])

/** A declared tool. */
export const ResponseTool = Schema.Union([
  ...callableTools,
  Schema.Struct({
    type: Schema.Literal("namespace"),
    name: Schema.NonEmptyString,
    description: optional(Schema.String),
    tools: Schema.Array(NamespaceMember).annotate(request({ counted: "functions" }))
  }),
  otherTypes(new Set(["function", "custom", "namespace"]))
]).annotate({ identifier: "ResponseTool", ...request({ kinds: { rows: otherTools } }) })

/** The types of `tool_choice` whose fields are read. */
export const choiceTypes: ReadonlySet<string> = new Set(["function", "custom", "allowed_tools"])

/** `tool_choice` of a request. */
export const ResponseToolChoice = Schema.Union([
  Schema.Literals(["auto", "none", "required"]),
  Schema.Struct({
    type: Schema.Literals(["function", "custom"]),
    name: Schema.String,
    namespace: optional(Schema.String)
  }),
  Schema.Struct({ type: Schema.Literal("function"), function: Schema.Struct({ name: Schema.String }) }),
  Schema.Struct({
    type: Schema.Literal("allowed_tools"),
    mode: Schema.Literals(["auto", "required"]),
    tools: Schema.Array(
      Schema.Struct({ type: Schema.String, name: optional(Schema.String), namespace: optional(Schema.String) })
    ).annotate(request({ counted: "toolNames" }))
  }),
  otherTypes(choiceTypes)
])

/** Body of `POST /v1/responses`; fields that are not named here are accepted and ignored. */
export const ResponseRequest = Schema.Struct({
  model: Schema.NonEmptyString.annotate({
    description: "A native model id, an alias, or a name of a well-known model family."
  }),
  input: optional(
    Schema.Union([Schema.String, Schema.Array(Schema.Union([Schema.String, InputItem])), InputItem])
  ).annotate({
    description: "The prompt; or use `messages`.",
    ...request({ counted: "turns", also: { isAlone: true } })
  }),
  messages: optional(Schema.NonEmptyArray(InputMessage)).annotate({
    description: "The conversation in the chat style's format, instead of `input`.",
    ...request({ counted: "turns" })
  }),
  instructions: optional(Schema.String).annotate({ description: "Prepended as a system message." }),
  stream: optional(Schema.Boolean).annotate({ description: "Answer with server-sent events; false by default." }),
  background: optional(Schema.Boolean).annotate({
    description: "Only false: a response is made while its client waits."
  }),
  store: optional(Schema.Boolean).annotate({ description: "False keeps the response out of the store." }),
  previous_response_id: optional(Schema.String),
  conversation: optional(Schema.Union([Schema.String, Schema.Struct({ id: Schema.String })])),
  prompt: optional(Schema.Struct({ id: Schema.String })),
  tools: optional(Schema.Array(ResponseTool)).annotate({ description: "Functions that the model may call." }),
  tool_choice: optional(ResponseToolChoice).annotate({
    description: "`auto` (the default), `none`, `required`, or one function.",
    ...request({ fate: opaque })
  }),
  parallel_tool_calls: optional(Schema.Boolean),
  text: optional(Schema.Struct({
    format: optional(TextFormat),
    verbosity: optional(Schema.String).annotate(request({ fate: passed({ as: "verbosity" }) }))
  })),
  ...serverWords,
  reasoning: optional(Schema.Struct({ effort: optional(Schema.String), summary: optional(Schema.String) }))
    .annotate(request({ fields: reasoningFields })),
  max_output_tokens: optional(Schema.Int),
  max_tool_calls: optional(Schema.Int),
  context_management: optional(
    Schema.Array(
      Schema.Struct({
        type: Schema.String,
        compact_threshold: optional(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)))
      })
    )
  ).annotate({
    description:
      "`[{\"type\":\"compaction\",\"compact_threshold\":N}]`: once the input has N tokens, the conversation is compacted before the reply."
  }),
  stop: optional(Schema.Union([Schema.String, Schema.Array(Schema.String)]))
    .annotate(request({ counted: "stops" })),
  temperature: optional(Schema.Finite),
  top_p: optional(Schema.Finite),
  top_k: optional(Schema.Finite),
  seed: optional(Schema.Int),
  presence_penalty: optional(Schema.Finite),
  frequency_penalty: optional(Schema.Finite),
  top_logprobs: optional(Schema.Int),
  include: optional(Schema.Array(Schema.String)),
  metadata: optional(Schema.Record(Schema.String, Schema.String)).annotate(request({ counted: "map" })),
  prompt_cache_key: optional(Schema.String),
  safety_identifier: optional(Schema.String),
  service_tier: optional(Schema.String),
  user: optional(Schema.String)
}).annotate({ identifier: "ResponseRequest" })

export type ResponseRequest = typeof ResponseRequest.Type

/** A message of the user, as text. */
const KeptMessage = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("message"),
  status: Schema.Literal("completed"),
  role: Schema.Literal("user"),
  content: Schema.Array(Schema.Struct({ type: Schema.Literal("input_text"), text: Schema.String }))
})

/** A conversation in place of which a summary stands: the messages of the user, and the compaction. */
export const CompactedResponse = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("response.compaction"),
  /** Unix seconds. */
  created_at: Schema.Int,
  output: Schema.Array(Schema.Union([KeptMessage, OutputCompaction])),
  usage: ResponseUsage
}).annotate({ identifier: "CompactedResponse" })

/** A page of a response's input items. */
export const InputItemList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(ParsedObject),
  first_id: Schema.NullOr(Schema.String),
  last_id: Schema.NullOr(Schema.String),
  has_more: Schema.Boolean
}).annotate({ identifier: "ResponseInputItemList" })
