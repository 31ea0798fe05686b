/**
 * The content of a tag that names its tool: arguments as JSON, as parameters, as child tags, as pairs, or as attributes.
 */
import { OPEN_BRACE } from "../../domain/stream/characters.ts"
import { isLess } from "../fold.ts"
import type { Context } from "../form.ts"
import { RestOfTag } from "../readers/stretches.ts"
import type { TagHead } from "../readers/tagHead.ts"
import type { Hint } from "../readers/xmlArguments.ts"
import { XmlArguments } from "../readers/xmlArguments.ts"
import { XmlText } from "../readers/xmlText.ts"
import type { Reading } from "../reading.ts"
import { END, readWith, skipBlanks, takeLiteral } from "../reading.ts"
import { namesProperties, parametersOf, propertyOf } from "../schema.ts"
import type { Outcome } from "./jsonArguments.ts"
import { readNamedArguments } from "./jsonArguments.ts"
import type { Piece } from "./tagPieces.ts"
import { closes, readPiece, takeCloser } from "./tagPieces.ts"

const argumentTags: ReadonlySet<string> = new Set(["arguments", "parameters", "input", "args", "params", "argument"])

/** A tag around arguments. `<argument>` is one without a name; with a name it is a parameter. */
export const isArgumentTag = (head: TagHead): boolean =>
  argumentTags.has(head.name) && (head.name !== "argument" || nameOf(head) === undefined)

const parameterTags = new Set(["parameter", "param", "argument"])

/** The parameter's name that a tag gives: `<parameter name="city">` or `<parameter=city>`. */
const nameOf = (head: TagHead): string | undefined => head.attributes.get("name") ?? head.value

/** Reads arguments in JSON, perhaps in a CDATA section whose opening was read, and the closing tag. */
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

/** The parameter that a tag is, or `undefined`. A child tag is one if the tool does not say that it is none. */
const parameterName = (context: Context, tool: string, head: TagHead): string | undefined => {
  if (parameterTags.has(head.name)) {
    const name = nameOf(head)
    // A tool may have a parameter of that name.
    if (name !== undefined || head.name !== "argument") return name
  }
  const schema = parametersOf(context.tools.get(tool))
  if (head.isMarked || (namesProperties(schema) && propertyOf(schema, head.written) === undefined)) return undefined
  return head.written
}

/**
 * Reads parameters up to a closing tag. `first` is the head of the first one, or of the closing tag. The call is started by
 * what is certain then.
 */
function* readParameters(
  context: Context,
  tool: string,
  first: TagHead,
  closers: ReadonlySet<string>
): Reading<Outcome> {
  const { source } = context
  let head: Piece = first
  if (!first.isComplete) return "none"
  if (first.isClosing ? !closers.has(first.name) : parameterName(context, tool, first) === undefined) return "none"
  context.start(tool)
  const args = new XmlArguments(parametersOf(context.tools.get(tool)), context.write)
  for (;;) {
    if (head === undefined) {
      const c = yield* skipBlanks(source)
      if (c === END && args.isComplete) break
      head = isLess(c) ? yield* readPiece(source) : undefined
    }
    if (closes(head, closers, args.isComplete)) break
    const name = typeof head === "object" && !head.isClosing && head.isComplete
      ? parameterName(context, tool, head)
      : undefined
    if (typeof head !== "object" || name === undefined) {
      context.cutOff()
      yield new RestOfTag(context, closers)
      return "call"
    }
    args.open(name, hintOf(head))
    if (!head.isSelfClosing) {
      const value = yield* readWith(new XmlText(head, closers, (text, raw) => args.content(text, raw)))
      if (!value.closed) {
        context.cutOff()
        return "call"
      }
    }
    args.close()
    head = undefined
  }
  args.finish()
  context.finish()
  return "call"
}

/** Reads GLM's pairs, `<arg_key>city</arg_key><arg_value>Oslo</arg_value>`, from the head of the first key, or the closing tag, on. */
export function* readPairs(
  context: Context,
  tool: string,
  first: TagHead,
  closers: ReadonlySet<string>
): Reading<Outcome> {
  const { source } = context
  const broken = function*(): Reading<Outcome> {
    context.cutOff()
    yield new RestOfTag(context, closers)
    return "call"
  }
  context.start(tool)
  const args = new XmlArguments(parametersOf(context.tools.get(tool)), context.write)
  let head: Piece = first
  for (;;) {
    if (head === undefined) {
      const c = yield* skipBlanks(source)
      if (c === END && args.isComplete) break
      head = isLess(c) ? yield* readPiece(source) : undefined
    }
    if (closes(head, closers, args.isComplete)) break
    if (typeof head !== "object" || head.name !== "arg_key" || head.isClosing || !head.isComplete) {
      return yield* broken()
    }
    let key = ""
    const keyText = yield* readWith(
      new XmlText(head, closers, (text) => {
        key += text
      })
    )
    if (!keyText.closed) {
      context.cutOff()
      return "call"
    }
    const isAtValue = isLess(yield* skipBlanks(source))
    const valueHead = isAtValue ? yield* readPiece(source) : undefined
    if (typeof valueHead !== "object" || valueHead.name !== "arg_value" || valueHead.isClosing) return yield* broken()
    args.open(key.trim(), undefined)
    const value = yield* readWith(new XmlText(valueHead, closers, (text, raw) => args.content(text, raw)))
    if (!value.closed) {
      context.cutOff()
      return "call"
    }
    args.close()
    head = undefined
  }
  args.finish()
  context.finish()
  return "call"
}

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

/** Reads the content of a tag that names its tool. With `hasAttributes` the tag's attributes are arguments. */
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
  if (piece.name === "arg_key" && !piece.isClosing) return yield* readPairs(context, tool, piece, closers)
  const schema = parametersOf(context.tools.get(tool))
  if (!piece.isClosing && isArgumentTag(piece) && propertyOf(schema, piece.written) === undefined) {
    return yield* readArgumentTag(context, tool, piece, closers)
  }
  return yield* readParameters(context, tool, piece, closers)
}

/** Reads `<arguments>…</arguments>`, from after its head, and the closing tag of the call. */
function* readArgumentTag(
  context: Context,
  tool: string,
  head: TagHead,
  closers: ReadonlySet<string>
): Reading<Outcome> {
  const own = new Set([head.name])
  if (head.isSelfClosing) {
    context.start(tool)
    context.write("{}")
    context.finish()
  } else {
    const outcome = yield* readNamedBody(context, tool, { ...head, attributes: new Map() }, own)
    if (outcome !== "call") return outcome
  }
  return (yield* takeCloser(context, closers)) ? "call" : "open"
}
