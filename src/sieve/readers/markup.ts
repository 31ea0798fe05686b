/**
 * Tag heads, closing tags and entities, as models write them.
 *
 * A tag's head may have a namespace prefix, marker noise before the name (`<｜DSML｜invoke …>`: bars and hyphens of any kind, the
 * word DSML with or without a separator), full-width and confusable characters, attributes in any quotes, and a value
 * (`<function=name>`). The name is returned without noise, in lower case.
 */
import {
  APOSTROPHE,
  BAR,
  COLON,
  EQUALS,
  FULL_STOP,
  GREATER,
  HASH,
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
import { END, peek, type Reading, type Source, takeUntil } from "../reading.ts"

/** XML's named entities; those of HTML stay as written. */
const named: { readonly [name: string]: string } = { lt: "<", gt: ">", amp: "&", quot: "\"", apos: "'" }

/** The most characters between the `&` and the `;` of an entity. */
export const maximalEntity = 10

/** The text of the entity with this name; `undefined` for an unknown one, which stays as written. */
export const decodeEntity = (name: string): string | undefined => {
  if (name.charCodeAt(0) !== HASH) return Object.hasOwn(named, name) ? named[name] : undefined
  const [, hex, decimal] = /^#(?:[xX]([0-9a-fA-F]{1,6})|([0-9]{1,7}))$/.exec(name) ?? []
  if (hex === undefined && decimal === undefined) return undefined
  const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16)
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : undefined
}

/** Decodes every entity of a whole text, once. */
export const decodeEntities = (text: string): string =>
  text.includes("&")
    ? text.replace(/&([#0-9A-Za-z]{1,10});/g, (whole, name: string) => decodeEntity(name) ?? whole)
    : text

/** The part of a tag from `<` to `>`. */
export interface TagHead {
  /** The name in lower case, folded to ASCII, without prefix and noise. */
  readonly name: string
  /** The name as written, without prefix. */
  readonly written: string
  /** The name stands between bars or behind the word DSML, as in special tokens. */
  readonly isMarked: boolean
  readonly isClosing: boolean
  readonly isSelfClosing: boolean
  /** The value in `<function=value>`. */
  readonly value: string | undefined
  readonly attributes: ReadonlyMap<string, string>
  /** False when the reply ended inside the tag. */
  readonly isComplete: boolean
}

const isNameStart = (f: number): boolean => isLetter(f) || f === UNDERSCORE

const isNamePart = (f: number): boolean => isNameStart(f) || isDigit(f) || f === HYPHEN || f === FULL_STOP

const endsName = (c: number): boolean => !isNamePart(fold(c))

const isQuote = (f: number): boolean => f === QUOTE || f === APOSTROPHE

/** The name without the noise word DSML directly before it. */
const withoutNoise = (lower: string): string =>
  lower.startsWith("dsml") && lower.length > 4 ? lower.slice(4).replace(/^[-_.]{1,8}/, "") : lower

/** Normalizes the names of marked tags, which models spell in more than one way. */
const spelling = (name: string, isMarked: boolean): string => {
  if (!isMarked) return name
  const joined = name.replaceAll("-", "_")
  return joined === "toolcalls" ? "tool_calls" : joined
}

/** The name in a whole closing tag, `</…>`; `undefined` when it has no name. */
export const closingName = (tag: string): string | undefined => {
  const parts = foldText(tag).slice(1, -1).toLowerCase().split(/[|:\s/]/).filter((part) =>
    part !== "" && part !== "dsml"
  )
  const last = parts[parts.length - 1]
  if (last === undefined) return undefined
  const bare = withoutNoise(last)
  return spelling(bare, bare !== last || tag.includes("|") || parts.length > 1)
}

/** True for a whole tag with marker noise in it. */
export const isMarkedTag = (tag: string): boolean => /\||dsml/.test(foldText(tag).toLowerCase())

/**
 * Reads a tag's head from behind its `<`. As soon as the name is known, `accepts` decides whether to read on. Returns `undefined` for a
 * rejected tag and for text that is not a tag; the caller keeps what was taken as text.
 */
export function* readTagHead(
  source: Source,
  accepts: (name: string, written: string, isClosing: boolean) => boolean
): Reading<TagHead | undefined> {
  let isMarked = false
  let isClosing = false
  let written = ""
  let name = ""
  let value: string | undefined
  let attributes = new Map<string, string>()
  const head = (isComplete: boolean, isSelfClosing: boolean): TagHead => ({
    name,
    written,
    isMarked,
    isClosing,
    isSelfClosing,
    value,
    attributes,
    isComplete
  })
  const incomplete = (): TagHead => {
    value = undefined
    attributes = new Map()
    return head(false, false)
  }
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

  for (;;) {
    const c = yield* peek(source)
    if (c === END) return incomplete()
    const f = fold(c)
    if (f === GREATER) {
      source.pos++
      return head(true, false)
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
      return head(true, true)
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

/** Reads the value behind a `=`, in quotes or not; `undefined` when the reply ends inside it. */
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
