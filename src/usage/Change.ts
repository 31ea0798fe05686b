/**
 * A change that an operator made.
 */
import * as Schema from "effect/Schema"

/** Who changes: a named token, a session, the admin key or password, an edit of the file, or the gateway itself. */
export const changeKinds = ["token", "session", "key", "file", "system"] as const

/** A change as it is kept. */
export const Change = Schema.Struct({
  /** Unix milliseconds. */
  at: Schema.Finite,
  who: Schema.Struct({ kind: Schema.Literals(changeKinds), name: Schema.NullOr(Schema.String) }),
  address: Schema.NullOr(Schema.String),
  action: Schema.String,
  fields: Schema.Array(Schema.Struct({
    path: Schema.String,
    before: Schema.NullOr(Schema.String),
    after: Schema.NullOr(Schema.String)
  })),
  more_fields: Schema.Int,
  node: Schema.String
})

export type Change = typeof Change.Type
