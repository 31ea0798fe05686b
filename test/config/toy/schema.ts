/** The schema of the configuration with a setting more. */
import { Effect, Schema } from "effect"
import { Compat as RealCompat, settingGroups as realGroups } from "../../../src/config/schema.ts"

export * from "../../../src/config/schema.ts"

export const Compat = Schema.Struct({
  ...RealCompat.fields,
  toy_count: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9 }, { message: "must be between 1 and 9" }))
    .annotate({ description: "How many toys there are." })
    .pipe(Schema.withDecodingDefaultTypeKey(Effect.succeed(3)))
})
export const settingGroups = { ...realGroups, compat: Compat }
