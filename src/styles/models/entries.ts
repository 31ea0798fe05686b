/**
 * Entries of the list of models in the forms of OpenAI and of codex. What is unknown is left out.
 */
import type { Effort, Modality, ModelFacts } from "../../domain/modelFacts.ts"
import { type Model, modelsCreated } from "../../domain/models.ts"
import type { CodexModel, ModelEntry } from "./Api.ts"

/** OpenRouter calls a PDF a file. */
const inWords = (modalities: ReadonlyArray<Modality>): ReadonlyArray<string> =>
  modalities.map((each) => each === "pdf" ? "file" : each)

/** The parameters that the facts speak of: a list with one of them missing would say that the model lacks it. */
const parametersOf = ({ efforts, tools }: ModelFacts): ReadonlyArray<string> | undefined =>
  efforts === undefined || tools === undefined
    ? undefined
    : [...tools ? ["tools", "tool_choice"] : [], ...efforts.length > 0 ? ["reasoning", "reasoning_effort"] : []]

/** Fields that have a value. */
type Known<Fields> = { readonly [Name in keyof Fields]?: Exclude<Fields[Name], undefined> }

/** The fields without those that are `undefined`; `undefined` without any. */
const known = <Fields extends object>(fields: Fields): Known<Fields> | undefined => {
  const found = Object.entries(fields).filter(([, value]) => value !== undefined)
  return found.length === 0 ? undefined : Object.fromEntries(found) as Known<Fields>
}

/** An entry in the form of OpenAI, with the names that OpenRouter and vLLM have for what is known. */
export const openAiModel = (
  id: string,
  facts: ModelFacts,
  pricing?: (typeof ModelEntry.Type)["pricing"]
): typeof ModelEntry.Type => ({
  id,
  object: "model",
  created: modelsCreated,
  owned_by: "upstream",
  permission: [],
  ...known({
    name: facts.display_name,
    description: facts.description,
    context_length: facts.context_window,
    max_model_len: facts.context_window,
    architecture: known({
      input_modalities: facts.input && inWords(facts.input),
      output_modalities: facts.output && inWords(facts.output)
    }),
    top_provider: known({
      context_length: facts.context_window,
      max_completion_tokens: facts.max_output_tokens
    }),
    supported_parameters: parametersOf(facts),
    efforts: facts.efforts,
    pricing
  })
})

const descriptions: { readonly [Level in Effort]: string } = {
  none: "Does not think",
  minimal: "Thinks very little",
  low: "Thinks little",
  medium: "Thinks as much as most tasks need",
  high: "Thinks long",
  xhigh: "Thinks very long",
  max: "Thinks as long as it can"
}

/** The levels of a model that reasons, of which nothing else is known. */
const usualLevels: ReadonlyArray<Effort> = ["low", "medium", "high"]

const codexModalities = ["text", "image"] as const

/**
 * An entry for codex. What differs from model to model is what the gateway knows; the rest are the values for a model of any vendor. The
 * fields that switch codex to a dialect of one vendor are never there.
 */
export const codexModel = (
  { id, reasoning }: Model,
  { context_window, description, display_name = id, efforts, input }: ModelFacts,
  priority: number,
  instructions: string
): typeof CodexModel.Type => ({
  slug: id,
  display_name,
  description: description ?? null,
  supported_reasoning_levels: (efforts ?? (reasoning === true ? usualLevels : []))
    .map((effort) => ({ effort, description: descriptions[effort] })),
  shell_type: "unified_exec",
  visibility: "list",
  supported_in_api: true,
  priority,
  availability_nux: null,
  upgrade: null,
  base_instructions: instructions,
  supports_reasoning_summaries: efforts === undefined ? reasoning !== false : efforts.length > 0,
  support_verbosity: false,
  default_verbosity: null,
  apply_patch_tool_type: null,
  truncation_policy: { mode: "tokens", limit: 10_000 },
  supports_parallel_tool_calls: true,
  experimental_supported_tools: [],
  ...(context_window === undefined ? {} : { context_window, max_context_window: context_window }),
  ...(input === undefined ? {} : { input_modalities: codexModalities.filter((each) => input.includes(each)) })
})
