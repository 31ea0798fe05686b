/**
 * The end of what is open for long: event streams and WebSocket connections.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** Completes when the gateway begins to close connections. By default it never completes. */
export const Draining = Context.Reference<Effect.Effect<void>>("model-gateway/http/Draining", {
  defaultValue: () => Effect.never
})
