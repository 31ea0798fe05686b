/**
 * Schemas that the bodies of several APIs share.
 */
import * as Schema from "effect/Schema"
import type { Json } from "./json.ts"

/** A field that may be left out or `null`. */
export const optional = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/** What is used of a limit. */
export const Spent = Schema.NullOr(Schema.Struct({ limit: Schema.Int, used: Schema.Int, remaining: Schema.Int }))

/** What is used of a cost limit, as decimal numbers. */
export const SpentCost = Schema.NullOr(
  Schema.Struct({ limit: Schema.String, used: Schema.String, remaining: Schema.String })
)

/**
 * Caller-defined JSON: accepted as parsed, not validated. Validation would walk through every schema of a tool, and a Schema with a
 * check of its own prevents the compilation of every Schema around it.
 */
export const ParsedJson = Schema.Unknown as unknown as Schema.Codec<Json>

/** A caller-defined JSON object: accepted as parsed, values not validated. */
export const ParsedObject = Schema.Record(Schema.String, ParsedJson)
