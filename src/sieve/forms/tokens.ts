/**
 * Special tokens, `<|name|>`: tags whose name stands between bars.
 */
import { isLess } from "../fold.ts"
import type { Context, Tools } from "../form.ts"
import type { TagHead } from "../readers/tagHead.ts"
import { readTagHead } from "../readers/tagHead.ts"
import type { Reading } from "../reading.ts"
import { skipBlanks } from "../reading.ts"

const any = (): boolean => true

/** Reads a token from its `<`, which stands there. */
export function* readToken(context: Context): Reading<TagHead | undefined> {
  context.source.pos++
  return yield* readTagHead(context.source, any)
}

export const isToken = (head: TagHead | undefined, name: string): boolean =>
  head !== undefined && head.isMarked && head.isComplete && head.name === name

/** Takes one of these tokens, with the blanks before it, if it stands there; also when the reply ends inside it. */
export function* takeEndToken(context: Context, names: ReadonlySet<string>): Reading<void> {
  if (!isLess(yield* skipBlanks(context.source))) return
  const token = yield* readToken(context)
  if (token !== undefined && token.isMarked && (!token.isComplete || names.has(token.name))) context.settle()
}

/** The tool's name in what models write for one: `functions.wx:0`, `functions.wx`, `wx`. */
export const functionName = (text: string, tools: Tools): string => {
  if (tools.has(text)) return text
  const bare = text.replace(/:[0-9]{1,9}$/, "")
  if (tools.has(bare)) return bare
  return bare.startsWith("functions.") ? bare.slice("functions.".length) : bare
}
