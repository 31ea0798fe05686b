/**
 * Facts about models: what they are, how those of several sources become one, and what a route has of the facts of its targets. Pure.
 *
 * A fact that no source has is unknown. Nothing is guessed: a client that believes a wrong number loses its compaction.
 */

/** What a model reads and writes. */
export const modalities = ["text", "image", "pdf", "audio", "video"] as const

export type Modality = (typeof modalities)[number]

/** Levels of reasoning effort, from low to high. `none` is a level of models that can leave reasoning out. */
export const effortLevels = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const

export type Effort = (typeof effortLevels)[number]

/**
 * What a server does with the JSON Schema of a reply, from the least to the most. `none`: it does not read the schema. `advisory`: the model knows it, and its
 * reply may differ. `binding`: every reply fits.
 */
export const schemaBindings = ["none", "advisory", "binding"] as const

export type SchemaBinding = (typeof schemaBindings)[number]

/** The values of facts. The fields have the names of the configuration. */
export interface FactValues {
  /** Tokens of prompt and reply together. */
  readonly context_window: number
  /** The most tokens of one reply. */
  readonly max_output_tokens: number
  readonly input: ReadonlyArray<Modality>
  readonly output: ReadonlyArray<Modality>
  /** From low to high; none at all for a model that does not reason. */
  readonly efforts: ReadonlyArray<Effort>
  /** Whether the model calls tools. */
  readonly tools: boolean
  /** What a strict schema of the reply means to the server. */
  readonly schemas: SchemaBinding
  /** Tokens from which the server keeps the beginning of a prompt. */
  readonly prompt_cache_min_tokens: number
  readonly display_name: string
  readonly description: string
}

/** Facts about a model; an absent one is unknown. */
export interface ModelFacts extends Partial<FactValues> {}

export type FactName = keyof FactValues

/** All facts, in the order of lists. */
export const factNames = [
  "display_name",
  "description",
  "context_window",
  "max_output_tokens",
  "input",
  "output",
  "efforts",
  "tools",
  "schemas",
  "prompt_cache_min_tokens"
] as const satisfies ReadonlyArray<FactName>

/** The most characters of a name and of a description. A longer one of a server is cut. */
export const longestName = 200
export const longestDescription = 4_000

/** Where a fact is from: the entry of a model or a route, the server's list, `model_facts`, the product, or all targets of a route. */
export const factSources = ["entry", "server", "model_facts", "known", "targets"] as const

export type FactSource = (typeof factSources)[number]

/** A fact with its source. */
export interface Sourced<Value> {
  readonly value: Value
  readonly source: FactSource
}

/** Facts with their sources. */
export type SourcedFacts = { readonly [Name in FactName]?: Sourced<FactValues[Name]> }

/** The facts without their sources. */
export const plainFacts = (facts: SourcedFacts): ModelFacts =>
  Object.fromEntries(factNames.flatMap((name) => facts[name] === undefined ? [] : [[name, facts[name].value]]))

/** Merges facts: each comes from the first source that has it. */
export const mergeFacts = (
  sources: ReadonlyArray<readonly [source: FactSource, facts: ModelFacts | undefined]>
): SourcedFacts => {
  const merged: Partial<Record<FactName, Sourced<unknown>>> = {}
  for (const name of factNames) {
    for (const [source, facts] of sources) {
      const value = facts?.[name]
      if (value === undefined) continue
      merged[name] = { value, source }
      break
    }
  }
  return merged as SourcedFacts
}

const within = <Word extends string>(order: ReadonlyArray<Word>, words: Iterable<Word>): ReadonlyArray<Word> => {
  const set = new Set(words)
  return order.filter((word) => set.has(word))
}

/** Words of a list in the order of all of them, each once. */
export const inOrder = {
  modalities: (words: Iterable<Modality>) => within(modalities, words),
  efforts: (words: Iterable<Effort>) => within(effortLevels, words)
}

/** The level in the place of one that is not among those of a model: the highest below it, or else the lowest above it. */
export const nearestEffort = (level: string, levels: ReadonlyArray<string>): Effort | undefined => {
  const at = effortLevels.findIndex((each) => each === level)
  const thinking = effortLevels.filter((each) => each !== "none" && levels.includes(each))
  return thinking.findLast((each) => effortLevels.indexOf(each) <= at) ?? thinking[0]
}

const common = <Word extends string>(lists: ReadonlyArray<ReadonlyArray<Word>>): ReadonlyArray<Word> =>
  lists[0]!.filter((word) => lists.every((list) => list.includes(word)))

const equal = (words: ReadonlyArray<string>): string | undefined =>
  words.every((word) => word === words[0]) ? words[0] : undefined

/** How a fact of a route is made of those of its targets, of which each has it. Routing chooses by window and input. */
const ofTargets: {
  readonly [Name in FactName]: (values: ReadonlyArray<FactValues[Name]>) => ModelFacts[Name]
} = {
  context_window: (windows) => Math.max(...windows),
  max_output_tokens: (counts) => Math.min(...counts),
  input: (lists) => inOrder.modalities(lists.flat()),
  output: common,
  efforts: common,
  tools: (flags) => flags.every((flag) => flag),
  schemas: (words) => schemaBindings.find((word) => words.includes(word)),
  prompt_cache_min_tokens: (counts) => Math.max(...counts),
  display_name: equal,
  description: equal
}

/**
 * The facts of a route: its name and description, then what its targets have. A single target's facts keep their sources. A target without a fact
 * makes it unknown.
 */
export const factsOfRoute = (own: ModelFacts | undefined, targets: ReadonlyArray<SourcedFacts>): SourcedFacts => {
  const [first] = targets
  if (first === undefined || targets.length === 1) return { ...first, ...mergeFacts([["entry", own]]) }
  const all: Partial<Record<FactName, unknown>> = {}
  for (const name of factNames) {
    const values = targets.map((facts) => facts[name]?.value)
    if (values.includes(undefined)) continue
    all[name] = (ofTargets[name] as (values: ReadonlyArray<unknown>) => unknown)(values)
  }
  return mergeFacts([["entry", own], ["targets", all as ModelFacts]])
}

/** The facts without one of them. */
export const withoutFact = (facts: ModelFacts | undefined, name: FactName): ModelFacts | undefined => {
  if (facts?.[name] === undefined) return facts
  const { [name]: _, ...rest } = facts
  return rest
}
