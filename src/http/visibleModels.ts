/**
 * The models that a list shows: all, or those that the caller's key may use.
 */
import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import { Callers } from "../accounts/Callers.ts"
import type { Model } from "../domain/models.ts"
import { KeyLimits } from "../usage/KeyLimits.ts"
import { credentialOf } from "./RequestContext.ts"

/** Makes the filter of models for the current request's caller. Lists need no credential. */
export const visibleModels = Effect.gen(function*() {
  const callers = yield* Callers
  const limits = yield* KeyLimits
  return Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
    const token = credentialOf(request)
    const key = token === undefined ? undefined : callers.activeKey(token)
    const allowed = key === undefined ? undefined : limits.modelsOf(key)
    return (model: Model): boolean => allowed === undefined || allowed.has(model.id)
  })
})
