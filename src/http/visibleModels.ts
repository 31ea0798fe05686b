/**
 * The models that a list shows: all, or those that the caller's key may use.
 */
import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import { Callers } from "../accounts/Callers.ts"
import { KeyLimits } from "../usage/KeyLimits.ts"
import { credentialOf } from "./RequestContext.ts"

/** Reads what the key of the current request's caller allows; `undefined` for all models. Lists need no credential. */
export const visibleModels = Effect.gen(function*() {
  const callers = yield* Callers
  const limits = yield* KeyLimits
  return Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
    const token = credentialOf(request)
    const key = token === undefined ? undefined : callers.activeKey(token)
    return key === undefined ? undefined : limits.modelsOf(key)
  })
})
