import * as Schema from "effect/Schema"

/** A field that may be left out or `null`. */
export const optional = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))
