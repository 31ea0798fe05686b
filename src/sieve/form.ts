/**
 * A form: one notation in which models write tool calls. The sieve's parser is a list of forms (`forms/table.ts`), each with what it
 * begins with and a coroutine that parses it (`reading.ts`).
 */
import type { ToolDeclaration } from "../domain/Conversation.ts"
import type { TagHead } from "./readers/markup.ts"
import type { Reading, Source } from "./reading.ts"

export type Tools = ReadonlyMap<string, ToolDeclaration>

/**
 * The engine, as a form sees it while it parses.
 *
 * The engine holds the text that a form has taken until the form says what it is: `start` and `consume` make it part of a call, so
 * that it never leaves as text. Text that is still held when the parse ends leaves as text.
 */
export interface Context {
  readonly source: Source
  readonly tools: Tools
  /** Begins a call and drops the held text: form and name are certain. */
  readonly start: (name: string) => void
  /** Appends to the JSON of the call's arguments. */
  readonly write: (piece: string) => void
  /** Ends the call, whose arguments are complete, and consumes. */
  readonly finish: () => void
  /** Ends the call as cut off or malformed, and consumes. */
  readonly cutOff: () => void
  /** Drops the held text as part of the calls; holding begins anew at the current position. */
  readonly consume: () => void
  /** Lifts the form's bound: the text is certain to be a call, but its name is not known yet. */
  readonly commit: () => void
  /** Consumes the fence that closes the form's block. Until then what the form leaves is fenced code. */
  readonly closeFence: () => void
}

/** What a form begins with. */
export type Opening =
  /** A tag or special token with one of these names, in lower case. */
  | { readonly at: "tag"; readonly names: ReadonlyArray<string> }
  /**
   * A tag whose name is claimed. `name` is folded to ASCII in lower case, `written` is as in the text. `isPlain` marks a form that only
   * the name distinguishes from other markup: it does not begin inside another element.
   */
  | {
    readonly at: "tag"
    readonly claims: (name: string, written: string, tools: Tools) => boolean
    readonly isPlain: boolean
  }
  /** `{` and one of these keys. */
  | { readonly at: "brace"; readonly keys: ReadonlySet<string> }
  /** `[`, an optional word, and the character `next`; if that is `{`, one of `keys` follows it. */
  | {
    readonly at: "bracket"
    readonly claims: (word: string, next: number, tools: Tools) => boolean
    readonly keys: ReadonlySet<string> | undefined
  }
  /** A word at the start of a line, or the whole info string of a fence there. No such word begins another one. */
  | { readonly at: "line" | "fence"; readonly word: string }

/**
 * Names that mean a call of this form and nothing else, including those that begin it. In a caller's own text they are disarmed before
 * a model sees it (`disarm.ts`).
 */
export interface Markers {
  /** Names of tags, in lower case. */
  readonly tags?: ReadonlyArray<string>
  /** Names of special tokens, in lower case with `_` between words. */
  readonly tokens?: ReadonlyArray<string>
}

export interface Form {
  readonly name: string
  readonly opening: Opening
  /** Empty for a form without tags and tokens, or with tags named like tools. */
  readonly markers: Markers
  /** The longest lookahead, in characters from the first one, that deciding between call and text can need. */
  readonly bound: number
  /**
   * Parses from behind the opening; for `brace` from the `{`, for `fence` from the first line of the block. `head` is the tag's head;
   * `word` is the word behind `[`, or the fence's run of characters.
   */
  readonly read: (context: Context, head: TagHead | undefined, word: string) => Reading<void>
}
