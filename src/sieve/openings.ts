/**
 * Decides which form begins at a trigger: by a glance at the next word if that suffices, else by parsing.
 */
import {
  COLON,
  DOLLAR,
  GREATER,
  HYPHEN,
  isBlank,
  isDigit,
  isLetter,
  NEWLINE,
  oneOf,
  OPEN_BRACE,
  QUOTE,
  SLASH,
  SPACE,
  TAB,
  UNDERSCORE
} from "../domain/stream/characters.ts"
import type { Context, Form, Tools } from "./form.ts"
import { lineStartsOf, type Prose, type Trigger } from "./prose.ts"
import { readTagHead } from "./readers/markup.ts"
import { peek, type Reading, skipBlanks, skipSpaces, type Source, takeUntil } from "./reading.ts"

/** A list of forms, indexed by what they begin with. */
export interface Grammar {
  /** The forms of each trigger, in their order. */
  readonly at: { readonly [K in Trigger]: ReadonlyArray<Form> }
  /** The bound of each trigger while it is not decided which form begins. */
  readonly bounds: { readonly [K in Trigger]: number }
  /** The forms, in their order, that a tag of this name may begin; a form with `claims` decides for itself. */
  readonly tags: (name: string) => ReadonlyArray<Form>
  /** The keys behind a brace that begin forms. */
  readonly keys: { readonly [K in "brace" | "bracket"]: ReadonlySet<string> }
  /** The words that begin forms, as the word of a line and as the info string of a fence. */
  readonly words: { readonly [K in "line" | "fence"]: ReadonlyArray<readonly [word: string, form: Form]> }
  /** What each character means at the start of a line. */
  readonly lineStarts: Uint8Array
}

const byTrigger = <A>(of: (trigger: Trigger) => A): { readonly [K in Trigger]: A } => ({
  tag: of("tag"),
  brace: of("brace"),
  bracket: of("bracket"),
  line: of("line"),
  fence: of("fence")
})

export const grammarOf = (forms: ReadonlyArray<Form>): Grammar => {
  const at = byTrigger((trigger) => forms.filter((form) => form.opening.at === trigger))
  const mayBe = (name: string) => ({ opening }: Form): boolean =>
    opening.at === "tag" && (!("names" in opening) || opening.names.includes(name))
  const named = at.tag.flatMap(({ opening }) => opening.at === "tag" && "names" in opening ? opening.names : [])
  const tags = new Map(named.map((name) => [name, at.tag.filter(mayBe(name))]))
  const unnamed = at.tag.filter(({ opening }) => !("names" in opening))
  const wordsAt = (trigger: "line" | "fence") =>
    at[trigger].flatMap((form) => "word" in form.opening ? [[form.opening.word, form] as const] : [])
  const words = { line: wordsAt("line"), fence: wordsAt("fence") }
  return {
    at,
    bounds: byTrigger((trigger) => Math.max(0, ...at[trigger].map((form) => form.bound))),
    tags: (name) => tags.get(name) ?? unnamed,
    keys: {
      brace: new Set(at.brace.flatMap(({ opening }) => opening.at === "brace" ? [...opening.keys] : [])),
      bracket: new Set(at.bracket.flatMap(({ opening }) => opening.at === "bracket" ? [...opening.keys ?? []] : []))
    },
    words,
    lineStarts: lineStartsOf(words.line.map(([word]) => word.charCodeAt(0)), words.fence.length > 0)
  }
}

const isJoiner = oneOf("-.")

const isNameCharacter = (c: number): boolean => isLetter(c) || isDigit(c) || c === UNDERSCORE

const isWordEnd = (c: number): boolean => !isNameCharacter(c) && !isJoiner(c)

/** HTML elements without a closing tag. */
const voidElements = new Set("area base br col embed hr img input link meta p li param source track wbr".split(" "))

/** Words with which a list of data may begin. */
const literal = /^(?:true|false|null|True|False|None)/

const beginsLiteral = oneOf("tfnTFN")

const mayBeData = (word: string): boolean => {
  const c = word.charCodeAt(0)
  return isDigit(c) || (beginsLiteral(c) && literal.test(word))
}

/** Characters that a glance looks at; a longer word is parsed. */
const longestGlance = 16

/** Open elements that are tracked; deeper ones are ignored. */
const maximalElements = 64

/**
 * What a glance found. `prose`: no form begins here. `data`: no form, but possibly a JSON answer. `more`: the piece ends too early.
 * `parse`: only a form can decide.
 */
type Glance = "prose" | "data" | "more" | "parse"

const undecided = (at: number, end: number, isEnded: boolean): Glance =>
  isEnded || end - at > longestGlance ? "parse" : "more"

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

/** Judges an object, whose brace stands before `from`, by its first key. */
const glanceAtKey = (text: string, at: number, from: number, keys: ReadonlySet<string>, isEnded: boolean): Glance => {
  let start = afterSpaces(text, from)
  const isQuoted = text.charCodeAt(start) === QUOTE
  if (isQuoted) start++
  const end = afterName(text, start)
  if (end === text.length) return undecided(at, end, isEnded)
  if (end === start) return "parse"
  const i = isQuoted ? end : afterSpaces(text, end)
  if (i === text.length) return undecided(at, i, isEnded)
  const next = text.charCodeAt(i)
  if (next === (isQuoted ? QUOTE : COLON)) return keys.has(text.slice(start, end)) ? "parse" : "data"
  return isQuoted || next === DOLLAR || next === HYPHEN || isBlank(next) ? "parse" : "prose"
}

/** Compares the text with the words of forms, whose openings begin at `at`. */
const glanceAtWord = (
  text: string,
  at: number,
  from: number,
  words: Grammar["words"]["line"],
  isEnded: boolean
): Glance => {
  for (const [word] of words) {
    if (text.startsWith(word, from)) return "parse"
    if (text.length - from < word.length && word.startsWith(text.slice(from))) {
      return undecided(at, text.length, isEnded)
    }
  }
  return "prose"
}

/** Judges a fence by its info string. */
const glanceAtFence = (text: string, at: number, words: Grammar["words"]["fence"], isEnded: boolean): Glance => {
  const character = text.charCodeAt(at)
  let i = at
  while (i < text.length && text.charCodeAt(i) === character) i++
  if (i === text.length) return undecided(at, i, isEnded)
  return i - at < 3 ? "prose" : glanceAtWord(text, at, afterSpaces(text, i), words, isEnded)
}

/** Takes one of these words and returns its form; stops at the first character that continues none. */
function* takeWord(source: Source, words: Grammar["words"]["line"]): Reading<Form | undefined> {
  let left = words
  for (let length = 0; left.length > 0; length++) {
    const whole = left.find(([word]) => word.length === length)
    if (whole !== undefined) return whole[1]
    const c = yield* peek(source)
    left = left.filter(([word]) => word.charCodeAt(length) === c)
    if (left.length > 0) source.pos++
  }
  return undefined
}

export class Openings {
  private readonly grammar: Grammar
  private readonly tools: Tools
  /** The open elements of an answer in XML, innermost last. */
  private readonly elements: Array<string> = []

  constructor(grammar: Grammar, tools: Tools) {
    this.grammar = grammar
    this.tools = tools
  }

  /**
   * Judges a trigger by the word behind it: a tag's name, the word behind `[`, or a key. That decides most of the HTML, Markdown,
   * JSON and code in replies without a parse.
   */
  glance(text: string, at: number, prose: Prose, isEnded: boolean): Glance {
    const { trigger } = prose
    const { words } = this.grammar
    if (trigger === "line") return glanceAtWord(text, at, at, words.line, isEnded)
    if (trigger === "fence") return glanceAtFence(text, at, words.fence, isEnded)
    const start = afterSpaces(text, at + 1)
    if (trigger === "brace") return glanceAtKey(text, at, start, this.grammar.keys.brace, isEnded)
    const i = afterName(text, start)
    if (i === text.length) return undecided(at, i, isEnded)
    const next = text.charCodeAt(i)
    if (trigger === "bracket") {
      if (i === start) {
        return next === OPEN_BRACE
          ? glanceAtKey(text, at, i + 1, this.grammar.keys.bracket, isEnded)
          : "parse"
      }
      const word = text.slice(start, i)
      return isWordEnd(next) && !mayBeData(word) && this.claimBracket(word, next) === undefined ? "prose" : "parse"
    }
    if (i === start) return next === SLASH && this.elements.length === 0 ? "prose" : "parse"
    if (!(next === GREATER || next === SPACE || next === SLASH)) return "parse"
    const written = text.slice(start, i)
    const name = written.toLowerCase()
    if (name.startsWith("dsml") || this.claimTag(name, written) !== undefined) return "parse"
    this.trackElement(prose, written, false, next)
    return "prose"
  }

  /** Parses the form that begins at a trigger, if any; calls `narrow` once it is known which form that is. */
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
      const form = yield* takeWord(source, this.grammar.words.line)
      if (form === undefined) return
      narrow(form)
      yield* form.read(context, undefined, "")
    } else if (trigger === "fence") {
      const character = yield* peek(source)
      const fence = yield* takeUntil(source, (c) => c !== character)
      if (fence.length < 3) return
      yield* skipSpaces(source)
      const form = yield* takeWord(source, this.grammar.words.fence)
      if (form === undefined || (yield* skipSpaces(source)) !== NEWLINE) return
      source.pos++
      narrow(form)
      prose.openFence(fence.length)
      yield* form.read(context, undefined, fence)
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
        if (form === undefined) this.trackElement(prose, written, isClosing, source.text.charCodeAt(source.pos))
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

  /** Tracks the elements of an answer in XML: those whose tags begin a line. `next` is the character behind the name. */
  private trackElement(prose: Prose, name: string, isClosing: boolean, next: number): void {
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
