/**
 * The events that every driver yields, whatever its upstream's protocol. All code above the drivers is written against them.
 */
import type { JsonFields } from "./json.ts"
import type { ExtraPlace } from "./replyExtras.ts"
import type { UsageDetails } from "./units.ts"
import type { FamilyName } from "./VendorFields.ts"

/** The token counts that an upstream reported so far; absent counts are estimated by the completion service. */
export interface PartialUsage {
  readonly promptTokens?: number | undefined
  /** All tokens of the reply, reasoning included. */
  readonly completionTokens?: number | undefined
  readonly reasoningTokens?: number | undefined
  /** Part of `promptTokens` that the upstream served from its cache. */
  readonly cachedTokens?: number | undefined
  /** Part of `promptTokens` that the upstream wrote to its cache. */
  readonly cacheWriteTokens?: number | undefined
  /** What the bill knows beside plain tokens. */
  readonly details?: UsageDetails | undefined
}

/**
 * An event of a server as it came, for clients of the server's contract. An event that has one says nothing else than the original: what
 * changes an event leaves its original out.
 *
 * A piece of text stands in the event, and not in its original: pieces that differ in nothing else may share one.
 */
export type Original = JsonFields

/** A piece of the reasoning trace. */
export interface UpstreamReasoning {
  readonly _tag: "UpstreamReasoning"
  readonly text: string
}

/** A piece of reply text; may contain tool calls written as text, reference markers and stop sequences. */
export interface UpstreamText {
  readonly _tag: "UpstreamText"
  readonly text: string
  readonly original?: Original | undefined
}

/** A piece of a structured call, from an upstream with a native tool interface. `id` and `name` are set once known. */
export interface UpstreamCall {
  readonly _tag: "UpstreamCall"
  readonly index: number
  readonly id: string | undefined
  readonly name: string | undefined
  readonly argumentsDelta: string
  /** Fields of the call that only the upstream reads, such as signatures. They come back with the call in later requests. */
  readonly sealed?: JsonFields | undefined
}

/** Fields of a reply that the other events do not model, in the format of the driver's family (`ReplyExtra`). */
export interface UpstreamExtra {
  readonly _tag: "UpstreamExtra"
  readonly family: FamilyName
  readonly at: ExtraPlace
  readonly value: JsonFields
}

/** Token counts so far; later values of a field replace earlier ones. */
export interface UpstreamUsage {
  readonly _tag: "UpstreamUsage"
  readonly usage: PartialUsage
}

/** The events that follow are of this choice, up to the next one of these; those before the first one are of choice 0. */
export interface UpstreamChoice {
  readonly _tag: "UpstreamChoice"
  readonly index: number
}

/** What an upstream may say of the end of a reply. */
interface EndWords {
  /** The caller's stop sequence at which the upstream ended the reply. */
  readonly stopSequence: string | undefined
  /** The server's own word for the end, if no contract knows it. The reason is `length` then. */
  readonly unknown: string | undefined
}

/**
 * The upstream's end of the reply. `length`: cut at an output limit and not continued, or not known to be whole. `content_filter`: withdrawn. A
 * stream of upstream events ends with exactly one of these for each of its choices, or fails.
 */
export interface UpstreamFinish extends Partial<EndWords> {
  readonly _tag: "UpstreamFinish"
  readonly reason: "stop" | "tool_calls" | "length" | "content_filter"
}

/** An event of an upstream's reply. */
export type UpstreamEvent =
  | UpstreamReasoning
  | UpstreamText
  | UpstreamCall
  | UpstreamExtra
  | UpstreamUsage
  | UpstreamChoice
  | UpstreamFinish

export const UpstreamReasoning = (text: string): UpstreamReasoning => ({ _tag: "UpstreamReasoning", text })
export const UpstreamText = (text: string, original?: Original): UpstreamText =>
  original === undefined ? { _tag: "UpstreamText", text } : { _tag: "UpstreamText", text, original }
export const UpstreamCall = (
  index: number,
  id: string | undefined,
  name: string | undefined,
  argumentsDelta: string,
  sealed?: JsonFields
): UpstreamCall =>
  sealed === undefined
    ? { _tag: "UpstreamCall", index, id, name, argumentsDelta }
    : { _tag: "UpstreamCall", index, id, name, argumentsDelta, sealed }

export const UpstreamExtra = (family: FamilyName, at: ExtraPlace, value: JsonFields): UpstreamExtra => ({
  _tag: "UpstreamExtra",
  family,
  at,
  value
})
export const UpstreamUsage = (usage: PartialUsage): UpstreamUsage => ({ _tag: "UpstreamUsage", usage })
export const UpstreamChoice = (index: number): UpstreamChoice => ({ _tag: "UpstreamChoice", index })
export const UpstreamFinish = (
  reason: UpstreamFinish["reason"],
  ...[stopSequence, unknown]: ReadonlyArray<string | undefined>
): UpstreamFinish => ({
  _tag: "UpstreamFinish",
  reason,
  ...(stopSequence === undefined ? {} : { stopSequence }),
  ...(unknown === undefined ? {} : { unknown })
})
