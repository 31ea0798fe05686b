/**
 * YAML as JSON values. Both gateways read YAML 1.2 with merge keys, of which JSON is a part.
 *
 * The parser's own messages quote the text, which may have secrets: only the place of an error is shown.
 */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as YAML from "yaml"

/** Values of a file after its aliases are replaced, and how deep they lie. */
const mostValues = 200_000
const deepest = 64

/** A copy without shared parts; `undefined` beyond a bound, which aliases that repeat much or lead to themselves exceed. */
const copied = (value: unknown): Schema.Json | undefined => {
  let left = mostValues
  let isWhole = true
  const copy = (value: unknown, depth: number): Schema.Json => {
    if (--left < 0 || depth > deepest) isWhole = false
    if (!isWhole) return null
    if (Array.isArray(value)) return value.map((item) => copy(item, depth + 1))
    if (typeof value === "object" && value !== null) {
      return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, copy(item, depth + 1)]))
    }
    if (typeof value === "number" && !Number.isFinite(value)) return null
    return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? value : null
  }
  const whole = copy(value, 0)
  return isWhole ? whole : undefined
}

const tooMuch =
  `has more than ${mostValues} values, or more than ${deepest} of them one within the other, with what its aliases stand for`

/** The place of a key that its object has twice, in characters. */
const repeatedKey = (document: YAML.Document.Parsed): number | undefined => {
  let place: number | undefined
  YAML.visit(document, {
    Map: (_, { items }) => {
      const keys = new Set<unknown>()
      for (const { key } of items) {
        if (!YAML.isScalar(key)) continue
        if (keys.has(key.value)) {
          place = key.range?.[0] ?? 0
          return YAML.visit.BREAK
        }
        keys.add(key.value)
      }
      return undefined
    }
  })
  return place
}

/** Parses one document. The failure says what is wrong, with line and column for an error of the syntax. */
export const parseYaml = (text: string): Result.Result<Schema.Json, string> => {
  const lines = new YAML.LineCounter()
  const document = YAML.parseDocument(text, {
    lineCounter: lines,
    logLevel: "error",
    merge: true,
    prettyErrors: false,
    // The parser compares each key with all before it.
    uniqueKeys: false
  })
  const [error] = document.errors
  const wrong = error?.pos[0] ?? repeatedKey(document)
  if (wrong !== undefined) {
    const { col, line } = lines.linePos(wrong)
    return Result.fail(`is no YAML document (line ${line}, column ${col})`)
  }
  let value: unknown
  try {
    value = document.toJS()
  } catch (error) {
    // What the parser throws for aliases. It counts what they stand for, at most a hundred for each of them.
    if (error instanceof ReferenceError) return Result.fail("has an alias without an anchor, or too many aliases")
    throw error
  }
  const whole = copied(value)
  return whole === undefined ? Result.fail(tooMuch) : Result.succeed(whole)
}
