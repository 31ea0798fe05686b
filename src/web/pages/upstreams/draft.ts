/**
 * How the models and the headers of an upstream are written in its form, and what a change of it needs.
 */
import { type Codec, type Entry, type Json, linesOf } from "../../forms/fields.ts"
import { parsed, record, string } from "../../state/json.ts"

/** A model of the form: its id, and its entry. */
interface ModelLine {
  readonly id: string
  readonly value: Json
}

const nameOf = (value: Json): string => string(typeof value === "string" ? value : record(value)["model"])

const lineOf = (id: string, value: Json): string => {
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

/** The server's names of the models in the text. */
export const namesIn = (models: string): ReadonlySet<string> =>
  new Set(linesOf(models).map((line) => nameOf(modelOf(line).value)))

/** The text with a model of the server added under its own name, or without all models of that name. */
export const withModel = (models: string, name: string, on: boolean): string => {
  const others = linesOf(models).filter((line) => nameOf(modelOf(line).value) !== name)
  return (on ? [...others, `${name} = ${name}`] : others).join("\n")
}

/** Lines of `models` are `id = name`, those of `headers` are `name: value`. */
export const codecs: Readonly<Record<string, Codec>> = {
  models: {
    text: (models) => Object.entries(record(models) as Entry).map(([id, value]) => lineOf(id, value)).join("\n"),
    value: (text) => Object.fromEntries(linesOf(text).map(modelOf).map(({ id, value }) => [id, value]))
  },
  headers: {
    text: (headers) => Object.entries(record(headers)).map(([name, value]) => `${name}: ${string(value)}`).join("\n"),
    value: (text) =>
      Object.fromEntries(
        linesOf(text).map((line) => {
          const split = line.indexOf(":")
          return split === -1 ? [line, ""] : [line.slice(0, split).trim(), line.slice(split + 1).trim()]
        })
      )
  }
}

/** Fields that decide whether the server is reached. */
const connecting: ReadonlySet<string> = new Set([
  "driver",
  "base_url",
  "vendor",
  "region",
  "project",
  "resource",
  "headers",
  "credential_header",
  "proxy",
  "tls",
  "timeouts"
])

/** Whether a change needs a test. */
export const needsTest = (changes: Entry): boolean => Object.keys(changes).some((field) => connecting.has(field))
