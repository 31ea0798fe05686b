/**
 * Reads a body that is any JSON object: parts of a configuration, which the store checks as a whole and in slices, since
 * they may list a hundred thousand accounts.
 */
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Schema from "effect/Schema"
import { isJsonObject } from "../config/json.ts"
import { invalidRequest } from "../domain/GatewayError.ts"
import { jsonBody } from "../http/jsonBody.ts"

const readJson = jsonBody(Schema.Unknown)

export const jsonObjectBody = Effect.fnUntraced(function*(request: HttpServerRequest.HttpServerRequest) {
  const body = yield* readJson(request)
  return isJsonObject(body) ? body : yield* invalidRequest("The request body must be a JSON object")
})
