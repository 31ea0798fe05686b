/**
 * A list of Python calls, `[wx(city="Oslo"), t(z=1)]`, of declared tools. Arguments have keywords; their values are converted to JSON
 * as they stream.
 */
import {
  CLOSE_BRACKET,
  CLOSE_PARENTHESIS,
  COMMA,
  EQUALS,
  FULL_STOP,
  oneOf,
  OPEN_PARENTHESIS
} from "../../domain/stream/characters.ts"
import type { Context, Form } from "../form.ts"
import { isKeyCharacter, isKeyStart, quoteText } from "../readers/jsonTokens.ts"
import { JsonValueReader, SkipBrackets } from "../readers/valueReaders.ts"
import { END, peek, type Reading, readWith, skipBlanks, takeUntil } from "../reading.ts"
import type { Outcome } from "./jsonArguments.ts"

const isNameEnd = (c: number): boolean => !isKeyCharacter(c) && c !== FULL_STOP

/** The first characters of values that exist in both Python and JSON. */
const beginsValue = oneOf("\"'{[(-0123456789TFNtfn")

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

/** Reads a call from its opening to behind its closing parenthesis; `closed` when a lone call without arguments ended the list too. */
function* readCall(context: Context, name: string, isFirst: boolean): Reading<Outcome | "closed"> {
  const { source } = context
  const callWithoutArguments = (): void => {
    context.start(name)
    context.write("{}")
    context.finish()
  }
  source.pos++
  if ((yield* skipBlanks(source)) === CLOSE_PARENTHESIS) {
    source.pos++
    const c = yield* skipBlanks(source)
    if (isFirst && c === CLOSE_BRACKET) {
      source.pos++
      // `[wx()](…)` is a link.
      if ((yield* peek(source)) === OPEN_PARENTHESIS) return "none"
      callWithoutArguments()
      return "closed"
    }
    if (c !== COMMA && c !== CLOSE_BRACKET) return "none"
    callWithoutArguments()
    return "call"
  }
  let keyword = yield* readKeyword(context)
  if (keyword === undefined) return "none"
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
    return "call"
  }
  context.cutOff()
  yield new SkipBrackets(context, depth + 1)
  return "broken"
}

export const pythonic: Form = {
  name: "pythonic",
  opening: { at: "bracket", claims: (word, next, tools) => next === OPEN_PARENTHESIS && tools.has(word) },
  markers: {},
  bound: 512,
  *read(context, _, word) {
    const { source } = context
    let name = word
    for (let isFirst = true;; isFirst = false) {
      if ((yield* readCall(context, name, isFirst)) !== "call") return
      const c = yield* skipBlanks(source)
      if (c === END || c === CLOSE_BRACKET) {
        if (c !== END) source.pos++
        context.consume()
        return
      }
      if (c !== COMMA) return
      source.pos++
      if ((yield* skipBlanks(source)) === END) context.consume()
      name = yield* takeUntil(source, isNameEnd)
      if (!context.tools.has(name) || (yield* peek(source)) !== OPEN_PARENTHESIS) return
    }
  }
}
