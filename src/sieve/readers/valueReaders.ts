/**
 * Readers of the long parts of a call: JSON, JSON inside a JSON string, and the rest of a malformed block.
 */
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  GREATER,
  isSpace,
  LESS,
  NEWLINE,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE
} from "../../domain/stream/characters.ts"
import { fold } from "../fold.ts"
import type { Context } from "../form.ts"
import type { Reader, Source } from "../reading.ts"
import { type Flavour, JsonReader } from "./json.ts"
import { decodeEscape } from "./jsonTokens.ts"
import { closingName } from "./markup.ts"

/** Reads one JSON value; `sink` gets its normalized text. */
export class JsonValueReader implements Reader {
  readonly json: JsonReader

  constructor(sink: (piece: string) => void, flavour: Flavour = "json") {
    this.json = new JsonReader(sink, flavour)
  }

  get isComplete(): boolean {
    return this.json.done
  }

  get depth(): number {
    return this.json.depth
  }

  read(source: Source): boolean {
    const { json } = this
    source.pos = json.feed(source.text, source.pos, source.stop)
    if (json.done || json.failed) return true
    if (source.ended) json.end()
    return source.ended
  }
}

/** Reads a JSON string from behind its quotation mark to the closing one. Its content is one JSON value, whose normalized text `sink` gets. */
export class JsonStringReader implements Reader {
  private readonly json: JsonReader
  private escape = ""
  private isClosed = false

  constructor(sink: (piece: string) => void) {
    this.json = new JsonReader(sink)
  }

  /** True without the closing quotation mark too, which may be missing at the end of the reply. */
  get isComplete(): boolean {
    return this.json.done && !this.json.failed
  }

  /** Brackets inside the string do not count. */
  get depth(): number {
    return 0
  }

  read(source: Source): boolean {
    const { stop, text } = source
    let decoded = ""
    let i = source.pos
    while (i < stop && !this.isClosed) {
      if (this.escape !== "") {
        this.escape += text.charAt(i)
        const character = decodeEscape(this.escape)
        if (character !== undefined) {
          decoded += character
          this.escape = ""
        }
        i++
        continue
      }
      const start = i
      let c = text.charCodeAt(i)
      while (c !== QUOTE && c !== BACKSLASH) {
        if (++i === stop) break
        c = text.charCodeAt(i)
      }
      decoded += text.slice(start, i)
      if (i === stop) break
      if (c === QUOTE) this.isClosed = true
      else this.escape = "\\"
      i++
    }
    source.pos = i
    this.pass(decoded)
    return this.isClosed || source.ended
  }

  private pass(decoded: string): void {
    const { json } = this
    const taken = json.done || json.failed ? 0 : json.feed(decoded, 0, decoded.length)
    if (json.done && decoded.slice(taken).trim() !== "") json.failed = true
  }
}

/** Drops the rest of a malformed block, up to its end or a blank line. Nothing is held meanwhile. */
abstract class Skip implements Reader {
  private readonly context: Context
  private readonly isOneLine: boolean
  private isBlankLine = false

  /** With `isOneLine` it ends before the next newline. */
  constructor(context: Context, isOneLine = false) {
    this.context = context
    this.isOneLine = isOneLine
  }

  read(source: Source): boolean {
    const { stop, text } = source
    let isEnded = false
    let i = source.pos
    while (i < stop && !isEnded) {
      const c = text.charCodeAt(i)
      if (c === NEWLINE) {
        isEnded = this.isBlankLine || this.isOneLine
        if (isEnded) break
        this.isBlankLine = true
      } else if (!isSpace(c)) {
        this.isBlankLine = false
      }
      i++
      isEnded = this.ends(c)
    }
    source.pos = i
    this.context.consume()
    if (isEnded || source.ended) return true
    this.context.commit()
    return false
  }

  protected abstract ends(c: number): boolean
}

/** Skips until `depth` brackets are closed. Quotation marks are ignored, since any of them may be the stray one. */
export class SkipBrackets extends Skip {
  private depth: number

  constructor(context: Context, depth: number) {
    super(context)
    this.depth = depth
  }

  override read(source: Source): boolean {
    return this.depth <= 0 || super.read(source)
  }

  protected ends(c: number): boolean {
    if (c === OPEN_BRACE || c === OPEN_BRACKET) this.depth++
    else if (c === CLOSE_BRACE || c === CLOSE_BRACKET) this.depth--
    return this.depth <= 0
  }
}

/** Skips up to and with a closing tag or special token with one of these names. */
export class SkipToCloser extends Skip {
  private tag: string
  private readonly names: ReadonlySet<string>
  private readonly isPlain: boolean

  /** With `isPlain` the closer is a tag without slash and bars. `begun` is the beginning of a tag that was taken before. */
  constructor(context: Context, names: ReadonlySet<string>, { begun = "", isPlain = false } = {}) {
    super(context)
    this.names = names
    this.isPlain = isPlain
    this.tag = begun
  }

  protected ends(c: number): boolean {
    const f = fold(c)
    if (f === LESS) this.tag = "<"
    else if (this.tag !== "") this.tag += String.fromCharCode(c)
    if (this.tag.length > 160) this.tag = ""
    if (f !== GREATER || this.tag === "") return false
    const name = closingName(this.tag)
    const isCloser = name !== undefined && this.names.has(name) &&
      (this.isPlain || /[/|]/.test(this.tag.replace(/[\u2215\u2044\uff0f\uff5c]/g, "/")))
    this.tag = ""
    return isCloser
  }
}

/** Skips up to and with the run of characters that closes the code's fence; without a fence, the rest of the line. */
export class SkipCode extends Skip {
  /** The closing fence was reached. */
  isClosed = false
  /** Characters of the run that begins the line; -1 behind other characters. */
  private run = -1
  private readonly fence: string

  constructor(context: Context, fence: string) {
    super(context, fence === "")
    this.fence = fence
  }

  protected ends(c: number): boolean {
    if (c === NEWLINE) this.run = 0
    else if (this.run >= 0 && c === this.fence.charCodeAt(0)) this.run++
    else if (this.run !== 0 || !isSpace(c)) this.run = -1
    this.isClosed = this.run > 0 && this.run === this.fence.length
    return this.isClosed
  }
}
