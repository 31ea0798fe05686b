/**
 * A list of Python calls, `[wx(city="Oslo"), t(z=1)]`, for declared tools only. Arguments are given by keyword; their values are
 * converted to JSON as they stream.
 */
import type { Context, Form } from "../form.ts"
import { isKeyCharacter, isKeyStart, quoteText } from "../readers/jsonText.ts"
import { JsonStretch, RestOfBrackets } from "../readers/stretches.ts"
import type { Reading } from "../reading.ts"
import { END, peek, readWith, skipBlanks, takeUntil } from "../reading.ts"
import type { Outcome } from "./jsonArguments.ts"

const OPEN = 40
const CLOSE = 41
const COMMA = 44
const CLOSE_BRACKET = 93

const isNameEnd = (c: number): boolean => !isKeyCharacter(c) && c !== 46

/** The first character of a value that Python and JSON share a notion of. */
const beginsValue = (c: number): boolean =>
  c === 34 || c === 39 || c === 123 || c === 91 || c === OPEN || c === 45 || (c >= 48 && c <= 57) || c === 84 ||
  c === 70 || c === 78 ||
  c === 116 || c === 102 || c === 110

/** Reads a keyword and its `=`; `undefined` when none stands there. */
function* readKeyword(context: Context): Reading<string | undefined> {
  const { source } = context
  const c = yield* skipBlanks(source)
  if (c === END || !isKeyStart(c)) return undefined
  const keyword = yield* takeUntil(source, isNameEnd)
  if ((yield* skipBlanks(source)) !== 61) return undefined
  source.pos++
  return beginsValue(yield* skipBlanks(source)) ? keyword : undefined
}

/** Reads a call from its opening parenthesis to after its closing one, and for a lone one without arguments the list's end. */
function* readCall(context: Context, name: string, isFirst: boolean): Reading<Outcome | "closed"> {
  const { source } = context
  const startEmpty = (): void => {
    context.start(name)
    context.write("{}")
    context.finish()
  }
  source.pos++
  if ((yield* skipBlanks(source)) === CLOSE) {
    source.pos++
    const c = yield* skipBlanks(source)
    if (isFirst && c === CLOSE_BRACKET) {
      source.pos++
      // `[wx()](…)` is a link.
      if ((yield* peek(source)) === OPEN) return "none"
      startEmpty()
      return "closed"
    }
    if (c !== COMMA && c !== CLOSE_BRACKET) return "none"
    startEmpty()
    return "call"
  }
  let keyword = yield* readKeyword(context)
  if (keyword === undefined) return "none"
  context.start(name)
  let depth = 0
  for (let opening = "{"; keyword !== undefined; opening = ",") {
    context.write(opening + quoteText(keyword) + ":")
    const value: JsonStretch = yield* readWith(new JsonStretch(context.write, "python"))
    depth = value.depth
    if (!value.isComplete) break
    let c = yield* skipBlanks(source)
    if (c === COMMA) {
      source.pos++
      c = yield* skipBlanks(source)
      if (c !== CLOSE) {
        keyword = yield* readKeyword(context)
        continue
      }
    }
    if (c !== CLOSE) break
    source.pos++
    context.write("}")
    context.finish()
    return "call"
  }
  context.cutOff()
  yield new RestOfBrackets(context, depth + 1)
  return "broken"
}

export const pythonic: Form = {
  name: "pythonic",
  opening: { at: "bracket", claims: (word, next, tools) => next === OPEN && tools.has(word) },
  bound: 512,
  *read(context, _, word) {
    const { source } = context
    let name = word
    for (let isFirst = true;; isFirst = false) {
      if ((yield* readCall(context, name, isFirst)) !== "call") return
      const c = yield* skipBlanks(source)
      if (c === END || c === CLOSE_BRACKET) {
        if (c !== END) source.pos++
        context.settle()
        return
      }
      if (c !== COMMA) return
      source.pos++
      if ((yield* skipBlanks(source)) === END) context.settle()
      name = yield* takeUntil(source, isNameEnd)
      if (!context.tools.has(name) || (yield* peek(source)) !== OPEN) return
    }
  }
}
