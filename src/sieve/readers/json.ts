/**
 * An incremental JSON parser: takes one value piece by piece and passes on its normalized text as it arrives.
 *
 * It repairs what is unambiguous: unquoted keys, raw control characters and invalid backslashes in strings, trailing commas, Python's
 * spelling of the three literals. It fails at anything else. It looks at every character once, however the text is cut, and passes on
 * text without repairs in slices.
 */
import {
  APOSTROPHE,
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  CLOSE_PARENTHESIS,
  COLON,
  COMMA,
  HYPHEN,
  isBlank,
  isDigit,
  isHex,
  LOWER_U,
  LOWER_X,
  NEWLINE,
  OPEN_BRACE,
  OPEN_BRACKET,
  OPEN_PARENTHESIS,
  QUOTE,
  SPACE
} from "../../domain/stream/characters.ts"
import {
  escapeCharacter,
  isKeyCharacter,
  isKeyStart,
  isSimpleEscape,
  isWholeNumber,
  nextInNumber
} from "./jsonTokens.ts"

/**
 * `python` also accepts Python's literals: single and tripled quotes, tuples, `\x41`. `loose` accepts both languages mixed, but fails
 * at a blank line in a string, since the string's quotation mark is then a stray one.
 */
export type Flavour = "json" | "python" | "loose"

// The states: before a value, a key, a colon, a comma, an item; within a token; behind quotation marks that may be tripled.
const VALUE = 0
const FIRST_KEY = 1
const KEY = 2
const AFTER_KEY = 3
const AFTER = 4
const FIRST_ITEM = 5
const ITEM = 6
const STRING = 7
const ESCAPE = 8
const HEX = 9
const NUMBER = 10
const WORD = 11
const BARE_KEY = 12
const QUOTES = 13

const words = new Map([
  ["true", "true"],
  ["false", "false"],
  ["null", "null"],
  ["True", "true"],
  ["False", "false"],
  ["None", "null"]
])

const beginsWord = (prefix: string): boolean => {
  for (const word of words.keys()) if (word.startsWith(prefix)) return true
  return false
}

const isBlankText = (text: string, from: number, to: number): boolean => {
  for (let i = from; i < to; i++) if (!isBlank(text.charCodeAt(i))) return false
  return true
}

export class JsonReader {
  /** The value is complete; the text behind it was not taken. */
  done = false
  /** The text is not JSON, beyond repair. */
  failed = false
  /** The text was JSON only after repairs. */
  repaired = false

  private state = VALUE
  /** The closing brackets that are due, innermost last. */
  private readonly closers: Array<number> = []
  /** Text that was taken but not passed on: a comma with the blanks behind it, an incomplete escape or word. */
  private held = ""
  private isKey = false
  private number = 0
  private quote = QUOTE
  private tripled = false
  private quotes = 0
  private readonly sink: (piece: string) => void
  private readonly python: boolean
  private readonly bareKeys: boolean
  private readonly isLoose: boolean
  /** Only blanks have followed the last newline in a string. */
  private isBlankLine = false

  /** `sink` gets the normalized text, at most once per `feed`. */
  constructor(sink: (piece: string) => void, flavour: Flavour = "json") {
    this.sink = sink
    this.python = flavour !== "json"
    this.bareKeys = flavour !== "python"
    this.isLoose = flavour === "loose"
  }

  /** Prepares for another value. */
  reset(): void {
    this.done = false
    this.failed = false
    this.repaired = false
    this.state = VALUE
    this.closers.length = 0
    this.held = ""
  }

  /** The text ends within a string. */
  get isInString(): boolean {
    return this.state === STRING || this.state === ESCAPE || this.state === HEX
  }

  /** The number of open objects and arrays, without tuples. */
  get depth(): number {
    return this.closers.filter((closer) => closer !== CLOSE_PARENTHESIS).length
  }

  /** Ends the input, which completes a number at the root. */
  end(): void {
    if (this.state === NUMBER && this.closers.length === 0 && isWholeNumber(this.number)) this.done = true
  }

  /** Takes `text` from `from` to `to`; returns the index behind the last taken character, less than `to` once done or failed. */
  feed(text: string, from: number, to: number): number {
    let out = ""
    let i = from
    // Text from here on is passed on unchanged, in one slice.
    let kept = from
    while (i < to && !this.done && !this.failed) {
      const c = text.charCodeAt(i)
      switch (this.state) {
        case STRING: {
          const { quote } = this
          const start = i
          let d = c
          while (d !== quote && d !== QUOTE && d !== BACKSLASH && d >= SPACE) {
            if (++i === to) break
            d = text.charCodeAt(i)
          }
          if (this.isLoose && this.isBlankLine) this.isBlankLine = isBlankText(text, start, i)
          if (i === to) break
          if (d === NEWLINE && this.isLoose) {
            if (this.isBlankLine) {
              this.failed = true
              break
            }
            this.isBlankLine = true
          }
          if (d === QUOTE && quote === QUOTE && !this.tripled) {
            i++
            this.endString()
            break
          }
          if (d === BACKSLASH && i + 1 < to && isSimpleEscape(text.charCodeAt(i + 1))) {
            i += 2
            break
          }
          if (i > kept) out += text.slice(kept, i)
          kept = ++i
          if (d === BACKSLASH) {
            this.state = ESCAPE
          } else if (d !== quote) {
            this.repaired = true
            out += escapeCharacter(text.charAt(i - 1))
          } else if (this.tripled) {
            this.quotes = 1
            this.state = QUOTES
          } else {
            out += "\""
            this.endString()
          }
          break
        }
        case ESCAPE:
          this.state = STRING
          if (isSimpleEscape(c)) {
            out += "\\" + text.charAt(i)
            kept = ++i
          } else if (c === LOWER_U || (this.python && c === LOWER_X)) {
            this.held = "\\" + text.charAt(i)
            kept = ++i
            this.state = HEX
          } else if (this.python && c === APOSTROPHE) {
            i++
          } else {
            this.repaired = true
            out += "\\\\"
          }
          break
        case HEX: {
          const isByte = this.held.charCodeAt(1) === LOWER_X
          if (isHex(c)) {
            this.held += text.charAt(i)
            kept = ++i
            if (this.held.length < (isByte ? 4 : 6)) break
            out += isByte ? "\\u00" + this.held.slice(2) : this.held
          } else {
            this.repaired = true
            out += "\\" + this.held
          }
          this.held = ""
          this.state = STRING
          break
        }
        case QUOTES:
          if (i > kept) out += text.slice(kept, i)
          kept = i
          out += this.afterQuotes(c)
          if (c === this.quote) kept = ++i
          break
        case NUMBER: {
          let next = nextInNumber(this.number, c)
          while (next >= 0) {
            this.number = next
            if (++i === to) break
            next = nextInNumber(next, text.charCodeAt(i))
          }
          if (i === to) break
          if (isWholeNumber(this.number)) this.endValue()
          else this.failed = true
          break
        }
        case WORD: {
          this.held += text.charAt(i)
          const word = words.get(this.held)
          if (word !== undefined) {
            if (word !== this.held) this.repaired = true
            out += word
            this.held = ""
            this.endValue()
          } else if (!beginsWord(this.held)) {
            this.failed = true
            break
          }
          kept = ++i
          break
        }
        case BARE_KEY:
          while (i < to && isKeyCharacter(text.charCodeAt(i))) i++
          if (i === to) break
          out += text.slice(kept, i) + "\""
          kept = i
          this.state = AFTER_KEY
          break
        default: {
          if (isBlank(c)) {
            if (this.held !== "") {
              this.held += text.charAt(i)
              kept = i + 1
            }
            i++
            break
          }
          if (this.held !== "" && c !== this.closers[this.closers.length - 1]) out += this.held
          else if (this.held !== "") {
            this.repaired = true
            out += this.held.slice(1)
          }
          this.held = ""
          const taken = this.take(c)
          if (this.failed || this.state === NUMBER) break
          if (taken.length === 1 && taken.charCodeAt(0) === c) {
            i++
            break
          }
          if (i > kept) out += text.slice(kept, i)
          out += taken
          if (this.state !== WORD) i++
          kept = i
        }
      }
    }
    if (i > kept) out += text.slice(kept, i)
    if (out !== "") this.sink(out)
    return i
  }

  /** Takes a character between tokens and returns its normalized text. Words and numbers are left to their states. */
  private take(c: number): string {
    const state = this.state
    const takesValue = state === VALUE || state === FIRST_ITEM || state === ITEM
    if (c === this.closers[this.closers.length - 1]) {
      if (state !== AFTER && state !== FIRST_KEY && state !== KEY && state !== FIRST_ITEM && state !== ITEM) {
        return this.fail()
      }
      this.closers.pop()
      this.endValue()
      return c === CLOSE_BRACE ? "}" : "]"
    }
    if (state === AFTER) {
      if (c !== COMMA) return this.fail()
      this.held = ","
      this.state = this.closers[this.closers.length - 1] === CLOSE_BRACE ? KEY : ITEM
      return ""
    }
    if (state === AFTER_KEY) {
      if (c !== COLON) return this.fail()
      this.state = VALUE
      return ":"
    }
    if (c === QUOTE || (this.python && c === APOSTROPHE)) {
      this.isKey = !takesValue
      this.isBlankLine = false
      this.quote = c
      this.tripled = false
      this.quotes = 1
      this.state = this.python ? QUOTES : STRING
      return "\""
    }
    if (!takesValue) {
      if (!isKeyStart(c) || !this.bareKeys) return this.fail()
      this.repaired = true
      this.state = BARE_KEY
      return "\"" + String.fromCharCode(c)
    }
    if (c === OPEN_BRACE) {
      this.closers.push(CLOSE_BRACE)
      this.state = FIRST_KEY
      return "{"
    }
    if (c === OPEN_BRACKET || (this.python && c === OPEN_PARENTHESIS)) {
      this.closers.push(c === OPEN_BRACKET ? CLOSE_BRACKET : CLOSE_PARENTHESIS)
      this.state = FIRST_ITEM
      return "["
    }
    if (c === HYPHEN || isDigit(c)) {
      this.number = -1
      this.state = NUMBER
      return ""
    }
    this.state = WORD
    return ""
  }

  /** Python: distinguishes an empty string, a tripled quote and the beginning of a string, and likewise at their ends. */
  private afterQuotes(c: number): string {
    if (c === this.quote) {
      this.quotes++
      if (this.quotes < 3) return ""
      if (this.tripled) {
        this.endString()
        return "\""
      }
      this.tripled = true
      this.state = STRING
      return ""
    }
    if (this.tripled) {
      this.state = STRING
      return (this.quote === QUOTE ? "\\\"" : "'").repeat(this.quotes)
    }
    if (this.quotes === 1) {
      this.state = STRING
      return ""
    }
    this.endString()
    return "\""
  }

  private endString(): void {
    if (this.isKey) this.state = AFTER_KEY
    else this.endValue()
  }

  private endValue(): void {
    if (this.closers.length === 0) this.done = true
    else this.state = AFTER
  }

  private fail(): string {
    this.failed = true
    return ""
  }
}

/** The normalized text of a whole JSON value without the blanks around it; `undefined` when it is not JSON, or not without `repairs`. */
export const normaliseJson = (text: string, repairs: boolean): string | undefined => {
  let out = ""
  const reader = new JsonReader((piece) => {
    out += piece
  })
  const trimmed = text.trim()
  const end = reader.feed(trimmed, 0, trimmed.length)
  reader.end()
  return reader.done && end === trimmed.length && (repairs || !reader.repaired) ? out : undefined
}
