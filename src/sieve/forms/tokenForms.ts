/**
 * Calls between special tokens (`<|name|>`), one form per model family. Tokens are read like tags, with any spelling of their bars.
 */
import { BACKTICK, NEWLINE, OPEN_BRACE, OPEN_BRACKET, SEMICOLON } from "../../domain/stream/characters.ts"
import { isLess } from "../fold.ts"
import type { Context, Form } from "../form.ts"
import type { TagHead } from "../readers/markup.ts"
import { END, peek, type Reading, skipBlanks, takeUntil } from "../reading.ts"
import { type Outcome, readNamedArguments } from "./jsonArguments.ts"
import { readWrapped } from "./jsonCalls.ts"
import { readAnyCalls } from "./pythonic.ts"
import { functionName, isToken, readToken, takeEndToken } from "./tags.ts"

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

/** Reads a call from behind its begin token. */
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
    context.consume()
  }
  return outcome
}

/** Takes the tokens between calls: `next` at a call's begin token, `end` at the end of the list, `other` at anything else. */
function* readBetween(context: Context): Reading<"next" | "end" | "other"> {
  for (;;) {
    const c = yield* skipBlanks(context.source)
    if (c === END) {
      context.consume()
      return "end"
    }
    if (!isLess(c)) return "other"
    const token: TagHead | undefined = yield* readToken(context)
    if (token === undefined || !token.isMarked) return "other"
    if (!token.isComplete || listEnds.has(token.name)) {
      context.consume()
      return "end"
    }
    if (token.name === begin) return "next"
    if (token.name !== "tool_call_end") return "other"
    context.consume()
  }
}

/**
 * DeepSeek and Kimi: an optional token that opens the list; then for each call its begin token, its name, a token before the
 * arguments, and its end token. DeepSeek's old models fence the arguments; its newer ones do not. Kimi's models write an id that
 * contains the name.
 */
export const tokenCalls: Form = {
  name: "call tokens",
  opening: { at: "tag", names: [...lists, begin] },
  markers: { tokens: [...lists, begin, nameEnd, argumentsBegin, ...ends] },
  bound: 768,
  *read(context, head) {
    if (head === undefined || !head.isMarked || head.isSelfClosing) return
    if (lists.has(head.name) && !(yield* expectToken(context, begin))) return
    do {
      if ((yield* readCall(context)) !== "call") return
    } while ((yield* readBetween(context)) === "next")
  }
}

const llamaEnds = new Set(["eom_id", "eot_id"])

/** Llama: `<|python_tag|>`, then calls in JSON, several of them separated by semicolons, and sometimes an end token. */
export const llama: Form = {
  name: "python_tag",
  opening: { at: "tag", names: ["python_tag"] },
  markers: { tokens: ["python_tag", ...llamaEnds] },
  bound: 512,
  *read(context, head) {
    if (head === undefined || !head.isMarked) return
    const { source } = context
    let c = yield* skipBlanks(source)
    if (c === OPEN_BRACKET) {
      if ((yield* readWrapped(context, c)) !== "call") return
    } else {
      for (;;) {
        const outcome = c === OPEN_BRACE ? yield* readWrapped(context, c) : "none"
        if (outcome === "none" || outcome === "open") return
        c = yield* skipBlanks(source)
        if (c !== SEMICOLON) break
        source.pos++
        context.consume()
        c = yield* skipBlanks(source)
      }
    }
    yield* takeEndToken(context, llamaEnds)
  }
}

/** Reads calls in JSON, from behind their begin token, and their end token. */
function* readJsonCalls(context: Context, ends: ReadonlySet<string>): Reading<void> {
  const c = yield* skipBlanks(context.source)
  if ((yield* readWrapped(context, c, ends)) === "call") yield* takeEndToken(context, ends)
}

/** Reads the token that must follow, and the blanks before it. */
function* expectToken(context: Context, name: string): Reading<boolean> {
  return isLess(yield* skipBlanks(context.source)) && isToken(yield* readToken(context), name)
}

const internlmEnds = new Set(["action_end"])

/** InternLM: `<|action_start|><|plugin|>{…}<|action_end|>`. */
export const internlm: Form = {
  name: "action_start",
  opening: { at: "tag", names: ["action_start"] },
  markers: { tokens: ["action_start", "plugin", ...internlmEnds] },
  bound: 512,
  *read(context, head) {
    if (head === undefined || !head.isMarked || !(yield* expectToken(context, "plugin"))) return
    yield* readJsonCalls(context, internlmEnds)
  }
}

const action = "start_action"
const thinkingEnd = "end_thinking"
const actionEnds = new Set(["end_action"])

/**
 * Command R7B and its successors: `<|START_ACTION|>[{"tool_call_id":"0","tool_name":"wx","parameters":{…}}]<|END_ACTION|>`. The token that
 * ends the thinking directly before it is part of the call.
 */
export const commandR: Form = {
  name: "START_ACTION",
  opening: { at: "tag", names: [action, thinkingEnd] },
  markers: { tokens: [action, thinkingEnd, ...actionEnds] },
  bound: 512,
  *read(context, head) {
    if (head === undefined || !head.isMarked) return
    if (head.name === thinkingEnd && !(yield* expectToken(context, action))) return
    yield* readJsonCalls(context, actionEnds)
  }
}

const lfmEnds = new Set(["tool_call_end"])

/** LFM2: `<|tool_call_start|>[wx(city="Oslo")]<|tool_call_end|>`, in Python or JSON. */
export const lfm: Form = {
  name: "tool_call_start",
  opening: { at: "tag", names: ["tool_call_start"] },
  markers: { tokens: ["tool_call_start", ...lfmEnds] },
  bound: 512,
  *read(context, head) {
    if (head === undefined || !head.isMarked) return
    const c = yield* skipBlanks(context.source)
    if ((yield* readAnyCalls(context, c, lfmEnds)) === "call") yield* takeEndToken(context, lfmEnds)
  }
}

const harmonyEnds = new Set(["call", "end"])

/**
 * Harmony: a message to a function, `<|channel|>commentary to=functions.wx <|constrain|>json<|message|>{…}<|call|>`, sometimes after
 * `<|start|>assistant`, where the recipient may stand too.
 */
export const harmony: Form = {
  name: "harmony",
  opening: { at: "tag", names: ["channel", "start"] },
  markers: { tokens: ["start", "channel", "constrain", "message", ...harmonyEnds] },
  bound: 512,
  *read(context, head) {
    if (head === undefined || !head.isMarked) return
    const { source } = context
    let words = ""
    let token = head
    while (!isToken(token, "message")) {
      if (!token.isMarked || !token.isComplete) return
      if (token.name !== "channel" && token.name !== "constrain" && token !== head) return
      words += " " + (yield* takeUntil(source, (c) => isLess(c) || c === OPEN_BRACE || c === NEWLINE))
      if (!isLess(yield* skipBlanks(source))) return
      const next = yield* readToken(context)
      if (next === undefined) return
      token = next
    }
    const recipient = words.split(/\s+/).find((word) => word.startsWith("to="))?.slice("to=".length)
    if (recipient === undefined || !(recipient.startsWith("functions.") || context.tools.has(recipient))) return
    const name = functionName(recipient, context.tools)
    if (name === "") return
    yield* skipBlanks(source)
    if ((yield* readNamedArguments(context, name, harmonyEnds)) === "call") yield* takeEndToken(context, harmonyEnds)
  }
}
