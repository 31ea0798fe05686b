/**
 * Native models and how a requested name resolves to one (spec "Upstream models", "Messages-style models").
 */
import { type GatewayError, gatewayError } from "./GatewayError.ts"
import { nearest } from "./nearest.ts"

/** A model as the upstream is asked for it. */
export interface Model {
  readonly id: string
  /** Replies carry a reasoning trace. */
  readonly reasoning: boolean
  /** The upstream searches before it answers; its text may hold reference markers. */
  readonly search: boolean
}

/** The four native models, in the order in which they are listed. */
export const nativeModels: ReadonlyArray<Model> = [
  { id: "upstream-chat", reasoning: false, search: false },
  { id: "upstream-reasoner", reasoning: true, search: false },
  { id: "upstream-chat-search", reasoning: false, search: true },
  { id: "upstream-reasoner-search", reasoning: true, search: true }
]

/** Constant `created` of list entries, Unix seconds: the models have no date of their own. */
export const modelsCreated = 1_735_689_600

/** What model names resolve against: further ids of the upstream, and the operator's aliases (keys and values as configured). */
export interface ModelTable {
  readonly models: ReadonlyArray<Model>
  readonly aliases: ReadonlyMap<string, string>
}

const families = [
  "gpt-",
  "chatgpt-",
  "o1",
  "o3",
  "o4",
  "claude-",
  "msgcompat-",
  "gemini-",
  "llama-",
  "qwen",
  "mistral-",
  "command-",
  "grok-",
  "kimi-",
  "glm-"
]
const reasoningWords = ["reason", "think", "opus", "slow", "codex", "-r1"]
const reasoningFamilies = ["o1", "o3", "o4"]

const native = (reasoning: boolean, search: boolean): Model => nativeModels[(reasoning ? 1 : 0) + (search ? 2 : 0)]!

/** The form in which names are compared: case and surrounding blanks do not matter. */
export const normalizeModelName = (name: string): string => name.trim().toLowerCase()

const findById = (table: ModelTable, name: string): Model | undefined =>
  nativeModels.find((model) => model.id === name) ??
    table.models.find((model) => normalizeModelName(model.id) === name)

const configured = (table: ModelTable, name: string): Model | undefined => {
  const model = findById(table, name)
  if (model !== undefined) return model
  const target = table.aliases.get(name)
  return target === undefined ? undefined : findById(table, normalizeModelName(target))
}

/**
 * Resolves a requested name: a native or configured id, then an alias, then the well-known families. Alias keys of the
 * table must be in normal form.
 */
export const resolveModel = (table: ModelTable, requested: string): Model | undefined => {
  const name = normalizeModelName(requested)
  const found = configured(table, name)
  if (found !== undefined) return found
  if (!families.some((prefix) => name.startsWith(prefix))) return undefined
  const reasoning = reasoningWords.some((word) => name.includes(word)) ||
    reasoningFamilies.some((prefix) => name.startsWith(prefix))
  return native(reasoning, name.includes("search"))
}

/**
 * Well-known models that make embeddings, by the names that their makers and servers have for them. A closed list: a model's id
 * labels metrics and usage.
 */
const embeddingModels: ReadonlyArray<Model> = [
  "text-embedding-3-small",
  "text-embedding-3-large",
  "text-embedding-ada-002",
  "gemini-embedding-001",
  "embedding-001",
  "text-embedding-004",
  "text-embedding-005",
  "text-multilingual-embedding-002",
  "embeddinggemma",
  "mistral-embed",
  "codestral-embed",
  "embed-v4.0",
  "embed-english-v3.0",
  "embed-english-light-v3.0",
  "embed-multilingual-v3.0",
  "embed-multilingual-light-v3.0",
  "voyage-3",
  "voyage-3-large",
  "voyage-3.5",
  "voyage-3.5-lite",
  "voyage-code-3",
  "jina-embeddings-v3",
  "jina-embeddings-v4",
  "nomic-embed-text",
  "nomic-embed-text-v1.5",
  "mxbai-embed-large",
  "snowflake-arctic-embed",
  "snowflake-arctic-embed2",
  "qwen3-embedding",
  "all-minilm",
  "bge-m3",
  "bge-large"
].map((id) => ({ id, reasoning: false, search: false }))

/** Resolves a name where embeddings are asked for: what is configured, then a well-known embedding model, then the families. */
export const resolveEmbeddingModel = (table: ModelTable, requested: string): Model | undefined => {
  const name = normalizeModelName(requested)
  return configured(table, name) ?? embeddingModels.find(({ id }) => id === name) ?? resolveModel(table, name)
}

/** Which native models the messages style's own names stand for. */
export interface MessagesMapping {
  readonly fast: string
  readonly slow: string
}

/** True for names with which the messages style streams its reasoning (spec "Messages style"). */
export const isSlowMessagesModel = (requested: string): boolean => {
  const name = normalizeModelName(requested)
  return name.includes("opus") || name.includes("reasoner") || name.includes("slow")
}

/**
 * Resolves a name in the messages style: what the operator configured first, then the style's own names and those of its
 * vendor's family by `mapping`, then the other families.
 */
export const resolveMessagesModel = (
  table: ModelTable,
  mapping: MessagesMapping,
  requested: string
): Model | undefined => {
  const name = normalizeModelName(requested)
  const found = configured(table, name)
  if (found !== undefined) return found
  if (!name.startsWith("msgcompat-") && !name.startsWith("claude-")) return resolveModel(table, name)
  return findById(table, normalizeModelName(isSlowMessagesModel(name) ? mapping.slow : mapping.fast))
}

/** Every model that is listed: the natives, then the configured ones. */
export const listedModels = (table: ModelTable): ReadonlyArray<Model> => [...nativeModels, ...table.models]

/** Names that are suggested for one that is not there. */
const mostSuggested = 3

/** No model matches the requested name; those of the table that are nearest to it are named. */
export const modelNotFound = (requested: string, { aliases, models }: ModelTable, param = "model"): GatewayError => {
  const names = [...nativeModels, ...models].map(({ id }) => id)
  const near = nearest(requested.trim(), [...names, ...aliases.keys()], mostSuggested).map((name) => `"${name}"`)
  const suggestion = near.length === 0 ? "" : `; did you mean ${near.join(" or ")}?`
  return gatewayError("model_not_found", `The model "${requested.slice(0, 200)}" does not exist${suggestion}`, {
    param
  })
}
