/**
 * The vendor fields of a request, for servers that speak this contract too: what a driver cannot know from the conversation alone.
 */
import type { Part } from "../../domain/Conversation.ts"
import type { Json, JsonFields } from "../../domain/json.ts"
import { mergeFields, type VendorFields } from "../../domain/VendorFields.ts"
import { reworded } from "./family.ts"
import type { MessagesRequest } from "./schema.ts"

const vendor = "messages"

/** A single text in a list; a text without it is a string. */
export const asList: VendorFields = { vendor, fields: {} }

/** A turn of the message before it. */
export const continued: VendorFields = { vendor, fields: {}, continues: true }

/** A part of a block that the part before it has whole. */
const absorbed: VendorFields = { vendor, fields: {}, wholeElement: true }

/** A system message among the messages. */
export const systemFields = (vendorFields: VendorFields | undefined): VendorFields => ({
  vendor,
  fields: { ...vendorFields?.fields, role: "system" }
})

/** A block or tool as the caller sent it: as the body has it, or of what the gateway reads and what it does not. */
export const wholeOf = (element: object, vendorFields: VendorFields | undefined): VendorFields => {
  if (vendorFields?.wholeElement === true) return vendorFields
  const fields = element as JsonFields
  return {
    vendor,
    fields: vendorFields === undefined ? fields : mergeFields(fields, vendorFields.fields),
    wholeElement: true
  }
}

/** The parts that a block was decoded to, the first of which has the block as the caller sent it. */
export const inWords = <A extends Part>(parts: ReadonlyArray<A>, vendorFields: VendorFields): ReadonlyArray<A> =>
  parts.map((part, i) => ({ ...part, vendorFields: i === 0 ? vendorFields : absorbed }))

/** The vendor fields of the whole request. */
export const requestFields = (
  request: Pick<typeof MessagesRequest.Type, typeof reworded[number]>,
  vendorFields: VendorFields | undefined
): VendorFields => {
  let fields: { [name: string]: Json } | undefined
  for (const name of reworded) {
    const value = request[name]
    if (value === undefined || value === null) continue
    fields ??= {}
    fields[name] = value as Json
  }
  if (fields === undefined) return vendorFields ?? asList
  return { vendor, fields: vendorFields === undefined ? fields : mergeFields(fields, vendorFields.fields) }
}
