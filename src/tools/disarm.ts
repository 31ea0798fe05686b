/**
 * Makes markers in a caller's own text harmless: a zero-width space after their `<`, which a reader does not see.
 *
 * Always covered are the role markers of the prompt (`<|user|>`, …), the tags and special tokens in which calls are written, and the
 * tags around results, opening or closing, with noise and in look-alike characters: a text that a caller quotes can neither end its
 * turn nor show the model a call that never was. Forms without a `<` stay: they mean something in the model's own reply only.
 */
import { LESS } from "../stream/characters.ts"
import { atOnce, pieceChars, Slice, type Sliced } from "../stream/slices.ts"
import { foldText, openers } from "./fold.ts"
import { closingName } from "./readers/tagHead.ts"

const zeroWidthSpace = "\u200b"

const roles = new Set(["system", "user", "assistant", "tool", "end"])

const tags = new Set([
  "tool_call",
  "tool_calls",
  "function_call",
  "function_calls",
  "function",
  "invoke",
  "parameter",
  "tool_use",
  "tool_result",
  "arg_key",
  "arg_value"
])

const tokens = new Set([
  "tool_calls_begin",
  "tool_call_begin",
  "tool_sep",
  "tool_call_end",
  "tool_calls_end",
  "tool_calls_section_begin",
  "tool_call_argument_begin",
  "tool_calls_section_end",
  "python_tag",
  "action_start",
  "plugin",
  "action_end",
  "start",
  "channel",
  "constrain",
  "message",
  "call"
])

const otherOpeners = new Set(openers.filter((c) => c > 127))

const isOpener = (c: number): boolean => c === LESS || (c > 127 && otherOpeners.has(c))

/** No marker is longer up to where its name is known. */
const maximalHead = 96

/** Characters that looking at a head counts for beside its own. */
const headCost = 16

/** What every name of a marker has in it, however it is spelled: most heads have none of these. */
const partOfName =
  /tool|func|invoke|param|arg|sys|user|assist|end|python|action|plugin|start|channel|constrain|message|call/

/** Whether a marker begins at a `<`, which is folded and in lower case. */
const isMarker = (head: string): boolean => {
  if (!partOfName.test(head)) return false
  const inner = /^<([\s|/-]*[a-z0-9_.:-][a-z0-9_.:\s|/-]{0,80})/.exec(head)?.[1]
  if (inner === undefined) return false
  // A name is followed by attributes: it is the first word that is known, whatever noise stands before it.
  const words = inner.split(/\s/)
  for (let i = 1; i <= Math.min(words.length, 6); i++) {
    const name = closingName("<" + words.slice(0, i).join(" ") + ">")
    if (name === undefined) continue
    if (tags.has(name)) return true
    if (inner.includes("|") && (tokens.has(name) || roles.has(name))) return true
  }
  return false
}

/**
 * `text` with every marker disarmed; disarming it again changes nothing. One pass: what is looked at after an opener ends
 * before the next one, since no marker's name has one in it.
 */
export function* disarmSliced(text: string, slice: Slice): Sliced<string> {
  const pieces: Array<string> = []
  let done = 0
  let counted = 0
  /** The opener whose head is not over yet. */
  let at = -1
  for (let i = 0; i <= text.length; i++) {
    if (i - counted >= pieceChars) {
      if (slice.add(0, i - counted)) yield slice.end()
      counted = i
    }
    const isEnd = i === text.length || isOpener(text.charCodeAt(i))
    if (!isEnd && (at === -1 || i - at < maximalHead)) continue
    // A head costs more than other characters.
    if (at !== -1 && slice.add(0, headCost)) yield slice.end()
    if (at !== -1 && isMarker(foldText(text.slice(at, i)).toLowerCase())) {
      pieces.push(text.slice(done, at + 1), zeroWidthSpace)
      done = at + 1
    }
    at = isEnd ? i : -1
  }
  if (slice.add(1, text.length - counted)) yield slice.end()
  return done === 0 ? text : pieces.join("") + text.slice(done)
}

/** `disarmSliced` at once. */
export const disarm = (text: string): string => atOnce(disarmSliced(text, new Slice()))
