/**
 * A call's arguments in JSON: an object, or a string whose content is one.
 */
import { BACKSLASH, ELLIPSIS, FULL_STOP, isBlank, oneOf, OPEN_BRACE, QUOTE } from "../../domain/stream/characters.ts"
import type { Context } from "../form.ts"
import { JsonStringReader, JsonValueReader, SkipBrackets, SkipToCloser } from "../readers/valueReaders.ts"
import { peek, type Reader, type Reading, readWith, skipBlanks } from "../reading.ts"

/** The escapes that stand for a blank. */
const isEscapedBlank = oneOf("nrt")

/**
 * What reading a call came to. `call`: a complete call and its closing tag or bracket. `open`: a complete call whose closing tag or
 * bracket is missing. `broken`: a call that was started and cut off inside its arguments. `none`: no call.
 */
export type Outcome = "call" | "open" | "broken" | "none"

/** What reading arguments came to; `none` when they are not an object. */
export type ArgumentsEnd = "complete" | "broken" | "none"

/**
 * Reads arguments, whose first character is `c`. Calls `begin` once it is certain that they are arguments, before the first `write`.
 * Returns also the number of brackets left open. For an undeclared tool the brace alone is not enough: a text that explains the form
 * has `{...}` there.
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
    const stretch = new JsonValueReader(write)
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
  const stretch = yield* readWith(new JsonStringReader(write))
  return [stretch.isComplete ? "complete" : "broken", stretch.depth]
}

/** Makes a call of arguments that are known as a whole. */
export const makeCall = (context: Context, name: string, json: string): void => {
  context.start(name)
  context.write(json)
  context.finish()
}

/** Drops the rest of a malformed block: up to one of the `closers` if it stands in a tag, else until `depth` brackets are closed. */
export const restOf = (context: Context, depth: number, closers: ReadonlySet<string> | undefined): Reader =>
  closers === undefined ? new SkipBrackets(context, depth) : new SkipToCloser(context, closers)

/**
 * Reads the arguments of a tool whose name is known and finishes the call. The rest of a malformed call is dropped, up to and with the
 * one of `closers` that ends it.
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
