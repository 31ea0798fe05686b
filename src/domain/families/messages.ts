/** The request of the `messages` contract. */
import { type Family, hint, modelled, object, told } from "./Family.ts"

const vendorOnly = "Belongs to the vendor's own servers."

export const messagesFamily: Family = {
  name: "messages",
  vendor: "messages",
  open: true,
  fields: new Map(Object.entries({
    model: modelled,
    messages: modelled,
    system: modelled,
    stream: modelled,
    max_tokens: modelled,
    stop_sequences: modelled,
    temperature: modelled,
    top_p: modelled,
    top_k: modelled,
    tools: modelled,
    tool_choice: modelled,
    thinking: modelled,
    output_config: object({
      effort: modelled,
      format: modelled,
      task_budget: told("The gateway counts no budget over several requests.")
    }),
    output_format: modelled,
    cache_control: hint("Marks what the vendor caches; the reply is the same."),
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
