/** Fields of the `messages` contract that the schemas of its requests lack. */
import { isRecord } from "../json.ts"
import { hint, required, type Row, type Table, told, translated } from "./Family.ts"

const vendorOnly = "Belongs to the vendor's own servers."
const sealed = "Only the vendor's models can read it."

/** The mark of the vendor's cache. */
export const cached: Table = { cache_control: hint("Marks what the vendor caches; the reply is the same.") }

const cites = told("Replies of other servers cite nothing.")

export const textFields: Table = { citations: hint("Repeats what a reply said of its sources."), ...cached }

export const storedPicture = required(
  "the upstream cannot read pictures that another server stores; send the picture itself"
)

export const imageFields: Table = { transformations: told("The server decides how it reads pictures."), ...cached }

/** Fields of documents and of search results. */
export const sourceFields: Table = { citations: cites, ...cached }

const toolset = told("Names the vendor's set of tools.")

const isDirect = (value: unknown): boolean => isRecord(value) && value["type"] === "direct"

export const thinkingFields: Table = { signature: hint(sealed) }

export const redactedThinkingFields: Table = { data: hint(sealed) }

export const toolUseFields: Table = {
  caller: { ...told("Names the vendor's tool that called."), isSilent: isDirect },
  toolset_name: toolset,
  ...cached
}

export const toolResultFields: Table = { toolset_name: toolset, ...cached }

/** The kind of a block: its type, or `other` for those that the decoder has no Schema for. */
export const knownOr = (known: ReadonlySet<string>) => ({ type }: { readonly [field: string]: unknown }) =>
  typeof type !== "string" ? undefined : known.has(type) ? type : "other"

/** Blocks and tools of other kinds. The decoder reports those that have no words and those that the caller does not run. */
export const otherKind: { readonly other: Row } = { other: translated() }

/** The kind of a tool. One without a type is the caller's own. */
export const toolKind = ({ type }: { readonly [field: string]: unknown }): string =>
  type === undefined || type === null || type === "custom" ? "custom" : "other"

export const customToolFields: Table = {
  allowed_callers: told("Only the model calls tools."),
  defer_loading: told("All tools are declared at once.", false),
  eager_input_streaming: hint("Arguments are streamed as they come."),
  input_examples: told("Other contracts have no examples of calls."),
  ...cached
}

export const messageFields: Table = {
  clear_at: told("Other contracts keep all messages."),
  output_config: told("Other contracts say it for the whole request.")
}

export const thinkingSettings: Table = { block_binding: told(vendorOnly) }

export const outputSettings: Table = { task_budget: told("The gateway counts no budget over several requests.") }

/** The fields of a request that conversations have in other words. */
export const reworded = ["tool_choice", "thinking", "output_config", "output_format"] as const

/** Fields of a request. */
export const messagesFields: Table = {
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
}

const known: ReadonlySet<string> = new Set([...reworded, ...Object.keys(messagesFields)])

/** True for a field of a request that every server of the contract knows. */
export const isOfContract = (name: string): boolean => known.has(name)
