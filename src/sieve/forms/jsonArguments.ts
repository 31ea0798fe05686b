/**
 * A call's arguments in JSON: an object, or a string that holds one.
 */
import { BACKSLASH, ELLIPSIS, FULL_STOP, isBlank, oneOf, OPEN_BRACE, QUOTE } from "../../domain/stream/characters.ts"
import type { Context } from "../form.ts"
import { JsonStretch, RestOfBrackets, RestOfTag, StringStretch } from "../readers/stretches.ts"
import type { Reader, Reading } from "../reading.ts"
import { peek, readWith, skipBlanks } from "../reading.ts"

/** What a backslash makes a blank of. */
const isEscapedBlank = oneOf("nrt")

/**
 * `call`: one was read, with what closes it. `open`: one was read, but what closes it is not there. `broken`: one was started and
 * cut off inside its arguments. `none`: there is no call.
 */
export type Outcome = "call" | "open" | "broken" | "none"

/** How the reading of arguments ended: `none` when they are no object. */
export type ArgumentsEnd = "complete" | "broken" | "none"

/**
 * Reads arguments, an object or a string that holds one, whose first character is `c`. `begin` is called when that is certain,
 * before anything is written. Gives the depth of the brackets left open too. For a tool that is not declared the brace alone does not
 * make it certain: a text that explains the form has `{...}` there.
 */
export function* readArguments(
  context: Context,
  c: number,
  isDeclared: boolean,
  begin: () => void,
  write: (piece: string) => void
): Reading<readonly [ArgumentsEnd, number]> {
  const { source } = context
  if (c === OPEN_BRACE) {
    const stretch = new JsonStretch(write)
    if (!isDeclared) {
      source.pos++
      const d = yield* skipBlanks(source)
      if (d === FULL_STOP || d === ELLIPSIS) return ["none", 0]
    }
    begin()
    if (!isDeclared) stretch.json.feed("{", 0, 1)
    yield stretch
    return [stretch.isComplete ? "complete" : "broken", stretch.depth]
  }
  if (c !== QUOTE) return ["none", 0]
  source.pos++
  for (;;) {
    const d = yield* peek(source)
    if (d === QUOTE) {
      source.pos++
      begin()
      write("{}")
      return ["complete", 0]
    }
    if (d === OPEN_BRACE) break
    if (d === BACKSLASH) {
      source.pos++
      const e = yield* peek(source)
      if (!isEscapedBlank(e)) return ["none", 0]
    } else if (!isBlank(d)) {
      return ["none", 0]
    }
    source.pos++
  }
  begin()
  const stretch = yield* readWith(new StringStretch(write))
  return [stretch.isComplete ? "complete" : "broken", stretch.depth]
}

/** Drops the rest of a malformed block: up to one of the `closers` where it stands in a tag, else until `depth` brackets are closed. */
export const restOf = (context: Context, depth: number, closers: ReadonlySet<string> | undefined): Reader =>
  closers === undefined ? new RestOfBrackets(context, depth) : new RestOfTag(context, closers)

/**
 * Reads arguments that stand by themselves, for a tool whose name is known, and finishes the call. Of a malformed one the rest
 * is dropped, with the one of `closers` that ends it.
 */
export function* readNamedArguments(context: Context, name: string, closers?: ReadonlySet<string>): Reading<Outcome> {
  const c = yield* peek(context.source)
  const [end, depth] = yield* readArguments(
    context,
    c,
    context.tools.has(name),
    () => context.start(name),
    context.write
  )
  if (end === "none") return "none"
  if (end === "broken") {
    context.cutOff()
    yield restOf(context, depth, closers)
    return "broken"
  }
  context.finish()
  return "call"
}
