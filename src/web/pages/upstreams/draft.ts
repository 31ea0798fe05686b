/**
 * The form of an upstream: its texts, and the entry of the configuration that they stand for.
 */
import { parsed, record, string } from "../../state/json.ts"
import type { UpstreamItem } from "../../state/upstreams.ts"

/** A JSON value as the admin API has it. */
export type Json = UpstreamItem["config"][string]
export type Entry = Readonly<Record<string, Json>>

/** The fields of the groups of the form. */
export const limitFields = ["max_inflight", "account_max_inflight", "account_max_queue"] as const
export const timeoutFields = ["connect", "first_byte", "silence"] as const
export const tlsFields = ["ca", "cert", "key", "server_name"] as const

/** The texts of the form. Lines of `models` are `id = name`, those of `headers` are `name: value`. */
export interface Draft {
  readonly driver: string
  readonly base_url: string
  readonly models: string
  readonly headers: string
  readonly proxy: string
  readonly tools: string
  readonly numbers: Readonly<Record<string, string>>
  readonly tls: Readonly<Record<string, string>>
}

/** A model of the form: its id, the server's name, and its further fields. */
interface ModelLine {
  readonly id: string
  readonly value: Json
}

const nameOf = (value: Json): string => string(typeof value === "string" ? value : record(value)["model"])

const lineOf = ({ id, value }: ModelLine): string => {
  const { model: _model, ...fields } = record(value)
  const rest = Object.keys(fields).length === 0 ? "" : ` ${JSON.stringify(fields)}`
  return `${id} = ${nameOf(value)}${rest}`
}

/** A line of models: `id = name`, `id = name {"field": value}`, or `name` for a model with the same id. */
const modelOf = (line: string): ModelLine => {
  const split = line.indexOf("=")
  const text = line.slice(split + 1).trim()
  const id = split === -1 ? text : line.slice(0, split).trim()
  const [, name = "", json = ""] = /^(.*?)\s+(\{.*\})$/.exec(text) ?? []
  const fields = record(parsed(json)) as Entry
  return { id, value: Object.keys(fields).length === 0 ? text : { model: name, ...fields } }
}

const linesOf = (text: string): ReadonlyArray<string> =>
  text.split("\n").map((line) => line.trim()).filter((line) => line !== "")

/** The server's names of the models in the text. */
export const namesIn = (models: string): ReadonlySet<string> =>
  new Set(linesOf(models).map((line) => nameOf(modelOf(line).value)))

/** The text with a model of the server added under its own name, or without all models of that name. */
export const withModel = (models: string, name: string, on: boolean): string => {
  const others = linesOf(models).filter((line) => nameOf(modelOf(line).value) !== name)
  return (on ? [...others, `${name} = ${name}`] : others).join("\n")
}

const textOf = (value: Json | undefined): string =>
  value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value)

const textsOf = (fields: ReadonlyArray<string>, values: unknown): Record<string, string> =>
  Object.fromEntries(fields.map((field) => [field, textOf((record(values) as Entry)[field])]))

/** The form of an entry. */
export const draftOf = (entry: Entry): Draft => ({
  driver: string(entry["driver"]),
  base_url: string(entry["base_url"]),
  models: Object.entries(record(entry["models"]) as Entry).map(([id, value]) => lineOf({ id, value })).join("\n"),
  headers: Object.entries(record(entry["headers"])).map(([name, value]) => `${name}: ${string(value)}`).join("\n"),
  proxy: string(entry["proxy"]),
  tools: string(entry["tools"]),
  numbers: { ...textsOf(limitFields, entry), ...textsOf(timeoutFields, entry["timeouts"]) },
  tls: textsOf(tlsFields, entry["tls"])
})

/** A text that is no number stays as it is, for the gateway to refuse. */
const numberOf = (text: string): Json => Number.isFinite(Number(text)) ? Number(text) : text

const given = (fields: ReadonlyArray<string>, texts: Readonly<Record<string, string>>, read: (text: string) => Json) =>
  Object.fromEntries(fields.map((field) => {
    const text = (texts[field] ?? "").trim()
    return [field, text === "" ? null : read(text)]
  }))

const asIs = (text: string): Json => text

/** The entry of a form. Empty fields are `null`. */
const entryOf = (draft: Draft): Entry => ({
  driver: draft.driver === "" ? null : draft.driver,
  ...given(["base_url", "proxy", "tools"], { base_url: draft.base_url, proxy: draft.proxy, tools: draft.tools }, asIs),
  models: Object.fromEntries(linesOf(draft.models).map(modelOf).map(({ id, value }) => [id, value])),
  headers: Object.fromEntries(
    linesOf(draft.headers).map((line) => {
      const split = line.indexOf(":")
      return split === -1 ? [line, ""] : [line.slice(0, split).trim(), line.slice(split + 1).trim()]
    })
  ),
  ...given(limitFields, draft.numbers, numberOf),
  timeouts: given(timeoutFields, draft.numbers, numberOf),
  tls: given(tlsFields, draft.tls, asIs)
})

const isSame = (one: Json | undefined, other: Json | undefined): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

/** Fields of which only the changed ones are sent. */
const groups: ReadonlySet<string> = new Set(["timeouts", "tls"])

/**
 * The fields that differ from the entry as it was when the form opened. Unchanged fields are left out, so that a concurrent change
 * is not reverted.
 */
export const changesOf = (before: Draft, draft: Draft): Entry => {
  const own = entryOf(before)
  return Object.fromEntries(
    Object.entries(entryOf(draft)).flatMap(([field, value]) => {
      if (isSame(own[field], value)) return []
      if (!groups.has(field)) return [[field, value]]
      const old = record(own[field]) as Entry
      return [[
        field,
        Object.fromEntries(Object.entries(record(value) as Entry).filter(([name, each]) => !isSame(old[name], each)))
      ]]
    })
  )
}

/** Fields that decide whether the server is reached. */
const connecting: ReadonlySet<string> = new Set(["driver", "base_url", "headers", "proxy", "tls", "timeouts"])

/** Whether a change needs a test. */
export const needsTest = (changes: Entry): boolean => Object.keys(changes).some((field) => connecting.has(field))
