/**
 * Calls in Python. A list of calls in plain text, `[wx(city="Oslo"), t(z=1)]`, is one of declared tools. Arguments have keywords; their
 * values are converted to JSON as they stream.
 */
import {
  CLOSE_BRACKET,
  CLOSE_PARENTHESIS,
  COMMA,
  EQUALS,
  FULL_STOP,
  oneOf,
  OPEN_BRACE,
  OPEN_BRACKET,
  OPEN_PARENTHESIS
} from "../../domain/stream/characters.ts"
import { isLess } from "../fold.ts"
import type { Context, Form } from "../form.ts"
import { isKeyCharacter, isKeyStart, quoteText } from "../readers/jsonTokens.ts"
import { JsonValueReader } from "../readers/valueReaders.ts"
import { END, peek, type Reading, readWith, skipBlanks, takeUntil } from "../reading.ts"
import { makeCall, type Outcome, restOf } from "./jsonArguments.ts"
import { readCallList, readCallObject } from "./jsonCalls.ts"

const isNameEnd = (c: number): boolean => !isKeyCharacter(c) && c !== FULL_STOP

/** Takes a name, which may contain full stops; the empty name for anything else. */
export const readName = (context: Context): Reading<string> => takeUntil(context.source, isNameEnd)

/** The first characters of values that exist in both Python and JSON. */
export const beginsValue = oneOf("\"'{[(-0123456789TFNtfn")

/** Reads a keyword and its `=`; `undefined` for anything else. */
function* readKeyword(context: Context): Reading<string | undefined> {
  const { source } = context
  const c = yield* skipBlanks(source)
  if (c === END || !isKeyStart(c)) return undefined
  const keyword = yield* takeUntil(source, isNameEnd)
  if ((yield* skipBlanks(source)) !== EQUALS) return undefined
  source.pos++
  return beginsValue(yield* skipBlanks(source)) ? keyword : undefined
}

/**
 * Reads a call's arguments between parentheses, from the opening one, and finishes the call. Returns also the number of brackets left open.
 * After `empty`, which is `()`, the call is still to be made.
 */
export function* readKeywordArguments(
  context: Context,
  name: string
): Reading<readonly ["call" | "broken" | "none" | "empty", number]> {
  const { source } = context
  source.pos++
  if ((yield* skipBlanks(source)) === CLOSE_PARENTHESIS) {
    source.pos++
    return ["empty", 0]
  }
  let keyword = yield* readKeyword(context)
  if (keyword === undefined) return ["none", 0]
  context.start(name)
  let depth = 0
  for (let opening = "{"; keyword !== undefined; opening = ",") {
    context.write(opening + quoteText(keyword) + ":")
    const value: JsonValueReader = yield* readWith(new JsonValueReader(context.write, "python"))
    depth = value.depth
    if (!value.isComplete) break
    let c = yield* skipBlanks(source)
    if (c === COMMA) {
      source.pos++
      c = yield* skipBlanks(source)
      if (c !== CLOSE_PARENTHESIS) {
        keyword = yield* readKeyword(context)
        continue
      }
    }
    if (c !== CLOSE_PARENTHESIS) break
    source.pos++
    context.write("}")
    context.finish()
    return ["call", 0]
  }
  context.cutOff()
  return ["broken", depth]
}

/**
 * Reads calls up to the list's closing bracket, from behind the first one's name. With `closers`, one of which ends the block, any tool
 * counts, and the bracket may be missing; without, the list stands in plain text.
 */
function* readCalls(context: Context, first: string, closers?: ReadonlySet<string>): Reading<Outcome> {
  const { source } = context
  const isWrapped = closers !== undefined
  let name = first
  for (let otherwise: Outcome = "none";; otherwise = "open") {
    if (name === "" || (yield* peek(source)) !== OPEN_PARENTHESIS) return otherwise
    if (!isWrapped && !context.tools.has(name)) return otherwise
    const [outcome, depth] = yield* readKeywordArguments(context, name)
    if (outcome === "none") return otherwise
    if (outcome === "broken") {
      yield restOf(context, depth + 1, closers)
      return outcome
    }
    let c = yield* skipBlanks(source)
    if (outcome === "empty") {
      if (!isWrapped && c !== COMMA && c !== CLOSE_BRACKET) return otherwise
      if (!isWrapped && c === CLOSE_BRACKET && otherwise === "none") {
        source.pos++
        // `[wx()](…)` is a link.
        if ((yield* peek(source)) === OPEN_PARENTHESIS) return "none"
        makeCall(context, name, "{}")
        return "call"
      }
      makeCall(context, name, "{}")
    }
    const hasComma = c === COMMA
    if (hasComma) {
      source.pos++
      c = yield* skipBlanks(source)
    }
    if (c === END || c === CLOSE_BRACKET) {
      if (c !== END) source.pos++
      context.consume()
      return "call"
    }
    if (!hasComma) return isWrapped && isLess(c) ? "call" : "open"
    name = yield* readName(context)
  }
}

/**
 * Reads calls whose first character is `begin`, in Python or JSON, as a list or not. With `closers`, one of which ends the block, any
 * tool counts; without, those count that would in plain text.
 */
export function* readAnyCalls(context: Context, begin: number, closers?: ReadonlySet<string>): Reading<Outcome> {
  const { source } = context
  const place = closers === undefined ? "bare" : "wrapped"
  if (begin === OPEN_BRACE) return yield* readCallObject(context, place, closers)
  if (begin === OPEN_BRACKET) {
    source.pos++
    if ((yield* skipBlanks(source)) === OPEN_BRACE) return yield* readCallList(context, place, closers)
  }
  return yield* readCalls(context, yield* readName(context), closers)
}

export const pythonic: Form = {
  name: "pythonic",
  opening: {
    at: "bracket",
    claims: (word, next, tools) => next === OPEN_PARENTHESIS && tools.has(word),
    keys: undefined
  },
  markers: {},
  bound: 512,
  *read(context, _, word) {
    yield* readCalls(context, word)
  }
}
