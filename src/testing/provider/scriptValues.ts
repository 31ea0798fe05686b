/**
 * Values in a script: texts, durations, numbers and `key=value` pairs. Each reader returns `undefined` for invalid text.
 */
import type { Json } from "../../domain/json.ts"

/** The value of JSON text. */
export const readJson = (text: string): Json | undefined => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Plain text, a JSON string, or a JSON array of strings: the pieces. */
export const readText = (rest: string): string | ReadonlyArray<string> => {
  const value = rest.startsWith("\"") || rest.startsWith("[") ? readJson(rest) : undefined
  if (typeof value === "string") return value
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value
  return rest
}

/** `20ms`, `2s`, or a number of milliseconds. */
export const readMillis = (text: string): number | undefined => {
  const match = /^(\d+)(ms|s)?$/.exec(text)
  return match === null ? undefined : Number(match[1]) * (match[2] === "s" ? 1000 : 1)
}

/** A whole number of at most `most`. */
export const readCount = (text: string, most: number): number | undefined => {
  if (!/^\d+$/.test(text)) return undefined
  const value = Number(text)
  return value <= most ? value : undefined
}

/** The first word and the rest. */
export const readWord = (rest: string): readonly [word: string, rest: string] => {
  const match = /^(\S*)\s*([^]*)$/.exec(rest)
  return [match?.[1] ?? "", match?.[2] ?? ""]
}

/** `key=value` pairs; a value with blanks is a JSON string. */
export const readPairs = (rest: string): ReadonlyMap<string, string> | undefined => {
  const pairs = new Map<string, string>()
  const left = rest.replace(/(\w+)=("(?:[^"\\]|\\.)*"|\S+)/g, (_, key: string, value: string) => {
    const text = value.startsWith("\"") ? readJson(value) : value
    pairs.set(key, typeof text === "string" ? text : value)
    return ""
  })
  return left.trim() === "" ? pairs : undefined
}
