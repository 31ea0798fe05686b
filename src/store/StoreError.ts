/** What can go wrong with the store. No message holds a credential, an address with one, or a value. */
import * as Schema from "effect/Schema"

/** The store cannot be used by this node: a wrong address, password or key, a server that is too old or that may forget. */
export class StoreInvalid extends Schema.TaggedError<StoreInvalid>()("StoreInvalid", { message: Schema.String }) {}

/** The store does not answer at the moment. What was asked for may still happen. */
export class StoreUnavailable extends Schema.TaggedError<StoreUnavailable>()("StoreUnavailable", {
  message: Schema.String
}) {}
