/**
 * Values that stand in a query.
 */
import * as Schema from "effect/Schema"

/** `true` or `false`; empty counts as absent. */
export const Switch = Schema.Literals(["true", "false", ""])
