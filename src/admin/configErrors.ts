/**
 * What the admin API says when a change of the configuration does not take effect.
 */
import * as Effect from "effect/Effect"
import type { UpdateError } from "../config/ConfigStore.ts"
import { GatewayError, gatewayError } from "../domain/GatewayError.ts"

const told = (error: UpdateError): GatewayError => {
  switch (error._tag) {
    case "ConfigInvalid":
      return gatewayError("invalid_request", error.message, { param: error.faults[0]?.field, faults: error.faults })
    case "ConfigConflict":
      return gatewayError("conflict", error.message)
    case "ConfigFileError":
      return gatewayError("config_not_saved", error.message)
    case "StoreUnavailable":
      return gatewayError("store_unavailable", error.message, { retryAfter: 1 })
  }
}

/** Turns the store's errors into the caller's; errors that are the caller's already stay. */
export const savedOr = <A, E extends UpdateError | GatewayError, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, GatewayError, R> =>
  Effect.mapError(effect, (error: UpdateError | GatewayError) => error instanceof GatewayError ? error : told(error))
