/**
 * The canonical reply: a closed union of events. Every style's stream renders these events, and every non-stream reply is their fold.
 *
 * Order: reasoning, text and calls as the model wrote them. A call is one `CallStarted`, its `CallArguments`, then one `CallFinished` or
 * `CallCutOff`, without events of another call between. `UsageReported` comes at most once, after all content, and the one `Finish` is last.
 *
 * `ReplyExtra` comes before the text that it belongs to, and never within a call.
 *
 * The events of a reply of several choices are of the choice that the last `ChoiceBegan` names. Each choice ends with one `ChoiceOver`; calls
 * are numbered within their choice.
 */
import type { JsonFields } from "./json.ts"
import { type ExtraPlace, isContentPlace } from "./replyExtras.ts"
import type { Usage } from "./units.ts"
import type { Original } from "./UpstreamEvent.ts"
import type { FamilyName } from "./VendorFields.ts"

export type { Usage }

/** A piece of the model's reasoning trace. */
export interface ReasoningDelta {
  readonly _tag: "ReasoningDelta"
  readonly text: string
}

/** A piece of the answer. Never empty, and never a piece of a confirmed tool call. */
export interface TextDelta {
  readonly _tag: "TextDelta"
  readonly text: string
  /** The server's event, if the text is all of it that is text. */
  readonly original?: Original | undefined
}

/** A tool call whose form and name are certain. `index` counts from 0 in text order; `id` is unique within the reply. */
export interface CallStarted {
  readonly _tag: "CallStarted"
  readonly index: number
  readonly id: string
  readonly name: string
  /** Fields of the upstream's call that only the upstream reads, as far as they are known. */
  readonly sealed?: JsonFields | undefined
}

/** A piece of the JSON text of a call's arguments. */
export interface CallArguments {
  readonly _tag: "CallArguments"
  readonly index: number
  readonly delta: string
}

/** A complete call. `arguments` is a JSON object's text and equals the concatenated deltas. */
export interface CallFinished {
  readonly _tag: "CallFinished"
  readonly index: number
  readonly id: string
  readonly name: string
  readonly arguments: string
  /** All fields of the upstream's call that only the upstream reads. */
  readonly sealed?: JsonFields | undefined
}

/** A call that ended inside its arguments or could not be repaired. It must not look runnable. */
export interface CallCutOff {
  readonly _tag: "CallCutOff"
  readonly index: number
  readonly id: string
  readonly name: string
  /** The concatenated deltas; in general not valid JSON. */
  readonly arguments: string
}

/**
 * Fields of the server's reply that the other events do not model, in its family's format. Fields of the `message`, and a
 * `block`, are content.
 */
export interface ReplyExtra {
  readonly _tag: "ReplyExtra"
  readonly family: FamilyName
  readonly at: ExtraPlace
  readonly value: JsonFields
}

/** The events that follow are of this choice, which may have begun before. A reply of one choice has no such event. */
export interface ChoiceBegan {
  readonly _tag: "ChoiceBegan"
  readonly index: number
}

/** The end of the choice. */
export interface ChoiceOver {
  readonly _tag: "ChoiceOver"
  readonly reason: FinishReason
  readonly stopSequence: string | undefined
}

/** The reply's token counts, those of all its choices. */
export interface UsageReported {
  readonly _tag: "UsageReported"
  readonly usage: Usage
}

/** Why a reply ended. `content_filter`: the upstream withdrew it. `stop_sequence`: it reached one of the caller's stop sequences. */
export type FinishReason = "stop" | "stop_sequence" | "tool_calls" | "length" | "content_filter"

/** The end of the reply; nothing follows. Of several choices it has the reason of the one that ended last. */
export interface Finish {
  readonly _tag: "Finish"
  readonly reason: FinishReason
  /** The sequence that was found, for `stop_sequence`. */
  readonly stopSequence: string | undefined
}

/** The events that the sieve emits. */
export type SieveEvent = TextDelta | CallStarted | CallArguments | CallFinished | CallCutOff

/** One event of a reply. */
export type ReplyEvent = ReasoningDelta | SieveEvent | ReplyExtra | ChoiceBegan | ChoiceOver | UsageReported | Finish

/** Constructors. */
export const ReasoningDelta = (text: string): ReasoningDelta => ({ _tag: "ReasoningDelta", text })
export const TextDelta = (text: string, original?: Original): TextDelta =>
  original === undefined ? { _tag: "TextDelta", text } : { _tag: "TextDelta", text, original }
export const CallStarted = (index: number, id: string, name: string, sealed?: JsonFields): CallStarted =>
  sealed === undefined
    ? { _tag: "CallStarted", index, id, name }
    : { _tag: "CallStarted", index, id, name, sealed }
export const CallArguments = (index: number, delta: string): CallArguments => ({ _tag: "CallArguments", index, delta })
export const CallFinished = (
  index: number,
  id: string,
  name: string,
  args: string,
  sealed?: JsonFields
): CallFinished =>
  sealed === undefined
    ? { _tag: "CallFinished", index, id, name, arguments: args }
    : { _tag: "CallFinished", index, id, name, arguments: args, sealed }
export const CallCutOff = (index: number, id: string, name: string, args: string): CallCutOff => ({
  _tag: "CallCutOff",
  index,
  id,
  name,
  arguments: args
})
export const ReplyExtra = (family: ReplyExtra["family"], at: ExtraPlace, value: JsonFields): ReplyExtra => ({
  _tag: "ReplyExtra",
  family,
  at,
  value
})
export const ChoiceBegan = (index: number): ChoiceBegan => ({ _tag: "ChoiceBegan", index })
export const ChoiceOver = (reason: FinishReason, stopSequence: string | undefined): ChoiceOver => ({
  _tag: "ChoiceOver",
  reason,
  stopSequence
})
export const UsageReported = (usage: Usage): UsageReported => ({ _tag: "UsageReported", usage })
export const Finish = (reason: FinishReason, stopSequence?: string): Finish => ({
  _tag: "Finish",
  reason,
  stopSequence
})

/** True for an event with content to show. */
export const isShown = (event: ReplyEvent): boolean => {
  switch (event._tag) {
    case "ReplyExtra":
      return isContentPlace(event.at)
    case "ChoiceBegan":
    case "ChoiceOver":
    case "UsageReported":
    case "Finish":
      return false
    default:
      return true
  }
}
