/**
 * Follows the text between calls and says where a call may begin: not inside fenced code, inline code, or data that is an
 * answer itself. It holds nothing and looks at every character once.
 *
 * Code is told as CommonMark tells it: a fence closes at a line of its own with at least as many of the same characters, inline
 * code at a run of as many back-ticks and no later than its paragraph. Data is an object or array that is no call; it ends with its
 * closing bracket or where it is no data any more.
 */
import {
  APOSTROPHE,
  ASTERISK,
  BACKTICK,
  BAR,
  CARET,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  CLOSE_PARENTHESIS,
  DOLLAR,
  EXCLAMATION_MARK,
  FULL_STOP,
  GREATER,
  HASH,
  HYPHEN,
  isDigit,
  isLetter,
  isSpace,
  NEWLINE,
  OPEN_BRACE,
  OPEN_BRACKET,
  PLUS,
  QUOTE,
  SLASH,
  SPACE,
  TILDE,
  UNDERSCORE
} from "../domain/stream/characters.ts"
import { openers } from "./fold.ts"
import { JsonReader } from "./readers/json.ts"

/** What may begin a form; `line` is the first letter of a line. */
export type Trigger = "tag" | "brace" | "bracket" | "line"

const PLAIN = 0
const RUN = 1
const INLINE = 2
const INFO = 3
const FENCE = 4
const DATA = 5

const INDENT = 0
const FENCE_RUN = 1
const TRAIL = 2
const CONTENT = 3

/** Where plain text in mid-line is looked at. */
const special = new Uint8Array(65536)
for (const c of [NEWLINE, BACKTICK, OPEN_BRACKET, OPEN_BRACE, ...openers]) special[c] = 1

/** What a character at the start of a line is. */
const MARKER = 1
const FENCE_START = 2
const FORM_START = 3

/** What may stand before a fence on its line: indentation, quote and list markers. */
const isLineMarker = (c: number): boolean =>
  isSpace(c) || isDigit(c) || c === GREATER || c === HYPHEN || c === ASTERISK || c === PLUS || c === FULL_STOP ||
  c === CLOSE_PARENTHESIS

/** The table of what characters are at the start of a line, where these letters begin forms. */
export const lineStartsOf = (letters: Iterable<number>): Uint8Array => {
  const table = new Uint8Array(65536)
  for (let c = 0; c < 128; c++) if (isLineMarker(c)) table[c] = MARKER
  table[TILDE] = FENCE_START
  for (const letter of letters) table[letter] = FORM_START
  return table
}

const isInfoWord = (c: number): boolean =>
  isLetter(c) || isDigit(c) || isSpace(c) || c === PLUS || c === HYPHEN || c === FULL_STOP || c === HASH ||
  c === UNDERSCORE

const ignore = (): void => undefined

export class Prose {
  /** What was found where the last scan stopped. */
  trigger: Trigger | undefined
  /** Nothing but markers stands before it on its line. */
  isLineStart = true

  private mode = PLAIN
  private runCharacter = BACKTICK
  private runLength = 0
  private runIsLineStart = false
  private inlineLength = 0
  private fenceLine = INDENT
  private fenceLength = 0
  private isBlankLine = false
  private readonly data = new JsonReader(ignore, "loose")
  private readonly lineStarts: Uint8Array

  /** `lineStarts` tells the characters at the start of a line. */
  constructor(lineStarts: Uint8Array) {
    this.lineStarts = lineStarts
  }

  /** Follows the plain text in mid-line that a piece begins with, as most pieces of a reply do to their end; gives its end. */
  passPlain(text: string): number {
    if (this.mode !== PLAIN || this.isLineStart) return 0
    let i = 0
    while (i < text.length && special[text.charCodeAt(i)] === 0) i++
    return i
  }

  /** Follows `text` from `from` to the next trigger, whose index it returns, or to its end. */
  scan(text: string, from: number): number {
    const to = text.length
    let i = from
    if (this.trigger !== undefined) this.trigger = undefined
    while (i < to) {
      switch (this.mode) {
        case PLAIN:
          i = this.plain(text, i, to)
          if (this.trigger !== undefined) return i
          break
        case RUN:
          i = this.run(text, i, to)
          break
        case INLINE:
          i = this.inline(text, i, to)
          break
        case INFO:
          i = this.info(text, i, to)
          break
        case FENCE:
          i = this.fence(text, i, to)
          break
        default:
          i = this.skipData(text, i, to)
      }
    }
    return i
  }

  /** Says that no form begins at the trigger at `at`, and no data either; returns the index to go on at. */
  skip(at: number): number {
    this.isLineStart = false
    return at + 1
  }

  /** Says that no form begins at the trigger at `at`; returns the index to go on at. */
  pass(at: number): number {
    if (this.trigger !== "brace" && this.trigger !== "bracket") return this.skip(at)
    this.data.reset()
    this.isBlankLine = false
    this.isLineStart = false
    this.mode = DATA
    return at
  }

  /** Says that a call ended here. */
  afterCall(): void {
    this.isLineStart = false
  }

  private plain(text: string, from: number, to: number): number {
    let i = from
    let { isLineStart } = this
    while (i < to) {
      let c = text.charCodeAt(i)
      if (isLineStart) {
        const start = this.lineStarts[c]!
        if (start === MARKER) {
          i++
          continue
        }
        if (start !== 0) {
          this.isLineStart = true
          if (start === FENCE_START) return this.beginRun(text, i, to)
          this.trigger = "line"
          return i
        }
      }
      if (special[c] === 0) {
        isLineStart = false
        while (++i < to && special[text.charCodeAt(i)] === 0);
        if (i === to) break
        c = text.charCodeAt(i)
      }
      if (c === NEWLINE) {
        isLineStart = true
        i++
      } else if (c !== BACKTICK && i + 1 < to && !mayBegin(c, text.charCodeAt(i + 1))) {
        isLineStart = false
        i++
      } else {
        this.isLineStart = isLineStart
        if (c === BACKTICK) return this.beginRun(text, i, to)
        this.trigger = c === OPEN_BRACE ? "brace" : c === OPEN_BRACKET ? "bracket" : "tag"
        return i
      }
    }
    this.isLineStart = isLineStart
    return i
  }

  private beginRun(text: string, at: number, to: number): number {
    this.runCharacter = text.charCodeAt(at)
    this.runLength = 0
    this.runIsLineStart = this.isLineStart
    this.isLineStart = false
    this.mode = RUN
    return this.run(text, at, to)
  }

  private run(text: string, from: number, to: number): number {
    let i = from
    while (i < to && text.charCodeAt(i) === this.runCharacter) i++
    this.runLength += i - from
    if (i < to) this.endRun()
    return i
  }

  private endRun(): void {
    const { runCharacter, runIsLineStart, runLength } = this
    const isOpen = this.inlineLength > 0
    if (isOpen && runLength === this.inlineLength) {
      this.inlineLength = 0
      this.mode = PLAIN
    } else if (isOpen && !(runIsLineStart && runLength >= 3 && this.inlineLength < 3)) {
      this.mode = INLINE
    } else if (runLength >= 3) {
      this.mode = INFO
    } else if (runCharacter === TILDE) {
      this.mode = PLAIN
    } else {
      this.beginInline()
    }
  }

  private beginInline(): void {
    this.inlineLength = this.runLength
    this.isBlankLine = false
    this.mode = INLINE
  }

  private inline(text: string, from: number, to: number): number {
    let { isBlankLine, isLineStart } = this
    for (let i = from; i < to; i++) {
      const c = text.charCodeAt(i)
      if (c === BACKTICK || (c === NEWLINE && isBlankLine)) {
        this.isBlankLine = isBlankLine
        this.isLineStart = isLineStart
        if (c === BACKTICK) return this.beginRun(text, i, to)
        this.isLineStart = true
        this.inlineLength = 0
        this.mode = PLAIN
        return i + 1
      }
      if (c === NEWLINE) isBlankLine = isLineStart = true
      else if (!isSpace(c)) isBlankLine = isLineStart = false
    }
    this.isBlankLine = isBlankLine
    this.isLineStart = isLineStart
    return to
  }

  /** The rest of the line after an opening run: a back-tick in it, or prose where the run began in mid-line, makes it inline code. */
  private info(text: string, from: number, to: number): number {
    for (let i = from; i < to; i++) {
      const c = text.charCodeAt(i)
      if (c === NEWLINE) {
        this.inlineLength = 0
        this.fenceLength = this.runLength
        this.fenceLine = INDENT
        this.runLength = 0
        this.mode = FENCE
        return i + 1
      }
      if (this.runCharacter === BACKTICK && (c === BACKTICK || (!this.runIsLineStart && !isInfoWord(c)))) {
        this.beginInline()
        return i
      }
    }
    return to
  }

  private fence(text: string, from: number, to: number): number {
    let line = this.fenceLine
    for (let i = from; i < to; i++) {
      const c = text.charCodeAt(i)
      if (c === NEWLINE) {
        const isClosed = this.runLength >= this.fenceLength && line !== CONTENT
        line = INDENT
        this.runLength = 0
        if (isClosed) {
          this.isLineStart = true
          this.mode = PLAIN
          return i + 1
        }
      } else if (line !== CONTENT) {
        if (c === this.runCharacter && line <= FENCE_RUN) {
          line = FENCE_RUN
          this.runLength++
        } else if (isSpace(c) || (c === GREATER && line === INDENT)) {
          if (line === FENCE_RUN) line = TRAIL
        } else {
          line = CONTENT
        }
      }
    }
    this.fenceLine = line
    return to
  }

  private skipData(text: string, from: number, to: number): number {
    const at = this.data.feed(text, from, to)
    let i = at
    while (i > from && isSpace(text.charCodeAt(i - 1))) i--
    if (i > from) this.isBlankLine = text.charCodeAt(i - 1) === NEWLINE
    if (this.data.done || this.data.failed) {
      this.isLineStart = this.isBlankLine
      this.mode = PLAIN
    }
    return at
  }
}

/** Whether a form may begin with these two characters. */
const mayBegin = (c: number, next: number): boolean => {
  if (c === OPEN_BRACE) {
    return next === QUOTE || next === APOSTROPHE || next <= SPACE || isInfoWord(next) || next === DOLLAR ||
      next === CLOSE_BRACE
  }
  if (c === OPEN_BRACKET) return next !== CLOSE_BRACKET && next !== CARET && next !== EXCLAMATION_MARK
  return next > 127 || isLetter(next) || next === SPACE || next === HYPHEN || next === SLASH || next === UNDERSCORE ||
    next === BAR
}
