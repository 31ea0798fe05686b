/**
 * Changes that operators make: one log line each, and what every reply to one says of whether it lasts.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Saved, UpdateError } from "../config/ConfigStore.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import { CurrentRequest } from "../http/Request.ts"
import { savedOr } from "./configErrors.ts"

/** Fields of every reply to a change (behaviour "Starting, configuration"). */
export const lasting = {
  /** False when the change is gone with the process. */
  config_writable: Schema.Boolean,
  /** True when only a sync to the hosting platform keeps the change. */
  needs_host_sync: Schema.Boolean
}

/** The same fields, filled. */
export const lastingOf = ({ config_writable, needs_host_sync }: Saved) => ({ config_writable, needs_host_sync })

/** Logs that something was changed: what kind of change, never who or what it was about, since that may be a secret. */
export const logChange = (kind: string): Effect.Effect<void, never, CurrentRequest> =>
  Effect.flatMap(
    CurrentRequest,
    ({ id }) => Effect.logInfo(`Admin change: ${kind}`).pipe(Effect.annotateLogs({ request_id: id }))
  )

/** Makes a change of the configuration; the store's errors become the caller's. */
export const changed = <A extends Saved, E extends UpdateError | GatewayError, R>(
  kind: string,
  change: Effect.Effect<A, E, R>
): Effect.Effect<A, GatewayError, R | CurrentRequest> => Effect.tap(savedOr(change), () => logChange(kind))
