/**
 * Scans the text between calls for triggers: characters at which a call may begin. Code and data contain no triggers. The scanner
 * buffers no text and looks at every character once.
 *
 * Code follows CommonMark: a fence closes at a line of its own with at least as many of the same characters; inline code closes at a
 * run of as many back-ticks, or with its paragraph. Data is an object or array that is not a call; it ends with its closing bracket,
 * or at the first character that does not fit.
 */
import {
  BACKTICK,
  GREATER,
  isDigit,
  isLetter,
  isSpace,
  NEWLINE,
  oneOf,
  OPEN_BRACE,
  OPEN_BRACKET,
  SPACE,
  TILDE
} from "../domain/stream/characters.ts"
import { openers } from "./fold.ts"
import { JsonReader } from "./readers/json.ts"

/** What begins a form: `<`, `{`, `[`, the first letter of a line, or a fence. */
export type Trigger = "tag" | "brace" | "bracket" | "line" | "fence"

// The modes: plain text, a run of fence characters, inline code, the info string behind a fence, fenced code, data.
const PLAIN = 0
const RUN = 1
const INLINE = 2
const INFO = 3
const FENCE = 4
const DATA = 5

// The position within a line of fenced code: before it, in a run of fence characters, in the blanks behind the run, in code.
const INDENT = 0
const FENCE_RUN = 1
const TRAIL = 2
const CONTENT = 3

/** 1 for the characters that end plain text within a line. */
const special = new Uint8Array(65536)
for (const c of [NEWLINE, BACKTICK, OPEN_BRACKET, OPEN_BRACE, ...openers]) special[c] = 1

// What a character means at the start of a line.
const MARKER = 1
const FENCE_START = 2
const FORM_START = 3
const FENCED_FORM_START = 4

/** What may precede a fence on its line: indentation, quote and list markers. */
const isLineMarker = oneOf(" \t\r0123456789>-*+.)")

/** The table of what each character means at the start of a line; `letters` begin forms, and so do fences with `hasFences`. */
export const lineStartsOf = (letters: Iterable<number>, hasFences: boolean): Uint8Array => {
  const table = new Uint8Array(65536)
  for (let c = 0; c < 128; c++) if (isLineMarker(c)) table[c] = MARKER
  table[TILDE] = table[BACKTICK] = hasFences ? FENCED_FORM_START : FENCE_START
  for (const letter of letters) table[letter] = FORM_START
  return table
}

const isInfoSymbol = oneOf(" \t\r+-.#_")

/** What the info string of a fence consists of. */
const isInfoWord = (c: number): boolean => isLetter(c) || isDigit(c) || isInfoSymbol(c)

const ignore = (): void => undefined

export class Prose {
  /** The trigger at which the last scan stopped. */
  trigger: Trigger | undefined
  /** Only line markers precede the trigger on its line. */
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

  /** `lineStarts` is a table made by `lineStartsOf`. */
  constructor(lineStarts: Uint8Array) {
    this.lineStarts = lineStarts
  }

  /** Returns the end of the plain text with which a piece continues a line. For most pieces that is their end. */
  passPlain(text: string): number {
    if (this.mode !== PLAIN || this.isLineStart) return 0
    let i = 0
    while (i < text.length && special[text.charCodeAt(i)] === 0) i++
    return i
  }

  /** Scans `text` from `from`; returns the index of the next trigger, or the end of the text. */
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

  /** Rejects the trigger at `at`: neither a form nor data begins. Returns the index to continue at. */
  skip(at: number): number {
    if (this.trigger === "fence") {
      this.startRun()
      return at
    }
    this.isLineStart = false
    return at + 1
  }

  /** Rejects the trigger at `at`: no form begins, but a bracket may begin data. Returns the index to continue at. */
  skipOrEnterData(at: number): number {
    if (this.trigger !== "brace" && this.trigger !== "bracket") return this.skip(at)
    this.data.reset()
    this.isBlankLine = false
    this.isLineStart = false
    this.mode = DATA
    return at
  }

  /** Continues behind a call. */
  afterCall(): void {
    this.isLineStart = false
  }

  /** A form has read the fence at the trigger, a run of this length, and its info string: what follows is fenced code. */
  openFence(length: number): void {
    this.fenceLength = length
    this.fenceLine = CONTENT
    this.runLength = 0
    this.mode = FENCE
  }

  /** A form has read the fence that closes its block. */
  closeFence(): void {
    this.mode = PLAIN
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
          this.runCharacter = c
          this.trigger = start === FORM_START ? "line" : "fence"
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
    this.startRun()
    return this.run(text, at, to)
  }

  private startRun(): void {
    this.runLength = 0
    this.runIsLineStart = this.isLineStart
    this.isLineStart = false
    this.mode = RUN
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

  /** The rest of the line behind an opening run. A back-tick, or prose if the run began within a line, makes the run inline code. */
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

/** True when a form may begin with these two characters. */
const mayBegin = (c: number, next: number): boolean => {
  if (c === OPEN_BRACE) return next <= SPACE || isInfoWord(next) || isBehindBrace(next)
  if (c === OPEN_BRACKET) return !isNeverBehindBracket(next)
  return next > 127 || isLetter(next) || isBehindOpener(next)
}

const isBehindBrace = oneOf("\"'$}")

/** `[]` is empty, `[^` begins a footnote, `[!` a callout. */
const isNeverBehindBracket = oneOf("]^!")

const isBehindOpener = oneOf(" -/_|")
