/**
 * Reads the bodies of Responses requests.
 */
import { familyOf } from "../../domain/families/requestSchema.ts"
import { responsesFields } from "../../domain/families/responses.ts"
import { requestReader } from "../../http/jsonBody.ts"
import { ResponseRequest, ResponsesGroup } from "./Api.ts"

export const responsesFamily = familyOf(ResponseRequest, {
  name: "responses",
  vendor: "responses",
  open: true,
  fields: responsesFields
})

export const readResponseRequest = requestReader(ResponsesGroup.endpoints.create, {
  family: responsesFamily,
  keepsSent: true
})

export const readCountRequest = requestReader(ResponsesGroup.endpoints.countTokens, {
  family: responsesFamily,
  keepsSent: true
})

export const readCompactRequest = requestReader(ResponsesGroup.endpoints.compact, {
  family: responsesFamily,
  keepsSent: true
})
