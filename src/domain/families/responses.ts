/** Fields, items and tools of the `responses` contract that the schemas of its requests lack. */
import { carried, hint, local, oneOf, refused, refusedByDecoder, type Table, told, translated } from "./Family.ts"

/** The part of a reply that `include` asks for and servers of chat completions have. */
export const includedLogprobs = "message.output_text.logprobs"

const vendorTools = "The gateway runs none of the vendor's tools."

export const itemStatus = hint("Repeats how far a reply came.")

export const messageFields: Table = { phase: hint("Labels an assistant's message for the vendor's own models.") }

/** Fields of calls and of their results. */
export const callFields: Table = {
  async: told("The server awaits every call."),
  caller: hint("Names the vendor's program that made the call.")
}

export const encryptedContent = told("Only the vendor can open it.")

const words = translated("Its words are sent.")

const vendorItems = [
  "additional_tools",
  "apply_patch_call",
  "apply_patch_call_output",
  "code_interpreter_call",
  "compaction",
  "compaction_summary",
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

/** Items without a Schema. */
export const otherItems: Table = {
  ...Object.fromEntries(vendorItems.map((type) => [type, words])),
  compaction_trigger: told("Conversations are not compacted."),
  configuration_update: told("A request has one configuration.")
}

/** Fields of functions and custom tools. */
export const callableFields: Table = {
  allowed_callers: told("The vendor's programs call no tools."),
  async: told("The server awaits every call."),
  defer_loading: told("All tools are declared at once.")
}

export const functionFields: Table = { ...callableFields, output_schema: told("Results are sent as they are.") }

const ranByVendor = told(vendorTools)

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
  generate_summary: hint("The older name of summary. Replies have all reasoning that the server sends."),
  context: told("The server's own setting decides which reasoning of the history counts.", "auto"),
  mode: told("The server has no such modes.", "standard")
}

/** Fields of a request. Some are in its Schema, which checks their values. */
export const responsesFields: Table = {
  stream_options: {
    fate: "modelled",
    fields: new Map([["include_obfuscation", local(hint("The gateway pads no events."))]])
  },
  conversation: refusedByDecoder("The gateway stores no conversations."),
  prompt: refusedByDecoder("The gateway stores no prompts."),
  background: refused("responses are not made in the background", oneOf(false)),
  max_tool_calls: told(vendorTools),
  service_tier: carried({ isSilent: oneOf("auto", "default") }),
  truncation: told("Inputs are never truncated.", "disabled"),
  top_logprobs: carried({ isSilent: oneOf(0) }),
  include: {
    ...told(`Replies have no further parts than "${includedLogprobs}", which is sent as logprobs.`),
    isSilent: (value) => Array.isArray(value) && value.every((part) => part === includedLogprobs)
  },
  context_management: told("Conversations are not compacted."),
  image: told(vendorTools),
  moderation: told("Nothing is moderated."),
  access_programs: told("Belongs to the vendor's own servers."),
  user: carried(),
  safety_identifier: carried(),
  prompt_cache_key: carried(),
  prompt_cache_options: carried(),
  prompt_cache_retention: carried(),
  client_metadata: hint("Agents describe their session and turn to the vendor.")
}
