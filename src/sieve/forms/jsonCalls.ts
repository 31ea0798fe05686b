/**
 * Calls written as JSON objects, wherever they stand: members that name the tool and hold its arguments, beside ids and types, at
 * the top or in a nested object.
 */
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE
} from "../../domain/stream/characters.ts"
import type { Context } from "../form.ts"
import { quoteText } from "../readers/jsonText.ts"
import { readKey, readString } from "../readers/jsonTokens.ts"
import { JsonStretch, RestOfTag } from "../readers/stretches.ts"
import type { Reading } from "../reading.ts"
import { END, peek, readWith, skipBlanks } from "../reading.ts"
import { parametersOf, propertyOf } from "../schema.ts"
import type { ArgumentsEnd, Outcome } from "./jsonArguments.ts"
import { readArguments, restOf } from "./jsonArguments.ts"

/** Where an object stands. In a wrapper any name is a call's and arguments may come before it; alone, it must be a declared one. */
export type Place = "wrapped" | "bare"

const nameKeys = new Set(["name", "tool_name", "tool", "function_name", "function"])
const argumentKeys = new Set(["arguments", "input", "args", "parameters", "params"])
const nestedKeys = new Set(["function", "function_call", "functionCall", "tool_call", "toolCall"])
const otherKeys = new Set(["id", "call_id", "tool_call_id", "index"])
const wrapperKeys = new Set(["tool_calls", "toolCalls"])
/** What `type` may say of a call, and whether nothing but a call says so. */
const callTypes = new Map([
  ["function", false],
  ["tool", false],
  ["function_call", true],
  ["tool_use", true],
  ["tool_call", true]
])

/** The keys that a call outside of a wrapper may have: any other shows that an object is none. */
export const bareKeys: ReadonlySet<string> = new Set([
  ...nameKeys,
  ...argumentKeys,
  ...nestedKeys,
  ...otherKeys,
  ...wrapperKeys,
  "type"
])

const ignore = (): void => undefined

interface Found {
  readonly place: Place
  name: string | undefined
  /** Something beside the name and the arguments says that it is a call. */
  isMarked: boolean
  /** Arguments that came before the name. */
  early: string | undefined
  /** It has members that no call has. */
  hasOthers: boolean
  isFinished: boolean
  /** After `broken`: the brackets that are still open. */
  depth: number
}

/** True for `{"name": …, "parameters": {"type": "object", …}}`, which declares a tool and calls none. */
const isDeclaration = (context: Context, name: string, key: string): boolean =>
  (key === "type" || key === "properties" || key === "$schema") &&
  propertyOf(parametersOf(context.tools.get(name)), key) === undefined

/** Reads the arguments of `found` from their first character on. */
function* readFoundArguments(context: Context, found: Found, key: string): Reading<ArgumentsEnd> {
  const { source } = context
  const c = yield* peek(source)
  const { name } = found
  if (name === undefined) {
    if (found.place === "bare") return "none"
    let early = ""
    const [end] = yield* readArguments(context, c, true, context.commit, (piece) => {
      early += piece
    })
    found.early = early
    return end === "complete" ? "complete" : "none"
  }
  if (found.place === "bare" && !found.isMarked && !context.tools.has(name)) return "none"
  let end: ArgumentsEnd
  let depth: number
  if (key === "parameters" && c === OPEN_BRACE && found.place === "bare") {
    source.pos++
    const d = yield* skipBlanks(source)
    const first = d === QUOTE ? yield* readString(source) : undefined
    if (first !== undefined && isDeclaration(context, name, first)) return "none"
    context.start(name)
    const stretch = new JsonStretch(context.write)
    const begun = first === undefined ? "{" : "{" + quoteText(first)
    stretch.json.feed(begun, 0, begun.length)
    yield stretch
    end = stretch.isComplete ? "complete" : "broken"
    depth = stretch.depth
  } else {
    const isDeclared = context.tools.has(name)
    const result = yield* readArguments(context, c, isDeclared, () => context.start(name), context.write)
    end = result[0]
    depth = result[1]
  }
  if (end === "complete") {
    context.finish()
    found.isFinished = true
  } else if (end === "broken") {
    context.cutOff()
    found.depth = depth
  }
  return end
}

const finishEarly = (context: Context, found: Found, name: string, json: string): void => {
  context.start(name)
  context.write(json)
  context.finish()
  found.isFinished = true
}

/** Reads the value of a member of `found`; the reading goes on after `call` only. */
function* readMember(context: Context, found: Found, key: string, isFirst: boolean, depth: number): Reading<Outcome> {
  const { source } = context
  const c = yield* peek(source)
  if (found.isFinished) {
    const skipped = yield* readWith(new JsonStretch(ignore))
    if (!skipped.isComplete) return "open"
    context.settle()
    return "call"
  }
  if (isFirst && depth === 1 && found.place === "bare" && wrapperKeys.has(key)) {
    if (c === OPEN_BRACKET) source.pos++
    const outcome = c === OPEN_BRACKET
      ? yield* readCallList(context, "wrapped")
      : c === OPEN_BRACE
      ? yield* readCallObject(context, "wrapped")
      : "none"
    found.isFinished = outcome === "call" || outcome === "broken"
    return found.isFinished ? "call" : outcome
  }
  if (c === OPEN_BRACE && nestedKeys.has(key)) {
    if (key !== "function") found.isMarked = true
    return yield* readMembers(context, found, depth + 1)
  }
  if (c === QUOTE && nameKeys.has(key)) {
    const name = yield* readString(source)
    if (name === undefined || name === "") return "none"
    found.name ??= name
    if (found.early !== undefined) finishEarly(context, found, found.name, found.early)
    return "call"
  }
  if (argumentKeys.has(key) && found.early === undefined) {
    const end = yield* readFoundArguments(context, found, key)
    if (end === "broken") found.depth += depth
    return end === "complete" ? "call" : end
  }
  if (key === "type" && c === QUOTE) {
    const type = yield* readString(source)
    const isOnlyCall = type === undefined ? undefined : callTypes.get(type)
    if (isOnlyCall === undefined && found.place === "bare") return "none"
    if (isOnlyCall === true) found.isMarked = true
    return type === undefined ? "none" : "call"
  }
  if (!otherKeys.has(key)) {
    if (found.place === "bare") return "none"
    found.hasOthers = true
  }
  const skipped = yield* readWith(new JsonStretch(ignore))
  return skipped.isComplete ? "call" : "none"
}

/** Reads an object's members from its `{`; `call` when it closed. */
function* readMembers(context: Context, found: Found, depth: number): Reading<Outcome> {
  const { source } = context
  const left = (): Outcome => found.isFinished ? "open" : "none"
  source.pos++
  for (let isFirst = true;; isFirst = false) {
    let c = yield* skipBlanks(source)
    if (!isFirst && c === COMMA) {
      source.pos++
      c = yield* skipBlanks(source)
    } else if (!isFirst && c !== CLOSE_BRACE) {
      return left()
    }
    if (c === CLOSE_BRACE) {
      source.pos++
      if (found.isFinished) context.settle()
      return "call"
    }
    const key = yield* readKey(source, c)
    if (key === undefined || (yield* skipBlanks(source)) !== COLON) return left()
    source.pos++
    yield* skipBlanks(source)
    const outcome = yield* readMember(context, found, key, isFirst, depth)
    if (outcome !== "call") return outcome
  }
}

/**
 * Reads one call from its `{`. Of a `broken` one the rest is dropped: to the end of the object, or, where it stands in a tag, with the
 * one of `closers` that ends it.
 */
export function* readCallObject(context: Context, place: Place, closers?: ReadonlySet<string>): Reading<Outcome> {
  const found: Found = {
    place,
    name: undefined,
    isMarked: false,
    early: undefined,
    hasOthers: false,
    isFinished: false,
    depth: 0
  }
  const outcome = yield* readMembers(context, found, 1)
  if (outcome === "broken") {
    yield restOf(context, found.depth, closers)
    return "broken"
  }
  if (outcome === "open" && found.isFinished && (yield* peek(context.source)) === END) context.settle()
  if (outcome !== "call" || found.isFinished) return outcome
  const { name } = found
  const isCall = name !== undefined && found.early === undefined && !found.hasOthers &&
    (place === "wrapped" || found.isMarked)
  if (!isCall) return "none"
  finishEarly(context, found, name, "{}")
  return "call"
}

/**
 * Reads a list of calls from after its `[`. Where a malformed one leaves the list unreadable, and it stands in a tag, the rest is
 * dropped up to one of its `closers`, which is `broken` then.
 */
export function* readCallList(context: Context, place: Place, closers?: ReadonlySet<string>): Reading<Outcome> {
  const { source } = context
  let hasBroken = false
  const left = function*(): Reading<Outcome> {
    if (!hasBroken || closers === undefined) return "open"
    yield new RestOfTag(context, closers)
    return "broken"
  }
  for (let isFirst = true;; isFirst = false) {
    let c = yield* skipBlanks(source)
    if (!isFirst && c === COMMA) {
      source.pos++
      c = yield* skipBlanks(source)
    } else if (!isFirst && c !== CLOSE_BRACKET && c !== END) {
      return yield* left()
    }
    if (!isFirst && (c === CLOSE_BRACKET || c === END)) {
      if (c === CLOSE_BRACKET) source.pos++
      context.settle()
      return c === END ? "open" : "call"
    }
    const outcome = c === OPEN_BRACE ? yield* readCallObject(context, place) : "none"
    if (outcome === "broken") hasBroken = true
    else if (outcome !== "call") return isFirst ? outcome : yield* left()
  }
}
