/**
 * Makes markers in a caller's own text harmless: a zero-width space after their `<`, which a reader does not see.
 *
 * Always covered are the role markers of the prompt (`<|user|>`, …), the tags and special tokens in which calls are written, and the
 * tags around results, opening or closing, with noise and in look-alike characters: a text that a caller quotes can neither end its
 * turn nor show the model a call that never was. What calls are written with is each form's to say. Forms without a `<` stay: they
 * mean something in the model's own reply only.
 */
import { atOnce, pieceChars, Slice, type Sliced } from "../domain/stream/slices.ts"
import { foldText, openers } from "./fold.ts"
import type { Form } from "./form.ts"
import { forms } from "./forms/table.ts"
import { closingName } from "./readers/tagHead.ts"

const zeroWidthSpace = "\u200b"

/** The tag around a call's result in a prompt. */
export const resultTag = "tool_result"

/** The names between bars with which turns of the prompt begin and end. */
const roles = ["system", "user", "assistant", "tool", "end"]

/** The names of all that is disarmed, and how to tell most other heads from one of these at a glance. */
interface Names {
  readonly tags: ReadonlySet<string>
  readonly tokens: ReadonlySet<string>
  /** Matches what every name has in it, however it is spelled: its first word. */
  readonly hint: RegExp
}

const namesOf = (forms: ReadonlyArray<Form>): Names => {
  const tags = new Set([resultTag, ...forms.flatMap(({ markers }) => markers.tags ?? [])])
  const tokens = new Set([...roles, ...forms.flatMap(({ markers }) => markers.tokens ?? [])])
  const firstWords = new Set([...tags, ...tokens].map((name) => name.split("_", 1)[0]))
  return { tags, tokens, hint: new RegExp([...firstWords].join("|")) }
}

const anyOpener = new RegExp(`[${String.fromCharCode(...openers)}]`, "g")

/** Where the first opener stands from `from` on; -1 where there is none. */
const nextOpener = (text: string, from: number): number => {
  anyOpener.lastIndex = from
  return anyOpener.test(text) ? anyOpener.lastIndex - 1 : -1
}

/** No marker is longer up to where its name is known. */
const maximalHead = 96

/** Characters that looking at a head counts for beside its own. */
const headCost = 16

/** Whether a marker begins at a `<`, which is folded and in lower case. */
const isMarker = ({ hint, tags, tokens }: Names, head: string): boolean => {
  if (!hint.test(head)) return false
  const inner = /^<([\s|/-]*[a-z0-9_.:-][a-z0-9_.:\s|/-]{0,80})/.exec(head)?.[1]
  if (inner === undefined) return false
  // A name is followed by attributes: it is the first word that is known, whatever noise stands before it.
  const words = inner.split(/\s/)
  for (let i = 1; i <= Math.min(words.length, 6); i++) {
    const name = closingName("<" + words.slice(0, i).join(" ") + ">")
    if (name === undefined) continue
    if (tags.has(name)) return true
    if (inner.includes("|") && tokens.has(name)) return true
  }
  return false
}

/** What is looked at after an opener: up to the next one, since no marker's name has one in it. */
const headAt = (text: string, at: number): string => {
  const rest = text.slice(at + 1, at + maximalHead)
  const next = nextOpener(rest, 0)
  return text.slice(at, next === -1 ? at + maximalHead : at + 1 + next)
}

function* disarmNames(names: Names, text: string, slice: Slice): Sliced<string> {
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

/** The disarming of what these forms are written with. */
export const disarmOf = (forms: ReadonlyArray<Form>) => {
  const names = namesOf(forms)
  return (text: string, slice: Slice): Sliced<string> => disarmNames(names, text, slice)
}

/** `text` with every marker disarmed; disarming it again changes nothing. */
export const disarmSliced: (text: string, slice: Slice) => Sliced<string> = disarmOf(forms)

/** `disarmSliced` at once. */
export const disarm = (text: string): string => atOnce(disarmSliced(text, new Slice()))
