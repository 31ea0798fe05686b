/** How a strict schema is asked for by what is known of a server. */
import { assert, describe, it } from "@effect/vitest"
import { schemaWithin } from "../../src/completion/strictSchemas.ts"
import { jsonSchemaOutput } from "../../src/contracts/shared/conversation.ts"
import { type Conversation, type JsonSchema, plainConversation, type Thinking } from "../../src/domain/Conversation.ts"
import type { SchemaBinding, SourcedFacts } from "../../src/domain/modelFacts.ts"

const known = (schemas: SchemaBinding, tools?: boolean): SourcedFacts => ({
  schemas: { value: schemas, source: "entry" },
  ...(tools === undefined ? {} : { tools: { value: tools, source: "entry" } })
})

const asking = (schema: JsonSchema, strict?: boolean): Conversation => ({
  ...plainConversation,
  output: jsonSchemaOutput({ schema, strict })
})

const closed = (properties: JsonSchema): JsonSchema => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false
})

/** Whether a schema of a client whose contract binds every schema is sent as a strict one to a server that binds those alone. */
const isSentStrict = (schema: JsonSchema): boolean => {
  const { changed, conversation: { output } } = schemaWithin(asking(schema), known("binding"), "messages", "openai")
  const isStrict = output?._tag === "JsonSchema" && output.strict === true
  assert.deepStrictEqual(changed, isStrict ? [] : ["response_format"])
  return isStrict
}

describe("a schema of a contract that binds every schema", () => {
  it("is strict where each of its objects has all of its properties and no others, in words that strict schemas have", () => {
    const text = { type: "string" }
    for (
      const schema of [
        closed({}),
        closed({ a: text, b: closed({ c: text }) }),
        closed({ a: { type: "array", items: closed({ b: text }) } }),
        closed({ a: { anyOf: [closed({ a: text }), { type: "null" }] }, b: { enum: [{ type: "object" }] } }),
        { ...closed({ a: { $ref: "#/$defs/b" } }), $defs: { b: closed({ c: text }) } }
      ]
    ) {
      assert.isTrue(isSentStrict(schema), JSON.stringify(schema))
    }
    for (
      const schema of [
        text,
        { anyOf: [closed({ a: text })] },
        { type: "object" },
        { ...closed({ a: text }), additionalProperties: true },
        { ...closed({ a: text, b: text }), required: ["a"] },
        { ...closed({}), properties: [] },
        closed({ a: { type: ["object", "null"] } }),
        closed({ a: { properties: { b: text } } }),
        closed({ a: closed({}), b: { type: "object" } }),
        closed({ a: { type: "array", items: { type: "object", properties: { b: text } } } }),
        closed({ a: { anyOf: [closed({ a: text }), { type: "object" }] } }),
        closed({ a: { oneOf: [text] } }),
        closed({ a: { ...text, default: "b" } }),
        { ...closed({ a: { $ref: "#/$defs/b" } }), $defs: { b: { type: "object" } } }
      ] as ReadonlyArray<JsonSchema>
    ) {
      assert.isFalse(isSentStrict(schema), JSON.stringify(schema))
    }
  })

  it("is looked at down to its 32nd level", () => {
    const nested = (levels: number): JsonSchema =>
      levels === 1 ? { type: "string" } : { type: "array", items: nested(levels - 1) }
    assert.isTrue(isSentStrict(closed({ a: nested(31) })))
    assert.isFalse(isSentStrict(closed({ a: nested(32) })))
  })
})

describe("the schema of a request", () => {
  const facts = [known("binding"), known("advisory"), known("none")]

  it("stays as it is where it is not strict, or nothing is known", () => {
    for (const each of [...facts, {}]) {
      for (const strict of [false, undefined]) {
        const conversation = asking(closed({}), strict)
        const asked = schemaWithin(conversation, each, "openai", "messages")
        assert.deepStrictEqual(asked, { conversation, changed: [], byTool: false })
      }
    }
    const conversation = asking(closed({}), true)
    assert.deepStrictEqual(schemaWithin(conversation, {}, "openai", "openai"), {
      conversation,
      changed: [],
      byTool: false
    })
  })

  it("has the rules of chat completions in an app's own style", () => {
    assert.isFalse(schemaWithin(asking(closed({})), known("none"), undefined, "openai").byTool)
    assert.isTrue(schemaWithin(asking(closed({}), true), known("none"), undefined, "openai").byTool)
  })

  it("is a tool only where the server does not read it, the model calls tools and a call can be forced", () => {
    const conversation = asking(closed({}), true)
    const on: Thinking = { mode: "on", effort: undefined, budget: undefined, fields: undefined }
    const isTool = (
      given: Conversation,
      each: SourcedFacts,
      client = "openai" as const,
      server?: "openai" | "messages"
    ) => {
      const { byTool, changed } = schemaWithin(given, each, client, server)
      assert.deepStrictEqual(changed, ["response_format"])
      return byTool
    }
    assert.isTrue(isTool(conversation, known("none"), "openai", "messages"))
    assert.isTrue(isTool(conversation, known("none", true), "openai", "messages"))
    assert.isTrue(isTool({ ...conversation, thinking: on }, known("none"), "openai", "messages"))
    assert.isTrue(isTool({ ...conversation, thinking: { ...on, mode: "off" } }, known("none"), "openai", "openai"))
    assert.isFalse(isTool({ ...conversation, thinking: on }, known("none"), "openai", "openai"))
    assert.isFalse(isTool(conversation, known("none", false), "openai", "messages"))
    assert.isFalse(isTool(conversation, known("advisory"), "openai", "messages"))
    assert.isFalse(isTool(conversation, known("none")))
    assert.isFalse(isTool({ ...conversation, tools: [{ name: "look" }] }, known("none"), "openai", "messages"))
  })
})
