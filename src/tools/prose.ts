/**
 * Follows the text between calls and says where a call may begin: not inside fenced code, inline code, or data that is an
 * answer itself. It holds nothing and looks at every character once.
 *
 * Code is told as CommonMark tells it: a fence closes at a line of its own with at least as many of the same characters, inline
 * code at a run of as many back-ticks and no later than its paragraph. Data is an object or array that is no call; it ends with its
 * closing bracket or where it is no data any more.
 */
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

const NEWLINE = 10
const BACKTICK = 96
const TILDE = 126

const special = new Uint8Array(65536)
for (const c of [NEWLINE, BACKTICK, 91, 123, ...openers]) special[c] = 1

const isSpace = (c: number): boolean => c === 32 || c === 9 || c === 13

/** What may stand before a fence on its line: indentation, quote and list markers. */
const isLineMarker = (c: number): boolean =>
  isSpace(c) || c === 62 || c === 45 || c === 42 || c === 43 || c === 46 || c === 41 || (c >= 48 && c <= 57)

const isInfoWord = (c: number): boolean =>
  (c >= 97 && c <= 122) || (c >= 65 && c <= 90) || (c >= 48 && c <= 57) || isSpace(c) || c === 43 || c === 45 ||
  c === 46 || c === 35 ||
  c === 95

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
  private readonly lineLetters: ReadonlySet<number>

  /** `lineLetters` are the letters that begin a form at the start of a line. */
  constructor(lineLetters: ReadonlySet<number>) {
    this.lineLetters = lineLetters
  }

  /** Follows `text` if it is nothing but plain text in mid-line, as most pieces of a reply are; else does nothing. */
  passPlain(text: string): boolean {
    if (this.mode !== PLAIN || this.isLineStart) return false
    for (let i = 0; i < text.length; i++) if (special[text.charCodeAt(i)] === 1) return false
    return true
  }

  /** Follows `text` from `from` to the next trigger, whose index it returns, or to its end. */
  scan(text: string, from: number): number {
    const to = text.length
    let i = from
    this.trigger = undefined
    while (i < to) {
      switch (this.mode) {
        case PLAIN:
          i = this.plain(text, i, to)
          if (this.trigger !== undefined) return i
          break
        case RUN:
          while (i < to && text.charCodeAt(i) === this.runCharacter) {
            this.runLength++
            i++
          }
          if (i < to) this.endRun()
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
    while (i < to) {
      let c = text.charCodeAt(i)
      if (this.isLineStart) {
        if (isLineMarker(c)) {
          i++
          continue
        }
        if (c === TILDE) return this.beginRun(c, i)
        if (this.lineLetters.has(c)) {
          this.trigger = "line"
          return i
        }
      }
      if (special[c] === 0) {
        this.isLineStart = false
        do c = text.charCodeAt(++i)
        while (i < to && special[c] === 0)
        if (i === to) return i
      }
      if (c === NEWLINE) {
        this.isLineStart = true
        i++
      } else if (c === BACKTICK) {
        return this.beginRun(c, i)
      } else if (i + 1 < to && !mayBegin(c, text.charCodeAt(i + 1))) {
        this.isLineStart = false
        i++
      } else {
        this.trigger = c === 123 ? "brace" : c === 91 ? "bracket" : "tag"
        return i
      }
    }
    return i
  }

  private beginRun(character: number, at: number): number {
    this.runCharacter = character
    this.runLength = 0
    this.runIsLineStart = this.isLineStart
    this.isLineStart = false
    this.mode = RUN
    return at
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
    let i = from
    while (i < to) {
      const c = text.charCodeAt(i)
      if (c === BACKTICK) return this.beginRun(c, i)
      i++
      if (c === NEWLINE) {
        this.isLineStart = true
        if (this.isBlankLine) {
          this.inlineLength = 0
          this.mode = PLAIN
          return i
        }
        this.isBlankLine = true
      } else if (!isSpace(c)) {
        this.isBlankLine = false
        this.isLineStart = false
      }
    }
    return i
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
    let i = from
    while (i < to) {
      if (this.fenceLine === CONTENT) {
        const end = text.indexOf("\n", i)
        if (end < 0) return to
        i = end
      }
      const c = text.charCodeAt(i++)
      if (c === NEWLINE) {
        const isClosed = this.runLength >= this.fenceLength && this.fenceLine !== CONTENT
        this.fenceLine = INDENT
        this.runLength = 0
        if (isClosed) {
          this.isLineStart = true
          this.mode = PLAIN
          return i
        }
      } else if (c === this.runCharacter && this.fenceLine <= FENCE_RUN) {
        this.fenceLine = FENCE_RUN
        this.runLength++
      } else if (isSpace(c) || (c === 62 && this.fenceLine === INDENT)) {
        if (this.fenceLine === FENCE_RUN) this.fenceLine = TRAIL
      } else {
        this.fenceLine = CONTENT
      }
    }
    return i
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
  if (c === 123) return next === 34 || next === 39 || next <= 32 || isInfoWord(next) || next === 36 || next === 125
  if (c === 91) return next !== 93 && next !== 94 && next !== 33
  return next > 127 || next === 32 || next === 45 || next === 47 || next === 95 || next === 124 ||
    (next >= 65 && next <= 90) ||
    (next >= 97 && next <= 122)
}
