/**
 * Calls written as JSON objects: members that name the tool and hold its arguments, beside ids and types, at the top or in a nested
 * object. Every form with JSON in it uses this parser.
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
import { quoteText, readKey, readString } from "../readers/jsonTokens.ts"
import { JsonValueReader, SkipToCloser } from "../readers/valueReaders.ts"
import { END, peek, type Reading, readWith, skipBlanks } from "../reading.ts"
import { parametersOf, propertyOf } from "../schema.ts"
import { type ArgumentsEnd, makeCall, type Outcome, readArguments, restOf } from "./jsonArguments.ts"

/**
 * Where an object stands. `wrapped`: inside something that only calls have, so that any name counts and arguments may precede it.
 * `bare`: in plain text, so that the name must be a declared tool's unless another member marks the object as a call.
 */
export type Place = "wrapped" | "bare"

const nameKeys = new Set(["name", "tool_name", "tool", "function_name", "function"])
const argumentKeys = new Set(["arguments", "input", "args", "parameters", "params"])
const nestedKeys = new Set(["function", "function_call", "functionCall", "tool_call", "toolCall"])
const otherKeys = new Set(["id", "call_id", "tool_call_id", "index"])
const wrapperKeys = new Set(["tool_calls", "toolCalls"])
/** The values of `type` that a call may have; true for those that only calls have. */
const callTypes = new Map([
  ["function", false],
  ["tool", false],
  ["function_call", true],
  ["tool_use", true],
  ["tool_call", true]
])

/** The keys that a bare call may have: an object with any other key is data. */
export const bareKeys: ReadonlySet<string> = new Set([
  ...nameKeys,
  ...argumentKeys,
  ...nestedKeys,
  ...otherKeys,
  ...wrapperKeys,
  "type"
])

const ignore = (): void => undefined

/** The object that is being read, as far as it is known. */
interface Candidate {
  readonly place: Place
  name: string | undefined
  /** A member other than the name and the arguments marks it as a call. */
  isMarked: boolean
  /** Arguments that preceded the name. */
  early: string | undefined
  /** It has members that calls do not have. */
  hasOthers: boolean
  /** Its call was started and finished. */
  isFinished: boolean
  /** After `broken`: the number of brackets that are still open. */
  depth: number
}

/** True for `{"name": …, "parameters": {"type": "object", …}}`: it declares a tool instead of calling one. */
const isDeclaration = (context: Context, name: string, key: string): boolean =>
  (key === "type" || key === "properties" || key === "$schema") &&
  propertyOf(parametersOf(context.tools.get(name)), key) === undefined

/** Reads the arguments of `found` from their first character. */
function* readFoundArguments(context: Context, found: Candidate, key: string): Reading<ArgumentsEnd> {
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
    const stretch = new JsonValueReader(context.write)
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

const finishEarly = (context: Context, found: Candidate, name: string, json: string): void => {
  makeCall(context, name, json)
  found.isFinished = true
}

/** Reads the value of a member of `found`; the object continues only after `call`. */
function* readMember(
  context: Context,
  found: Candidate,
  key: string,
  isFirst: boolean,
  depth: number
): Reading<Outcome> {
  const { source } = context
  const c = yield* peek(source)
  if (found.isFinished) {
    const skipped = yield* readWith(new JsonValueReader(ignore))
    if (!skipped.isComplete) return "open"
    context.consume()
    return "call"
  }
  if (isFirst && depth === 1 && found.place === "bare" && wrapperKeys.has(key)) {
    const outcome = yield* readWrapped(context, c)
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
  const skipped = yield* readWith(new JsonValueReader(ignore))
  return skipped.isComplete ? "call" : "none"
}

/** Reads an object's members from its `{`; returns `call` when the object closed. */
function* readMembers(context: Context, found: Candidate, depth: number): Reading<Outcome> {
  const { source } = context
  const unfinished = (): Outcome => found.isFinished ? "open" : "none"
  source.pos++
  for (let isFirst = true;; isFirst = false) {
    let c = yield* skipBlanks(source)
    if (!isFirst && c === COMMA) {
      source.pos++
      c = yield* skipBlanks(source)
    } else if (!isFirst && c !== CLOSE_BRACE) {
      return unfinished()
    }
    if (c === CLOSE_BRACE) {
      source.pos++
      if (found.isFinished) context.consume()
      return "call"
    }
    const key = yield* readKey(source, c)
    if (key === undefined || (yield* skipBlanks(source)) !== COLON) return unfinished()
    source.pos++
    yield* skipBlanks(source)
    const outcome = yield* readMember(context, found, key, isFirst, depth)
    if (outcome !== "call") return outcome
  }
}

/**
 * Reads one call from its `{`. The rest of a `broken` call is dropped: to the end of the object, or, if it stands in a tag, up to and
 * with the one of `closers` that ends it.
 */
export function* readCallObject(context: Context, place: Place, closers?: ReadonlySet<string>): Reading<Outcome> {
  const found: Candidate = {
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
  if (outcome === "open" && found.isFinished && (yield* peek(context.source)) === END) context.consume()
  if (outcome !== "call" || found.isFinished) return outcome
  const { name } = found
  const isCall = name !== undefined && found.early === undefined && !found.hasOthers &&
    (place === "wrapped" || found.isMarked)
  if (!isCall) return "none"
  finishEarly(context, found, name, "{}")
  return "call"
}

/**
 * Reads a list of calls from behind its `[`. If a malformed call leaves the list unreadable, and the list stands in a tag, the rest is
 * dropped up to one of its `closers`, and the list is `broken`.
 */
export function* readCallList(context: Context, place: Place, closers?: ReadonlySet<string>): Reading<Outcome> {
  const { source } = context
  let hasBroken = false
  const giveUp = function*(): Reading<Outcome> {
    if (!hasBroken || closers === undefined) return "open"
    yield new SkipToCloser(context, closers)
    return "broken"
  }
  for (let isFirst = true;; isFirst = false) {
    let c = yield* skipBlanks(source)
    if (!isFirst && c === COMMA) {
      source.pos++
      c = yield* skipBlanks(source)
    } else if (!isFirst && c !== CLOSE_BRACKET && c !== END) {
      return yield* giveUp()
    }
    if (!isFirst && (c === CLOSE_BRACKET || c === END)) {
      if (c === CLOSE_BRACKET) source.pos++
      context.consume()
      return c === END ? "open" : "call"
    }
    const outcome = c === OPEN_BRACE ? yield* readCallObject(context, place) : "none"
    if (outcome === "broken") hasBroken = true
    else if (outcome !== "call") return isFirst ? outcome : yield* giveUp()
  }
}

/** Reads an object or a list of wrapped calls that begins with `c`; `none` for any other character. */
export function* readWrapped(context: Context, c: number, closers?: ReadonlySet<string>): Reading<Outcome> {
  if (c === OPEN_BRACE) return yield* readCallObject(context, "wrapped", closers)
  if (c !== OPEN_BRACKET) return "none"
  context.source.pos++
  return yield* readCallList(context, "wrapped", closers)
}
