/** The schema of the configuration with two fields more in each entry. */
import { Schema } from "effect"
import * as real from "../../../src/config/schema.ts"

export * from "../../../src/config/schema.ts"

const added = {
  toy_count: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9 }, { message: "must be between 1 and 9" }))
      .annotate({ description: "How many toys there are." })
  ),
  toy_kind: Schema.optionalKey(Schema.Literals(["doll", "train"]).annotate({ description: "What is played with." }))
}

export const KeyRecordEntry = Schema.Struct({ ...real.KeyRecordEntry.fields, ...added })
export const UpstreamEntry = Schema.Struct({ ...real.UpstreamEntry.fields, ...added })
export const RouteEntry = Schema.Struct({ ...real.RouteEntry.fields, ...added })
export const PriceEntry = Schema.Struct({ ...real.PriceEntry.fields, ...added })
export const AdminTokenEntry = Schema.Struct({ ...real.AdminTokenEntry.fields, ...added })
