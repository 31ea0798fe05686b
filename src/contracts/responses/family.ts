/** Fields, items and tools of the `responses` contract that the schemas of its requests lack. */
import {
  ignorable,
  local,
  oneOf,
  passed,
  refused,
  refusedByDecoder,
  reported,
  supported,
  type Table,
  translated
} from "../shared/Family.ts"

/** The part of a reply that `include` asks for and servers of chat completions have. */
export const includedLogprobs = "message.output_text.logprobs"

const vendorTools = "The gateway runs none of the provider's tools."

export const itemStatus = ignorable("Repeats how far a reply came.")

/** Fields of every item. */
export const itemFields: Table = {
  internal_chat_message_metadata_passthrough: ignorable("Agents describe the item to the provider.")
}

export const messageFields: Table = {
  ...itemFields,
  phase: ignorable("Labels an assistant's message for the provider's own models.")
}

/** Fields of calls and of their results. */
export const callFields: Table = {
  ...itemFields,
  async: reported("The server awaits every call."),
  caller: ignorable("Names the provider's program that made the call.")
}

export const encryptedContent = reported("Only the provider can open it.")

const words = translated("Its words are sent.")

const vendorItems = [
  "additional_tools",
  "apply_patch_call",
  "apply_patch_call_output",
  "code_interpreter_call",
  "computer_call",
  "computer_call_output",
  "file_search_call",
  "image_generation_call",
  "local_shell_call",
  "local_shell_call_output",
  "mcp_approval_request",
  "mcp_approval_response",
  "mcp_call",
  "mcp_list_tools",
  "program",
  "program_output",
  "shell_call",
  "shell_call_output",
  "tool_search_call",
  "tool_search_output",
  "web_search_call"
]

const compacted = translated(
  "A gateway's own becomes a message with its summary. The header names others that have no words."
)

/** Items without a Schema. */
export const otherItems: Table = {
  ...Object.fromEntries(vendorItems.map((type) => [type, words])),
  compaction: compacted,
  compaction_summary: compacted,
  compaction_trigger: translated("As the last item: the reply is a compaction of the conversation."),
  configuration_update: reported("A request has one configuration.")
}

/** Fields of functions and custom tools. */
export const callableFields: Table = {
  allowed_callers: reported("The provider's programs call no tools."),
  async: reported("The server awaits every call."),
  defer_loading: reported("All tools are declared immediately.")
}

export const functionFields: Table = { ...callableFields, output_schema: reported("Results are sent as they are.") }

const ranByVendor = reported(vendorTools)

const declared = translated("Declared as a function.")

/** Tools without a Schema. */
export const otherTools: Table = {
  local_shell: declared,
  shell: declared,
  apply_patch: declared,
  computer: declared,
  computer_use_preview: declared,
  tool_search: declared,
  web_search: ranByVendor,
  web_search_2025_08_26: ranByVendor,
  web_search_preview: ranByVendor,
  web_search_preview_2025_03_11: ranByVendor,
  file_search: ranByVendor,
  code_interpreter: ranByVendor,
  image_generation: ranByVendor,
  programmatic_tool_calling: ranByVendor,
  mcp: ranByVendor
}

export const reasoningFields: Table = {
  generate_summary: ignorable("The older name of summary. Replies have all reasoning that the server sends."),
  context: reported("The server's own setting decides which reasoning of the history counts.", "auto"),
  mode: reported("The server has no such modes.", "standard")
}

/** The fields of a request that every server of the contract knows, beside those of `responsesFields`. */
const known: ReadonlySet<string> = new Set(
  ("input instructions max_output_tokens metadata model parallel_tool_calls previous_response_id reasoning store stream temperature text " +
    "tool_choice tools top_p").split(" ")
)

/** True for a field of a request that every server of the contract knows. */
export const isOfContract = (name: string): boolean => known.has(name) || Object.hasOwn(responsesFields, name)

/** Fields of a request. Some are in its Schema, which checks their values. */
export const responsesFields: Table = {
  stream_options: {
    ...supported,
    fields: new Map([["include_obfuscation", local(ignorable("The gateway pads no events."))]])
  },
  conversation: refusedByDecoder("The gateway stores no conversations."),
  prompt: refusedByDecoder("The gateway stores no prompts. A server of the same contract gets the field."),
  background: refused("responses are not made in the background", oneOf(false)),
  max_tool_calls: reported(vendorTools),
  service_tier: passed({ isSilent: oneOf("auto", "default") }),
  truncation: reported("Inputs are never truncated.", "disabled"),
  top_logprobs: passed({ isSilent: oneOf(0) }),
  include: {
    ...reported(`Replies have no more parts than "${includedLogprobs}", which is sent as logprobs.`),
    isSilent: (value) => Array.isArray(value) && value.every((part) => part === includedLogprobs)
  },
  image: reported(vendorTools),
  moderation: reported("Nothing is moderated."),
  access_programs: reported("Belongs to the provider's own servers."),
  user: passed(),
  safety_identifier: passed(),
  prompt_cache_key: passed(),
  prompt_cache_options: passed(),
  prompt_cache_retention: passed(),
  client_metadata: ignorable("Agents describe their session and turn to the provider.")
}
