/**
 * Native models and the names that stand for them (spec "Upstream models", "Messages-style models").
 */
/** A model of the upstream. */
export interface Model {
  readonly id: string
  /** Whether replies carry a reasoning trace; `auto`: as far as the server sends one. */
  readonly reasoning: boolean | "auto"
  /** The upstream searches the web before it answers; its text may contain reference markers. */
  readonly search: boolean
  /** False for a model that takes no pictures. */
  readonly images?: boolean | undefined
}

/** The four native models, in listing order. */
export const nativeModels: ReadonlyArray<Model> = [
  { id: "upstream-chat", reasoning: false, search: false },
  { id: "upstream-reasoner", reasoning: true, search: false },
  { id: "upstream-chat-search", reasoning: false, search: true },
  { id: "upstream-reasoner-search", reasoning: true, search: true }
]

/** Native models by id. */
export const natives: ReadonlyMap<string, Model> = new Map(nativeModels.map((model) => [model.id, model]))

/** The `created` of every list entry, in Unix seconds: models have no date. */
export const modelsCreated = 1_735_689_600

/** Families that vendors serve, and families of open models, whose names servers use as their own. */
const vendorFamilies = "gpt- chatgpt- o1 o3 o4 claude- msgcompat- gemini- grok-".split(" ")
const openFamilies = "gpt-oss llama- qwen mistral- command- kimi- glm-".split(" ")

/** The beginnings of names of well-known families. */
export const familyBeginnings: ReadonlyArray<string> = [...vendorFamilies, ...openFamilies]

/** Names of the open families whose models the vendor alone serves. Clients of the vendor ask for them by default. */
const hostedNames =
  ("qwen-max qwen-plus qwen-turbo qwen-flash qwen-long qwen3-max qwen3-coder-plus qwen3-coder-flash " +
    "mistral-medium mistral-large-latest mistral-small-latest kimi-latest").split(" ")

/** The form of servers' own names: with a publisher (`Qwen/…`), a tag (`qwen3:8b`), a size (`-8b`) or a file's ending. */
const serverForm = /[/:]|[-_x]\d+(?:\.\d+)?b(?![a-z0-9])|\.gguf$/

const isOf = (families: ReadonlyArray<string>, name: string): boolean =>
  families.some((prefix) => name.startsWith(prefix))

/**
 * Whether a name in normal form is one that servers use as their own: an open model's. It means that model, so another model must not
 * answer for it, also if the name is misspelled.
 */
export const isServersOwnName = (name: string): boolean =>
  isOf(openFamilies, name) && (!isOf(hostedNames, name) || serverForm.test(name))

const reasoningWords = ["reason", "think", "opus", "slow", "codex", "-r1"]
const reasoningFamilies = ["o1", "o3", "o4"]

const native = (reasoning: boolean, search: boolean): Model => nativeModels[(reasoning ? 1 : 0) + (search ? 2 : 0)]!

/** The form in which names are compared: in lower case and without surrounding blanks. */
export const normalizeModelName = (name: string): string => name.trim().toLowerCase()

/** The native model that a name of a well-known family stands for. `name` is in normal form. */
export const familyModel = (name: string): Model | undefined => {
  if (!isOf(vendorFamilies, name) && !isOf(openFamilies, name)) return undefined
  const reasoning = reasoningWords.some((word) => name.includes(word)) ||
    reasoningFamilies.some((prefix) => name.startsWith(prefix))
  return native(reasoning, name.includes("search"))
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

/** Well-known models of the relayed endpoints. A closed list, as that of embedding models is. */
const relayedModels: ReadonlyArray<Model> = (
  "gpt-3.5-turbo-instruct davinci-002 babbage-002 omni-moderation-latest text-moderation-latest text-moderation-stable " +
  "dall-e-2 dall-e-3 gpt-image-1 gpt-image-1-mini gpt-image-1.5 tts-1 tts-1-hd gpt-4o-mini-tts whisper-1 gpt-4o-transcribe " +
  "gpt-4o-mini-transcribe gpt-4o-transcribe-diarize whisper-large-v3 whisper-large-v3-turbo kokoro bge-reranker-v2-m3 " +
  "bge-reranker-large jina-reranker-v2-base-multilingual rerank-v3.5 rerank-english-v3.0 rerank-multilingual-v3.0"
).split(" ").map((id) => ({ id, reasoning: false, search: false }))

/** The well-known model of the relayed endpoints with a name in normal form. */
export const relayedModel = (name: string): Model | undefined => relayedModels.find(({ id }) => id === name)

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
 * True if a reply in the messages style shows its reasoning: for the names that the spec lists, and for other models whose
 * entry says so or whose caller asked for thinking.
 */
export const showsMessagesThinking = (requested: string, { id, reasoning }: Model, isAsked: boolean): boolean =>
  isSlowMessagesModel(requested) ||
  (!nativeModels.some((native) => native.id === id) && (reasoning === true || (reasoning === "auto" && isAsked)))
