/**
 * A reply of the reference upstream before it is put into events: what is said, in which pieces, and how it is to be sent.
 *
 * A piece is what one event brings; places within a reply (cuts, faults, how much has been sent) are counted in pieces.
 */
import type { Json } from "../domain/Conversation.ts"
import type { CallName } from "./envelope.ts"
import type { Fault } from "./Fault.ts"

/** A piece of reasoning or of reply text. */
export interface TextPiece {
  readonly _tag: "Think" | "Say"
  readonly text: string
  /** Milliseconds of silence before this piece, beyond the pace. */
  readonly wait: number
}

/** A whole fragment of another type: `TOOL_SEARCH`, `TOOL_OPEN`, `TIP`, or one that no driver knows. */
export interface FragmentPiece {
  readonly _tag: "Fragment"
  readonly type: string
  readonly fields: { readonly [key: string]: Json }
  readonly wait: number
}

/** A value somewhere in the document is set. */
export interface SetPiece {
  readonly _tag: "Set"
  readonly path: string
  readonly value: Json
  readonly wait: number
}

export type Piece = TextPiece | FragmentPiece | SetPiece

/**
 * How token counts are told: `accumulated_token_usage` at the end (`accumulated`) or after every piece (`running`),
 * `token_usage` as a number (`total`) or as an object (`parts`), both, a value of one's own, only the zero that a reply
 * starts with, or not at all.
 */
export type UsageForm =
  | { readonly _tag: "Computed"; readonly form: "accumulated" | "running" | "total" | "parts" | "both" }
  | { readonly _tag: "Accumulated"; readonly value: number }
  | { readonly _tag: "Given"; readonly value: Json }
  | { readonly _tag: "Zero" }
  | { readonly _tag: "None" }

/** How a continued stream starts. */
export type Restart = "snapshot" | "empty" | "none"

/** Places at which the upstream's output limit cuts the reply off: `at` counts pieces; `every` cuts again and again. */
export interface Cuts {
  readonly at: ReadonlySet<number>
  readonly every: number | undefined
  readonly restart: Restart
  readonly status: "INCOMPLETE" | "AUTO_CONTINUE"
}

/** A fault that the script asks for. Without `times` it happens each time. */
export interface ScriptedFault extends Fault {
  readonly call: CallName
  readonly times: number | undefined
}

export interface Reply {
  readonly pieces: ReadonlyArray<Piece>
  readonly shape: "new" | "old"
  readonly usage: UsageForm
  readonly cuts: Cuts
  /** Milliseconds before each piece; `undefined` sends as fast as it goes. */
  readonly pace: number | undefined
  /** Events in one write. */
  readonly burst: number
  readonly faults: ReadonlyArray<ScriptedFault>
  readonly thinking: boolean
  readonly search: boolean
  readonly promptTokens: number
}

/** The number of pieces after which the round that starts at `from` is cut off; `undefined` where it goes to the end. */
export const nextCut = (reply: Reply, from: number): number | undefined => {
  const length = reply.pieces.length
  let cut = reply.cuts.every === undefined ? length : from + reply.cuts.every
  for (const at of reply.cuts.at) if (at > from && at < cut) cut = at
  return cut < length ? cut : undefined
}
