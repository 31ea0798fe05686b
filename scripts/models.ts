// `npm run models -- FILE SOURCE DATE`: writes the product's table of well-known models, src/domain/knownModels.ts, from a file that
// `model-gateway models import` reads too, and their list prices, src/config/listPrices.ts, if `model-gateway prices import` reads it as
// well. It takes the vendors' own models for conversations. SOURCE and DATE say whose prices these are, and when they were read.
import * as Effect from "effect/Effect"
import { readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import { readModelFacts } from "../src/config/importModelFacts.ts"
import { readPrices } from "../src/config/importPrices.ts"
import { isJsonObject, type RawConfig } from "../src/config/json.ts"
import type { ModelFacts } from "../src/domain/modelFacts.ts"

/** Vendors that serve their own models, by the names of both forms of files. */
const vendors = new Set(
  ("openai anthropic google gemini vertex_ai-language-models mistral xai deepseek moonshot moonshotai zai minimax dashscope " +
    "alibaba cohere cohere_chat").split(" ")
)

const isOfVendor = ([name, entry]: [string, RawConfig[string]]): boolean => {
  if (!isJsonObject(entry)) return false
  if (isJsonObject(entry["models"])) return vendors.has(name)
  return vendors.has(String(entry["litellm_provider"])) && ["chat", "responses"].includes(String(entry["mode"]))
}

/** Names that only a vendor's own service has. The server of an open model sets its window, so these are left out. */
const ofService =
  /^(?:gpt-\d|o[1-9]|claude-|gemini-\d|gemini-(?:pro|flash)|grok-\d|(?:code|dev|magi|mini|mi)stral-(?:\w+-)?latest|deepseek-(?:chat|reasoner)$|qwen\d?(?:\.\d)?-(?:max|plus|flash)$)/

/** Names of models for other purposes, and of a vendor's models at a host. */
const otherPurpose =
  /audio|image|tts|realtime|live|embed|search|transcribe|robotics|computer-use|deep-research|instruct|experimental|beta|gv2|multi-agent|-\d{4}-|preview|cyber|law$|rosalind|\/|:/

/** A release of a model by its date. */
const dated = /-(?:20\d\d-?\d\d-?\d\d|20\d{2}|\d{4})$/

/**
 * Whether the vendor's own server holds a model to a strict schema, as the vendors' documents say of the models that have the feature. Other
 * vendors' entries have the same field for a mode that only writes JSON.
 */
const bindsSchemas = (entry: RawConfig[string] | undefined): boolean => {
  if (!isJsonObject(entry)) return false
  const field = schemaFields.get(String(entry["litellm_provider"]))
  return field !== undefined && entry[field] === true
}
const schemaFields = new Map([
  ["openai", "supports_response_schema"],
  ["gemini", "supports_response_schema"],
  ["vertex_ai-language-models", "supports_response_schema"],
  ["anthropic", "supports_native_structured_output"]
])

const same = (one: ModelFacts, other: ModelFacts | undefined): boolean => JSON.stringify(one) === JSON.stringify(other)

const [, , file, source = "", date = ""] = process.argv
if (file === undefined) throw new Error("name a file of models.dev's form or of model_prices_and_context_window.json's")
const given: unknown = JSON.parse(readFileSync(file, "utf8"))
if (!isJsonObject(given)) throw new Error(`${file} is not a JSON object`)
const ofVendors = Object.fromEntries(Object.entries(given).filter(isOfVendor))
const { facts } = await Effect.runPromise(readModelFacts(ofVendors))
const { prices } = await Effect.runPromise(readPrices(ofVendors))
const chosen = [...facts].filter(([name, stated]) =>
  stated.context_window !== undefined && ofService.test(name) && !otherPurpose.test(name) &&
  !(dated.test(name) && same(stated, facts.get(name.replace(dated, ""))))
).sort(([a], [b]) => a < b ? -1 : 1)
const rows = chosen.map(([name, { context_window, efforts, input, max_output_tokens, output, tools }]) => {
  const row = [
    name,
    context_window,
    max_output_tokens ?? null,
    input?.join(" ") ?? null,
    output?.join(" ") ?? null,
    efforts?.join(" ") ?? null,
    tools ?? null,
    bindsSchemas(ofVendors[name] ?? ofVendors[`gemini/${name}`]) || null
  ]
  while (row.at(-1) === null) row.pop()
  return `  ${JSON.stringify(row).replaceAll(",", ", ")}`
})
writeFileSync(
  path.join(import.meta.dirname, "../src/domain/knownModels.ts"),
  `// dprint-ignore-file
// Made by \`npm run models\`: facts of well-known models, of their vendors' published data.
import type { Effort, Modality, ModelFacts } from "./modelFacts.ts"
import { makeNameTable, type NameTable } from "./nameTable.ts"

/** Name, window, output, input, output in words, efforts, tools, whether the vendor's server binds schemas; an absent or \`null\` one is unknown. */
type Row = readonly [name: string, window: number, most?: number | null, input?: string | null, output?: string | null, efforts?: string | null, tools?: boolean | null, binds?: true]

const rows: ReadonlyArray<Row> = [
${rows.join(",\n")}
]

const words = <Word extends string>(text: string): ReadonlyArray<Word> => text === "" ? [] : text.split(" ") as Array<Word>

/** Well-known models by their names, for those of which no other source says anything. */
export const knownModels: NameTable<ModelFacts> = makeNameTable(rows.map(([name, context_window, most, input, output, efforts, tools, binds]): readonly [string, ModelFacts] => [name, {
  context_window,
  ...(typeof most === "number" ? { max_output_tokens: most } : {}),
  ...(typeof input === "string" ? { input: words<Modality>(input) } : {}),
  ...(typeof output === "string" ? { output: words<Modality>(output) } : {}),
  ...(typeof efforts === "string" ? { efforts: words<Effort>(efforts) } : {}),
  ...(typeof tools === "boolean" ? { tools } : {}),
  ...(binds === true ? { schemas: "binding" } : {})
}]))
`
)
const withoutVendor = new Map(
  Object.entries(prices).map(([name, price]) => [name.slice(name.lastIndexOf("/") + 1), price])
)
const priced = chosen.flatMap(([name]) => {
  const price = prices[name] ?? withoutVendor.get(name)
  return price === undefined ? [] : [[name, price]]
})
console.log(`${rows.length} models, ${priced.length} with prices`)
if (priced.length > 0) {
  if (source === "" || !/^20\d\d-\d\d-\d\d$/.test(date)) {
    throw new Error("name the prices' source, and the day when they were read")
  }
  writeFileSync(
    path.join(import.meta.dirname, "../src/config/listPrices.ts"),
    `// dprint-ignore-file
// Made by \`npm run models\`: list prices of well-known models in US dollars, as ${source} had them on ${date}.
import type { RawConfig } from "./json.ts"

/** The day of the prices. */
export const listedOn = "${date}"

/** Entries of \`prices\` by the vendors' names of models. */
export const listPrices: RawConfig = {
${priced.map(([name, price]) => `  ${JSON.stringify(name)}: ${JSON.stringify(price)}`).join(",\n")}
}
`
  )
}
