/**
 * Calls between special tokens: a token that opens the list, then for each call its begin token, its name, a token before the
 * arguments, and its end token. DeepSeek's old models put the arguments in a fence, the newer ones do not; Kimi's write an id with the
 * name in it. The tokens are read like tags, in any spelling of their bars.
 */
import { BACKTICK, NEWLINE, OPEN_BRACE } from "../../domain/stream/characters.ts"
import { isLess } from "../fold.ts"
import type { Context, Form } from "../form.ts"
import type { TagHead } from "../readers/tagHead.ts"
import type { Reading } from "../reading.ts"
import { END, peek, skipBlanks, takeUntil } from "../reading.ts"
import type { Outcome } from "./jsonArguments.ts"
import { readNamedArguments } from "./jsonArguments.ts"
import { functionName, isToken, readToken } from "./tokens.ts"

const lists = new Set(["tool_calls_begin", "tool_calls_section_begin"])
const begin = "tool_call_begin"
const nameEnd = "tool_sep"
const argumentsBegin = "tool_call_argument_begin"
const listEnds = new Set(["tool_calls_end", "tool_calls_section_end"])
const ends = new Set(["tool_call_end", ...listEnds])

function* takeTicks(context: Context): Reading<boolean> {
  const { source } = context
  let count = 0
  while ((yield* peek(source)) === BACKTICK) {
    source.pos++
    count++
  }
  return count >= 3
}

/** Reads a call from after its begin token. */
function* readCall(context: Context): Reading<Outcome> {
  const { source } = context
  const before = (yield* takeUntil(source, isLess)).trim()
  const separator = yield* readToken(context)
  let name: string
  if (isToken(separator, argumentsBegin)) {
    name = functionName(before, context.tools)
  } else if (isToken(separator, nameEnd)) {
    name = before
    if ((yield* skipBlanks(source)) !== OPEN_BRACE && before === "function") {
      name = (yield* takeUntil(source, (c) => c === NEWLINE || c === BACKTICK || c === OPEN_BRACE || isLess(c))).trim()
    }
  } else {
    return "none"
  }
  if (name === "") return "none"
  let isFenced = false
  if ((yield* skipBlanks(source)) === BACKTICK) {
    if (!(yield* takeTicks(context))) return "none"
    isFenced = true
    yield* takeUntil(source, (c) => c === NEWLINE || c === OPEN_BRACE)
    yield* skipBlanks(source)
  }
  const outcome = yield* readNamedArguments(context, name, ends)
  if (outcome === "broken") return "call"
  if (outcome === "call" && isFenced && (yield* skipBlanks(source)) === BACKTICK && (yield* takeTicks(context))) {
    context.settle()
  }
  return outcome
}

/** Takes the tokens between calls; the next call's begin token, the list's end, or nothing that belongs here. */
function* readBetween(context: Context): Reading<"next" | "end" | "other"> {
  for (;;) {
    const c = yield* skipBlanks(context.source)
    if (c === END) {
      context.settle()
      return "end"
    }
    if (!isLess(c)) return "other"
    const token: TagHead | undefined = yield* readToken(context)
    if (token === undefined || !token.isMarked) return "other"
    if (!token.isComplete || listEnds.has(token.name)) {
      context.settle()
      return "end"
    }
    if (token.name === begin) return "next"
    if (token.name !== "tool_call_end") return "other"
    context.settle()
  }
}

export const tokenCalls: Form = {
  name: "call tokens",
  opening: { at: "tag", names: [...lists, begin] },
  markers: { tokens: [...lists, begin, nameEnd, argumentsBegin, ...ends] },
  bound: 768,
  *read(context, head) {
    if (head === undefined || !head.isMarked || head.isSelfClosing) return
    if (lists.has(head.name)) {
      if (!isLess(yield* skipBlanks(context.source))) return
      if (!isToken(yield* readToken(context), begin)) return
    }
    do {
      if ((yield* readCall(context)) !== "call") return
    } while ((yield* readBetween(context)) === "next")
  }
}
