/** The table of what each contract accepts, from its facts. */
import { contractOfConversation } from "../../src/contracts/contractOf.ts"
import type { HistoryRules, Limits, WordLimit } from "../../src/contracts/shared/limits.ts"
import { code, table } from "./table.ts"

const styles = [["chat", "Chat Completions"], ["responses", "Responses"], ["messages", "Messages"], [
  "generate",
  "Gemini"
]] as const

const word = ({ characters, first, most }: WordLimit): string =>
  [
    most === undefined ? "" : `${most} characters`,
    characters === "" ? "" : code(`[${characters}]`),
    first === characters ? "" : `the first ${code(`[${first}]`)}`
  ].filter((text) => text !== "").join(", ") || "any"

const spelled = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

const count = (most: number | undefined): string =>
  most === undefined ? "any number" : most === 0 ? "none" : String(most)

const texts: { readonly [Name in HistoryRules["refusedTexts"]]: string } = {
  none: "accepted",
  empty: "left out",
  blank: "left out, and blank ones"
}

const rows: ReadonlyArray<readonly [what: string, of: (limits: Limits) => string]> = [
  ["names of tools", ({ toolNames }) => word(toolNames)],
  ["ids of calls", ({ callIds }) => word(callIds)],
  ["two calls with one id", ({ history }) => history.uniqueIds === "in a turn" ? "in different turns" : "never"],
  ["stop sequences", ({ stopSequences }) => count(stopSequences)],
  ["texts of one request for embeddings", ({ texts }) => count(texts)],
  [
    "parameters that exclude each other",
    ({ exclusive }) =>
      exclusive.map(([sent, other]) => `${code(spelled(sent))} before ${code(spelled(other))}`).join(", ") || "none"
  ],
  ["pictures as data", ({ pictures }) => pictures.map(code).join(", ") || "any type"],
  ["a schema without `properties`", ({ needsProperties }) => needsProperties ? "gets an empty list" : "accepted"],
  ["a list without `items` in a schema", ({ needsProperties }) => needsProperties ? "gets `{}`" : "accepted"],
  ["the first turn", ({ history }) => history.begins === "anyhow" ? "any" : history.begins],
  ["turns of the assistant in a row", ({ history }) => history.joinsTurns ? "are one" : "are several"],
  ["empty texts", ({ history }) => texts[history.refusedTexts]]
]

/** The table, with a column for each contract. */
export const limitsTable = (): string => {
  const limits = styles.map(([style]) => contractOfConversation(style)!.facts.limits)
  return table(["", ...styles.map(([, name]) => name)], rows.map(([what, of]) => [what, ...limits.map(of)]))
}
