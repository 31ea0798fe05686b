/**
 * JSON for configurations, processed in slices, so that a hundred thousand accounts do not block the event loop.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import { createHash } from "node:crypto"
import { limitRanges } from "../domain/limits.ts"
import { eachCooperatively } from "../domain/stream/cooperative.ts"
import { type JsonBounds, type Measured, measureJson, mostObjectKeys } from "../domain/stream/measureJson.ts"
import { runCooperatively } from "./clock/cooperative.ts"
import { ConfigInvalid } from "./ConfigError.ts"

/** A raw configuration: any JSON object, unknown fields included. Immutable. */
export type RawConfig = Schema.JsonObject

/** Whether a value is a JSON object (no array, not `null`). */
export const isJsonObject = (value: unknown): value is RawConfig =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Calls `f` for each item in order and yields between slices. `f` may return its cost in characters. */
export const forEachCooperatively = <A>(
  items: Iterable<A>,
  f: (item: A, index: number) => number | void
): Effect.Effect<void> => Effect.suspend(() => runCooperatively(eachCooperatively(items, f)))

/** Extracts the position of a syntax error. The parser's message itself quotes the text, which may hold secrets. */
const placeOf = (error: unknown): string => {
  const place = error instanceof Error ? /line (\d+) column (\d+)/.exec(error.message) : null
  return place === null ? "" : ` (line ${place[1]}, column ${place[2]})`
}

/** Most of what a configuration has: what a request may bring at most. A walk of it goes no deeper than the stack allows. */
const bounds: JsonBounds = { depth: limitRanges.depth.maximum, values: limitRanges.values.maximum }

const measureFault = ({ exceeded, field }: Measured) => {
  const what = field ?? "the configuration"
  const message = exceeded === "depth"
    ? `${what} nests deeper than ${bounds.depth} levels`
    : exceeded === "values"
    ? `${what} has more than ${bounds.values} values`
    : `${what} has an object with more than ${mostObjectKeys} keys`
  return { field: field ?? "", message }
}

/** Parses a configuration. `source` names its origin in errors. */
export const parseConfig = (source: string, text: string): Effect.Effect<RawConfig, ConfigInvalid> =>
  Effect.flatMap(runCooperatively(measureJson(text, bounds)), (measured) =>
    measured.exceeded === undefined
      ? parseMeasured(source, text)
      : Effect.fail(ConfigInvalid.of([measureFault(measured)], source)))

const parseMeasured = (source: string, text: string): Effect.Effect<RawConfig, ConfigInvalid> =>
  Effect.flatMap(
    Effect.try({
      try: (): unknown => JSON.parse(text),
      catch: (error) =>
        ConfigInvalid.of([{ field: "", message: `the configuration is not valid JSON${placeOf(error)}` }], source)
    }),
    (value) =>
      isJsonObject(value)
        ? Effect.succeed(value)
        : Effect.fail(ConfigInvalid.of([{ field: "", message: "the configuration must be a JSON object" }], source))
  )

/** The entries of an object, or of a list without names. */
type Entries = ReadonlyArray<readonly [name: string | undefined, value: Schema.Json]>

const entriesOf = (value: Schema.Json): Entries =>
  Array.isArray(value) ? value.map((item) => [undefined, item]) : isJsonObject(value) ? Object.entries(value) : []

const sortedEntriesOf = (value: Schema.Json): Entries =>
  isJsonObject(value) ? Object.keys(value).sort().map((name) => [name, value[name]!]) : entriesOf(value)

const writeSliced = Effect.fnUntraced(function*(
  raw: RawConfig,
  write: (text: string) => void,
  options: {
    readonly indent: boolean
    readonly entries: (value: Schema.Json) => Entries
    readonly value: (value: Schema.Json, margin: string) => string
  }
) {
  const [line, colon, close] = options.indent ? ["\n  ", ": ", "\n"] : ["", ":", ""]
  let first = true
  write("{")
  for (const [key, value] of Object.entries(raw)) {
    write(`${first ? "" : ","}${line}${JSON.stringify(key)}${colon}`)
    first = false
    const entries = options.entries(value)
    if (entries.length === 0) {
      write(options.value(value, "  "))
      continue
    }
    const [opening, closing] = Array.isArray(value) ? ["[", "]"] : ["{", "}"]
    write(opening)
    yield* forEachCooperatively(entries, ([name, item], index) => {
      const text = options.value(item, "    ")
      const label = name === undefined ? "" : `${JSON.stringify(name)}${colon}`
      write(`${index === 0 ? "" : ","}${options.indent ? "\n    " : ""}${label}${text}`)
      return text.length
    })
    write(options.indent ? `\n  ${closing}` : closing)
  }
  write(`${close}}`)
})

/** JSON text of a configuration: indented for the file, else compact. */
export const stringifyConfig = Effect.fnUntraced(function*(raw: RawConfig, format: "indented" | "compact") {
  const parts: Array<string> = []
  yield* writeSliced(raw, (text) => parts.push(text), {
    indent: format === "indented",
    entries: entriesOf,
    value: format === "compact"
      ? (value) => JSON.stringify(value)
      : (value, margin) => JSON.stringify(value, undefined, 2).replaceAll("\n", `\n${margin}`)
  })
  if (format === "indented") parts.push("\n")
  return parts.join("")
})

/** Sorts object keys by code unit, so that equal values have the same text. */
const canonical = (value: Schema.Json): Schema.Json => {
  if (Array.isArray(value)) return value.map(canonical)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, canonical(value[key]!)]))
}

/** Canonical JSON of a value: no whitespace, sorted keys. */
export const canonicalJson = (value: Schema.Json): string => JSON.stringify(canonical(value))

/** SHA-256 (hex) of the canonical JSON of a configuration. */
export const hashConfig = Effect.fnUntraced(function*(raw: RawConfig) {
  const hash = createHash("sha256")
  const sorted = Object.fromEntries(Object.keys(raw).sort().map((key) => [key, raw[key]!]))
  yield* writeSliced(sorted, (text) => hash.update(text), {
    indent: false,
    entries: sortedEntriesOf,
    value: canonicalJson
  })
  return hash.digest("hex")
})

/** SHA-256 (hex) of a text in UTF-8. */
export const sha256Hex = (text: string): string => createHash("sha256").update(text).digest("hex")
