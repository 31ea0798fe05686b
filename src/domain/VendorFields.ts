/**
 * Vendor fields: what a caller or a server says by a vendor's contract and the canonical forms do not model. A driver of the same
 * family sends them back as they came; for other drivers `x-gateway-ignored` lists them, unless they are ignorable.
 */
import type { FamilyName } from "../contracts/names.ts"
import type { Json, JsonFields } from "./json.ts"
import type { Maker } from "./makers.ts"
import { isFields } from "./replyExtras.ts"

export type { FamilyName }

/** A stored response that a request continues. */
export interface ContinuedResponse {
  readonly id: string
  /** The number of its items, with which the conversation begins. */
  readonly items: number
  /** The account by which its server stores it; absent if only the gateway has it, or if the new items refer to others. */
  readonly heldBy?: Maker | undefined
}

/** The vendor fields of one element: a part, a turn, a tool, or the whole request. */
export interface VendorFields {
  readonly vendor: FamilyName
  /** The fields that the canonical element does not model, by the vendor's names; of a whole element all fields. */
  readonly fields: JsonFields
  /**
   * The element is of a kind that the canonical forms do not have. A driver of the family sends `fields` instead of the element; the
   * element itself is what other drivers send, such as its words as text.
   */
  readonly wholeElement?: true
  /** Of a turn: it belongs to the same message as the turn before it. */
  readonly continues?: true
  /** Of a whole request: each tool that the model may call is one whose calls the gateway reads, and the reply may have calls. */
  readonly readsCalls?: true
  /** Of a whole request: headers of the vendor's contract that a driver of the family sends too, by their names in lower case. */
  readonly headers?: { readonly [name: string]: string }
  /** Of a whole request: it asks for a compaction alone, by the endpoint that the contract has for that. */
  readonly compacts?: true
  /** Of a whole request: the seals of its items, in their order. */
  readonly seals?: ReadonlyArray<string>
  /** Of a whole request: the stored response that it continues. */
  readonly continued?: ContinuedResponse
}

/** True if the element is sent whole to a driver of the family, as its caller wrote it. */
export const isWholeFor = (
  { vendorFields }: { readonly vendorFields?: VendorFields | undefined },
  family: FamilyName | undefined
): boolean => vendorFields?.wholeElement === true && vendorFields.vendor === family

/** The headers that a caller of a contract sends by it; `undefined` for callers of other contracts. */
export const headersFor = (
  { vendorFields }: { readonly vendorFields?: VendorFields | undefined },
  contract: FamilyName
): VendorFields["headers"] => vendorFields?.vendor === contract ? vendorFields.headers : undefined

/** An element as a driver writes it, with its vendor fields beneath. The element's own fields win, at every depth. */
export const mergeFields = (element: JsonFields, fields: JsonFields): JsonFields => {
  const merged: { [name: string]: Json } = { ...element }
  for (const name of Object.keys(fields)) {
    const own = merged[name]
    const value = fields[name]!
    if (own === undefined) merged[name] = value
    else if (isFields(own) && isFields(value)) merged[name] = mergeFields(own, value)
  }
  return merged
}
