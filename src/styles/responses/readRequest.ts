/**
 * Reads the bodies of Responses requests.
 */
import { responses } from "../../contracts/responses/contract.ts"
import { requestReader } from "../../http/jsonBody.ts"
import { ResponsesGroup } from "./Api.ts"

export const readResponseRequest = requestReader(ResponsesGroup.endpoints.create, {
  family: responses.request,
  keepsSent: true
})

export const readCountRequest = requestReader(ResponsesGroup.endpoints.countTokens, {
  family: responses.request,
  keepsSent: true
})

export const readCompactRequest = requestReader(ResponsesGroup.endpoints.compact, {
  family: responses.request,
  keepsSent: true
})
