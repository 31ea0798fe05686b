// `npm run models -- FILE`: writes the product's table of well-known models, src/domain/knownModels.ts, from a file that
// `model-gateway models import` reads too. It takes the vendors' own models for conversations.
import * as Effect from "effect/Effect"
import { readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import { readModelFacts } from "../src/config/importModelFacts.ts"
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

const same = (one: ModelFacts, other: ModelFacts | undefined): boolean => JSON.stringify(one) === JSON.stringify(other)

const file = process.argv[2]
if (file === undefined) throw new Error("name a file of models.dev's form or of model_prices_and_context_window.json's")
const given: unknown = JSON.parse(readFileSync(file, "utf8"))
if (!isJsonObject(given)) throw new Error(`${file} is not a JSON object`)
const { facts } = await Effect.runPromise(
  readModelFacts(Object.fromEntries(Object.entries(given).filter(isOfVendor)))
)
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
    tools ?? null
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

/** Name, window, output, input, output in words, efforts, tools; an absent or \`null\` one is unknown. */
type Row = readonly [name: string, window: number, most?: number | null, input?: string | null, output?: string | null, efforts?: string | null, tools?: boolean]

const rows: ReadonlyArray<Row> = [
${rows.join(",\n")}
]

const words = <Word extends string>(text: string): ReadonlyArray<Word> => text === "" ? [] : text.split(" ") as Array<Word>

/** Well-known models by their names, for those of which no other source says anything. */
export const knownModels: NameTable<ModelFacts> = makeNameTable(rows.map(([name, context_window, most, input, output, efforts, tools]): readonly [string, ModelFacts] => [name, {
  context_window,
  ...(typeof most === "number" ? { max_output_tokens: most } : {}),
  ...(typeof input === "string" ? { input: words<Modality>(input) } : {}),
  ...(typeof output === "string" ? { output: words<Modality>(output) } : {}),
  ...(typeof efforts === "string" ? { efforts: words<Effort>(efforts) } : {}),
  ...(typeof tools === "boolean" ? { tools } : {})
}]))
`
)
console.log(`${rows.length} models`)
