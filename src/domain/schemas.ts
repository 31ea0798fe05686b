/**
 * Schemas that the bodies of several APIs share.
 */
import * as Schema from "effect/Schema"
import type { Json } from "./Conversation.ts"

/** A field that may be left out or `null`. */
export const optional = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/**
 * JSON within what a JSON parser made, whose form is the caller's own. It is not looked at again: that would cost a walk
 * through every schema of a tool, and a Schema with a check of its own keeps all that it stands in from being compiled.
 */
export const ParsedJson = Schema.Unknown as unknown as Schema.Codec<Json>

/** An object of the caller's own within what a JSON parser made. */
export const ParsedObject = Schema.Record(Schema.String, ParsedJson)
