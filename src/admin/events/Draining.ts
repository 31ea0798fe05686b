/**
 * Says when the gateway takes no new requests any more, so that streams without an end of their own end.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** Ends when draining begins. By default it never does. */
export const Draining = Context.Reference<Effect.Effect<void>>("model-gateway/admin/Draining", {
  defaultValue: () => Effect.never
})
