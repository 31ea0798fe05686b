/**
 * Llama's form: `<|python_tag|>` and then calls in JSON, several with semicolons between them, perhaps an end token.
 */
import { fold } from "../fold.ts"
import type { Form } from "../form.ts"
import { skipBlanks } from "../reading.ts"
import { readCallList, readCallObject } from "./jsonCalls.ts"
import { readToken } from "./tokens.ts"

const endTokens = new Set(["eom_id", "eot_id"])

export const llama: Form = {
  name: "python_tag",
  opening: { at: "tag", claims: (name) => name === "python_tag" },
  bound: 512,
  *read(context, head) {
    if (head === undefined || !head.isMarked) return
    const { source } = context
    let c = yield* skipBlanks(source)
    if (c === 91) {
      source.pos++
      if ((yield* readCallList(context, "wrapped")) !== "call") return
    } else {
      for (;;) {
        if (c !== 123 || (yield* readCallObject(context, "wrapped")) !== "call") return
        c = yield* skipBlanks(source)
        if (c !== 59) break
        source.pos++
        context.settle()
        c = yield* skipBlanks(source)
      }
    }
    if (fold(yield* skipBlanks(source)) !== 60) return
    const token = yield* readToken(context)
    if (token?.isMarked === true && token.isComplete && endTokens.has(token.name)) context.settle()
  }
}
