/**
 * What a caller or a server says in the words of a vendor's contract and the canonical forms do not model. A driver of the same
 * family sends it back word for word; for other drivers `x-gateway-ignored` lists it, unless it is a hint.
 */
import type { JsonFields } from "./json.ts"

/** The vendor contracts that styles and drivers speak. */
export type FamilyName = "openai" | "responses" | "messages" | "generate"

/** The protocol of an upstream's responses, as captures and records name it. */
export type UpstreamProtocol = "session" | "openai" | "messages" | "generate"

/** The vendor's own words of one element: a part, a turn, a tool, or the whole request. */
export interface Native {
  readonly family: FamilyName
  /** The fields that the canonical element does not model, by the vendor's names; of a `whole` element all fields. */
  readonly fields: JsonFields
  /**
   * The element is of a kind that the canonical forms do not have. A driver of the family sends `fields` instead of the element; the
   * element itself is what other drivers send, such as its words as text.
   */
  readonly whole?: true
  /** Of a whole request: headers of the vendor's contract that a driver of the family sends too, by their names in lower case. */
  readonly headers?: { readonly [name: string]: string }
}
