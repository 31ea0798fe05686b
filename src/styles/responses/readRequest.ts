/**
 * Reads the bodies of Responses requests.
 */
import { responsesFields } from "../../contracts/responses/family.ts"
import { ResponseRequest } from "../../contracts/responses/schema.ts"
import { familyOf } from "../../contracts/shared/requestSchema.ts"
import { requestReader } from "../../http/jsonBody.ts"
import { ResponsesGroup } from "./Api.ts"

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
