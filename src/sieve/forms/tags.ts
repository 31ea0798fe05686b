/**
 * Tags inside a call: opening tags, CDATA openings, closing tags, and special tokens (`<|name|>`), which are tags whose name stands
 * between bars.
 */
import { EXCLAMATION_MARK } from "../../domain/stream/characters.ts"
import { fold, isLess } from "../fold.ts"
import type { Context, Tools } from "../form.ts"
import { readTagHead, type TagHead } from "../readers/markup.ts"
import { END, peek, type Reading, skipBlanks, type Source, takeLiteral } from "../reading.ts"

const any = (): boolean => true

/** What stands at a `<`: a tag's head, the opening of a CDATA section, or `undefined` for anything else. */
export type Piece = TagHead | "cdata" | undefined

/** Reads a tag's head or the opening of a CDATA section, from its `<`, which has not been taken. */
export function* readPiece(source: Source): Reading<Piece> {
  source.pos++
  if (fold(yield* peek(source)) !== EXCLAMATION_MARK) return yield* readTagHead(source, any)
  return (yield* takeLiteral(source, "![CDATA[")) ? "cdata" : undefined
}

/** True for one of these closing tags; with `mayBeCutOff` also true for a closing tag inside which the reply ended. */
export const closes = (piece: Piece, names: ReadonlySet<string>, mayBeCutOff: boolean): boolean =>
  typeof piece === "object" && piece.isClosing && (piece.isComplete ? names.has(piece.name) : mayBeCutOff)

/**
 * Takes the closing tag that is due, with the blanks before it. The end of the reply counts as that tag. Returns false when
 * something else follows, which then stays held.
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
  context.consume()
  return true
}

/** Takes a closing tag without an opening one, with the blanks before it, if it follows. Anything else stays held. */
export function* takeStrayCloser(context: Context, names: ReadonlySet<string>): Reading<void> {
  if (!isLess(yield* skipBlanks(context.source))) return
  if (closes(yield* readPiece(context.source), names, false)) context.consume()
}

/** Reads a special token from its `<`, which has not been taken. */
export function* readToken({ source }: Context): Reading<TagHead | undefined> {
  source.pos++
  return yield* readTagHead(source, any)
}

/** True for the complete special token of this name. */
export const isToken = (head: TagHead | undefined, name: string): boolean =>
  head !== undefined && head.isMarked && head.isComplete && head.name === name

/** Takes one of these tokens, with the blanks before it, if it follows. A token inside which the reply ends counts. */
export function* takeEndToken(context: Context, names: ReadonlySet<string>): Reading<void> {
  if (!isLess(yield* skipBlanks(context.source))) return
  const token = yield* readToken(context)
  if (token !== undefined && token.isMarked && (!token.isComplete || names.has(token.name))) context.consume()
}

/** The tool's name in the spellings that models use for it: `functions.wx:0`, `functions.wx`, `wx`. */
export const functionName = (text: string, tools: Tools): string => {
  if (tools.has(text)) return text
  const bare = text.replace(/:[0-9]{1,9}$/, "")
  if (tools.has(bare)) return bare
  return bare.startsWith("functions.") ? bare.slice("functions.".length) : bare
}
