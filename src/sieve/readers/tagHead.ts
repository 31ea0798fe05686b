/**
 * Reads the head of a tag, `<…>`, as models write it: a namespace prefix, marker noise before the name (`<｜DSML｜invoke …>`, bars
 * and hyphens of any kind, the word DSML with or without a separator), full-width and confusable characters, attributes in any
 * quotes, `<function=name>`. The name is given without noise, in lower case.
 */
import {
  APOSTROPHE,
  BAR,
  COLON,
  EQUALS,
  FULL_STOP,
  GREATER,
  HYPHEN,
  isBlank,
  isDigit,
  isLetter,
  QUOTE,
  SLASH,
  SPACE,
  UNDERSCORE
} from "../../domain/stream/characters.ts"
import { fold, foldText, isLess } from "../fold.ts"
import type { Reading, Source } from "../reading.ts"
import { END, peek, takeUntil } from "../reading.ts"
import { decodeEntities } from "./entities.ts"

export interface TagHead {
  /** In lower case, ASCII, without prefix and noise. */
  readonly name: string
  /** The name as it was written, without prefix. */
  readonly written: string
  /** The name stood between bars or after the word DSML, as special tokens do. */
  readonly isMarked: boolean
  readonly isClosing: boolean
  readonly isSelfClosing: boolean
  /** Of `<function=value>`. */
  readonly value: string | undefined
  readonly attributes: ReadonlyMap<string, string>
  /** False when the reply ended inside the tag. */
  readonly isComplete: boolean
}

const isNameStart = (f: number): boolean => isLetter(f) || f === UNDERSCORE

const isNamePart = (f: number): boolean => isNameStart(f) || isDigit(f) || f === HYPHEN || f === FULL_STOP

const endsName = (c: number): boolean => !isNamePart(fold(c))

const isQuote = (f: number): boolean => f === QUOTE || f === APOSTROPHE

/** The name without the noise word that stands directly before it. */
const withoutNoise = (lower: string): string =>
  lower.startsWith("dsml") && lower.length > 4 ? lower.slice(4).replace(/^[-_.]{1,8}/, "") : lower

/** Names that are written in more than one way once markers are in play. */
const spelling = (name: string, isMarked: boolean): string => {
  if (!isMarked) return name
  const joined = name.replaceAll("-", "_")
  return joined === "toolcalls" ? "tool_calls" : joined
}

/** The name in a whole closing tag, `</…>`, or `undefined` when it is none. */
export const closingName = (tag: string): string | undefined => {
  const parts = foldText(tag).slice(1, -1).toLowerCase().split(/[|:\s/]/).filter((part) =>
    part !== "" && part !== "dsml"
  )
  const last = parts[parts.length - 1]
  if (last === undefined) return undefined
  const bare = withoutNoise(last)
  return spelling(bare, bare !== last || tag.includes("|") || parts.length > 1)
}

/** Whether a whole tag has marker noise in it. */
export const isMarkedTag = (tag: string): boolean => /\||dsml/.test(foldText(tag).toLowerCase())

/**
 * Reads a tag's head from after its `<`. `accepts` is asked as soon as the name is known: tags that nobody waits for are left at
 * once. Gives `undefined` when it is none of them; what was taken then is for the caller to keep as text.
 */
export function* readTagHead(
  source: Source,
  accepts: (name: string, written: string, isClosing: boolean) => boolean
): Reading<TagHead | undefined> {
  let isMarked = false
  let isClosing = false
  let written = ""
  let name = ""
  const incomplete = (): TagHead => ({
    name,
    written,
    isMarked,
    isClosing,
    isSelfClosing: false,
    value: undefined,
    attributes: new Map(),
    isComplete: false
  })
  for (;;) {
    const c = source.pos < source.stop ? source.text.charCodeAt(source.pos) : yield* peek(source)
    if (c === END) return incomplete()
    const f = fold(c)
    if (f === SLASH) {
      if (isClosing) return undefined
      isClosing = true
    } else if (f === BAR || f === HYPHEN) {
      isMarked = true
    } else if (f !== SPACE) {
      if (!isNameStart(f)) return undefined
      written = yield* takeUntil(source, endsName)
      let d = fold(yield* peek(source))
      if (d === COLON) {
        source.pos++
        continue
      }
      const lower = foldText(written).toLowerCase()
      let endsAtBar = false
      while (d === BAR) {
        endsAtBar = true
        source.pos++
        d = fold(yield* peek(source))
      }
      if (lower === "dsml" || (endsAtBar && isNameStart(d))) {
        if (d === END) return incomplete()
        isMarked = true
        continue
      }
      isMarked = isMarked || endsAtBar
      const bare = withoutNoise(lower)
      if (bare !== lower) isMarked = true
      name = spelling(bare, isMarked)
      if (d === END) return incomplete()
      break
    }
    source.pos++
  }
  if (!accepts(name, written, isClosing)) return undefined

  const attributes = new Map<string, string>()
  let value: string | undefined
  for (;;) {
    const c = yield* peek(source)
    if (c === END) return incomplete()
    const f = fold(c)
    if (f === GREATER) {
      source.pos++
      return { name, written, isMarked, isClosing, isSelfClosing: false, value, attributes, isComplete: true }
    }
    if (f === SLASH) {
      source.pos++
      let d = fold(yield* peek(source))
      while (d === BAR || d === SPACE) {
        source.pos++
        d = fold(yield* peek(source))
      }
      if (d === END) return incomplete()
      if (d !== GREATER) return undefined
      source.pos++
      return { name, written, isMarked, isClosing, isSelfClosing: true, value, attributes, isComplete: true }
    }
    if (isBlank(c) || f === SPACE || f === BAR) {
      source.pos++
    } else if (f === EQUALS && value === undefined && attributes.size === 0) {
      source.pos++
      value = yield* readAttribute(source, (d) => fold(d) === GREATER || isLess(d))
      if (value === undefined) return incomplete()
    } else if (isNameStart(f)) {
      const attribute = foldText(yield* takeUntil(source, endsName))
      let d = yield* peek(source)
      while (isBlank(d)) {
        source.pos++
        d = yield* peek(source)
      }
      let text: string | undefined = ""
      if (fold(d) === EQUALS) {
        source.pos++
        text = yield* readAttribute(source, (d) => isBlank(d) || fold(d) === GREATER || isLess(d))
        if (text === undefined) return incomplete()
      }
      if (!attributes.has(attribute)) attributes.set(attribute, text)
    } else {
      return undefined
    }
  }
}

/** Reads what follows `=`, in quotes or not; `undefined` when the reply ends inside. */
function* readAttribute(source: Source, endsUnquoted: (c: number) => boolean): Reading<string | undefined> {
  let c = yield* peek(source)
  while (isBlank(c)) {
    source.pos++
    c = yield* peek(source)
  }
  const quote = fold(c)
  if (!isQuote(quote)) {
    const text = yield* takeUntil(source, endsUnquoted)
    return source.ended && source.pos === source.stop ? undefined : decodeEntities(text.trim())
  }
  source.pos++
  const text = yield* takeUntil(source, (d) => fold(d) === quote)
  if ((yield* peek(source)) === END) return undefined
  source.pos++
  return decodeEntities(text)
}
