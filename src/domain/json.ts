/**
 * JSON objects of unknown shape, and JSON that keeps every digit of its integers.
 *
 * Ids of 64 bits exceed the integers that a JavaScript number holds. A reviver could keep the digits, but costs a call for each
 * value. Instead, long integers are found in the text and replaced by marked strings before parsing, and the marked strings
 * become raw JSON afterwards: one look at each token and each value, in slices.
 */
import * as Predicate from "effect/Predicate"
import { type Cooperative, runSync, Slice } from "./stream/cooperative.ts"

/** A JSON value. */
export type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [key: string]: Json }

/** Fields of a JSON object. */
export type JsonFields = { readonly [field: string]: Json }

/** An object as `JSON.parse` returns it; only own properties count. */
export type JsonRecord = { [key: string]: unknown }

/** True for an object; false for arrays and `null`. */
export const isRecord: (value: unknown) => value is JsonRecord = Predicate.isObject

/** `JSON.rawJSON` of ES2026, if the runtime has it. */
const { rawJSON }: { readonly parse: JSON["parse"]; readonly rawJSON?: (text: string) => unknown } = JSON

/** Matches where an integer beyond the safe ones may stand. */
const longNumber = /[[:,]\s*-?\d{16}/

/** The longest text that is read exactly, in characters: it is in memory twice meanwhile. */
const longestExact = 1024 * 1024

/**
 * Random prefix of the placeholder strings, so that caller text cannot collide with one. Created on first use: browsers, where the sieve
 * runs too, have `crypto.randomUUID` only in secure contexts.
 */
let mark = ""

/** The index of the quotation mark that closes the string which opens at `start`. */
const closingQuote = (text: string, start: number): number => {
  for (let end = text.indexOf("\"", start + 1); end !== -1; end = text.indexOf("\"", end + 1)) {
    let escapes = 0
    while (text.charCodeAt(end - 1 - escapes) === 92) escapes++
    if (escapes % 2 === 0) return end
  }
  return text.length
}

/** Replaces long integers by marked strings, and counts them. */
function* markIntegers(text: string, slice: Slice): Cooperative<{ readonly text: string; readonly count: number }> {
  if (mark === "") mark = `${crypto.randomUUID()}:`
  const token = /"|-?[1-9]\d{15,}/g
  const pieces: Array<string> = []
  let from = 0
  let count = 0
  for (let found = token.exec(text); found !== null; found = token.exec(text)) {
    if (slice.add(1)) yield slice.end()
    const [word] = found
    if (word === "\"") {
      token.lastIndex = closingQuote(text, found.index) + 1
      continue
    }
    const end = found.index + word.length
    const isPart = /[\d.eE+-]/.test(text.charAt(found.index - 1)) || /[.eE]/.test(text.charAt(end))
    if (isPart || Number.isSafeInteger(Number(word))) continue
    pieces.push(text.slice(from, found.index), `"${mark}${word}"`)
    from = end
    count++
  }
  return { text: pieces.join("") + text.slice(from), count }
}

const isMarked = (value: unknown): value is string => typeof value === "string" && value.startsWith(mark)

const integerOf = (marked: string): unknown => rawJSON?.(marked.slice(mark.length))

/** Replaces the `count` marked strings below `root` by their integers, in place. */
function* restoreIntegers(root: unknown, count: number, slice: Slice): Cooperative<unknown> {
  const left = [root].filter(Predicate.isObjectOrArray)
  let missing = count
  for (let next = left.pop(); next !== undefined && missing > 0; next = left.pop()) {
    for (const [key, value] of Object.entries(next)) {
      if (slice.add(1)) yield slice.end()
      if (Predicate.isObjectOrArray(value)) left.push(value)
      else if (isMarked(value)) {
        Reflect.set(next, key, integerOf(value))
        missing--
      }
    }
  }
  return root
}

/**
 * Parses the valid JSON of an object or array so that `JSON.stringify` keeps every digit. The result is only for writing: its long
 * integers are raw JSON. Returns `undefined` when `JSON.parse` loses no digit, or when the text is too long.
 */
export function* readExactly(text: string): Cooperative<Json | undefined> {
  if (rawJSON === undefined || text.length > longestExact || !longNumber.test(text)) return undefined
  const slice = new Slice()
  const marked = yield* markIntegers(text, slice)
  if (marked.count === 0) return undefined
  return (yield* restoreIntegers(JSON.parse(marked.text), marked.count, slice)) as Json
}

/** Parses valid JSON for writing; long integers keep every digit. */
export const exactJson = (text: string): Json => runSync(readExactly(text)) ?? (JSON.parse(text) as Json)

/** Parses a call's complete arguments for writing; long integers keep every digit. */
export const exactArguments = (text: string): { readonly [key: string]: Json } =>
  exactJson(text) as { readonly [key: string]: Json }

/** JSON text whose strings are whole Unicode: half a surrogate pair, which other parsers refuse, becomes U+FFFD. */
export const wellFormed = (text: string): string =>
  text.includes("\\ud") || text.includes("\\uD")
    ? text.replace(
      /\\u(?:d[89ab][0-9a-f]{2}\\ud[c-f]|(d[89a-f]))[0-9a-f]{2}|\\./gi,
      (escape, half: string | undefined) => half === undefined ? escape : "\\ufffd"
    )
    : text
