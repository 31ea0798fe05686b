/**
 * Removes the search models' reference markers, `[citation:N]` and `[reference:N]`, from streamed text, however it is cut. It holds the
 * beginning of a possible marker: at most `longestMarker` characters.
 */
import { CLOSE_BRACKET } from "./characters.ts"
import type { Machine, Transducer } from "./transducer.ts"

const words = ["citation:", "reference:"]
const mostDigits = 9

/** The most characters that are held: a bracket, the longer word and its digits. */
export const longestMarker = 1 + "reference:".length + mostDigits

/** The length of the marker in `text` at `start`, which is a `[`; 0 for other text, -1 while undecided. */
const markerAt = (text: string, start: number): number => {
  for (const word of words) {
    const available = text.length - start - 1
    if (available < word.length) {
      if (word.startsWith(text.slice(start + 1))) return -1
      continue
    }
    if (!text.startsWith(word, start + 1)) continue
    const digits = start + 1 + word.length
    let i = digits
    while (i < text.length && i - digits <= mostDigits) {
      const code = text.charCodeAt(i)
      if (code < 48 || code > 57) break
      i++
    }
    if (i - digits > mostDigits) return 0
    if (i === text.length) return -1
    return i > digits && text.charCodeAt(i) === CLOSE_BRACKET ? i + 1 - start : 0
  }
  return 0
}

/** A machine over text pieces that drops the markers. */
interface MarkerMachine extends Machine<string, string> {
  /** Emits the held text without ending, before something other than text. */
  readonly flush: (out: Array<string>) => void
}

/** Starts a machine that drops the markers. */
export const markerMachine = (): MarkerMachine => {
  let held = ""
  const flush = (out: Array<string>) => {
    if (held !== "") out.push(held)
    held = ""
  }
  return {
    push(piece, out) {
      const text = held === "" ? piece : held + piece
      held = ""
      let from = 0
      let kept = ""
      let open = text.indexOf("[")
      while (open !== -1) {
        const length = markerAt(text, open)
        if (length === -1) {
          held = text.slice(open)
          break
        }
        if (length > 0) {
          kept += text.slice(from, open)
          from = open + length
        }
        open = text.indexOf("[", length > 0 ? from : open + 1)
      }
      kept += text.slice(from, text.length - held.length)
      if (kept !== "") out.push(kept)
    },
    flush,
    end: flush
  }
}

/** The same as a transducer of text. */
export const stripReferenceMarkers: Transducer<string, string> = markerMachine
