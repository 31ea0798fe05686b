/** Fields of the `messages` contract that the schemas of its requests lack. */
import { isRecord } from "../../domain/json.ts"
import { ignorable, reported, required, type Row, type Table, translated } from "../shared/Family.ts"

const vendorOnly = "Belongs to the provider's own servers."
const sealed = "Only the provider's models can read it."

/** The mark of the vendor's cache. */
export const cached: Table = { cache_control: ignorable("Marks what the provider caches; the reply is the same.") }

const cites = reported("Replies of other servers cite nothing.")

export const textFields: Table = { citations: ignorable("Repeats what a reply said of its sources."), ...cached }

export const storedPicture = required(
  "the upstream cannot read pictures that another server stores; send the picture itself"
)

export const imageFields: Table = { transformations: reported("The server decides how it reads pictures."), ...cached }

/** Fields of documents and of search results. */
export const sourceFields: Table = { citations: cites, ...cached }

const toolset = reported("Names the provider's set of tools.")

const isDirect = (value: unknown): boolean => isRecord(value) && value["type"] === "direct"

export const thinkingFields: Table = { signature: ignorable(sealed) }

export const redactedThinkingFields: Table = { data: ignorable(sealed) }

export const toolUseFields: Table = {
  caller: { ...reported("Names the provider's tool that called."), isSilent: isDirect },
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
  allowed_callers: reported("Only the model calls tools."),
  defer_loading: ignorable(
    "The tool is declared once a `tool_reference` names it, or immediately where the provider's tool search is asked for."
  ),
  eager_input_streaming: ignorable("Arguments are streamed as they come."),
  input_examples: reported("Other contracts have no examples of calls."),
  ...cached
}

export const messageFields: Table = {
  clear_at: reported("Other contracts keep all messages."),
  output_config: reported("Other contracts say it for the whole request.")
}

export const thinkingSettings: Table = { block_binding: reported(vendorOnly) }

export const outputSettings: Table = { task_budget: reported("The gateway counts no budget over several requests.") }

/** The fields of a request that conversations have in other words. */
export const reworded = ["tool_choice", "thinking", "output_config", "output_format"] as const

/** Fields of a request. */
export const messagesFields: Table = {
  ...cached,
  metadata: ignorable("Identifies the client to the provider."),
  service_tier: ignorable("Chooses among the provider's capacities; the reply is the same."),
  inference_geo: reported(vendorOnly),
  speed: reported(vendorOnly, "standard"),
  container: reported(vendorOnly),
  context_management: reported("Conversations are not edited or compacted."),
  compaction: reported("Conversations are not edited or compacted."),
  diagnostics: reported(vendorOnly),
  mcp_servers: reported("The gateway calls no tool servers."),
  fallbacks: reported("The gateway's own failover applies."),
  fallback_credit_token: reported(vendorOnly),
  billing_policy: reported(vendorOnly),
  thread: reported("The gateway stores no threads."),
  user_profile_id: ignorable("Identifies the client to the provider."),
  workspace_id: ignorable("Identifies the client to the provider.")
}

const known: ReadonlySet<string> = new Set([...reworded, ...Object.keys(messagesFields)])

/** True for a field of a request that every server of the contract knows. */
export const isOfContract = (name: string): boolean => known.has(name)
