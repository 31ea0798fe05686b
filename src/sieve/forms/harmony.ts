/**
 * The harmony form: a message to a function, `<|channel|>commentary to=functions.wx <|constrain|>json<|message|>{…}<|call|>`, perhaps
 * with `<|start|>assistant` before it; the recipient may stand there too.
 */
import { NEWLINE, OPEN_BRACE } from "../../domain/stream/characters.ts"
import { isLess } from "../fold.ts"
import type { Form } from "../form.ts"
import { skipBlanks, takeUntil } from "../reading.ts"
import { readNamedArguments } from "./jsonArguments.ts"
import { functionName, isToken, readToken, takeEndToken } from "./tokens.ts"

const endTokens = new Set(["call", "end"])

export const harmony: Form = {
  name: "harmony",
  opening: { at: "tag", names: ["channel", "start"] },
  markers: { tokens: ["start", "channel", "constrain", "message", ...endTokens] },
  bound: 512,
  *read(context, head) {
    if (head === undefined || !head.isMarked) return
    const { source } = context
    let words = ""
    let token = head
    while (!isToken(token, "message")) {
      if (!token.isMarked || !token.isComplete) return
      if (token.name !== "channel" && token.name !== "constrain" && token !== head) return
      words += " " + (yield* takeUntil(source, (c) => isLess(c) || c === OPEN_BRACE || c === NEWLINE))
      if (!isLess(yield* skipBlanks(source))) return
      const next = yield* readToken(context)
      if (next === undefined) return
      token = next
    }
    const recipient = words.split(/\s+/).find((word) => word.startsWith("to="))?.slice("to=".length)
    if (recipient === undefined || !(recipient.startsWith("functions.") || context.tools.has(recipient))) return
    const name = functionName(recipient, context.tools)
    if (name === "") return
    yield* skipBlanks(source)
    if ((yield* readNamedArguments(context, name, endTokens)) === "call") yield* takeEndToken(context, endTokens)
  }
}
