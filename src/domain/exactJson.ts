/**
 * JSON that is read to be written again with every digit of its integers: ids of 64 bits are more than a number holds.
 */
import type { Json } from "./Conversation.ts"

/** `JSON` as the language has it since ES2026, as far as the runtime does. */
const { parse, rawJSON }: {
  readonly parse: (
    text: string,
    reviver?: (key: string, value: unknown, context?: { readonly source?: string }) => unknown
  ) => unknown
  readonly rawJSON?: (text: string) => unknown
} = JSON

/** Where there may be an integer that is no safe one. */
const longNumber = /[[:,]\s*-?\d{16}/

/** Characters up to which texts are read exactly: it takes many times longer, and holds up everybody else. */
const longestExact = 1024 * 1024

const exact = (_key: string, value: unknown, context?: { readonly source?: string }): unknown => {
  const source = context?.source
  const isInexact = typeof value === "number" && source !== undefined && String(value) !== source &&
    !Number.isSafeInteger(value) && /^-?\d+$/.test(source)
  return isInexact ? rawJSON?.(source) ?? value : value
}

/** Whether a text of objects and lists may have integers that a number does not hold, and is read exactly. */
export const mayBeInexact = (text: string): boolean => text.length <= longestExact && longNumber.test(text)

/** The value of a JSON text, to be written by `JSON.stringify` and not to be looked into. Throws what `JSON.parse` throws. */
export const exactJson = (text: string): Json => (mayBeInexact(text) ? parse(text, exact) : parse(text)) as Json

/** The same of a call's whole arguments, which are an object. */
export const exactArguments = (text: string): { readonly [key: string]: Json } =>
  exactJson(text) as { readonly [key: string]: Json }
