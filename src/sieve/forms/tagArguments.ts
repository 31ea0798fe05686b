/**
 * The content of a tag whose tool is known: arguments as JSON, as parameter tags, as child tags, as pairs of key and value tags, or as
 * attributes.
 */
import { OPEN_BRACE } from "../../domain/stream/characters.ts"
import { isLess } from "../fold.ts"
import type { Context } from "../form.ts"
import type { TagHead } from "../readers/markup.ts"
import { SkipToCloser } from "../readers/valueReaders.ts"
import { type Hint, XmlArguments } from "../readers/xmlArguments.ts"
import { XmlText } from "../readers/xmlText.ts"
import { END, type Reading, readWith, skipBlanks, takeLiteral } from "../reading.ts"
import { namesProperties, parametersOf, propertyOf } from "../schema.ts"
import { makeCall, type Outcome, readNamedArguments } from "./jsonArguments.ts"
import { closes, type Piece, readPiece, takeCloser } from "./tags.ts"

const argumentTags: ReadonlySet<string> = new Set(["arguments", "parameters", "input", "args", "params", "argument"])

/** True for a tag around all arguments. `<argument>` is one if it has no name; with a name it is a parameter. */
export const isArgumentTag = (head: TagHead): boolean =>
  argumentTags.has(head.name) && (head.name !== "argument" || nameOf(head) === undefined)

const parameterTags = new Set(["parameter", "param", "argument"])

/** The name in `<parameter name="city">` or `<parameter=city>`. */
const nameOf = (head: TagHead): string | undefined => head.attributes.get("name") ?? head.value

/** Reads arguments in JSON and the closing tag; with `isCdata` they stand in a CDATA section whose opening was read. */
function* readJsonBody(
  context: Context,
  name: string,
  isCdata: boolean,
  closers: ReadonlySet<string>
): Reading<Outcome> {
  const { source } = context
  const outcome = yield* readNamedArguments(context, name, closers)
  if (outcome !== "call") return outcome === "broken" ? "call" : outcome
  if (isCdata && (yield* skipBlanks(source)) !== END && !(yield* takeLiteral(source, "]]>"))) return "open"
  return (yield* takeCloser(context, closers)) ? "call" : "open"
}

const hintOf = (head: TagHead): Hint => {
  const isString = head.attributes.get("string")
  return isString === "true" ? "string" : isString === "false" ? "json" : undefined
}

/** The parameter that a tag holds, or `undefined`. A child tag holds one unless the tool's schema names its properties and lacks it. */
const parameterName = (context: Context, tool: string, head: TagHead): string | undefined => {
  if (parameterTags.has(head.name)) {
    const name = nameOf(head)
    // A tool may have a parameter called `argument`.
    if (name !== undefined || head.name !== "argument") return name
  }
  const schema = parametersOf(context.tools.get(tool))
  if (head.isMarked || (namesProperties(schema) && propertyOf(schema, head.written) === undefined)) return undefined
  return head.written
}

/**
 * Starts the call and reads its arguments up to a closing tag: GLM's pairs, `<arg_key>city</arg_key><arg_value>Oslo</arg_value>`, if
 * the first tag is a key, else parameter or child tags. `first` is the head of the first tag, or of the closing tag.
 */
export function* readTagArguments(
  context: Context,
  tool: string,
  first: TagHead,
  closers: ReadonlySet<string>
): Reading<Outcome> {
  const { source } = context
  const isPairs = first.name === "arg_key"
  context.start(tool)
  const args = new XmlArguments(parametersOf(context.tools.get(tool)), context.write)
  /** Reads a tag's text; false when its closing tag is missing, which ends the call. */
  const readText = function*(head: TagHead, sink: (text: string, raw: string) => void): Reading<boolean> {
    const { closed } = yield* readWith(new XmlText(head, closers, sink))
    if (!closed) context.cutOff()
    return closed
  }
  for (let head: Piece = first;;) {
    if (closes(head, closers, args.isComplete)) break
    let value = typeof head === "object" && !head.isClosing && head.isComplete ? head : undefined
    let name: string | undefined
    if (value !== undefined && !isPairs) {
      name = parameterName(context, tool, value)
    } else if (value?.name === "arg_key") {
      let key = ""
      const isClosed = yield* readText(value, (text) => {
        key += text
      })
      if (!isClosed) return "call"
      const piece: Piece = isLess(yield* skipBlanks(source)) ? yield* readPiece(source) : undefined
      value = typeof piece === "object" && piece.name === "arg_value" && !piece.isClosing ? piece : undefined
      name = key.trim()
    }
    if (value === undefined || name === undefined) {
      context.cutOff()
      yield new SkipToCloser(context, closers)
      return "call"
    }
    args.open(name, isPairs ? undefined : hintOf(value))
    if (isPairs || !value.isSelfClosing) {
      if (!(yield* readText(value, (text, raw) => args.content(text, raw)))) return "call"
    }
    args.close()
    const c: number = yield* skipBlanks(source)
    if (c === END && args.isComplete) break
    head = isLess(c) ? yield* readPiece(source) : undefined
  }
  args.finish()
  context.finish()
  return "call"
}

/** True where `first` may begin parameters, or closes a call without any. */
const beginsParameters = (context: Context, tool: string, first: TagHead, closers: ReadonlySet<string>): boolean =>
  first.isClosing ? closers.has(first.name) : parameterName(context, tool, first) !== undefined

const attributesAsArguments = (context: Context, tool: string, head: TagHead): void => {
  context.start(tool)
  const args = new XmlArguments(parametersOf(context.tools.get(tool)), context.write)
  for (const [name, value] of head.attributes) {
    args.open(name, undefined)
    args.content(value, value)
    args.close()
  }
  args.finish()
  context.finish()
}

/** Reads the content of the tag `head`, whose tool is known. With `hasAttributes` the tag's attributes are arguments. */
export function* readNamedBody(
  context: Context,
  tool: string,
  head: TagHead,
  closers: ReadonlySet<string>,
  hasAttributes = false
): Reading<Outcome> {
  const { source } = context
  if (head.isSelfClosing || (hasAttributes && head.attributes.size > 0)) {
    attributesAsArguments(context, tool, hasAttributes ? head : { ...head, attributes: new Map() })
    return head.isSelfClosing || (yield* takeCloser(context, closers)) ? "call" : "open"
  }
  const c = yield* skipBlanks(source)
  if (c === OPEN_BRACE) return yield* readJsonBody(context, tool, false, closers)
  if (!isLess(c)) return "none"
  const piece = yield* readPiece(source)
  if (piece === "cdata") {
    yield* skipBlanks(source)
    return yield* readJsonBody(context, tool, true, closers)
  }
  if (piece === undefined || !piece.isComplete) return "none"
  if (piece.name === "arg_key" && !piece.isClosing) return yield* readTagArguments(context, tool, piece, closers)
  const schema = parametersOf(context.tools.get(tool))
  if (!piece.isClosing && isArgumentTag(piece) && propertyOf(schema, piece.written) === undefined) {
    return yield* readArgumentTag(context, tool, piece, closers)
  }
  return beginsParameters(context, tool, piece, closers)
    ? yield* readTagArguments(context, tool, piece, closers)
    : "none"
}

/** Reads `<arguments>…</arguments>`, from behind its head, and the closing tag of the call. */
function* readArgumentTag(
  context: Context,
  tool: string,
  head: TagHead,
  closers: ReadonlySet<string>
): Reading<Outcome> {
  const own = new Set([head.name])
  if (head.isSelfClosing) {
    makeCall(context, tool, "{}")
  } else {
    const outcome = yield* readNamedBody(context, tool, { ...head, attributes: new Map() }, own)
    if (outcome !== "call") return outcome
  }
  return (yield* takeCloser(context, closers)) ? "call" : "open"
}
