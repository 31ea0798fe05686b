/** The request of the `responses` contract. */
import {
  carried,
  type Family,
  hint,
  local,
  modelled,
  object,
  oneOf,
  refused,
  refusedByDecoder,
  told
} from "./Family.ts"

const vendorTools = "The gateway runs none of the vendor's tools."

export const responsesFamily: Family = {
  name: "responses",
  vendor: "responses",
  open: true,
  fields: new Map(Object.entries({
    model: modelled,
    input: modelled,
    messages: modelled,
    instructions: modelled,
    stream: modelled,
    stream_options: object({ include_obfuscation: local(hint("The gateway pads no events.")) }),
    store: modelled,
    previous_response_id: modelled,
    conversation: refusedByDecoder("The gateway stores no conversations."),
    prompt: refusedByDecoder("The gateway stores no prompts."),
    background: refused("responses are not made in the background", oneOf(false)),
    tools: modelled,
    tool_choice: modelled,
    parallel_tool_calls: modelled,
    text: object({ format: modelled, verbosity: carried({ as: "verbosity" }) }),
    reasoning: object({
      effort: modelled,
      summary: modelled,
      generate_summary: hint("The older name of summary. Replies have all reasoning that the server sends."),
      context: told("The server's own setting decides which reasoning of the history counts.", "auto"),
      mode: told("The server has no such modes.", "standard")
    }),
    max_output_tokens: modelled,
    max_tool_calls: hint(vendorTools),
    stop: modelled,
    temperature: modelled,
    top_p: modelled,
    top_k: modelled,
    seed: modelled,
    presence_penalty: modelled,
    frequency_penalty: modelled,
    metadata: modelled,
    service_tier: carried({ isSilent: oneOf("auto", "default") }),
    truncation: told("Inputs are never truncated.", "disabled"),
    top_logprobs: told("Replies have no probabilities in this style.", 0),
    include: told("Replies have no further parts."),
    context_management: told("Conversations are not compacted."),
    image: told(vendorTools),
    moderation: told("Nothing is moderated."),
    access_programs: told("Belongs to the vendor's own servers."),
    user: hint("Identifies the caller to the vendor."),
    safety_identifier: hint("Identifies the caller to the vendor."),
    prompt_cache_key: hint("Groups requests in the vendor's cache."),
    prompt_cache_options: hint("Belongs to the vendor's cache."),
    prompt_cache_retention: hint("Belongs to the vendor's cache.")
  }))
}
