/**
 * Reads the lists of models of servers: the names, and what each kind of server says about its models. Unreadable parts are no facts.
 *
 * The trained maximum of a model (`n_ctx_train`, `*.context_length` of Ollama) is not the window that the server gives, and is not read.
 */
import { asString } from "../../contracts/shared/json.ts"
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import {
  type Effort,
  effortLevels,
  inOrder,
  longestDescription,
  longestName,
  modalities,
  type Modality,
  type ModelFacts,
  type SchemaBinding
} from "../../domain/modelFacts.ts"
import type { ServersModel } from "../../domain/routes.ts"

/** The most models that are taken from a server's list. */
export const mostListed = 1_000

/** The most tokens that are read as a window or as a limit of output. */
const mostTokens = 1_000_000_000

/** A count of tokens. A server that says 0 says nothing. */
export const asTokens = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isInteger(value) && value > 0 && value <= mostTokens ? value : undefined

const asFlag = (value: unknown): boolean | undefined => typeof value === "boolean" ? value : undefined

/** Text of a server: without surrounding blanks, and cut. */
export const asWords = (value: unknown, longest: number): string | undefined =>
  asString(asString(value)?.trim().slice(0, longest).toWellFormed())

/** Words that servers use for a modality: a file of a model that reads text is a PDF. */
const modalityWords: ReadonlyMap<unknown, Modality> = new Map<unknown, Modality>([
  ...modalities.map((word) => [word, word] as const),
  ["file", "pdf"]
])

const asModalities = (value: unknown): ReadonlyArray<Modality> | undefined => {
  if (!Array.isArray(value)) return undefined
  const known = inOrder.modalities(value.flatMap((word) => modalityWords.get(word) ?? []))
  return known.length === 0 ? undefined : known
}

const levels: ReadonlySet<unknown> = new Set(effortLevels)

const asEfforts = (value: unknown): ReadonlyArray<Effort> | undefined =>
  Array.isArray(value) ? inOrder.efforts(value.filter((word): word is Effort => levels.has(word))) : undefined

const fieldsOf = (value: unknown): JsonRecord => isRecord(value) ? value : {}

/** Facts without those that are unknown. */
export const knownFacts = (
  facts: { readonly [Name in keyof ModelFacts]?: ModelFacts[Name] | undefined }
): ModelFacts | undefined => {
  const known = Object.entries(facts).filter(([, value]) => value !== undefined)
  return known.length === 0 ? undefined : Object.fromEntries(known)
}

/** A kind of server: how its entries look, and what they say. */
interface Kind {
  readonly isOf: (entry: JsonRecord) => boolean
  readonly facts: (entry: JsonRecord) => Parameters<typeof knownFacts>[0]
}

/** Servers that run models with a window of their own choice, by the owner that their lists name. */
const windowSetters: ReadonlySet<unknown> = new Set(["vllm", "sglang", "organization_owner", "llamacpp", "library"])

/** vLLM and SGLang. */
const engine: Kind = {
  isOf: ({ context_length, max_model_len }) => max_model_len !== undefined && context_length === undefined,
  facts: ({ max_model_len }) => ({ context_window: asTokens(max_model_len) })
}

/** OpenRouter and its kind. Its efforts are the documented values of the parameter, which it translates for each model. */
const openRouter: Kind = {
  isOf: ({ context_length }) => context_length !== undefined,
  facts: ({ architecture, context_length, description, efforts, name, supported_parameters, top_provider }) => {
    const { input_modalities, output_modalities } = fieldsOf(architecture)
    const parameters: ReadonlyArray<unknown> | undefined = Array.isArray(supported_parameters)
      ? supported_parameters
      : undefined
    const reasons = parameters?.some((each) => each === "reasoning" || each === "reasoning_effort")
    return {
      context_window: asTokens(context_length),
      max_output_tokens: asTokens(fieldsOf(top_provider)["max_completion_tokens"]),
      input: asModalities(input_modalities),
      output: asModalities(output_modalities),
      efforts: asEfforts(efforts) ?? (reasons === undefined ? undefined : reasons ? ["low", "medium", "high"] : []),
      tools: parameters?.includes("tools"),
      display_name: asWords(name, longestName),
      description: asWords(description, longestDescription)
    }
  }
}

/** Groq. */
const groq: Kind = {
  isOf: ({ context_window }) => context_window !== undefined,
  facts: ({ context_window, max_completion_tokens }) => ({
    context_window: asTokens(context_window),
    max_output_tokens: asTokens(max_completion_tokens)
  })
}

/** Mistral. */
const mistral: Kind = {
  isOf: ({ max_context_length }) => max_context_length !== undefined,
  facts: ({ capabilities, description, max_context_length, name }) => {
    const { function_calling } = fieldsOf(capabilities)
    return {
      context_window: asTokens(max_context_length),
      tools: asFlag(function_calling),
      display_name: asWords(name, longestName),
      description: asWords(description, longestDescription)
    }
  }
}

const supported = (capability: unknown): boolean | undefined => asFlag(fieldsOf(capability)["supported"])

/** The levels of Anthropic's `capabilities`. A model that thinks without levels has unknown ones. */
const anthropicEfforts = ({ effort, thinking }: JsonRecord): ReadonlyArray<Effort> | undefined => {
  if (supported(effort) === true) {
    return effortLevels.filter((level) => supported(fieldsOf(effort)[level]) === true)
  }
  return supported(thinking) === false ? [] : undefined
}

/** Anthropic, whose every model reads text. */
const anthropic: Kind = {
  isOf: ({ max_input_tokens, type }) => max_input_tokens !== undefined || type === "model",
  facts: ({ capabilities, display_name, max_input_tokens, max_tokens }) => {
    const able = fieldsOf(capabilities)
    const binds = supported(able["structured_outputs"])
    const [image, pdf] = [supported(able["image_input"]), supported(able["pdf_input"])]
    return {
      context_window: asTokens(max_input_tokens),
      max_output_tokens: asTokens(max_tokens),
      input: image === undefined || pdf === undefined
        ? undefined
        : ["text", ...image ? ["image"] as const : [], ...pdf ? ["pdf"] as const : []],
      efforts: anthropicEfforts(able),
      schemas: binds === undefined ? undefined : binds ? "binding" : "none",
      display_name: asWords(display_name, longestName)
    }
  }
}

/** The first kind that fits reads an entry. */
const kinds: ReadonlyArray<Kind> = [engine, openRouter, groq, mistral, anthropic]

/** An entry with a usable name. */
const entryOf = (name: unknown, facts: ModelFacts | undefined, setsWindow: boolean): ReadonlyArray<ServersModel> => {
  if (typeof name !== "string" || name.trim() === "" || name.length > longestName) return []
  if (facts === undefined && !setsWindow) return [name]
  return [{ id: name, ...(facts === undefined ? {} : { facts }), ...(setsWindow ? { setsWindow } : {}) }]
}

/** The entries of a list, `{"data": […]}` or the array alone. */
export const entriesOf = (body: unknown): ReadonlyArray<unknown> | undefined => {
  const list: unknown = isRecord(body) ? body["data"] : body
  return Array.isArray(list) ? list : undefined
}

/** What servers do with schemas in one contract, as tests of them have shown, by the owner that their lists name. */
export type TestedSchemas = ReadonlyMap<unknown, SchemaBinding>

/** The models of a list of the OpenAI or the Anthropic form. */
export const listedModels = (
  body: unknown,
  tested: TestedSchemas = new Map()
): ReadonlyArray<ServersModel> | undefined =>
  entriesOf(body)?.flatMap((entry) => {
    if (!isRecord(entry)) return []
    const { id, owned_by: owner } = entry
    const facts = kinds.find(({ isOf }) => isOf(entry))?.facts(entry)
    return entryOf(id, knownFacts({ ...facts, schemas: facts?.schemas ?? tested.get(owner) }), windowSetters.has(owner))
  }).slice(0, mostListed)

/** The models of a list of Google's form, whose names have no collection. */
export const generateModels = (body: unknown): ReadonlyArray<ServersModel> | undefined => {
  const list: unknown = fieldsOf(body)["models"]
  if (!Array.isArray(list)) return undefined
  return list.flatMap((entry: unknown) => {
    const { description, displayName, inputTokenLimit, name, outputTokenLimit, thinking } = fieldsOf(entry)
    const facts = knownFacts({
      context_window: asTokens(inputTokenLimit),
      max_output_tokens: asTokens(outputTokenLimit),
      efforts: thinking === false ? [] : undefined,
      display_name: asWords(displayName, longestName),
      description: asWords(description, longestDescription)
    })
    return entryOf(typeof name === "string" ? name.replace(/^models\//, "") : undefined, facts, false)
  }).slice(0, mostListed)
}
