/**
 * FunctionGemma: `<start_function_call>call:wx{city:<escape>Oslo<escape>,days:2}<end_function_call>`, and sometimes the token that asks
 * for the response behind it. The arguments are JSON, but for keys without quotation marks and strings between escape tokens.
 */
import { CLOSE_BRACE, COLON, NEWLINE, OPEN_BRACE } from "../../domain/stream/characters.ts"
import { isLess } from "../fold.ts"
import type { Context, Form } from "../form.ts"
import { EscapedValueReader } from "../readers/escapedJson.ts"
import { quoteText, readKey } from "../readers/jsonTokens.ts"
import { SkipToCloser } from "../readers/valueReaders.ts"
import { peek, type Reading, skipBlanks, takeLiteral, takeUntil } from "../reading.ts"
import { beginsValue } from "./pythonic.ts"
import { readPiece } from "./tags.ts"

const begin = "start_function_call"
const end = "end_function_call"
const response = "start_function_response"

/** Takes this tag, with the blanks before it, if it follows; with `mayBeCutOff` also if the reply ends inside it. */
function* takeTag(context: Context, name: string, mayBeCutOff: boolean): Reading<boolean> {
  if (!isLess(yield* skipBlanks(context.source))) return false
  const piece = yield* readPiece(context.source)
  if (typeof piece !== "object" || piece.isClosing) return false
  if (piece.isComplete ? piece.name !== name : !mayBeCutOff || !name.startsWith(piece.name)) return false
  context.consume()
  return true
}

/** Reads the beginning of the arguments, from behind their brace, and returns it as JSON; `undefined` for text that explains the form. */
function* readBeginning({ source }: Context): Reading<string | undefined> {
  const c = yield* skipBlanks(source)
  if (c === CLOSE_BRACE || isLess(c)) return "{"
  const key = yield* readKey(source, c)
  if (key === undefined || (yield* skipBlanks(source)) !== COLON) return undefined
  source.pos++
  const d = yield* skipBlanks(source)
  return isLess(d) || beginsValue(d) ? "{" + quoteText(key) + ":" : undefined
}

export const functionGemma: Form = {
  name: begin,
  opening: { at: "tag", names: [begin] },
  markers: { tags: [begin, end, response] },
  bound: 512,
  *read(context, head) {
    if (head === undefined || head.isSelfClosing) return
    const { source } = context
    yield* skipBlanks(source)
    if (!(yield* takeLiteral(source, "call:"))) return
    const name = (yield* takeUntil(source, (c) => c === OPEN_BRACE || c === NEWLINE || isLess(c))).trim()
    if (name === "" || (yield* peek(source)) !== OPEN_BRACE) return
    source.pos++
    const beginning = yield* readBeginning(context)
    if (beginning === undefined) return
    context.start(name)
    const value = new EscapedValueReader(context.write, beginning)
    yield value
    if (value.isComplete) {
      context.finish()
      if (yield* takeTag(context, end, true)) yield* takeTag(context, response, false)
    } else {
      context.cutOff()
      yield new SkipToCloser(context, new Set([end]), { isPlain: true, begun: value.held })
    }
  }
}
