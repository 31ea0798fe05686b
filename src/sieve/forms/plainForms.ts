/**
 * Calls without a tag or token around them.
 *
 * JSON: `{"tool_calls":[…]}` and similar, `{"name":…,"arguments":…}` of a declared tool, `{"function_call":…}`,
 * `{"type":"tool_use",…}`, and lists of these. Phi's lists begin with a word: `functools[{"name":…,"arguments":…}]`. Lines of keys and
 * values, for declared tools only: `function.name: wx` and `function.arguments: {…}` on the next line; `Action: wx` and
 * `Action Input: {…}`.
 */
import { NEWLINE, OPEN_BRACE } from "../../domain/stream/characters.ts"
import type { Form } from "../form.ts"
import { peek, skipBlanks, takeLiteral, takeUntil } from "../reading.ts"
import { readNamedArguments } from "./jsonArguments.ts"
import { bareKeys, readCallList, readCallObject } from "./jsonCalls.ts"

export const jsonObject: Form = {
  name: "JSON object",
  opening: { at: "brace", keys: bareKeys },
  markers: {},
  bound: 512,
  *read(context) {
    yield* readCallObject(context, "bare")
  }
}

export const jsonList: Form = {
  name: "JSON list",
  opening: { at: "bracket", claims: (word, next) => word === "" && next === OPEN_BRACE, keys: bareKeys },
  markers: {},
  bound: 512,
  *read(context) {
    yield* readCallList(context, "bare")
  }
}

export const functools: Form = {
  name: "functools",
  opening: { at: "line", word: "functools[" },
  markers: {},
  bound: 512,
  *read(context) {
    yield* readCallList(context, "wrapped")
  }
}

const isNewline = (c: number): boolean => c === NEWLINE

const keyValue = (name: string, nameKey: string, argumentsKey: string): Form => ({
  name,
  opening: { at: "line", word: nameKey },
  markers: {},
  bound: 512,
  *read(context) {
    const { source } = context
    const tool = (yield* takeUntil(source, isNewline)).trim()
    if (!context.tools.has(tool) || !isNewline(yield* peek(source))) return
    yield* skipBlanks(source)
    if (!(yield* takeLiteral(source, argumentsKey))) return
    yield* skipBlanks(source)
    yield* readNamedArguments(context, tool)
  }
})

export const functionKeys: Form = keyValue("function.name", "function.name:", "function.arguments:")

export const actionKeys: Form = keyValue("Action", "Action:", "Action Input:")
