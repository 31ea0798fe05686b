/**
 * Llama's form: `<|python_tag|>` and then calls in JSON, several with semicolons between them, perhaps an end token.
 */
import { OPEN_BRACE, OPEN_BRACKET, SEMICOLON } from "../../domain/stream/characters.ts"
import type { Form } from "../form.ts"
import { skipBlanks } from "../reading.ts"
import { readCallList, readCallObject } from "./jsonCalls.ts"
import { takeEndToken } from "./tokens.ts"

const endTokens = new Set(["eom_id", "eot_id"])

export const llama: Form = {
  name: "python_tag",
  opening: { at: "tag", names: ["python_tag"] },
  markers: { tokens: ["python_tag", ...endTokens] },
  bound: 512,
  *read(context, head) {
    if (head === undefined || !head.isMarked) return
    const { source } = context
    let c = yield* skipBlanks(source)
    if (c === OPEN_BRACKET) {
      source.pos++
      if ((yield* readCallList(context, "wrapped")) !== "call") return
    } else {
      for (;;) {
        const outcome = c === OPEN_BRACE ? yield* readCallObject(context, "wrapped") : "none"
        if (outcome === "none" || outcome === "open") return
        c = yield* skipBlanks(source)
        if (c !== SEMICOLON) break
        source.pos++
        context.settle()
        c = yield* skipBlanks(source)
      }
    }
    yield* takeEndToken(context, endTokens)
  }
}
