/**
 * Calls as lines of keys and values, for declared tools only: `function.name: wx` and `function.arguments: {…}` on the next line;
 * `Action: wx` and `Action Input: {…}`.
 */
import { NEWLINE } from "../../domain/stream/characters.ts"
import type { Form } from "../form.ts"
import { peek, skipBlanks, takeLiteral, takeUntil } from "../reading.ts"
import { readNamedArguments } from "./jsonArguments.ts"

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
