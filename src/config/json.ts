/**
 * JSON as the configuration needs it: cut into slices, so that the event loop is never held for long even when there are
 * a hundred thousand accounts.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import { createHash } from "node:crypto"
import { eachSliced } from "../domain/stream/slices.ts"
import { ConfigInvalid } from "./ConfigError.ts"
import { inSlices } from "./inSlices.ts"

/** The configuration as its source has it: any JSON object, unknown fields included. Never changed in place. */
export type RawConfig = Schema.JsonObject

/** True for what JSON calls an object. */
export const isJsonObject = (value: unknown): value is RawConfig =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Runs `f` over `items` in order, in slices; it may return the characters that it handled. */
export const forEachSliced = <A>(
  items: Iterable<A>,
  f: (item: A, index: number) => number | void
): Effect.Effect<void> => Effect.suspend(() => inSlices(eachSliced(items, f)))

/** The parser's message quotes the text, which may hold secrets; only its place is kept. */
const placeOf = (error: unknown): string => {
  const place = error instanceof Error ? /line (\d+) column (\d+)/.exec(error.message) : null
  return place === null ? "" : ` (line ${place[1]}, column ${place[2]})`
}

/** Parses a configuration; `source` names where it comes from. */
export const parseConfig = (source: string, text: string): Effect.Effect<RawConfig, ConfigInvalid> =>
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

/** What a list or an object has in it; the entries of a list have no names. */
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
    yield* forEachSliced(entries, ([name, item], index) => {
      const text = options.value(item, "    ")
      const label = name === undefined ? "" : `${JSON.stringify(name)}${colon}`
      write(`${index === 0 ? "" : ","}${options.indent ? "\n    " : ""}${label}${text}`)
      return text.length
    })
    write(options.indent ? `\n  ${closing}` : closing)
  }
  write(`${close}}`)
})

/** JSON text of a configuration: indented for the file, compact for everything else. */
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

/** A value with the keys of its objects in code unit order, so that equal values have one text. */
const canonical = (value: Schema.Json): Schema.Json => {
  if (Array.isArray(value)) return value.map(canonical)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, canonical(value[key]!)]))
}

/** Canonical JSON of a value: no blanks, sorted keys. */
export const canonicalJson = (value: Schema.Json): string => JSON.stringify(canonical(value))

/** SHA-256, in hex, of a configuration's canonical JSON. */
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

/** Hex digits of the SHA-256 of a text's UTF-8 bytes. */
export const sha256Hex = (text: string): string => createHash("sha256").update(text).digest("hex")
