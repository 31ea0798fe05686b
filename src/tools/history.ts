/**
 * Earlier calls and results as the model is shown them: in the one form that it is asked to write, so that what it copies from
 * its history is a call again.
 */
import type { CallPart, ResultPart } from "../domain/Conversation.ts"
import { disarm } from "./disarm.ts"
import { fold } from "./fold.ts"
import { quoteText } from "./readers/jsonText.ts"

/** The key under which arguments go that are no JSON object, as they were written. */
export const unparsedKey = "_unparsed"

const escapeUnit = (c: number): string => "\\u" + c.toString(16).padStart(4, "0")

/** Characters that a marker could be made of, and their look-alikes. */
const isRisky = (c: number): boolean =>
  c === 60 || c === 62 || c === 124 || c === 96 || c === 126 || c === 38 || (c >= 0xff01 && c <= 0xff5e) ||
  c === 0x2028 || c === 0x2029 ||
  (c > 127 && fold(c) !== c)

/** `[TOOL_CALLS]` and its kin. */
const isBracketMarker = /^\[\/?[A-Z_]{1,24}\]/

/** Escapes a JSON string, with its quotation marks, so that nothing in it looks like a marker. The string stands for the same text. */
const guardString = (json: string): string => {
  let out = ""
  let from = 0
  for (let i = 0; i < json.length; i++) {
    const c = json.charCodeAt(i)
    if (!isRisky(c) && !(c === 91 && isBracketMarker.test(json.slice(i, i + 28)))) continue
    out += json.slice(from, i) + escapeUnit(c)
    from = i + 1
  }
  return out + json.slice(from)
}

const jsonString = /"(?:[^"\\]|\\.)*"/g

/** JSON text with the same value in which nothing looks like a marker. */
export const guardJson = (json: string): string => json.replace(jsonString, guardString)

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
export const renderCall = (call: Pick<CallPart, "name" | "arguments">): string =>
  "<tool_call>\n{\"name\": " + guardString(quoteText(call.name)) + ", \"arguments\": " +
  guardJson(argumentsOf(call.arguments)) + "}\n</tool_call>"

const attribute = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("\"", "&quot;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replace(
    /\s+/g,
    " "
  )

/** A tool's answer with the id and the name of its call. Text parts are shown; others are for the caller to name or to send. */
export const renderResult = (result: ResultPart): string => {
  const text = result.content.flatMap((part) => part._tag === "Text" ? [part.text] : []).join("\n")
  return "<tool_result id=\"" + attribute(result.callId) + "\"" +
    (result.name === undefined ? "" : " name=\"" + attribute(result.name) + "\"") +
    (result.isError ? " error=\"true\"" : "") + ">\n" + disarm(text) + "\n</tool_result>"
}
