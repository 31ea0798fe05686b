/** Which of the vendor's own fields a server of the contract gets, by the policy of fields that neither the gateway nor the contract has. */
import type { JsonFields } from "../../domain/json.ts"
import { isFields } from "../../domain/replyExtras.ts"
import type { FieldPolicy } from "../shared/fieldPolicy.ts"
import type { SentVendorFields } from "./contents.ts"

/** Fields that the gateway translates for servers of other contracts; `upstream.fields` does not concern them. */
const translatedFields: ReadonlySet<string> = new Set(
  ("systemInstruction role thoughtSignature inlineData fileData functionResponse executableCode codeExecutionResult")
    .split(" ")
)
const translatedSettings: ReadonlySet<string> = new Set(
  "responseMimeType response_mime_type responseSchema responseJsonSchema thinkingConfig".split(" ")
)

/** Tells whether a field of the vendor is sent as it stands. */
export const sendsField = (policy: FieldPolicy): (name: string) => boolean => {
  if (policy === "pass") return () => true
  const allowed = new Set(policy === "drop" ? [] : policy)
  return (name) => translatedFields.has(name) || allowed.has(name)
}

const only = (fields: JsonFields, isKept: (name: string) => boolean): JsonFields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => isKept(name)))

/** Reads the vendor's own fields of elements, as far as `upstream.fields` lets them pass. */
export const sentVendorFields = (policy: FieldPolicy): SentVendorFields => {
  const sends = sendsField(policy)
  return ({ vendorFields }) => {
    if (vendorFields?.vendor !== "generate") return undefined
    if (policy === "pass") return vendorFields
    const fields = only(vendorFields.fields, sends)
    const config = vendorFields.fields["generationConfig"]
    if (vendorFields.wholeElement === true) {
      return Object.keys(fields).length === 0
        ? undefined
        : { ...vendorFields, fields }
    }
    return isFields(config) && fields["generationConfig"] === undefined
      ? {
        ...vendorFields,
        fields: { ...fields, generationConfig: only(config, (name) => translatedSettings.has(name)) }
      }
      : { ...vendorFields, fields }
  }
}
