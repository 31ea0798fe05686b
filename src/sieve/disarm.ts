/**
 * Disarms markers in a caller's text with a zero-width space behind their `<`, which is invisible to people.
 *
 * Markers are the role markers of the prompt (`<|user|>`, …), the tags and special tokens of every form (`Markers` in `form.ts`), and
 * the tags around results; opening and closing, with noise, and in look-alike characters. So text that a caller quotes can neither end
 * its turn nor show the model a call that did not happen. Forms without a `<` stay, since they have a meaning only in the model's reply.
 */
import { type Cooperative, pieceChars, runSync, Slice } from "../domain/stream/cooperative.ts"
import { foldText, openers } from "./fold.ts"
import type { Form } from "./form.ts"
import { forms } from "./forms/table.ts"
import { closingName } from "./readers/markup.ts"

const zeroWidthSpace = "\u200b"

/** The tag around a call's result in a prompt. */
export const resultTag = "tool_result"

/** The names of the tokens that begin and end the prompt's turns. */
const roles = ["system", "user", "assistant", "tool", "end"]

/** The names of all markers, and a quick test that rules out most other tags. */
interface Names {
  readonly tags: ReadonlySet<string>
  readonly tokens: ReadonlySet<string>
  /** Matches the first words of the names, which every spelling contains. */
  readonly hint: RegExp
}

const namesOf = (forms: ReadonlyArray<Form>): Names => {
  const tags = new Set([resultTag, ...forms.flatMap(({ markers }) => markers.tags ?? [])])
  const tokens = new Set([...roles, ...forms.flatMap(({ markers }) => markers.tokens ?? [])])
  const firstWords = new Set([...tags, ...tokens].map((name) => name.split("_", 1)[0]))
  return { tags, tokens, hint: new RegExp([...firstWords].join("|")) }
}

const anyOpener = new RegExp(`[${String.fromCharCode(...openers)}]`, "g")

/** The index of the first opener from `from`, or -1. */
const nextOpener = (text: string, from: number): number => {
  anyOpener.lastIndex = from
  return anyOpener.test(text) ? anyOpener.lastIndex - 1 : -1
}

/** The most characters of a marker up to the end of its name. */
const maximalHead = 96

/** What looking at a head costs in addition to its characters. */
const headCost = 16

/** True for a head, folded and in lower case, that begins a marker. */
const isMarker = ({ hint, tags, tokens }: Names, head: string): boolean => {
  if (!hint.test(head)) return false
  const inner = /^<([\s|/-]*[a-z0-9_.:-][a-z0-9_.:\s|/-]{0,80})/.exec(head)?.[1]
  if (inner === undefined) return false
  // Noise may precede the name, and attributes follow it: the first known word counts.
  const words = inner.split(/\s/)
  for (let i = 1; i <= Math.min(words.length, 6); i++) {
    const name = closingName("<" + words.slice(0, i).join(" ") + ">")
    if (name === undefined) continue
    if (tags.has(name)) return true
    if (inner.includes("|") && tokens.has(name)) return true
  }
  return false
}

/** The text from an opener to the next one, or to the longest head: names do not contain openers. */
const headAt = (text: string, at: number): string => {
  const rest = text.slice(at + 1, at + maximalHead)
  const next = nextOpener(rest, 0)
  return text.slice(at, next === -1 ? at + maximalHead : at + 1 + next)
}

function* disarmNames(names: Names, text: string, slice: Slice): Cooperative<string> {
  const pieces: Array<string> = []
  let done = 0
  for (let from = 0; from < text.length; from += pieceChars) {
    const piece = text.slice(from, from + pieceChars)
    if (slice.add(from === 0 ? 1 : 0, piece.length)) yield slice.end()
    for (let i = nextOpener(piece, 0); i !== -1; i = nextOpener(piece, i + 1)) {
      // A head costs more than other characters.
      if (slice.add(0, headCost)) yield slice.end()
      const at = from + i
      if (isMarker(names, foldText(headAt(text, at)).toLowerCase())) {
        pieces.push(text.slice(done, at + 1), zeroWidthSpace)
        done = at + 1
      }
    }
  }
  return done === 0 ? text : pieces.join("") + text.slice(done)
}

/** Disarms the markers of these forms. */
export const disarmOf = (forms: ReadonlyArray<Form>) => {
  const names = namesOf(forms)
  return (text: string, slice: Slice): Cooperative<string> => disarmNames(names, text, slice)
}

/** Disarms every marker in a text. Idempotent. */
export const disarmCooperatively: (text: string, slice: Slice) => Cooperative<string> = disarmOf(forms)

/** Disarms every marker in a text, in one go. Idempotent. */
export const disarm = (text: string): string => runSync(disarmCooperatively(text, new Slice()))
