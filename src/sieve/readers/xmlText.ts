/**
 * Reads the text of an XML value up to its closing tag, as it streams. Entities are decoded once; CDATA sections are taken unchanged;
 * one newline behind the opening and one before the closing tag are dropped. Other markup is text.
 */
import {
  AMPERSAND,
  BAR,
  CARRIAGE_RETURN,
  CLOSE_BRACKET,
  EXCLAMATION_MARK,
  GREATER,
  HASH,
  HYPHEN,
  isBlank,
  isDigit,
  isLetter,
  LESS,
  NEWLINE,
  SEMICOLON,
  SLASH,
  SPACE
} from "../../domain/stream/characters.ts"
import { fold, isLess, openers } from "../fold.ts"
import type { Reader, Source } from "../reading.ts"
import { closingName, decodeEntity, isMarkedTag, maximalEntity, type TagHead } from "./markup.ts"

// The states: before the first text, text, a newline that may be the last, a tag, an entity, a CDATA section.
const LEAD = 0
const TEXT = 1
const LINE_END = 2
const TAG = 3
const ENTITY = 4
const CDATA = 5

const cdata = "<![CDATA["

/** The longest closing tag, in characters. */
const maximalCloser = 160

const special = new Uint8Array(65536)
for (const c of [NEWLINE, CARRIAGE_RETURN, AMPERSAND, ...openers]) special[c] = 1

const isEntityPart = (c: number): boolean => isLetter(c) || isDigit(c) || c === HASH

const withoutFirstNewline = (text: string): string =>
  text.startsWith("\r\n") ? text.slice(2) : text.startsWith("\n") ? text.slice(1) : text

const withoutLastNewline = (text: string): string =>
  text.endsWith("\r\n") ? text.slice(0, -2) : text.endsWith("\n") ? text.slice(0, -1) : text

/** What the beginning of a tag may still become: a closing tag or CDATA opening (`open`), or only text (`none`). */
const tagState = (tag: string): "closer" | "cdata" | "open" | "none" => {
  const length = tag.length
  const last = fold(tag.charCodeAt(length - 1))
  if (fold(tag.charCodeAt(1)) === EXCLAMATION_MARK) {
    if (length > cdata.length || last !== cdata.charCodeAt(length - 1)) return "none"
    return length === cdata.length ? "cdata" : "open"
  }
  if (length > maximalCloser) return "none"
  if (last === GREATER) return "closer"
  if (last === BAR || last === HYPHEN || last === SPACE || last === SLASH) return "open"
  if (length === 2 || last < 45 || last === SEMICOLON || last === LESS) return "none"
  return "open"
}

export class XmlText implements Reader {
  /** The value's closing tag was read. */
  closed = false
  /** A closing tag of an element around the value was read: the value's own is missing. */
  broken = false

  private state = LEAD
  private isAfterCdata = false
  /** Blanks before the first text or behind a CDATA section, or a newline that may be the last. */
  private pending = ""
  private tag = ""
  private hasSlash = false
  private isLead = false
  private brackets = 0
  private readonly closer: string
  private readonly enders: ReadonlySet<string>
  private readonly isMarked: boolean
  private readonly sink: (text: string, raw: string) => void

  /**
   * Reads the value of the tag `head`. `enders` names the closing tags that end the value too, if they are marked like `head`. `sink`
   * gets the decoded text and the same text as written.
   */
  constructor(head: TagHead, enders: ReadonlySet<string>, sink: (text: string, raw: string) => void) {
    this.closer = head.name
    this.enders = enders
    this.isMarked = head.isMarked
    this.sink = sink
  }

  read(source: Source): boolean {
    const { stop, text } = source
    let i = source.pos
    while (i < stop) {
      const c = text.charCodeAt(i)
      switch (this.state) {
        case LEAD:
          if (isBlank(c)) {
            this.pending += text.charAt(i++)
          } else if (isLess(c)) {
            this.beginTag(text.charAt(i++))
          } else {
            this.endLead()
          }
          break
        case TEXT: {
          const start = i
          while (i < stop && special[text.charCodeAt(i)] === 0) i++
          if (i > start) this.plain(text.slice(start, i))
          if (i === stop) break
          const d = text.charCodeAt(i)
          const character = text.charAt(i++)
          if (d === AMPERSAND) {
            this.tag = character
            this.state = ENTITY
          } else if (d === NEWLINE || d === CARRIAGE_RETURN) {
            this.pending = character
            this.state = LINE_END
          } else {
            this.beginTag(character)
          }
          break
        }
        case LINE_END:
          if (c === NEWLINE && this.pending === "\r") {
            this.pending += text.charAt(i++)
          } else if (isLess(c)) {
            this.beginTag(text.charAt(i++))
          } else {
            this.plain(this.pending)
            this.pending = ""
            this.state = TEXT
          }
          break
        case TAG: {
          if (isLess(c)) {
            this.keepTag()
            break
          }
          this.tag += text.charAt(i)
          const state = this.step(c)
          if (state === "none") {
            this.tag = this.tag.slice(0, -1)
            this.keepTag()
            break
          }
          i++
          if (state === "cdata") {
            this.beginCdata()
          } else if (state === "closer") {
            const name = closingName(this.tag)
            if (name === this.closer) this.close()
            else this.broken = name !== undefined && this.enders.has(name) && isMarkedTag(this.tag) === this.isMarked
            if (this.closed || this.broken) {
              source.pos = i
              return true
            }
            this.keepTag()
          }
          break
        }
        case ENTITY:
          if (isEntityPart(c) && this.tag.length <= maximalEntity) {
            this.tag += text.charAt(i++)
          } else {
            if (c === SEMICOLON) this.tag += text.charAt(i++)
            const decoded = c === SEMICOLON ? decodeEntity(this.tag.slice(1, -1)) : undefined
            this.sink(decoded ?? this.tag, this.tag)
            this.state = TEXT
          }
          break
        default:
          i = this.readCdata(text, i, stop)
      }
    }
    source.pos = i
    return source.ended
  }

  private plain(text: string): void {
    this.sink(text, text)
  }

  private endLead(): void {
    const lead = this.isAfterCdata ? this.pending : withoutFirstNewline(this.pending)
    this.pending = ""
    if (lead !== "") this.plain(lead)
    this.state = TEXT
  }

  private beginTag(character: string): void {
    if (this.state === TEXT) this.pending = ""
    this.isLead = this.state === LEAD
    this.tag = character
    this.hasSlash = false
    this.state = TAG
  }

  /** Like `tagState`, but in a closing tag only noise may precede the slash. */
  private step(c: number): "closer" | "cdata" | "open" | "none" {
    const state = tagState(this.tag)
    if (state === "cdata" || state === "none" || fold(this.tag.charCodeAt(1)) === EXCLAMATION_MARK) return state
    const f = fold(c)
    if (f === SLASH) {
      if (this.hasSlash) return "none"
      this.hasSlash = true
      return "open"
    }
    if (!this.hasSlash && f !== BAR && f !== HYPHEN && f !== SPACE) return "none"
    return state
  }

  /** Keeps what looked like a tag as text. */
  private keepTag(): void {
    if (this.isLead) this.endLead()
    else if (this.pending !== "") this.plain(this.pending)
    this.pending = ""
    this.plain(this.tag)
    this.state = TEXT
  }

  private beginCdata(): void {
    if (!this.isLead && this.pending !== "") this.plain(this.pending)
    this.pending = ""
    this.brackets = 0
    this.state = CDATA
  }

  private close(): void {
    if (this.isLead && !this.isAfterCdata) {
      const blanks = withoutLastNewline(withoutFirstNewline(this.pending))
      if (blanks !== "") this.plain(blanks)
    }
    this.closed = true
  }

  private readCdata(text: string, from: number, stop: number): number {
    let i = from
    while (i < stop) {
      const c = text.charCodeAt(i)
      if (c === CLOSE_BRACKET) {
        if (this.brackets === 2) this.plain("]")
        else this.brackets++
        i++
      } else if (c === GREATER && this.brackets === 2) {
        this.isAfterCdata = true
        this.state = LEAD
        return i + 1
      } else {
        if (this.brackets > 0) this.plain("]".repeat(this.brackets))
        this.brackets = 0
        const end = text.indexOf("]", i)
        const next = end < 0 || end > stop ? stop : end
        this.plain(text.slice(i, next))
        i = next
      }
    }
    return i
  }
}
