/** The request of the `responses` contract. */
import {
  carried,
  type Family,
  hint,
  listOf,
  local,
  modelled,
  object,
  objectBy,
  oneOf,
  opaque,
  refused,
  refusedByDecoder,
  told,
  translated
} from "./Family.ts"
import { chatMessages, contentKinds } from "./openai.ts"

/** The part of a reply that `include` asks for and servers of chat completions have. */
export const includedLogprobs = "message.output_text.logprobs"

const vendorTools = "The gateway runs none of the vendor's tools."

const content = listOf(objectBy("type", contentKinds))

const item = { type: modelled, id: modelled, status: hint("Repeats how far a reply came.") }

const message = object({
  ...item,
  role: modelled,
  name: modelled,
  content,
  phase: hint("Labels an assistant's message for the vendor's own models.")
})

const fromPrograms = {
  async: told("The server awaits every call."),
  caller: hint("Names the vendor's program that made the call.")
}

const call = { ...item, call_id: modelled, name: modelled, namespace: modelled, ...fromPrograms }

const output = object({ ...call, output: content })

const thoughts = listOf(object({ type: modelled, text: modelled }))

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

const input = listOf(
  objectBy("type", {
    ...contentKinds,
    ...Object.fromEntries(vendorItems.map((type) => [type, words])),
    "": message,
    message,
    function_call: object({ ...call, arguments: opaque }),
    custom_tool_call: object({ ...call, input: modelled }),
    function_call_output: output,
    custom_tool_call_output: output,
    reasoning: object({
      ...item,
      summary: thoughts,
      content: thoughts,
      encrypted_content: told("Only the vendor can open it.")
    }),
    item_reference: object({ type: modelled, id: modelled }),
    compaction_trigger: told("Conversations are not compacted."),
    configuration_update: told("A request has one configuration.")
  }),
  { isAlone: true }
)

const callable = {
  type: modelled,
  name: modelled,
  description: modelled,
  allowed_callers: told("The vendor's programs call no tools."),
  async: told("The server awaits every call."),
  defer_loading: told("All tools are declared at once.")
}

const callableTools = {
  function: object({
    ...callable,
    parameters: opaque,
    strict: modelled,
    output_schema: told("Results are sent as they are."),
    function: object({ name: modelled, description: modelled, parameters: opaque, strict: modelled })
  }),
  custom: object({
    ...callable,
    format: objectBy("type", {
      text: object({ type: modelled }),
      grammar: object({ type: modelled, syntax: modelled, definition: modelled })
    })
  })
}

const ranByVendor = told(vendorTools)

const declared = translated("Declared as a function.")

const tools = listOf(objectBy("type", {
  ...callableTools,
  namespace: object({
    type: modelled,
    name: modelled,
    description: modelled,
    tools: listOf(objectBy("type", callableTools))
  }),
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
}))

export const responsesFamily: Family = {
  name: "responses",
  vendor: "responses",
  open: true,
  fields: new Map(Object.entries({
    model: modelled,
    input,
    messages: chatMessages,
    instructions: modelled,
    stream: modelled,
    stream_options: object({ include_obfuscation: local(hint("The gateway pads no events.")) }),
    store: modelled,
    previous_response_id: modelled,
    conversation: refusedByDecoder("The gateway stores no conversations."),
    prompt: refusedByDecoder("The gateway stores no prompts."),
    background: refused("responses are not made in the background", oneOf(false)),
    tools,
    tool_choice: opaque,
    parallel_tool_calls: modelled,
    text: object({
      format: objectBy("type", {
        text: object({ type: modelled }),
        json_object: object({ type: modelled }),
        json_schema: object({
          type: modelled,
          name: modelled,
          description: modelled,
          schema: opaque,
          strict: modelled
        })
      }),
      verbosity: carried({ as: "verbosity" })
    }),
    reasoning: object({
      effort: modelled,
      summary: modelled,
      generate_summary: hint("The older name of summary. Replies have all reasoning that the server sends."),
      context: told("The server's own setting decides which reasoning of the history counts.", "auto"),
      mode: told("The server has no such modes.", "standard")
    }),
    max_output_tokens: modelled,
    max_tool_calls: told(vendorTools),
    stop: modelled,
    temperature: modelled,
    top_p: modelled,
    top_k: modelled,
    seed: modelled,
    presence_penalty: modelled,
    frequency_penalty: modelled,
    metadata: opaque,
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
  }))
}
