/**
 * InternLM's form: `<|action_start|><|plugin|>{…}<|action_end|>`.
 */
import { OPEN_BRACE, OPEN_BRACKET } from "../../domain/stream/characters.ts"
import { isLess } from "../fold.ts"
import type { Form } from "../form.ts"
import { skipBlanks } from "../reading.ts"
import { readCallList, readCallObject } from "./jsonCalls.ts"
import { isToken, readToken, takeEndToken } from "./tokens.ts"

const ends = new Set(["action_end"])

export const internlm: Form = {
  name: "action_start",
  opening: { at: "tag", names: ["action_start"] },
  markers: { tokens: ["action_start", "plugin", ...ends] },
  bound: 512,
  *read(context, head) {
    if (head === undefined || !head.isMarked) return
    if (!isLess(yield* skipBlanks(context.source))) return
    if (!isToken(yield* readToken(context), "plugin")) return
    const c = yield* skipBlanks(context.source)
    if (c === OPEN_BRACKET) context.source.pos++
    const outcome = c === OPEN_BRACE
      ? yield* readCallObject(context, "wrapped", ends)
      : c === OPEN_BRACKET
      ? yield* readCallList(context, "wrapped", ends)
      : "none"
    if (outcome === "call") yield* takeEndToken(context, ends)
  }
}
