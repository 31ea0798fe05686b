/**
 * JSON objects of unknown shape, and JSON that keeps every digit of its integers.
 *
 * Ids of 64 bits exceed the integers that a JavaScript number holds. A reviver could keep the digits, but costs a call for each
 * value. Instead, long integers are found in the text and replaced by marked strings before parsing, and the marked strings
 * become raw JSON afterwards: one look at each token and each value, in slices.
 */
import * as Predicate from "effect/Predicate"
import type { Json } from "./Conversation.ts"
import { atOnce, Slice, type Sliced } from "./stream/slices.ts"

/** An object as `JSON.parse` returns it; only own properties count. */
export type JsonRecord = { [key: string]: unknown }

/** True for an object; false for arrays and `null`. */
export const isRecord: (value: unknown) => value is JsonRecord = Predicate.isObject

/** `JSON` as the language has it since ES2026, as far as the runtime does. */
const { rawJSON }: { readonly parse: JSON["parse"]; readonly rawJSON?: (text: string) => unknown } = JSON

/** Where there may be an integer that is no safe one. */
const longNumber = /[[:,]\s*-?\d{16}/

/** Characters up to which texts are read so: the text is held twice for it. */
const longestExact = 1024 * 1024

/** Begins what stands for an integer. Nobody else knows it, so that no text of a caller's begins so. */
const mark = `${crypto.randomUUID()}:`

/** Where the string that begins at a place ends. */
const closingQuote = (text: string, start: number): number => {
  for (let end = text.indexOf("\"", start + 1); end !== -1; end = text.indexOf("\"", end + 1)) {
    let escapes = 0
    while (text.charCodeAt(end - 1 - escapes) === 92) escapes++
    if (escapes % 2 === 0) return end
  }
  return text.length
}

/** The text with marks, and how many. */
function* markIntegers(text: string, slice: Slice): Sliced<{ readonly text: string; readonly count: number }> {
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
function* restoreIntegers(root: unknown, count: number, slice: Slice): Sliced<unknown> {
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
 * The value of a JSON text, to be written by `JSON.stringify` and not to be looked into; `undefined` where the usual reading
 * loses no digit, or the text is too long. The text is known to be JSON, of an object or a list.
 */
export function* readExactly(text: string): Sliced<Json | undefined> {
  if (rawJSON === undefined || text.length > longestExact || !longNumber.test(text)) return undefined
  const slice = new Slice()
  const marked = yield* markIntegers(text, slice)
  if (marked.count === 0) return undefined
  return (yield* restoreIntegers(JSON.parse(marked.text), marked.count, slice)) as Json
}

/** The value of a text that is JSON, with every digit, to be written again. */
export const exactJson = (text: string): Json => atOnce(readExactly(text)) ?? (JSON.parse(text) as Json)

/** The same of a call's whole arguments, which are an object. */
export const exactArguments = (text: string): { readonly [key: string]: Json } =>
  exactJson(text) as { readonly [key: string]: Json }
