/**
 * Imports facts about models from a file of one of the two common community forms: that of models.dev, whose providers have models, and
 * `model_prices_and_context_window.json`, an object of models.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import {
  type Effort,
  effortLevels,
  factNames,
  inOrder,
  longestName,
  modalities,
  type Modality,
  type ModelFacts
} from "../domain/modelFacts.ts"
import { normalizeModelName } from "../domain/models.ts"
import type { ConfigFile } from "./ConfigFile.ts"
import { decodeConfig } from "./decodeConfig.ts"
import { forEachCooperatively, isJsonObject, parseConfig, type RawConfig, stringifyConfig } from "./json.ts"

/** The facts of a file. */
export interface ReadFacts {
  /** Entries of `model_facts`. */
  readonly facts: ReadonlyMap<string, ModelFacts>
  /** The number of entries without a fact, or with a name that an entry before has. */
  readonly left: number
}

/** The entry that documents the second form. */
const example = "sample_spec"

const count = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isInteger(value) && value > 0 && value <= 1_000_000_000 ? value : undefined

const flag = (value: unknown): boolean | undefined => typeof value === "boolean" ? value : undefined

const words = <Word extends string>(known: ReadonlyArray<Word>, value: unknown): ReadonlyArray<Word> =>
  Array.isArray(value) ? known.filter((word) => value.includes(word)) : []

const named = (value: unknown): string | undefined => {
  const name = typeof value === "string" ? value.trim() : ""
  return name === "" || name.length > longestName ? undefined : name
}

type Found = { readonly [Name in keyof ModelFacts]?: ModelFacts[Name] | undefined }

const known = (found: Found): ModelFacts | undefined => {
  const facts = factNames.filter((name) => found[name] !== undefined)
  return facts.length === 0 ? undefined : Object.fromEntries(facts.map((name) => [name, found[name]]))
}

const some = <A>(list: ReadonlyArray<A>): ReadonlyArray<A> | undefined => list.length === 0 ? undefined : list

/** A model of models.dev: https://models.dev/api.json. */
const ofModelsDev = ({ limit, modalities: stated, name, reasoning, tool_call }: RawConfig): Found => {
  const { context, output } = isJsonObject(limit) ? limit : {}
  const { input, output: written } = isJsonObject(stated) ? stated : {}
  return {
    display_name: named(name),
    context_window: count(context),
    max_output_tokens: count(output),
    input: some(words(modalities, input)),
    output: some(words(modalities, written)),
    efforts: reasoning === false ? [] : undefined,
    tools: flag(tool_call)
  }
}

/** The levels that have a field of their own; a model with such a field has those between, too. */
const levelFields = [
  ["none", "supports_none_reasoning_effort"],
  ["minimal", "supports_minimal_reasoning_effort"],
  ["xhigh", "supports_xhigh_reasoning_effort"],
  ["max", "supports_max_reasoning_effort"]
] as const satisfies ReadonlyArray<readonly [Effort, string]>

const effortsOf = (entry: RawConfig): ReadonlyArray<Effort> | undefined => {
  if (entry["supports_reasoning"] === false) return []
  const levels = some(words(effortLevels, entry["reasoning_effort_levels"]))
  if (levels !== undefined || entry["supports_reasoning"] !== true) return levels
  const stated = levelFields.filter(([, field]) => typeof entry[field] === "boolean")
  if (stated.length === 0) return undefined
  return inOrder.efforts([
    "low",
    "medium",
    "high",
    ...stated.flatMap(([level, field]) => entry[field] === true ? [level] : [])
  ])
}

/** Fields that say that a model reads something. A model that says nothing of pictures has an unknown input. */
const inputFields = [
  ["image", "supports_vision"],
  ["pdf", "supports_pdf_input"],
  ["audio", "supports_audio_input"],
  ["video", "supports_video_input"]
] as const satisfies ReadonlyArray<readonly [Modality, string]>

const inputOf = (entry: RawConfig): ReadonlyArray<Modality> | undefined => {
  const listed = words(modalities, entry["supported_modalities"])
  const stated = inputFields.flatMap(([modality, field]) => entry[field] === true ? [modality] : [])
  if (listed.length === 0 && typeof entry["supports_vision"] !== "boolean") return undefined
  return inOrder.modalities(["text", ...listed, ...stated])
}

const ofPriceFile = (entry: RawConfig): Found => ({
  context_window: count(entry["max_input_tokens"]),
  max_output_tokens: count(entry["max_output_tokens"]),
  input: inputOf(entry),
  output: some(words(modalities, entry["supported_output_modalities"])),
  efforts: effortsOf(entry),
  tools: flag(entry["supports_function_calling"]),
  prompt_cache_min_tokens: count(entry["prompt_cache_min_tokens"])
})

/** The entries of a file by their names, in the order in which they count. */
const entriesOf = (file: RawConfig): ReadonlyArray<readonly [name: string, found: Found]> => {
  const providers = Object.values(file).filter((entry) => isJsonObject(entry) && isJsonObject(entry["models"]))
  if (providers.length > 0) {
    return providers.flatMap((provider) =>
      Object.entries((provider as { readonly models: RawConfig }).models)
        .map(([name, model]) => [name, isJsonObject(model) ? ofModelsDev(model) : {}] as const)
    )
  }
  const entries = Object.entries(file).filter(([name]) => name !== example).map(([name, entry]) => {
    if (!isJsonObject(entry)) return { name, isWhole: true, found: {} }
    const provider = `${String(entry["litellm_provider"])}/`
    const isWhole = !name.startsWith(provider)
    return { name: isWhole ? name : name.slice(provider.length), isWhole, found: ofPriceFile(entry) }
  })
  // A name as it stands comes before one whose provider is left out.
  return [...entries.filter(({ isWhole }) => isWhole), ...entries.filter(({ isWhole }) => !isWhole)]
    .map(({ found, name }) => [name, found])
}

/** Reads the facts of a file. Of entries with one name, but for case and blanks, the first one counts. */
export const readModelFacts = Effect.fnUntraced(function*(file: RawConfig): Effect.fn.Return<ReadFacts> {
  const facts = new Map<string, ModelFacts>()
  let left = 0
  yield* forEachCooperatively(entriesOf(file), ([written, found]) => {
    const name = normalizeModelName(written)
    const stated = known(found)
    if (stated === undefined || name === "" || name.includes("*") || facts.has(name)) left++
    else facts.set(name, stated)
  })
  return { facts, left }
})

/** Writes facts into a configuration file, which is made if it is missing, in place of those of the same names. Nothing else in it changes. */
export const saveModelFacts = (file: ConfigFile, facts: ReadFacts["facts"]) =>
  file.exclusively(Effect.gen(function*() {
    const content = yield* file.read
    const raw = Option.isNone(content) ? {} : yield* parseConfig(file.path, content.value.text)
    const before = isJsonObject(raw["model_facts"]) ? raw["model_facts"] : {}
    const kept = Object.entries(before).filter(([name]) => !facts.has(normalizeModelName(name)))
    const next: RawConfig = { ...raw, model_facts: Object.fromEntries([...kept, ...facts] as typeof kept) }
    yield* decodeConfig(next, { source: file.path, duplicates: "keep-first" })
    yield* file.replace(yield* stringifyConfig(next, "indented"))
  }))
