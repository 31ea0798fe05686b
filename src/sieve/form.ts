/**
 * What a form is: one way in which models write tool calls. Each is one module in `forms/`, listed in `forms/table.ts`.
 */
import type { ToolDeclaration } from "../domain/Conversation.ts"
import type { TagHead } from "./readers/tagHead.ts"
import type { Reading, Source } from "./reading.ts"

export type Tools = ReadonlyMap<string, ToolDeclaration>

/**
 * The sieve, as a form sees it while it reads.
 *
 * What a form has read is on hold until `start` says that it is a call, or `settle` that it belongs to the calls before it.
 * When a reading ends, what is still on hold goes on as text.
 */
export interface Context {
  readonly source: Source
  readonly tools: Tools
  /** Begins a call: its form and name are certain. */
  readonly start: (name: string) => void
  /** Appends to the JSON of the call's arguments. */
  readonly write: (piece: string) => void
  /** Ends the call, whose arguments are complete, and settles. */
  readonly finish: () => void
  /** Ends the call as cut off or malformed, and settles. */
  readonly cutOff: () => void
  /** Drops what is on hold; what follows is on hold anew. */
  readonly settle: () => void
  /** Lifts the bound from what is on hold: it is certain to be a call, but its name is not known yet. */
  readonly commit: () => void
}

/** How a form may begin. */
export type Opening =
  /** With a tag, or special token, of one of these names, which are in lower case. */
  | { readonly at: "tag"; readonly names: ReadonlyArray<string> }
  /**
   * With a tag. `name` is folded, `written` as it stands in the text. With `isPlain` nothing but the name tells it from any other
   * tag, so that it does not begin inside of another element.
   */
  | {
    readonly at: "tag"
    readonly claims: (name: string, written: string, tools: Tools) => boolean
    readonly isPlain?: boolean
  }
  /** With `{` and one of these keys. */
  | { readonly at: "brace"; readonly keys: ReadonlySet<string> }
  /** With `[`, a word (or none) and the character `next` after it; where that is `{`, with one of `keys` behind it. */
  | {
    readonly at: "bracket"
    readonly claims: (word: string, next: number, tools: Tools) => boolean
    readonly keys?: ReadonlySet<string>
  }
  /** With a word at the start of a line. */
  | { readonly at: "line"; readonly word: string }

/**
 * Names that mean a call of the form and nothing else: where a caller's own text has them in tags or in special tokens, it is disarmed
 * before a model sees it. Those with which the form begins are among them.
 */
export interface Markers {
  /** Of tags, in lower case. */
  readonly tags?: ReadonlyArray<string>
  /** Of special tokens, in lower case and with `_` between words. */
  readonly tokens?: ReadonlyArray<string>
}

export interface Form {
  readonly name: string
  readonly opening: Opening
  /** None where the form is written without tags and tokens, or with those of a tool's own. */
  readonly markers: Markers
  /** The most characters, from the first on, that the decision whether it is a call can need. */
  readonly bound: number
  /** Reads from after the opening, but with `brace` from the `{` on. `head` is the tag's, `word` the one after `[`. */
  readonly read: (context: Context, head: TagHead | undefined, word: string) => Reading<void>
}
