/**
 * Gemma: a block of Python that calls declared tools, one call a line, in a fence with the info string `tool_code` or behind a line with
 * that word: `wx(city="Oslo")`, `print(default_api.wx(city="Oslo"))`. A fence may hold calls in JSON too. A block with any other code
 * before its calls is code.
 */
import {
  CLOSE_PARENTHESIS,
  NEWLINE,
  OPEN_BRACE,
  OPEN_BRACKET,
  OPEN_PARENTHESIS
} from "../../domain/stream/characters.ts"
import type { Context, Form, Tools } from "../form.ts"
import { SkipCode } from "../readers/valueReaders.ts"
import { END, peek, type Reading, skipBlanks, skipSpaces, takeUntil } from "../reading.ts"
import { makeCall, type Outcome } from "./jsonArguments.ts"
import { readAnyCalls, readKeywordArguments, readName } from "./pythonic.ts"

const word = "tool_code"

/** The declared tool with this name, which may stand behind a namespace. */
const toolNamed = (name: string, tools: Tools): string | undefined =>
  [name, name.slice(name.indexOf(".") + 1)].find((name) => tools.has(name))

/** Reads a line that calls a tool; `open` if its end is missing or not what it should be. */
function* readLine(context: Context): Reading<Outcome> {
  const { source, tools } = context
  let name = yield* readName(context)
  const isPrinted = name === "print" && !tools.has(name) && (yield* peek(source)) === OPEN_PARENTHESIS
  if (isPrinted) {
    source.pos++
    yield* skipBlanks(source)
    name = yield* readName(context)
  }
  const tool = toolNamed(name, tools)
  if (tool === undefined || (yield* peek(source)) !== OPEN_PARENTHESIS) return "none"
  const [outcome] = yield* readKeywordArguments(context, tool)
  if (outcome === "none" || outcome === "broken") return outcome
  const isEmpty = outcome === "empty"
  if (isPrinted) {
    const c = yield* skipBlanks(source)
    if (c === CLOSE_PARENTHESIS) source.pos++
    else if (c !== END) return isEmpty ? "none" : "open"
  } else if (isEmpty) {
    const c = yield* skipSpaces(source)
    if (c !== NEWLINE && c !== END) return "none"
  }
  if (isEmpty) makeCall(context, tool, "{}")
  else context.consume()
  return "call"
}

/** Takes the closing fence. */
function* takeFence(context: Context, fence: string): Reading<void> {
  const { source } = context
  const character = fence.charCodeAt(0)
  const run = yield* takeUntil(source, (c) => c !== character)
  const c = yield* skipSpaces(source)
  if (c === END || (c === NEWLINE && run.length >= fence.length)) context.closeFence()
}

/** Reads a block from its first line; `fence` is empty for a block without one. */
function* readBlock(context: Context, fence: string): Reading<void> {
  const { source } = context
  for (let isFirst = true;; isFirst = false) {
    const c = yield* skipBlanks(source)
    if (!isFirst && fence !== "") {
      if (c === fence.charCodeAt(0)) return yield* takeFence(context, fence)
      if (c === END) return context.consume()
    }
    const isJson = fence !== "" && (c === OPEN_BRACE || c === OPEN_BRACKET)
    const outcome = isJson ? yield* readAnyCalls(context, c) : yield* readLine(context)
    if (outcome === "broken") {
      const rest = new SkipCode(context, fence)
      yield rest
      if (rest.isClosed) context.closeFence()
    }
    if (outcome !== "call") return
  }
}

const form = (name: string, at: "line" | "fence"): Form => ({
  name,
  opening: { at, word },
  markers: {},
  bound: 512,
  *read(context, _, fence) {
    if (at === "line" && (yield* skipSpaces(context.source)) !== NEWLINE) return
    yield* readBlock(context, fence)
  }
})

export const toolCode: Form = form("tool_code", "fence")

export const bareToolCode: Form = form("bare tool_code", "line")
