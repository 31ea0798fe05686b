/**
 * Passes the text of a JSON object through as it arrives: it replaces the string of each member `model`, and keeps the text of a few other
 * members. Every other character stays, so numbers keep their digits.
 *
 * Each character is read once. Memory is bounded by `longestKept` for each kept member. Text other than an object passes unchanged.
 */
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  isBlank,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE
} from "./characters.ts"
import type { Machine } from "./transducer.ts"

const BEFORE = 0
const KEY = 1
const COLON_AFTER_KEY = 2
const VALUE = 3
const INSIDE = 4
const AFTER = 5

/** Characters of a key that are read: enough for `model` with every character escaped. */
const longestKey = 64

/** Characters of a kept member. */
const longestKept = 64 * 1024

const unescaped = (key: string): string => {
  if (!key.includes("\\")) return key
  try {
    return String(JSON.parse(`"${key}"`))
  } catch {
    return key
  }
}

/** Passes one object through; `Place` takes the place of the model's name. */
export class TopLevel<Place> implements Machine<string, string | Place> {
  /** The members that were kept, by their names; of a repeated member the last one. */
  readonly kept = new Map<string, string>()
  /** How often the member `model` has come. */
  models = 0
  /** The objects in the list of the member `data`. */
  items = 0
  private readonly place: Place
  private readonly names: ReadonlyArray<string>
  private state = BEFORE
  private depth = 0
  private isString = false
  /** The next character is escaped. */
  private isEscaped = false
  private key = ""
  /** The member whose value is read. */
  private member = ""
  /** The value is dropped. */
  private isDropped = false
  /** The value so far, while it is kept. */
  private value: string | undefined

  /** `names` are the members to keep. */
  constructor(place: Place, names: ReadonlyArray<string> = []) {
    this.place = place
    this.names = names
  }

  push(text: string, out: Array<string | Place>): void {
    let from = 0
    const pass = (end: number) => {
      if (end > from) out.push(text.slice(from, end))
    }
    let i = 0
    while (i < text.length) {
      if (this.isString) {
        const start = i
        i = this.endOfString(text, i)
        if (this.value !== undefined) this.keep(text.slice(start, i))
        if (this.isString) continue
        if (this.isDropped) {
          this.isDropped = false
          from = i
        }
        if (this.state === KEY) {
          this.member = unescaped(this.key)
          if (this.member === "model") this.models++
          this.state = COLON_AFTER_KEY
        }
        continue
      }
      const code = text.charCodeAt(i)
      if (this.state === VALUE && !isBlank(code)) {
        this.state = INSIDE
        if (this.member === "model" && code === QUOTE) {
          pass(i)
          out.push(this.place)
          this.isDropped = true
          // The string is dropped as far as it has arrived.
          from = text.length
        } else if (this.names.includes(this.member)) this.value = ""
      }
      if (code === QUOTE) {
        this.isString = true
        if (this.state === KEY) this.key = ""
      } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
        this.depth++
        if (this.depth === 3 && code === OPEN_BRACE && this.member === "data") this.items++
        if (this.state === BEFORE) this.state = code === OPEN_BRACE ? KEY : AFTER
      } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
        this.depth--
        if (this.depth === 0) this.endValue(AFTER)
      } else if (code === COMMA && this.depth === 1 && this.state === INSIDE) {
        this.endValue(KEY)
      } else if (code === COLON && this.state === COLON_AFTER_KEY) {
        this.state = VALUE
      } else if (this.state === BEFORE && !isBlank(code)) {
        this.state = AFTER
      }
      if (this.value !== undefined) this.keep(text.charAt(i))
      i++
    }
    if (!this.isDropped) pass(text.length)
  }

  end(): void {}

  private keep(text: string): void {
    this.value += text
    if (this.value!.length > longestKept) this.value = undefined
  }

  private endValue(next: number): void {
    if (this.value !== undefined) this.kept.set(this.member, this.value)
    this.value = undefined
    this.member = ""
    this.state = next
  }

  /** Reads a string from `start` on; returns the index behind it, or that of the text's end. */
  private endOfString(text: string, start: number): number {
    let i = start
    if (this.isEscaped) {
      this.isEscaped = false
      i++
    }
    for (;;) {
      const quote = text.indexOf("\"", i)
      const end = quote === -1 ? text.length : quote
      let slashes = 0
      while (end - 1 - slashes >= i && text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++
      const isEscaped = slashes % 2 === 1
      if (quote !== -1 && isEscaped) {
        i = quote + 1
        continue
      }
      if (this.state === KEY && this.key.length < longestKey) {
        this.key += text.slice(start, Math.min(end, start + longestKey))
      }
      this.isEscaped = quote === -1 && isEscaped
      this.isString = quote === -1
      return quote === -1 ? text.length : quote + 1
    }
  }
}
