/** What the machines of a reply hand on: text, reasoning, and calls one after another, before they are numbered. */
import type { UpstreamUsage } from "../domain/UpstreamEvent.ts"

/** A piece of text or reasoning. */
export interface TextPart {
  readonly _tag: "Text" | "Reasoning"
  readonly text: string
}

/** A call begins; nothing but pieces of it comes until it is over. `id` is the upstream's, where it has one. */
export interface CallBegun {
  readonly _tag: "CallBegun"
  readonly id: string | undefined
  readonly name: string
}

/** A piece of the JSON text of the arguments; never empty. */
export interface CallGrown {
  readonly _tag: "CallGrown"
  readonly delta: string
}

/** The call is over: `whole` says whether its arguments, all of them here, are a JSON object. */
export interface CallOver {
  readonly _tag: "CallOver"
  readonly whole: boolean
  readonly arguments: string
}

/** The reply ends; nothing follows. */
export interface Ending {
  readonly _tag: "Ending"
  readonly reason: "stop" | "stop_sequence" | "length" | "content_filter"
  readonly stopSequence: string | undefined
}

export type CallPart = CallBegun | CallGrown | CallOver

/** One part of a reply. */
export type ReplyPart = TextPart | CallPart | Ending | UpstreamUsage

export const Text = (text: string): TextPart => ({ _tag: "Text", text })
export const Reasoning = (text: string): TextPart => ({ _tag: "Reasoning", text })
export const CallBegun = (id: string | undefined, name: string): CallBegun => ({ _tag: "CallBegun", id, name })
export const CallGrown = (delta: string): CallGrown => ({ _tag: "CallGrown", delta })
export const CallOver = (whole: boolean, args: string): CallOver => ({ _tag: "CallOver", whole, arguments: args })
export const Ending = (reason: Ending["reason"], stopSequence?: string): Ending => ({
  _tag: "Ending",
  reason,
  stopSequence
})
