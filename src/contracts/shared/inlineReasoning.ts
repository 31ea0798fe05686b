/**
 * Separates inline reasoning, between tags at the start of a reply, from the text.
 */
import type { Meter } from "../../domain/stream/cooperative.ts"
import { TextPieces } from "../../domain/stream/text.ts"
import { type UpstreamEvent, UpstreamReasoning, UpstreamText } from "../../domain/UpstreamEvent.ts"

/** The tags around reasoning: those of most models, and those of Command R7B. */
const tags: ReadonlyArray<readonly [open: string, close: string]> = [
  ["<think>", "</think>"],
  ["<|START_THINKING|>", "<|END_THINKING|>"]
]

/** The splitter of one reply. */
interface InlineReasoning {
  /** Adds a piece of text, cut anywhere. */
  readonly push: (piece: string, out: Array<UpstreamEvent>) => void
  /** A call begins: held text is not a tag. */
  readonly interrupt: (out: Array<UpstreamEvent>) => void
  /** The reply is over. */
  readonly end: (out: Array<UpstreamEvent>) => void
}

/** The length of the longest end of `text` that may begin the closing tag. */
const heldBack = (text: string, closeTag: string): number => {
  let length = Math.min(text.length, closeTag.length - 1)
  while (length > 0 && !closeTag.startsWith(text.slice(text.length - length))) length--
  return length
}

/** Starts a splitter. */
export const inlineReasoning = (meter?: Meter): InlineReasoning => {
  let state: "start" | "reasoning" | "separator" | "text" = "start"
  /** Leading blanks of the reply; they are text unless a tag follows. */
  const blanks = new TextPieces()
  let held = ""
  let closeTag = ""

  const push = (piece: string, out: Array<UpstreamEvent>): void => {
    if (piece === "") return
    if (meter !== undefined) meter.steps += piece.length + held.length
    switch (state) {
      case "text":
        out.push(UpstreamText(piece))
        return
      case "start": {
        let from = 0
        if (held === "") {
          from = piece.length - piece.trimStart().length
          blanks.push(piece.slice(0, from))
          if (from === piece.length) return
        }
        const text = held + piece.slice(from)
        held = ""
        const opened = tags.find(([open]) => text.startsWith(open))
        if (opened !== undefined) {
          state = "reasoning"
          closeTag = opened[1]
          return push(text.slice(opened[0].length), out)
        }
        if (tags.some(([open]) => open.startsWith(text))) {
          held = text
          return
        }
        state = "text"
        return push(blanks.toString() + text, out)
      }
      case "reasoning": {
        const text = held + piece
        const end = text.indexOf(closeTag)
        const known = end === -1 ? text.length - heldBack(text, closeTag) : end
        if (known > 0) out.push(UpstreamReasoning(text.slice(0, known)))
        held = end === -1 ? text.slice(known) : ""
        if (end === -1) return
        state = "separator"
        return push(text.slice(end + closeTag.length), out)
      }
      case "separator": {
        // The line breaks between the reasoning and the answer belong to neither.
        const text = piece.replace(/^[\r\n]+/, "")
        if (text === "") return
        state = "text"
        return push(text, out)
      }
    }
  }

  const interrupt = (out: Array<UpstreamEvent>) => {
    if (state !== "start") return
    state = "text"
    push(blanks.toString() + held, out)
    held = ""
  }

  return {
    push,
    interrupt,
    end(out) {
      interrupt(out)
      if (held !== "") out.push(UpstreamReasoning(held))
      held = ""
    }
  }
}
