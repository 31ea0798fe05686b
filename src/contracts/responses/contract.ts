/**
 * The Responses contract (https://platform.openai.com/docs/api-reference/responses). Its requests are read, and its replies written, beside
 * the store of responses: `styles/responses`.
 */
import type { Contract } from "../Contract.ts"
import { familyOf } from "../shared/requestSchema.ts"
import { httpErrorFacts, isError } from "./errors.ts"
import { responsesFacts } from "./facts.ts"
import { responsesFields } from "./family.ts"
import { eventDecoder, type EventOptions } from "./readReply.ts"
import { ResponseRequest } from "./schema.ts"
import { responsesRequest } from "./writeRequest.ts"

/** The contract of Responses. */
export const responses = {
  id: "responses",
  facts: responsesFacts,
  request: familyOf(ResponseRequest, { name: "responses", vendor: "responses", open: true, fields: responsesFields }),
  writeRequest: responsesRequest,
  readReply: (form?: EventOptions) => eventDecoder(form),
  readError: httpErrorFacts,
  isError
} satisfies Contract
