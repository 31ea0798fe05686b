/**
 * Calls written as tags, for the tag forms: a tag that names the tool (`<invoke name="wx">`, `<function=wx>`), or a tag whose
 * content does.
 */
import { NEWLINE, OPEN_BRACE, OPEN_BRACKET } from "../../domain/stream/characters.ts"
import { isLess } from "../fold.ts"
import type { Context } from "../form.ts"
import { decodeEntities, type TagHead } from "../readers/markup.ts"
import { JsonValueReader } from "../readers/valueReaders.ts"
import { END, peek, type Reading, readWith, skipBlanks, takeUntil } from "../reading.ts"
import { makeCall, type Outcome } from "./jsonArguments.ts"
import { readWrapped } from "./jsonCalls.ts"
import { isArgumentTag, readNamedBody, readTagArguments } from "./tagArguments.ts"
import { closes, type Piece, readPiece, takeCloser } from "./tags.ts"

/** Tags around one call. */
export const callTags: ReadonlySet<string> = new Set(["tool_call", "function_call", "invoke", "function", "tool_use"])

/** Tags around several calls. */
export const wrapperTags: ReadonlySet<string> = new Set(["tool_calls", "function_calls", "toolcall"])

/** Call tags that may also stand inside `<tool_call>`. */
const innerTags = new Set(["function", "function_call", "invoke"])

const nameTags = new Set(["name", "tool_name", "function_name"])

/** Reads the text of a tag such as `<name>wx</name>` from behind its head; `undefined` when it is empty or unclosed. */
function* readShortText(context: Context, head: TagHead): Reading<string | undefined> {
  const text = yield* takeUntil(context.source, isLess)
  if ((yield* peek(context.source)) === END) return undefined
  const piece = yield* readPiece(context.source)
  const name = decodeEntities(text.trim())
  return closes(piece, new Set([head.name]), false) && name !== "" ? name : undefined
}

/** Reads a call whose name and arguments are child tags, from the head of the first one. */
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
    makeCall(context, tool, early)
    return (yield* takeCloser(context, closers)) ? "call" : "open"
  }
  return yield* readNamedBody(context, tool, { ...head, isSelfClosing: false, attributes: new Map() }, closers)
}

/** Reads arguments in JSON that precede the name. */
function* readEarlyArguments(context: Context, head: TagHead): Reading<string | undefined> {
  const { source } = context
  if (!isArgumentTag(head) || head.isSelfClosing || (yield* skipBlanks(source)) !== OPEN_BRACE) return undefined
  let text = ""
  context.commit()
  const stretch = yield* readWith(
    new JsonValueReader((piece) => {
      text += piece
    })
  )
  if (!stretch.isComplete || !isLess(yield* skipBlanks(source))) return undefined
  const piece = yield* readPiece(source)
  return closes(piece, new Set([head.name]), false) ? text : undefined
}

/** Reads a JSON object or list of calls, which begins with `c`, and the closing tag. */
export function* readJsonCalls(context: Context, c: number, closers: ReadonlySet<string>): Reading<Outcome> {
  const outcome = yield* readWrapped(context, c, closers)
  if (outcome === "broken") return "call"
  return outcome === "call" && !(yield* takeCloser(context, closers)) ? "open" : outcome
}

/** Reads one call from behind the head of its tag. */
export function* readTagCall(context: Context, head: TagHead): Reading<Outcome> {
  const { source } = context
  const closers = new Set([head.name])
  const tool = head.attributes.get("name") ?? head.value
  if (tool !== undefined && tool !== "") return yield* readNamedBody(context, tool, head, closers)
  if (head.isSelfClosing || head.name === "invoke" || head.name === "function") return "none"
  const c = yield* skipBlanks(source)
  if (c === OPEN_BRACE || c === OPEN_BRACKET) return yield* readJsonCalls(context, c, closers)
  if (isLess(c)) {
    const piece = yield* readPiece(source)
    if (typeof piece !== "object" || piece.isClosing || !piece.isComplete) return "none"
    if (innerTags.has(piece.name)) return yield* readCalls(context, piece, closers)
    return yield* readChildren(context, piece, closers)
  }
  if (head.name !== "tool_call") return "none"
  const name = (yield* takeUntil(source, (c) => isLess(c) || c === NEWLINE)).trim()
  if (name === "" || !isLess(yield* skipBlanks(source))) return "none"
  const piece = yield* readPiece(source)
  if (typeof piece !== "object" || !piece.isComplete) return "none"
  const isPair = piece.name === "arg_key" && !piece.isClosing
  const isEmpty = closes(piece, closers, false) && context.tools.has(name)
  return isPair || isEmpty ? yield* readTagArguments(context, name, piece, closers) : "none"
}

/** Reads the calls in a wrapper, from behind the head of the first one, and the wrapper's closing tag. */
export function* readCalls(context: Context, first: TagHead, closers: ReadonlySet<string>): Reading<Outcome> {
  const { source } = context
  let head = first
  for (let isFirst = true;; isFirst = false) {
    const outcome = yield* readTagCall(context, head)
    if (outcome !== "call") return isFirst ? outcome : "open"
    const c = yield* skipBlanks(source)
    if (c === END) {
      context.consume()
      return "call"
    }
    if (!isLess(c)) return "open"
    const piece = yield* readPiece(source)
    if (closes(piece, closers, true) || (typeof piece === "object" && !piece.isComplete && piece.name === "")) {
      context.consume()
      return "call"
    }
    if (typeof piece !== "object" || piece.isClosing || !callTags.has(piece.name)) return "open"
    head = piece
  }
}
