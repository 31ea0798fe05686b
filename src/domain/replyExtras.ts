/**
 * What a server's reply has beyond the events that the gateway models: JSON fields, and how pieces of one field are joined.
 */
import type { Json, JsonFields } from "./json.ts"

/**
 * The part of a reply that extra fields belong to: the whole, its choice, the choice's message, or the token counts. `reasoning`: the
 * fields are a sealed block of reasoning, which ends here. `block`: they are one whole element of the content, of a kind that the
 * events do not model. The places of `EventPlace`: they are an event as the server sent it, which stands beside the events that say the same.
 */
export type ExtraPlace = FoldedPlace | "reasoning" | "block" | EventPlace

/**
 * What an event of the server is about: the whole response, the beginning of an item or of a part of one, a whole item at its end, or
 * anything else.
 */
export type EventPlace = "response" | "begin" | "item" | "event"

/** True for an event as the server sent it. */
export const isEventPlace = (at: ExtraPlace): at is EventPlace =>
  at === "event" || at === "begin" || at === "item" || at === "response"

/** True for a place over which no text goes on. */
export const isBoundPlace = (at: ExtraPlace): boolean => at === "block" || at === "begin" || at === "item"

/** The places at which the fields of several events are joined. */
export type FoldedPlace = "chunk" | "choice" | "message" | "usage"

/** True for a place whose fields are content of the reply. */
export const isContentPlace = (at: ExtraPlace): boolean => at === "message" || isBoundPlace(at)

/** True for a place whose fields belong between the pieces of the reply where they arrive. */
export const isOrderedPlace = (at: ExtraPlace): boolean => isContentPlace(at) || at === "reasoning" || at === "event"

/** The extra fields of a whole reply, by place. */
export type ReplyExtras = { readonly [At in FoldedPlace]?: JsonFields }

interface Grown {
  [field: string]: Json | Array<Json> | Grown
}

export const isFields = (value: Json | undefined): value is JsonFields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Lists of which the last one counts: a content-generation server repeats them as they become longer. */
const replaced: ReadonlySet<string> = new Set(["safetyRatings", "groundingMetadata", "urlContextMetadata"])

/** Strings that a stream sends in pieces; other values of a field replace earlier ones. */
const growing: ReadonlySet<string> = new Set(["refusal", "transcript", "data", "text", "summary"])

/** True for a piece of `reasoning_details` that continues the last one: it has the same index and type. */
const continues = (last: Json | undefined, piece: Json): boolean =>
  isFields(piece) && isFields(last) && piece["index"] !== undefined && piece["index"] === last["index"] &&
  piece["type"] === last["type"]

const append = (name: string, list: Array<Json | Grown>, more: ReadonlyArray<Json>): void => {
  for (const piece of more) {
    const last = list.at(-1) as Json | undefined
    if (name === "reasoning_details" && isFields(piece)) {
      if (continues(last, piece)) grow(last as Grown, piece)
      else list.push(grow({}, piece))
    } else list.push(piece)
  }
}

/** Appends lists and growing strings, joins objects and replaces other values, in place. `into` has no object of anybody else. */
const grow = (into: Grown, more: JsonFields): Grown => {
  for (const name of Object.keys(more)) {
    const before = into[name]
    const value = more[name]!
    if (replaced.has(name)) into[name] = value
    else if (Array.isArray(value)) {
      const list: Array<Json> = Array.isArray(before) ? before : []
      append(name, list, value)
      into[name] = list
    } else if (isFields(value)) {
      into[name] = grow(isFields(before as Json | undefined) ? before as Grown : {}, value)
    } else if (typeof before === "string" && typeof value === "string" && growing.has(name)) {
      into[name] = before + value
    } else into[name] = value
  }
  return into
}

/** The fields without those that have no value now and had one before. */
const said = (known: Grown, value: JsonFields): JsonFields =>
  Object.values(value).includes(null)
    ? Object.fromEntries(Object.entries(value).filter(([name, field]) => field !== null || known[name] === undefined))
    : value

/** Joins the extra fields of one reply. What is said of the whole reply, and of its usage, is said again in full. */
export class ExtraFold {
  private readonly fields: { [At in FoldedPlace]?: Grown } = {}

  push({ at, value }: { readonly at: ExtraPlace; readonly value: JsonFields }): void {
    if (at === "reasoning" || at === "block" || isEventPlace(at)) return
    const known = this.fields[at] ?? {}
    this.fields[at] = at === "chunk" || at === "usage" ? Object.assign(known, said(known, value)) : grow(known, value)
  }

  get extras(): ReplyExtras {
    return this.fields as ReplyExtras
  }
}

/** The most fields of one call that only the upstream reads. */
const mostSealed = 16

/** Adds fields to those of a call that only the upstream reads. */
export const addSealed = (before: JsonFields | undefined, more: JsonFields): JsonFields =>
  before === undefined || Object.keys(before).length < mostSealed ? { ...before, ...more } : before
