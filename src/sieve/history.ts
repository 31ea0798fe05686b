/**
 * Renders earlier calls and results for the prompt, in the one form that the model is asked to write: what it copies from its history
 * is a call again.
 */
import type { CallPart, ResultPart } from "../domain/Conversation.ts"
import { isRecord } from "../domain/json.ts"
import { isUpper, oneOf, OPEN_BRACKET } from "../domain/stream/characters.ts"
import { type Cooperative, flatMapCooperatively, pieceChars, runSync, Slice } from "../domain/stream/cooperative.ts"
import { disarmCooperatively, resultTag } from "./disarm.ts"
import { fold } from "./fold.ts"
import { quoteText } from "./readers/jsonTokens.ts"

/** The key that holds arguments that are not a JSON object, as the caller wrote them. */
export const unparsedKey = "_unparsed"

const escapeUnit = (c: number): string => "\\u" + c.toString(16).padStart(4, "0")

const isMarkerCharacter = oneOf("<>|`~&")

/** True for the characters of markers, their look-alikes, and Unicode's line separators. */
const isRisky = (c: number): boolean => c > 127 ? fold(c) !== c || c === 0x2028 || c === 0x2029 : isMarkerCharacter(c)

/** `[TOOL_CALLS]` and similar. */
const isBracketMarker = /^\[\/?[A-Z_]{1,24}\]/

const isSlashOrUnderscore = oneOf("/_")

/** True for the first characters of a bracket marker's name, and for the slash before it. */
const beginsMarker = (c: number): boolean => isUpper(c) || isSlashOrUnderscore(c)

/**
 * Returns JSON text with the same value that contains nothing like a marker. The escaped characters, and a bracket before a capital
 * letter, occur in JSON only inside strings.
 */
export function* guardJsonCooperatively(json: string, slice: Slice): Cooperative<string> {
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

/** `guardJsonCooperatively` without pauses. */
export const guardJson = (json: string): string => runSync(guardJsonCooperatively(json, new Slice()))

const isObjectText = (text: string): boolean => {
  try {
    return isRecord(JSON.parse(text))
  } catch {
    return false
  }
}

/** The JSON object for a call's arguments; other text is kept under `unparsedKey`. */
const argumentsOf = (text: string): string => {
  if (text.trim() === "") return "{}"
  return isObjectText(text) ? text.trim() : "{" + quoteText(unparsedKey) + ": " + quoteText(text) + "}"
}

/** Renders a call as the model writes it. The sieve reads it back with the same name and arguments of the same value. */
export function* renderCallCooperatively(
  call: Pick<CallPart, "name" | "arguments">,
  slice: Slice
): Cooperative<string> {
  const name = yield* guardJsonCooperatively(quoteText(call.name), slice)
  const args = yield* guardJsonCooperatively(argumentsOf(call.arguments), slice)
  return "<tool_call>\n{\"name\": " + name + ", \"arguments\": " + args + "}\n</tool_call>"
}

/** A call as the model is asked to write it, in one go. */
export const renderCall = (call: Pick<CallPart, "name" | "arguments">): string =>
  runSync(renderCallCooperatively(call, new Slice()))

const attribute = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("\"", "&quot;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replace(
    /\s+/g,
    " "
  )

/** Renders a tool's result with the id and name of its call. Only text parts are rendered; the caller handles the others. */
export function* renderResultCooperatively(result: ResultPart, slice: Slice): Cooperative<string> {
  const texts = yield* flatMapCooperatively(slice, result.content, (part) => part._tag === "Text" ? [part.text] : [])
  return "<" + resultTag + " id=\"" + attribute(result.callId) + "\"" +
    (result.name === undefined ? "" : " name=\"" + attribute(result.name) + "\"") +
    (result.isError ? " error=\"true\"" : "") + ">\n" + (yield* disarmCooperatively(texts.join("\n"), slice)) +
    "\n</" + resultTag + ">"
}

/** The result of a call as text for the model, in one go. */
export const renderResult = (result: ResultPart): string => runSync(renderResultCooperatively(result, new Slice()))
