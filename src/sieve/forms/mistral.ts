/**
 * Mistral: `[TOOL_CALLS][{…}]`, and the newer `[TOOL_CALLS]wx[ARGS]{…}`, with an optional `[CALL_ID]…` before the arguments.
 */
import { CLOSE_BRACKET, NEWLINE, OPEN_BRACE, OPEN_BRACKET, SPACE } from "../../domain/stream/characters.ts"
import type { Context, Form } from "../form.ts"
import { peek, type Reading, skipBlanks, takeLiteral, takeUntil } from "../reading.ts"
import { readNamedArguments } from "./jsonArguments.ts"
import { readWrapped } from "./jsonCalls.ts"

/** Takes `[…]` and returns the word in it; the empty word when the bracket does not close behind one word. */
function* readMark(context: Context): Reading<string> {
  const { source } = context
  source.pos++
  const word = yield* takeUntil(
    source,
    (c) => c === CLOSE_BRACKET || c <= SPACE || c === OPEN_BRACKET || c === OPEN_BRACE
  )
  if ((yield* peek(source)) !== CLOSE_BRACKET) return ""
  source.pos++
  return word
}

export const mistral: Form = {
  name: "[TOOL_CALLS]",
  opening: { at: "bracket", claims: (word, next) => word === "TOOL_CALLS" && next === CLOSE_BRACKET, keys: undefined },
  markers: {},
  bound: 512,
  *read(context) {
    const { source } = context
    if (!(yield* takeLiteral(source, "]"))) return
    const c = yield* skipBlanks(source)
    if (c === OPEN_BRACKET || c === OPEN_BRACE) {
      yield* readWrapped(context, c)
      return
    }
    const name = (yield* takeUntil(source, (d) => d === OPEN_BRACKET || d === OPEN_BRACE || d === NEWLINE)).trim()
    if (name === "") return
    if ((yield* peek(source)) === OPEN_BRACKET) {
      let mark = yield* readMark(context)
      if (mark === "CALL_ID") {
        yield* takeUntil(source, (d) => d === OPEN_BRACKET || d <= SPACE)
        if ((yield* peek(source)) !== OPEN_BRACKET) return
        mark = yield* readMark(context)
      }
      if (mark !== "ARGS") return
    }
    if ((yield* skipBlanks(source)) !== OPEN_BRACE) return
    yield* readNamedArguments(context, name)
  }
}
