/** What can go wrong with the store. No message holds a credential, an address with one, or a value. */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"

/** The store cannot be used by this node: a wrong address, password or key, a server that is too old or that may forget. */
export class StoreInvalid extends Schema.TaggedError<StoreInvalid>()("StoreInvalid", { message: Schema.String }) {}

/** The store does not answer at the moment. What was asked for may still happen. */
export class StoreUnavailable extends Schema.TaggedError<StoreUnavailable>()("StoreUnavailable", {
  message: Schema.String
}) {}

/** A node that starts is patient with the store for as long as it waits for it to be there. */
export const patiently = <A, E, R>(effect: Effect.Effect<A, E | StoreUnavailable, R>) =>
  Effect.retry(effect, {
    while: (error) => error instanceof StoreUnavailable,
    schedule: Schedule.spaced("250 millis"),
    times: 120
  })
