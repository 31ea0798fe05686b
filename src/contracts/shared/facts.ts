/** Facts that several contracts share. */
import type { Conversation } from "../../domain/Conversation.ts"
import { type GatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import type { Json } from "../../domain/json.ts"
import { isFields } from "../../domain/replyExtras.ts"
import type { FamilyName } from "../../domain/VendorFields.ts"
import type { CallBounds, PromptCaching, ShownFields } from "../Contract.ts"

/** What most vendors document. */
export const usualCaching: PromptCaching = { least: 1_024, lifetime: 3_600, markedLifetime: 3_600 }

const every = (isShown: (element: { readonly [field: string]: Json }) => boolean) => (value: Json): boolean =>
  Array.isArray(value) && value.every((element: Json) => isFields(element) && isShown(element))

/** Reasoning is shown as text. The sealed parts are kept for the calls that follow, of which the client sees nothing. */
const isReadable = every(({ data, signature }) => data === undefined && (signature ?? null) === null)

/** What of a message the contracts beside chat completions have a place for. */
export const shownInMessage = {
  refusal: true,
  images: true,
  annotations: every(({ type }) => type === "url_citation"),
  audio: { transcript: true },
  reasoning_details: isReadable
} satisfies ShownFields

export const shownLogprobs: ShownFields = { logprobs: { content: true } }

/** True for a number of calls. */
export const isCount = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 0

/** The refusal of a tool whose calls have no bound. */
export const unboundedCalls = (field: string, what: string): GatewayError =>
  invalidRequest(
    `${field}: a strict limit or budget applies, and the calls of the vendor's tool need a bound; ${what}`,
    field
  )

/** The bounds of a contract whose tools have none: any of its tools is refused. */
export const noBounds = (family: FamilyName) => ({ vendorTools = [] }: Conversation): CallBounds => {
  const tool = vendorTools.find(({ vendorFields: { fields, vendor } }) =>
    vendor === family && fields["type"] !== "custom"
  )
  return tool === undefined ? [] : unboundedCalls(`tools[${tool.index}]`, "its contract has none: leave the tool out")
}
