/**
 * The end of what is open for long: event streams and WebSocket connections.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { GatewayError } from "../domain/GatewayError.ts"

/** Completes when the gateway begins to close connections, with the refusal of new ones. By default it never completes. */
export const Draining = Context.Reference<Effect.Effect<GatewayError>>("model-gateway/http/Draining", {
  defaultValue: () => Effect.never
})
