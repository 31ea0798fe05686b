/** The vendor fields of a conversation's parts that the server gets. */
import type { JsonFields } from "../../domain/json.ts"
import { mergeFields, type VendorFields } from "../../domain/VendorFields.ts"

/** Tells whether a field, or an element of a kind, is sent. */
export type Sends = (name: string) => boolean

/** An element of the conversation with its vendor fields. */
interface Said {
  readonly vendorFields?: VendorFields | undefined
}

/** The fields of the Responses contract that chat completions have by the same names. */
const shared: ReadonlySet<string> = new Set(["prompt_cache_breakpoint"])

const isSent = ({ vendor, fields, wholeElement }: VendorFields, name: string, sends: Sends): boolean =>
  wholeElement === true
    ? vendor === "openai" && typeof fields["type"] === "string" && sends(fields["type"])
    : (vendor === "openai" || (vendor === "responses" && shared.has(name))) && sends(name)

/** True if the element has something for the server. */
export const hasSentFields = ({ vendorFields }: Said, sends: Sends): boolean =>
  vendorFields !== undefined && Object.keys(vendorFields.fields).some((name) => isSent(vendorFields, name, sends))

/** The element in the server's form, with the vendor fields that are sent; an element of another kind as the caller sent it. */
export const withVendorFieldsOf = <A extends JsonFields>(
  { vendorFields }: Said,
  element: A,
  sends: Sends
): A | JsonFields => {
  if (vendorFields === undefined) return element
  const fields = Object.entries(vendorFields.fields).filter(([name]) => isSent(vendorFields, name, sends))
  if (fields.length === 0) return element
  return vendorFields.wholeElement === true ? vendorFields.fields : mergeFields(element, Object.fromEntries(fields))
}
