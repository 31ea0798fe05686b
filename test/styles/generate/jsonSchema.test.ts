import { assert, describe, it } from "@effect/vitest"
import * as JsonSchemas from "../../../src/contracts/generate/jsonSchema.ts"
import type { JsonSchema } from "../../../src/domain/Conversation.ts"
import { runSync, Slice } from "../../../src/domain/stream/cooperative.ts"

const toJsonSchema = (schema: JsonSchema) => runSync(JsonSchemas.toJsonSchema(schema, new Slice()))

describe("a schema of the vendor's", () => {
  it("becomes JSON Schema at every depth", () => {
    assert.deepStrictEqual(
      toJsonSchema({
        type: "OBJECT",
        description: "An order",
        required: ["items"],
        propertyOrdering: ["items", "note"],
        properties: {
          items: { type: "ARRAY", minItems: "1", items: { type: "STRING", enum: ["A", "B"], format: "enum" } },
          note: { anyOf: [{ type: "STRING", maxLength: "80" }, { type: "INTEGER" }], example: "x" }
        }
      }),
      {
        type: "object",
        description: "An order",
        required: ["items"],
        properties: {
          items: { type: "array", minItems: 1, items: { type: "string", enum: ["A", "B"], format: "enum" } },
          note: { anyOf: [{ type: "string", maxLength: 80 }, { type: "integer" }], examples: ["x"] }
        }
      }
    )
  })

  it.each([
    [{ type: "STRING", nullable: true }, { type: ["string", "null"] }],
    [{ type: "STRING", nullable: false }, { type: "string" }],
    [{ type: "NULL", nullable: true }, { type: "null" }],
    [{ type: "STRING", enum: ["a"], nullable: true }, { type: ["string", "null"], enum: ["a", null] }],
    [{ anyOf: [{ type: "STRING" }], nullable: true }, { anyOf: [{ type: "string" }, { type: "null" }] }]
  ])("tells by its type that null is taken: %j", (schema, expected) => {
    assert.deepStrictEqual(toJsonSchema(schema), expected)
  })

  it("leaves out a type that says nothing", () => {
    assert.deepStrictEqual(toJsonSchema({ type: "TYPE_UNSPECIFIED", description: "any" }), { description: "any" })
  })

  it("has its keywords in snake_case too", () => {
    assert.deepStrictEqual(
      toJsonSchema({ any_of: [{ type: "ARRAY", min_items: "2", prefix_items: [{ type: "STRING" }] }] }),
      { anyOf: [{ type: "array", minItems: 2, prefixItems: [{ type: "string" }] }] }
    )
  })

  it("keeps property names that look like keywords or types", () => {
    const properties = { any_of: { type: "string" }, type: { type: "string" }, STRING: { type: "string" } }
    assert.deepStrictEqual(toJsonSchema({ type: "OBJECT", properties }), { type: "object", properties })
  })

  it("stays what it is where it is JSON Schema already", () => {
    const schema = {
      type: ["object", "null"],
      $defs: { a: { type: "integer", minimum: 1 } },
      properties: { a: { $ref: "#/$defs/a" }, b: { const: "OBJECT" } },
      additionalProperties: false
    }
    assert.deepStrictEqual(toJsonSchema(schema), schema)
  })
})
