/**
 * Which form a trigger opens: by a glance where a plain word decides, else by reading on.
 */
import {
  DOLLAR,
  FULL_STOP,
  GREATER,
  HYPHEN,
  isBlank,
  isDigit,
  isLetter,
  oneOf,
  OPEN_BRACE,
  QUOTE,
  SLASH,
  SPACE,
  TAB,
  UNDERSCORE
} from "../domain/stream/characters.ts"
import type { Context, Form, Tools } from "./form.ts"
import type { Grammar } from "./grammar.ts"
import type { Prose, Trigger } from "./prose.ts"
import { readTagHead } from "./readers/tagHead.ts"
import type { Reading } from "./reading.ts"
import { peek, skipBlanks, takeLiteral, takeUntil } from "./reading.ts"

const isNameCharacter = (c: number): boolean => isLetter(c) || isDigit(c) || c === UNDERSCORE

const isWordEnd = (c: number): boolean =>
  !(isLetter(c) || isDigit(c) || c === UNDERSCORE || c === HYPHEN || c === FULL_STOP)

/** Elements that have no closing tag. */
const voidElements = new Set("area base br col embed hr img input link meta p li param source track wbr".split(" "))

/** A list may begin with such a word, and then it is data. */
const literal = /^(?:true|false|null|True|False|None)/

const beginsLiteral = oneOf("tfnTFN")

const mayBeData = (word: string): boolean => {
  const c = word.charCodeAt(0)
  return isDigit(c) || (beginsLiteral(c) && literal.test(word))
}

/** A longer word is left to a reading. */
const longestGlance = 16

/** More open elements are not kept account of. */
const maximalElements = 64

type Glance = "none" | "data" | "more" | "read"

const undecided = (at: number, end: number, isEnded: boolean): Glance =>
  isEnded || end - at > longestGlance ? "read" : "more"

const afterSpaces = (text: string, from: number): number => {
  let i = from
  while (i < text.length && (text.charCodeAt(i) === SPACE || text.charCodeAt(i) === TAB)) i++
  return i
}

const afterName = (text: string, from: number): number => {
  let i = from
  while (i < text.length && isNameCharacter(text.charCodeAt(i))) i++
  return i
}

/** What the first key of an object says that opened before `from`. */
const glanceAtKey = (text: string, at: number, from: number, keys: ReadonlySet<string>, isEnded: boolean): Glance => {
  let start = afterSpaces(text, from)
  const isQuoted = text.charCodeAt(start) === QUOTE
  if (isQuoted) start++
  const end = afterName(text, start)
  if (end === text.length) return undecided(at, end, isEnded)
  if (end === start) return "read"
  const i = isQuoted ? end : afterSpaces(text, end)
  if (i === text.length) return undecided(at, i, isEnded)
  const next = text.charCodeAt(i)
  if (next === (isQuoted ? 34 : 58)) return keys.has(text.slice(start, end)) ? "read" : "data"
  return isQuoted || next === DOLLAR || next === HYPHEN || isBlank(next) ? "read" : "none"
}

export class Openings {
  private readonly grammar: Grammar
  private readonly tools: Tools
  /** The open elements of an XML answer, innermost last. */
  private readonly elements: Array<string> = []

  constructor(grammar: Grammar, tools: Tools) {
    this.grammar = grammar
    this.tools = tools
  }

  /**
   * What a plain word says at a trigger, without a reading: `none` where it shows that no form begins there, `data` where that may be
   * data all the same, `more` where the piece ends before it does, `read` where a form must. The word is a tag's name, the one after
   * `[`, or a key; most of what HTML, Markdown, JSON and code have at these characters is decided so.
   */
  glance(text: string, at: number, prose: Prose, isEnded: boolean): Glance {
    const { trigger } = prose
    const start = trigger === "line" ? at + 1 : afterSpaces(text, at + 1)
    if (trigger === "brace") return glanceAtKey(text, at, start, this.grammar.keys.brace, isEnded)
    const i = afterName(text, start)
    if (i === text.length) return undecided(at, i, isEnded)
    const next = text.charCodeAt(i)
    if (trigger === "bracket") {
      if (i === start) {
        return next === OPEN_BRACE
          ? glanceAtKey(text, at, i + 1, this.grammar.keys.bracket, isEnded)
          : "read"
      }
      const word = text.slice(start, i)
      return isWordEnd(next) && !mayBeData(word) && this.claimBracket(word, next) === undefined ? "none" : "read"
    }
    if (trigger === "line") return "read"
    if (i === start) return next === SLASH && this.elements.length === 0 ? "none" : "read"
    if (!(next === GREATER || next === SPACE || next === SLASH)) return "read"
    const written = text.slice(start, i)
    const name = written.toLowerCase()
    if (name.startsWith("dsml") || this.claimTag(name, written) !== undefined) return "read"
    this.passElement(prose, written, false, next)
    return "none"
  }

  /** Reads what stands at a trigger as the form that it opens, if there is one, and says when it is known which. */
  *read(
    context: Context,
    trigger: Trigger,
    prose: Prose,
    narrow: (form: Form) => void
  ): Reading<void> {
    const { source } = context
    if (trigger === "brace") {
      for (const form of this.grammar.at.brace) yield* form.read(context, undefined, "")
    } else if (trigger === "line") {
      const letter = yield* peek(source)
      const form = this.grammar.at.line.find(({ opening }) =>
        opening.at === "line" && opening.word.charCodeAt(0) === letter
      )
      if (form?.opening.at !== "line" || !(yield* takeLiteral(source, form.opening.word))) return
      narrow(form)
      yield* form.read(context, undefined, "")
    } else if (trigger === "bracket") {
      source.pos++
      yield* skipBlanks(source)
      const word = yield* takeUntil(source, isWordEnd)
      const next = yield* peek(source)
      const form = this.claimBracket(word, next)
      if (form === undefined) return
      narrow(form)
      yield* form.read(context, undefined, word)
    } else {
      source.pos++
      let form: Form | undefined
      const head = yield* readTagHead(source, (name, written, isClosing) => {
        form = isClosing ? undefined : this.claimTag(name, written)
        if (form === undefined) this.passElement(prose, written, isClosing, source.text.charCodeAt(source.pos))
        else narrow(form)
        return form !== undefined
      })
      if (head?.isComplete === true && form !== undefined) yield* form.read(context, head, "")
    }
  }

  private claimTag(name: string, written: string): Form | undefined {
    for (const form of this.grammar.tags(name)) {
      const { opening } = form
      if (
        opening.at === "tag" && ("names" in opening ||
          opening.claims(name, written, this.tools) && (opening.isPlain !== true || this.elements.length === 0))
      ) return form
    }
    return undefined
  }

  private claimBracket(word: string, next: number): Form | undefined {
    for (const form of this.grammar.at.bracket) {
      if (form.opening.at === "bracket" && form.opening.claims(word, next, this.tools)) return form
    }
    return undefined
  }

  /** Keeps account of the elements of an XML answer: those whose tags begin a line. `next` is what follows the name. */
  private passElement(prose: Prose, name: string, isClosing: boolean, next: number): void {
    if (isClosing) {
      const at = this.elements.lastIndexOf(name)
      if (at >= 0) this.elements.length = at
    } else if (
      prose.isLineStart && this.elements.length < maximalElements && !voidElements.has(name) && next !== SLASH
    ) {
      this.elements.push(name)
    }
  }
}
