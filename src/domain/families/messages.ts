/** The request of the `messages` contract. */
import { isRecord } from "../json.ts"
import {
  type Family,
  hint,
  listOf,
  modelled,
  object,
  objectBy,
  opaque,
  required,
  type Row,
  told,
  translated
} from "./Family.ts"

const vendorOnly = "Belongs to the vendor's own servers."
const sealed = "Only the vendor's models can read it."

const cached = { cache_control: hint("Marks what the vendor caches; the reply is the same.") }

const cites = told("Replies of other servers cite nothing.")

const text = object({
  type: modelled,
  text: modelled,
  citations: hint("Repeats what a reply said of its sources."),
  ...cached
})

const base64 = object({ type: modelled, media_type: modelled, data: modelled })
const url = object({ type: modelled, url: modelled })

const image = object({
  type: modelled,
  source: objectBy("type", {
    base64,
    url,
    file: required("the upstream cannot read pictures that another server stores; send the picture itself")
  }),
  transformations: told("The server decides how it reads pictures."),
  ...cached
})

const document = object({
  type: modelled,
  source: objectBy("type", {
    base64,
    url,
    text: base64,
    file: object({ type: modelled, file_id: modelled }),
    content: object({ type: modelled, content: opaque })
  }),
  title: modelled,
  context: modelled,
  citations: cites,
  ...cached
})

const searchResult = object({
  type: modelled,
  source: modelled,
  title: modelled,
  content: opaque,
  citations: cites,
  ...cached
})

/** Kinds of blocks that a tool's result has too. */
const resultKinds: { readonly [type: string]: Row } = {
  text,
  image,
  document,
  search_result: searchResult,
  // The decoder reports those that have no words.
  other: translated()
}

const toolset = told("Names the vendor's set of tools.")

const isDirect = (value: unknown): boolean => isRecord(value) && value["type"] === "direct"

const knownOr = (kinds: { readonly [type: string]: Row }) => ({ type }: { readonly [field: string]: unknown }) =>
  typeof type !== "string" ? undefined : Object.hasOwn(kinds, type) ? type : "other"

const blockKinds: { readonly [type: string]: Row } = {
  ...resultKinds,
  thinking: object({ type: modelled, thinking: modelled, signature: hint(sealed) }),
  redacted_thinking: object({ type: modelled, data: hint(sealed) }),
  tool_use: object({
    type: modelled,
    id: modelled,
    name: modelled,
    input: opaque,
    caller: { ...told("Names the vendor's tool that called."), isSilent: isDirect },
    toolset_name: toolset,
    ...cached
  }),
  tool_result: object({
    type: modelled,
    tool_use_id: modelled,
    content: listOf(objectBy(knownOr(resultKinds), resultKinds)),
    is_error: modelled,
    toolset_name: toolset,
    ...cached
  })
}

const toolKinds: { readonly [type: string]: Row } = {
  custom: object({
    type: modelled,
    name: modelled,
    description: modelled,
    input_schema: opaque,
    strict: modelled,
    allowed_callers: told("Only the model calls tools."),
    defer_loading: told("All tools are declared at once.", false),
    eager_input_streaming: hint("Arguments are streamed as they come."),
    input_examples: told("Other contracts have no examples of calls."),
    ...cached
  }),
  // The decoder declares those that the caller runs, and reports the others.
  other: translated()
}

/** A tool without a type is the caller's own. */
const toolKind = ({ type }: { readonly [field: string]: unknown }): string =>
  type === undefined || type === null || type === "custom" ? "custom" : "other"

const format = object({ type: modelled, schema: opaque })

export const messagesFamily: Family = {
  name: "messages",
  vendor: "messages",
  open: true,
  fields: new Map(Object.entries({
    model: modelled,
    messages: listOf(object({
      role: modelled,
      content: listOf(objectBy(knownOr(blockKinds), blockKinds)),
      clear_at: told("Other contracts keep all messages."),
      output_config: told("Other contracts say it for the whole request.")
    })),
    system: listOf(objectBy(knownOr(resultKinds), resultKinds)),
    stream: modelled,
    max_tokens: modelled,
    stop_sequences: modelled,
    temperature: modelled,
    top_p: modelled,
    top_k: modelled,
    tools: listOf(objectBy(toolKind, toolKinds)),
    tool_choice: object({ type: modelled, name: modelled, disable_parallel_tool_use: modelled }),
    thinking: object({
      type: modelled,
      budget_tokens: modelled,
      display: modelled,
      block_binding: told(vendorOnly)
    }),
    output_config: object({
      effort: modelled,
      format,
      task_budget: told("The gateway counts no budget over several requests.")
    }),
    output_format: format,
    ...cached,
    metadata: hint("Identifies the caller to the vendor."),
    service_tier: hint("Chooses among the vendor's capacities; the reply is the same."),
    inference_geo: told(vendorOnly),
    speed: told(vendorOnly, "standard"),
    container: told(vendorOnly),
    context_management: told("Conversations are not edited or compacted."),
    compaction: told("Conversations are not edited or compacted."),
    diagnostics: told(vendorOnly),
    mcp_servers: told("The gateway calls no tool servers."),
    fallbacks: told("The gateway's own failover applies."),
    fallback_credit_token: told(vendorOnly),
    billing_policy: told(vendorOnly),
    thread: told("The gateway stores no threads."),
    user_profile_id: hint("Identifies the caller to the vendor."),
    workspace_id: hint("Identifies the caller to the vendor.")
  }))
}
