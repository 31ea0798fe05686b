/**
 * The long stretches of a call: JSON as it stands, JSON inside a JSON string, and what is left of a malformed block.
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
import type { Flavour } from "./json.ts"
import { JsonReader } from "./json.ts"
import { decodeEscape } from "./jsonTokens.ts"
import { closingName } from "./tagHead.ts"

/** Reads one JSON value and passes on its normalised text. */
export class JsonStretch implements Reader {
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

/** Reads a JSON string from after its quotation mark to its closing one; the text in it is JSON, which is passed on. */
export class StringStretch implements Reader {
  private readonly json: JsonReader
  private escape = ""
  private isClosed = false

  constructor(sink: (piece: string) => void) {
    this.json = new JsonReader(sink)
  }

  /** At the end of the reply the string may lack its closing quotation mark. */
  get isComplete(): boolean {
    return this.json.done && !this.json.failed
  }

  /** Nothing inside the string counts for the brackets around it. */
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

/**
 * Reads what is left of a malformed block, which belongs to it and is dropped: up to its end, or to a blank line, whichever
 * comes first. Nothing is held meanwhile.
 */
abstract class Rest implements Reader {
  private readonly context: Context
  private isBlankLine = false

  constructor(context: Context) {
    this.context = context
  }

  read(source: Source): boolean {
    const { stop, text } = source
    let isEnded = false
    let i = source.pos
    while (i < stop && !isEnded) {
      const c = text.charCodeAt(i)
      if (c === NEWLINE) {
        isEnded = this.isBlankLine
        if (isEnded) break
        this.isBlankLine = true
      } else if (!isSpace(c)) {
        this.isBlankLine = false
      }
      i++
      isEnded = this.ends(c)
    }
    source.pos = i
    this.context.settle()
    if (isEnded || source.ended) return true
    this.context.commit()
    return false
  }

  protected abstract ends(c: number): boolean
}

/** Up to where `depth` brackets are closed. Quotation marks do not count: it is not known which of them is the wrong one. */
export class RestOfBrackets extends Rest {
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

/** Up to a closing tag, or special token, of one of these names. */
export class RestOfTag extends Rest {
  private tag = ""
  private readonly names: ReadonlySet<string>

  constructor(context: Context, names: ReadonlySet<string>) {
    super(context)
    this.names = names
  }

  protected ends(c: number): boolean {
    const f = fold(c)
    if (f === LESS) this.tag = "<"
    else if (this.tag !== "") this.tag += String.fromCharCode(c)
    if (this.tag.length > 160) this.tag = ""
    if (f !== GREATER || this.tag === "") return false
    const name = closingName(this.tag)
    const isCloser = name !== undefined && this.names.has(name) &&
      /[/|]/.test(this.tag.replace(/[\u2215\u2044\uff0f\uff5c]/g, "/"))
    this.tag = ""
    return isCloser
  }
}
