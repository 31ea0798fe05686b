/**
 * Calls written as tags, which the tag forms share: a tag that names the tool (`<invoke name="wx">`, `<function=wx>`), or one
 * whose content does; the arguments as JSON, as parameters, or as child tags.
 */
import { fold } from "../fold.ts"
import type { Context } from "../form.ts"
import { decodeEntities } from "../readers/entities.ts"
import { JsonStretch, RestOfTag } from "../readers/stretches.ts"
import type { TagHead } from "../readers/tagHead.ts"
import { readTagHead } from "../readers/tagHead.ts"
import { XmlArguments } from "../readers/xmlArguments.ts"
import type { Hint } from "../readers/xmlArguments.ts"
import { XmlText } from "../readers/xmlText.ts"
import type { Reading, Source } from "../reading.ts"
import { END, peek, readWith, skipBlanks, takeLiteral, takeUntil } from "../reading.ts"
import { namesProperties, parametersOf, propertyOf } from "../schema.ts"
import type { Outcome } from "./jsonCalls.ts"
import { readCallList, readCallObject, readNamedArguments } from "./jsonCalls.ts"

const LESS = 60
const BANG = 33
const BRACE = 123
const BRACKET = 91

/** Tags that are a call. */
export const callTags: ReadonlySet<string> = new Set(["tool_call", "function_call", "invoke", "function", "tool_use"])

/** Tags that hold calls. */
export const wrapperTags: ReadonlySet<string> = new Set(["tool_calls", "function_calls"])

/** Tags that are a call inside of `<tool_call>` too. */
const innerTags = new Set(["function", "function_call", "invoke"])

const nameTags = new Set(["name", "tool_name", "function_name"])
const argumentTags = new Set(["arguments", "parameters", "input", "args", "params"])
const parameterTags = new Set(["parameter", "param"])

const any = (): boolean => true

const isLess = (c: number): boolean => fold(c) === LESS

/** What stands at a `<` that has been taken. */
export type Piece = TagHead | "cdata" | undefined

/** Reads a tag's head, or the opening of a CDATA section, from its `<`. */
export function* readPiece(source: Source): Reading<Piece> {
  source.pos++
  if (fold(yield* peek(source)) !== BANG) return yield* readTagHead(source, any)
  return (yield* takeLiteral(source, "![CDATA[")) ? "cdata" : undefined
}

/** Whether it is one of these closing tags; with `mayBeCutOff` also when the reply ended inside it. */
const closes = (piece: Piece, names: ReadonlySet<string>, mayBeCutOff: boolean): boolean =>
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
  if (parameterTags.has(head.name)) return head.attributes.get("name") ?? head.value
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
      const value = yield* readWith(new XmlText(head.name, (text, raw) => args.content(text, raw)))
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
function* readPairs(context: Context, tool: string, first: TagHead, closers: ReadonlySet<string>): Reading<Outcome> {
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
      new XmlText("arg_key", (text) => {
        key += text
      })
    )
    const isAtValue = keyText.closed && isLess(yield* skipBlanks(source))
    const valueHead = isAtValue ? yield* readPiece(source) : undefined
    if (typeof valueHead !== "object" || valueHead.name !== "arg_value" || valueHead.isClosing) return yield* broken()
    args.open(key.trim(), undefined)
    const value = yield* readWith(new XmlText("arg_value", (text, raw) => args.content(text, raw)))
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
  if (c === BRACE) return yield* readJsonBody(context, tool, false, closers)
  if (!isLess(c)) return "none"
  const piece = yield* readPiece(source)
  if (piece === "cdata") {
    yield* skipBlanks(source)
    return yield* readJsonBody(context, tool, true, closers)
  }
  if (piece === undefined || !piece.isComplete) return "none"
  if (piece.name === "arg_key" && !piece.isClosing) return yield* readPairs(context, tool, piece, closers)
  const schema = parametersOf(context.tools.get(tool))
  if (!piece.isClosing && argumentTags.has(piece.name) && propertyOf(schema, piece.written) === undefined) {
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

/** Reads the text of a tag such as `<name>wx</name>` from after its head. */
function* readShortText(context: Context, head: TagHead): Reading<string | undefined> {
  const text = yield* takeUntil(context.source, isLess)
  if ((yield* peek(context.source)) === END) return undefined
  const piece = yield* readPiece(context.source)
  const name = decodeEntities(text.trim())
  return closes(piece, new Set([head.name]), false) && name !== "" ? name : undefined
}

/** Reads a call whose name and arguments are child tags, from the head of the first one on. */
function* readChildren(context: Context, first: TagHead, closers: ReadonlySet<string>): Reading<Outcome> {
  const { source } = context
  let early: string | undefined
  let head: Piece = first
  if (!nameTags.has(first.name)) {
    early = yield* readEarlyArguments(context, first)
    if (early === undefined || !isLess(yield* skipBlanks(source))) return "none"
    head = yield* readPiece(source)
  }
  if (typeof head !== "object" || head.isClosing || !head.isComplete || !nameTags.has(head.name)) return "none"
  const tool = yield* readShortText(context, head)
  if (tool === undefined) return "none"
  if (early !== undefined) {
    context.start(tool)
    context.write(early)
    context.finish()
    return (yield* takeCloser(context, closers)) ? "call" : "open"
  }
  return yield* readNamedBody(context, tool, { ...head, isSelfClosing: false, attributes: new Map() }, closers)
}

/** Reads arguments in JSON that stand before the name. */
function* readEarlyArguments(context: Context, head: TagHead): Reading<string | undefined> {
  const { source } = context
  if (!argumentTags.has(head.name) || head.isSelfClosing || (yield* skipBlanks(source)) !== BRACE) return undefined
  let text = ""
  context.commit()
  const stretch = yield* readWith(
    new JsonStretch((piece) => {
      text += piece
    })
  )
  if (!stretch.isComplete || !isLess(yield* skipBlanks(source))) return undefined
  const piece = yield* readPiece(source)
  return closes(piece, new Set([head.name]), false) ? text : undefined
}

/** Reads a JSON object or list of calls, which begins with `c`, and the closing tag. */
export function* readJsonCalls(context: Context, c: number, closers: ReadonlySet<string>): Reading<Outcome> {
  if (c === BRACKET) context.source.pos++
  const outcome = c === BRACE
    ? yield* readCallObject(context, "wrapped", closers)
    : yield* readCallList(context, "wrapped", closers)
  if (outcome === "broken") return "call"
  return outcome === "call" && !(yield* takeCloser(context, closers)) ? "open" : outcome
}

/** Reads one call from after the head of its tag. */
export function* readTagCall(context: Context, head: TagHead): Reading<Outcome> {
  const { source } = context
  const closers = new Set([head.name])
  const tool = head.attributes.get("name") ?? head.value
  if (tool !== undefined && tool !== "") return yield* readNamedBody(context, tool, head, closers)
  if (head.isSelfClosing || head.name === "invoke" || head.name === "function") return "none"
  const c = yield* skipBlanks(source)
  if (c === BRACE || c === BRACKET) return yield* readJsonCalls(context, c, closers)
  if (isLess(c)) {
    const piece = yield* readPiece(source)
    if (typeof piece !== "object" || piece.isClosing || !piece.isComplete) return "none"
    if (innerTags.has(piece.name)) return yield* readCalls(context, piece, closers)
    return yield* readChildren(context, piece, closers)
  }
  if (head.name !== "tool_call") return "none"
  const name = (yield* takeUntil(source, (c) => isLess(c) || c === 10)).trim()
  if (name === "" || !isLess(yield* skipBlanks(source))) return "none"
  const piece = yield* readPiece(source)
  if (typeof piece !== "object" || !piece.isComplete) return "none"
  const isPair = piece.name === "arg_key" && !piece.isClosing
  const isEmpty = closes(piece, closers, false) && context.tools.has(name)
  return isPair || isEmpty ? yield* readPairs(context, name, piece, closers) : "none"
}

/** Reads the calls in a wrapper, the head of the first one being read, and the wrapper's closing tag. */
export function* readCalls(context: Context, first: TagHead, closers: ReadonlySet<string>): Reading<Outcome> {
  const { source } = context
  let head = first
  for (let isFirst = true;; isFirst = false) {
    const outcome = yield* readTagCall(context, head)
    if (outcome !== "call") return isFirst ? outcome : "open"
    const c = yield* skipBlanks(source)
    if (c === END) {
      context.settle()
      return "call"
    }
    if (!isLess(c)) return "open"
    const piece = yield* readPiece(source)
    if (closes(piece, closers, true) || (typeof piece === "object" && !piece.isComplete && piece.name === "")) {
      context.settle()
      return "call"
    }
    if (typeof piece !== "object" || piece.isClosing || !callTags.has(piece.name)) return "open"
    head = piece
  }
}
