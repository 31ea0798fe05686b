/**
 * What stands at a `<` in a call, and the closing tags that are due there.
 */
import { EXCLAMATION_MARK } from "../../domain/stream/characters.ts"
import { fold, isLess } from "../fold.ts"
import type { Context } from "../form.ts"
import type { TagHead } from "../readers/tagHead.ts"
import { readTagHead } from "../readers/tagHead.ts"
import type { Reading, Source } from "../reading.ts"
import { END, peek, skipBlanks, takeLiteral } from "../reading.ts"

const any = (): boolean => true

/** What stands at a `<` that has been taken. */
export type Piece = TagHead | "cdata" | undefined

/** Reads a tag's head, or the opening of a CDATA section, from its `<`. */
export function* readPiece(source: Source): Reading<Piece> {
  source.pos++
  if (fold(yield* peek(source)) !== EXCLAMATION_MARK) return yield* readTagHead(source, any)
  return (yield* takeLiteral(source, "![CDATA[")) ? "cdata" : undefined
}

/** Whether it is one of these closing tags; with `mayBeCutOff` also when the reply ended inside it. */
export const closes = (piece: Piece, names: ReadonlySet<string>, mayBeCutOff: boolean): boolean =>
  typeof piece === "object" && piece.isClosing && (piece.isComplete ? names.has(piece.name) : mayBeCutOff)

/**
 * Takes the closing tag that is due, with the blanks before it. At the end of the reply it may be missing. False when something
 * else stands there, which is still on hold then.
 */
export function* takeCloser(context: Context, names: ReadonlySet<string>): Reading<boolean> {
  const { source } = context
  const c = yield* skipBlanks(source)
  if (c !== END) {
    if (!isLess(c)) return false
    const piece = yield* readPiece(source)
    const isCutOff = typeof piece === "object" && !piece.isComplete && (piece.isClosing || piece.name === "")
    if (!closes(piece, names, true) && !isCutOff) return false
  }
  context.settle()
  return true
}

/** Takes a wrapper's closing tag that has no opening one, with the blanks before it; what else is there stays on hold. */
export function* takeStrayCloser(context: Context, names: ReadonlySet<string>): Reading<void> {
  if (!isLess(yield* skipBlanks(context.source))) return
  const piece = yield* readPiece(context.source)
  if (closes(piece, names, false)) context.settle()
}
