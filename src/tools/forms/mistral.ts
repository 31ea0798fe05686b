/**
 * Mistral's forms: `[TOOL_CALLS][{…}]`, and the newer `[TOOL_CALLS]wx[ARGS]{…}`, perhaps with `[CALL_ID]…` before the arguments.
 */
import type { Context, Form } from "../form.ts"
import type { Reading } from "../reading.ts"
import { peek, skipBlanks, takeLiteral, takeUntil } from "../reading.ts"
import { readNamedArguments } from "./jsonArguments.ts"
import { readCallList, readCallObject } from "./jsonCalls.ts"

const BRACE = 123
const BRACKET = 91

/** Takes `[…]` and gives the word in it. */
function* readMark(context: Context): Reading<string> {
  const { source } = context
  source.pos++
  const word = yield* takeUntil(source, (c) => c === 93 || c <= 32 || c === BRACKET || c === BRACE)
  if ((yield* peek(source)) !== 93) return ""
  source.pos++
  return word
}

export const mistral: Form = {
  name: "[TOOL_CALLS]",
  opening: { at: "bracket", claims: (word, next) => word === "TOOL_CALLS" && next === 93 },
  bound: 512,
  *read(context) {
    const { source } = context
    if (!(yield* takeLiteral(source, "]"))) return
    const c = yield* skipBlanks(source)
    if (c === BRACKET) {
      source.pos++
      yield* readCallList(context, "wrapped")
      return
    }
    if (c === BRACE) {
      yield* readCallObject(context, "wrapped")
      return
    }
    const name = (yield* takeUntil(source, (d) => d === BRACKET || d === BRACE || d === 10)).trim()
    if (name === "") return
    if ((yield* peek(source)) === BRACKET) {
      let mark = yield* readMark(context)
      if (mark === "CALL_ID") {
        yield* takeUntil(source, (d) => d === BRACKET || d <= 32)
        if ((yield* peek(source)) !== BRACKET) return
        mark = yield* readMark(context)
      }
      if (mark !== "ARGS") return
    }
    if ((yield* skipBlanks(source)) !== BRACE) return
    yield* readNamedArguments(context, name)
  }
}
