/**
 * Native models and how a requested name resolves to one (spec "Upstream models", "Messages-style models").
 */
import { type GatewayError, gatewayError } from "./GatewayError.ts"
import { nearest } from "./nearest.ts"

/** A model of the upstream. */
export interface Model {
  readonly id: string
  /** Whether replies carry a reasoning trace; `auto`: as far as the server sends one. */
  readonly reasoning: boolean | "auto"
  /** The upstream searches the web before it answers; its text may contain reference markers. */
  readonly search: boolean
}

/** The four native models, in listing order. */
export const nativeModels: ReadonlyArray<Model> = [
  { id: "upstream-chat", reasoning: false, search: false },
  { id: "upstream-reasoner", reasoning: true, search: false },
  { id: "upstream-chat-search", reasoning: false, search: true },
  { id: "upstream-reasoner-search", reasoning: true, search: true }
]

/** The `created` of every list entry, in Unix seconds: models have no date. */
export const modelsCreated = 1_735_689_600

/** The configured models and aliases. Keys of maps are in the form of `normalizeModelName`; aliases' values are as configured. */
export interface ModelTable {
  readonly models: ReadonlyArray<Model>
  readonly aliases: ReadonlyMap<string, string>
  /** The server's own names that the configuration maps. Absent if the upstream is not a server with names of its own. */
  readonly mapped?: ReadonlyMap<string, Model>
  /** The models that the server lists, as last read. */
  readonly listed?: ReadonlyMap<string, Model>
  /** Names of well-known families resolve to native models; the default is true. */
  readonly families?: boolean
}

/** Families that vendors serve, and families of open models, whose names servers use as their own. */
const vendorFamilies = "gpt- chatgpt- o1 o3 o4 claude- msgcompat- gemini- grok-".split(" ")
const openFamilies = "gpt-oss llama- qwen mistral- command- kimi- glm-".split(" ")

/** The form of servers' own names: with a publisher (`Qwen/…`), a tag (`qwen3:8b`), a size (`-8b`) or a file's ending. */
const serverForm = /[/:]|[-_x]\d+(?:\.\d+)?b(?![a-z0-9])|\.gguf$/

const isOf = (families: ReadonlyArray<string>, name: string): boolean =>
  families.some((prefix) => name.startsWith(prefix))

/** A server's own name of an open model means that model, so another one must not answer for it. */
const namesFamily = ({ families = true, mapped }: Pick<ModelTable, "families" | "mapped">, name: string): boolean => {
  if (!families) return false
  if (!isOf(openFamilies, name)) return isOf(vendorFamilies, name)
  return mapped === undefined || !serverForm.test(name)
}

const reasoningWords = ["reason", "think", "opus", "slow", "codex", "-r1"]
const reasoningFamilies = ["o1", "o3", "o4"]

const native = (reasoning: boolean, search: boolean): Model => nativeModels[(reasoning ? 1 : 0) + (search ? 2 : 0)]!

/** The form in which names are compared: in lower case and without surrounding blanks. */
export const normalizeModelName = (name: string): string => name.trim().toLowerCase()

const findById = (table: ModelTable, name: string): Model | undefined =>
  nativeModels.find((model) => model.id === name) ??
    table.models.find((model) => normalizeModelName(model.id) === name)

/** The server's own model. Without a tag, a name means `latest`, as servers with tags read it. */
const served = ({ listed, mapped }: ModelTable, name: string): Model | undefined => {
  const latest = `${name}:latest`
  return mapped?.get(name) ?? listed?.get(name) ?? mapped?.get(latest) ?? listed?.get(latest)
}

const configured = (table: ModelTable, name: string): Model | undefined => {
  const model = findById(table, name)
  if (model !== undefined) return model
  const target = table.aliases.get(name)
  return target === undefined ? served(table, name) : findById(table, normalizeModelName(target))
}

/** The native model that a name of a well-known family stands for. `name` is in normal form. */
export const familyModel = (table: Pick<ModelTable, "families" | "mapped">, name: string): Model | undefined => {
  if (!namesFamily(table, name)) return undefined
  const reasoning = reasoningWords.some((word) => name.includes(word)) ||
    reasoningFamilies.some((prefix) => name.startsWith(prefix))
  return native(reasoning, name.includes("search"))
}

/** Resolves a requested name: a native or configured id, an alias, the server's own name, then the well-known families. */
export const resolveModel = (table: ModelTable, requested: string): Model | undefined => {
  const name = normalizeModelName(requested)
  return configured(table, name) ?? familyModel(table, name)
}

/** Well-known embedding models, by the names that vendors and servers use. A closed list, since model ids label metrics and usage. */
const embeddingModels: ReadonlyArray<Model> = (
  "text-embedding-3-small text-embedding-3-large text-embedding-ada-002 gemini-embedding-001 embedding-001 " +
  "text-embedding-004 text-embedding-005 text-multilingual-embedding-002 embeddinggemma mistral-embed " +
  "codestral-embed embed-v4.0 embed-english-v3.0 embed-english-light-v3.0 embed-multilingual-v3.0 " +
  "embed-multilingual-light-v3.0 voyage-3 voyage-3-large voyage-3.5 voyage-3.5-lite voyage-code-3 " +
  "jina-embeddings-v3 jina-embeddings-v4 nomic-embed-text nomic-embed-text-v1.5 mxbai-embed-large " +
  "snowflake-arctic-embed snowflake-arctic-embed2 qwen3-embedding all-minilm bge-m3 bge-large"
).split(" ").map((id) => ({ id, reasoning: false, search: false }))

/** The well-known embedding model of a name in normal form. */
export const embeddingModel = (name: string): Model | undefined => embeddingModels.find(({ id }) => id === name)

/** Resolves a name in an embeddings request: a configured model, then a well-known embedding model, then the families. */
export const resolveEmbeddingModel = (table: ModelTable, requested: string): Model | undefined => {
  const name = normalizeModelName(requested)
  return configured(table, name) ?? embeddingModel(name) ?? familyModel(table, name)
}

/** Well-known models of the carried endpoints. A closed list, as that of embedding models is. */
const carriedModels: ReadonlyArray<Model> = (
  "gpt-3.5-turbo-instruct davinci-002 babbage-002 omni-moderation-latest text-moderation-latest text-moderation-stable " +
  "dall-e-2 dall-e-3 gpt-image-1 gpt-image-1-mini gpt-image-1.5 tts-1 tts-1-hd gpt-4o-mini-tts whisper-1 gpt-4o-transcribe " +
  "gpt-4o-mini-transcribe gpt-4o-transcribe-diarize whisper-large-v3 whisper-large-v3-turbo kokoro bge-reranker-v2-m3 " +
  "bge-reranker-large jina-reranker-v2-base-multilingual rerank-v3.5 rerank-english-v3.0 rerank-multilingual-v3.0"
).split(" ").map((id) => ({ id, reasoning: false, search: false }))

/** Resolves a name in a request to a carried endpoint: a configured model, then a well-known one. */
export const resolveCarriedModel = (table: ModelTable, requested: string): Model | undefined => {
  const name = normalizeModelName(requested)
  return configured(table, name) ?? carriedModels.find(({ id }) => id === name)
}

/** The models that the messages style's own names stand for. */
export interface MessagesMapping {
  readonly fast: string
  readonly slow: string
}

/** True for the names of reasoning models in the messages style (spec "Messages style"). */
export const isSlowMessagesModel = (requested: string): boolean => {
  const name = normalizeModelName(requested)
  return name.includes("opus") || name.includes("reasoner") || name.includes("slow")
}

/** The model that `mapping` has for a name of the messages style or its vendor. `name` is in normal form. */
export const mappedModel = (mapping: MessagesMapping, name: string): string | undefined => {
  if (!name.startsWith("msgcompat-") && !name.startsWith("claude-")) return undefined
  return isSlowMessagesModel(name) ? mapping.slow : mapping.fast
}

/**
 * True if a reply in the messages style shows its reasoning: for the names that the spec lists, and for further models whose
 * entry says so or whose caller asked for thinking.
 */
export const showsMessagesThinking = (requested: string, { id, reasoning }: Model, isAsked: boolean): boolean =>
  isSlowMessagesModel(requested) ||
  (!nativeModels.some((native) => native.id === id) && (reasoning === true || (reasoning === "auto" && isAsked)))

/**
 * Resolves a name in the messages style: a configured model, then the names of the style and its vendor by `mapping`, then the other
 * families.
 */
export const resolveMessagesModel = (
  table: ModelTable,
  mapping: MessagesMapping,
  requested: string
): Model | undefined => {
  const name = normalizeModelName(requested)
  const found = configured(table, name)
  if (found !== undefined) return found
  const mapped = mappedModel(mapping, name)
  return mapped === undefined ? familyModel(table, name) : findById(table, normalizeModelName(mapped))
}

/** The table with the models that the server lists. */
export const withListed = (table: ModelTable, names: ReadonlyArray<string>): ModelTable => ({
  ...table,
  listed: new Map(names.map((id) => [normalizeModelName(id), { id, reasoning: "auto", search: false }]))
})

/** The models that are listed: the native ones, then the configured ones. */
export const listedModels = (table: ModelTable): ReadonlyArray<Model> => [...nativeModels, ...table.models]

/** The most names that are suggested for an unknown one. */
const mostSuggested = 3

/** The error for an unknown model name; it suggests the nearest known names. */
export const modelNotFound = (
  requested: string,
  { aliases, listed, models }: ModelTable,
  param = "model"
): GatewayError => {
  const names = [...nativeModels, ...models, ...listed?.values() ?? []].map(({ id }) => id)
  const near = nearest(requested.trim(), [...names, ...aliases.keys()], mostSuggested).map((name) => `"${name}"`)
  const suggestion = near.length === 0 ? "" : `; did you mean ${near.join(" or ")}?`
  return gatewayError("model_not_found", `The model "${requested.slice(0, 200)}" does not exist${suggestion}`, {
    param
  })
}
