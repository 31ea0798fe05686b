/**
 * The models that a list shows: all, or those that the caller's key may use.
 */
import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import { Callers } from "../accounts/Callers.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import { KeyLimits } from "../usage/KeyLimits.ts"
import { clientAddress } from "./clientAddress.ts"
import { credentialOf, gatewayKeyOf, missingCredential } from "./RequestContext.ts"
import { everything, type Visible } from "./Serving.ts"

/**
 * Reads what the key of the current request's caller allows. Lists need no credential (spec "Authentication"), unless `auth.public_models` is off. A credential that is sent must be valid, except that any bearer passes as a
 * caller's own token while lists are public. Fails with `authentication_failed`, and as `Callers.identify` does.
 */
export const visibleModels = Effect.gen(function*() {
  const callers = yield* Callers
  const config = yield* ConfigStore
  const limits = yield* KeyLimits
  return Effect.flatMap(HttpServerRequest.HttpServerRequest, (request): Effect.Effect<Visible, GatewayError> => {
    const { auth, server } = config.now()
    const token = credentialOf(request)
    const key = token === undefined ? undefined : callers.activeKey(token)
    if (key !== undefined) return Effect.succeed({ allowed: limits.modelsOf(key), hasKey: true })
    if (auth.public_models && (token === undefined || auth.direct_upstream !== undefined)) {
      return Effect.succeed(everything)
    }
    if (token === undefined) return Effect.fail(missingCredential)
    return Effect.map(
      callers.identify(token, undefined, clientAddress(request, server), gatewayKeyOf(request)),
      (caller) =>
        caller._tag === "Managed" && caller.key !== undefined
          ? { allowed: limits.modelsOf(caller.key), hasKey: true }
          : everything
    )
  })
})
