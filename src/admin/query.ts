/**
 * Values that stand in a query.
 */
import * as Schema from "effect/Schema"

/** `true` or `false`; empty counts as absent. */
export const Switch = Schema.Literals(["true", "false", ""])

/** A number; a field of a form that was left empty counts as absent. */
export const PageNumber = Schema.Union([Schema.Literal(""), Schema.FiniteFromString])
