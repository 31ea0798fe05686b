/** The parts of a reply between its machines: text, reasoning, and serialized calls without numbers. */
import type { JsonFields } from "../domain/json.ts"
import type { UpstreamExtra, UpstreamReasoning, UpstreamText, UpstreamUsage } from "../domain/UpstreamEvent.ts"

/** Start of a call; only `CallGrown` follows until its `CallOver`. `id` is the upstream's, if present. */
export interface CallBegun {
  readonly _tag: "CallBegun"
  readonly id: string | undefined
  readonly name: string
  /** Fields of the upstream's call that only the upstream reads. */
  readonly sealed?: JsonFields | undefined
}

/** A non-empty piece of the arguments' JSON text. */
export interface CallGrown {
  readonly _tag: "CallGrown"
  readonly delta: string
}

/** End of a call with its complete arguments; `whole` is true if they are a JSON object. */
export interface CallOver {
  readonly _tag: "CallOver"
  readonly whole: boolean
  readonly arguments: string
  readonly sealed?: JsonFields | undefined
}

/** End of the reply. */
export interface Ending {
  readonly _tag: "Ending"
  readonly reason: "stop" | "stop_sequence" | "length" | "content_filter"
  readonly stopSequence: string | undefined
}

export type CallPart = CallBegun | CallGrown | CallOver

/** One part of a reply. */
export type ReplyPart = UpstreamText | UpstreamReasoning | CallPart | Ending | UpstreamExtra | UpstreamUsage

export const CallBegun = (id: string | undefined, name: string, sealed?: JsonFields): CallBegun =>
  sealed === undefined ? { _tag: "CallBegun", id, name } : { _tag: "CallBegun", id, name, sealed }
export const CallGrown = (delta: string): CallGrown => ({ _tag: "CallGrown", delta })
export const CallOver = (whole: boolean, args: string, sealed?: JsonFields): CallOver =>
  sealed === undefined
    ? { _tag: "CallOver", whole, arguments: args }
    : { _tag: "CallOver", whole, arguments: args, sealed }
export const Ending = (reason: Ending["reason"], stopSequence?: string): Ending => ({
  _tag: "Ending",
  reason,
  stopSequence
})
