/**
 * A tag that holds calls: `<tool_calls>…</tool_calls>` or `<function_calls>…`, with call tags of any kind in it, or JSON.
 */
import { OPEN_BRACE, OPEN_BRACKET } from "../../domain/stream/characters.ts"
import { isLess } from "../fold.ts"
import type { Form } from "../form.ts"
import { skipBlanks } from "../reading.ts"
import { callTags, readCalls, readJsonCalls, wrapperTags } from "./tagCalls.ts"
import { readPiece } from "./tagPieces.ts"

export const wrapperTag: Form = {
  name: "wrapper tag",
  opening: { at: "tag", names: [...wrapperTags] },
  markers: { tags: [...wrapperTags] },
  bound: 2048,
  *read(context, head) {
    if (head === undefined || head.isSelfClosing) return
    const { source } = context
    const closers = new Set([head.name])
    const c = yield* skipBlanks(source)
    if (c === OPEN_BRACKET || c === OPEN_BRACE) {
      yield* readJsonCalls(context, c, closers)
    } else if (isLess(c)) {
      const piece = yield* readPiece(source)
      if (typeof piece !== "object" || piece.isClosing || !piece.isComplete || !callTags.has(piece.name)) return
      yield* readCalls(context, piece, closers)
    }
  }
}
