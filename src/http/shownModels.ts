/**
 * Which models a list shows: all, but for callers whose key may only use some.
 */
import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import { Callers } from "../accounts/Callers.ts"
import type { Model } from "../domain/models.ts"
import { KeyLimits } from "../usage/KeyLimits.ts"
import { credentialOf } from "./credential.ts"

/** Says of each model whether the caller of the current request is shown it; lists need no credential. */
export const shownModels = Effect.gen(function*() {
  const callers = yield* Callers
  const limits = yield* KeyLimits
  return Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
    const token = credentialOf(request)
    const key = token === undefined ? undefined : callers.activeKey(token)
    const allowed = key === undefined ? undefined : limits.modelsOf(key)
    return (model: Model): boolean => allowed === undefined || allowed.has(model.id)
  })
})
