/**
 * Changes that operators make: saving, errors, the log line, and what the reply says about persistence.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import { CanLeave } from "../config/clock/waiting.ts"
import type { Saved, UpdateError } from "../config/ConfigStore.ts"
import type { KeysSaved } from "../config/entries/endedKey.ts"
import type { RawConfig } from "../config/json.ts"
import { setField } from "../config/rawConfig.ts"
import { GatewayError, gatewayError } from "../domain/GatewayError.ts"
import { CurrentRequest } from "../http/RequestContext.ts"
import { CurrentOperator, type Done } from "./middleware.ts"

/** Fields of every reply to a change (`lasting` of the contract). */
export const lastingOf = ({ config_writable, needs_host_sync }: Saved) => ({ config_writable, needs_host_sync })

/** `endedKey` of the contract. */
export const endedOf = ({ ended }: Pick<KeysSaved, "ended">) => ended === undefined ? {} : { ended }

/** Records what the operator of the request did, in the history and in the log. */
export const logChange = (
  action: string,
  done?: Done
): Effect.Effect<void, never, CurrentRequest | CurrentOperator> =>
  Effect.gen(function*() {
    const { id } = yield* CurrentRequest
    const { record } = yield* CurrentOperator
    yield* record(action, done).pipe(Effect.annotateLogs({ request_id: id }))
  })

/** The expected revision, with or without the quotes of an entity tag; `undefined` for `*`, which matches all. */
export const revisionIn = (ifMatch: string | undefined): string | undefined => {
  const revision = ifMatch?.trim().replace(/^(?:W\/)?"(.*)"$/, "$1")
  return revision === "*" || revision === "" ? undefined : revision
}

const callerError = (error: UpdateError | GatewayError): GatewayError => {
  if (error instanceof GatewayError) return error
  switch (error._tag) {
    case "ConfigInvalid":
      return gatewayError("invalid_request", error.message, { param: error.faults[0]?.field, faults: error.faults })
    case "ConfigConflict":
      return gatewayError("conflict", error.message)
    case "ConfigLocked":
      return gatewayError("locked", error.message)
    case "ConfigFileError":
      return gatewayError("config_not_saved", error.message)
    case "StoreUnavailable":
      return gatewayError("store_unavailable", error.message, { retryAfter: 1 })
  }
}

/** Maps the errors of the configuration store to the caller's; the caller's own pass through. */
export const savedOr = <A, E extends UpdateError | GatewayError, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, GatewayError, R> => Effect.mapError(effect, callerError)

/**
 * Makes a change of the configuration and records it; the store's errors become the caller's. A client that disconnects ends a
 * change that waits, for other changes or another process. It does not interrupt it later: a change that is saved and not recorded
 * would escape the history.
 */
export const changed = <A extends Saved, E extends UpdateError | GatewayError, R>(
  action: string,
  change: Effect.Effect<A, E, R>
): Effect.Effect<A, GatewayError, R | CurrentRequest | CurrentOperator> =>
  savedOr(Effect.provideService(change, CanLeave, true)).pipe(
    Effect.tap((saved) => saved.change === undefined ? Effect.void : logChange(action, saved.change)),
    Effect.uninterruptible
  )

/** Sets fields of a group of the configuration; `undefined` removes one. */
export const setFields = (
  raw: RawConfig,
  group: string,
  fields: Readonly<Record<string, Schema.Json | undefined>>
): RawConfig => Object.entries(fields).reduce((next, [name, value]) => setField(next, [group, name], value), raw)
