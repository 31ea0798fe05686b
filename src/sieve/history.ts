/**
 * Earlier calls and results as the model is shown them: in the one form that it is asked to write, so that what it copies from
 * its history is a call again.
 */
import type { CallPart, ResultPart } from "../domain/Conversation.ts"
import {
  AMPERSAND,
  BACKTICK,
  BAR,
  GREATER,
  LESS,
  OPEN_BRACKET,
  SLASH,
  TILDE,
  UNDERSCORE
} from "../domain/stream/characters.ts"
import { atOnce, flatMapSliced, pieceChars, Slice, type Sliced } from "../domain/stream/slices.ts"
import { disarmSliced, resultTag } from "./disarm.ts"
import { fold } from "./fold.ts"
import { quoteText } from "./readers/jsonText.ts"

/** The key under which arguments go that are no JSON object, as they were written. */
export const unparsedKey = "_unparsed"

const escapeUnit = (c: number): string => "\\u" + c.toString(16).padStart(4, "0")

/** Characters that a marker could be made of, and their look-alikes. */
const isRisky = (c: number): boolean =>
  c === LESS || c === GREATER || c === BAR || c === BACKTICK || c === TILDE || c === AMPERSAND ||
  (c >= 0xff01 && c <= 0xff5e) ||
  c === 0x2028 || c === 0x2029 ||
  (c > 127 && fold(c) !== c)

/** `[TOOL_CALLS]` and its kin. */
const isBracketMarker = /^\[\/?[A-Z_]{1,24}\]/

/** A character that a bracket marker's name may begin with, or the slash before it. */
const beginsMarker = (c: number): boolean => c === SLASH || c === UNDERSCORE || (c >= 65 && c <= 90)

/**
 * JSON text with the same value in which nothing looks like a marker. Outside of strings JSON has none of the characters
 * that are escaped, and no bracket before a capital letter.
 */
export function* guardJsonSliced(json: string, slice: Slice): Sliced<string> {
  const pieces: Array<string> = []
  let from = 0
  let counted = 0
  for (let i = 0; i < json.length; i++) {
    if (i - counted >= pieceChars) {
      if (slice.add(0, i - counted)) yield slice.end()
      counted = i
    }
    const c = json.charCodeAt(i)
    const isBracket = c === OPEN_BRACKET && beginsMarker(json.charCodeAt(i + 1)) &&
      isBracketMarker.test(json.slice(i, i + 28))
    if (!isRisky(c) && !isBracket) continue
    pieces.push(json.slice(from, i), escapeUnit(c))
    from = i + 1
  }
  if (slice.add(1, json.length - counted)) yield slice.end()
  return from === 0 ? json : pieces.join("") + json.slice(from)
}

/** `guardJsonSliced` at once. */
export const guardJson = (json: string): string => atOnce(guardJsonSliced(json, new Slice()))

const isObjectText = (text: string): boolean => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

/** The JSON object for a call's arguments; text that is none is kept under `unparsedKey`. */
const argumentsOf = (text: string): string => {
  if (text.trim() === "") return "{}"
  return isObjectText(text) ? text.trim() : "{" + quoteText(unparsedKey) + ": " + quoteText(text) + "}"
}

/** A call as the model writes it. The sieve reads it back: the same name, and arguments with the same value. */
export function* renderCallSliced(call: Pick<CallPart, "name" | "arguments">, slice: Slice): Sliced<string> {
  const name = yield* guardJsonSliced(quoteText(call.name), slice)
  const args = yield* guardJsonSliced(argumentsOf(call.arguments), slice)
  return "<tool_call>\n{\"name\": " + name + ", \"arguments\": " + args + "}\n</tool_call>"
}

/** `renderCallSliced` at once. */
export const renderCall = (call: Pick<CallPart, "name" | "arguments">): string =>
  atOnce(renderCallSliced(call, new Slice()))

const attribute = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("\"", "&quot;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replace(
    /\s+/g,
    " "
  )

/** A tool's answer with the id and the name of its call. Text parts are shown; others are for the caller to name or to send. */
export function* renderResultSliced(result: ResultPart, slice: Slice): Sliced<string> {
  const texts = yield* flatMapSliced(slice, result.content, (part) => part._tag === "Text" ? [part.text] : [])
  return "<" + resultTag + " id=\"" + attribute(result.callId) + "\"" +
    (result.name === undefined ? "" : " name=\"" + attribute(result.name) + "\"") +
    (result.isError ? " error=\"true\"" : "") + ">\n" + (yield* disarmSliced(texts.join("\n"), slice)) +
    "\n</" + resultTag + ">"
}

/** `renderResultSliced` at once. */
export const renderResult = (result: ResultPart): string => atOnce(renderResultSliced(result, new Slice()))
