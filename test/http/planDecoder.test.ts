/** Decoding in slices yields the result of the whole Schema, and reads only the fields that the Schema reads. */
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import * as fc from "fast-check"
import { ChatRequest } from "../../src/contracts/chat/schema.ts"
import { GenerateRequest } from "../../src/contracts/generate/schema.ts"
import { MessagesRequest } from "../../src/contracts/messages/schema.ts"
import { ResponseRequest } from "../../src/contracts/responses/schema.ts"
import { runSync } from "../../src/domain/stream/cooperative.ts"
import { planDecoder } from "../../src/http/planDecoder.ts"
import { hostileBodies } from "../support/wrongTypes.ts"

const schema = { type: "object", properties: { a: { type: "string" } } }

interface Style {
  readonly schema: Schema.ConstraintDecoder<unknown>
  readonly body: Parameters<typeof hostileBodies>[0]
}

const styles: Readonly<Record<string, Style>> = {
  chat: {
    schema: ChatRequest,
    body: {
      model: "m",
      messages: [
        { role: "user", content: [{ type: "text", text: "a", other: 1 }] },
        {
          role: "assistant",
          tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: { a: [1] } } }]
        }
      ],
      tools: [{ type: "function", function: { name: "f", parameters: schema, strict: true } }],
      response_format: { type: "json_schema", json_schema: { name: "s", schema } },
      stream_options: { include_usage: true },
      other: { a: 1 }
    }
  },
  responses: {
    schema: ResponseRequest,
    body: {
      model: "m",
      input: [
        "a",
        { role: "user", content: [{ type: "input_text", text: "a" }], output: [5], arguments: { a: 1 } },
        { type: "function_call", name: "f", call_id: "c", arguments: "{}", content: "no content" },
        { type: "function_call_output", call_id: "c", output: [{ type: "input_text", text: "a" }] },
        { type: "reasoning", summary: [{ type: "summary_text", text: "a" }] },
        { type: "strange", data: [1, { a: 2 }] },
        { type: "item_reference", id: "msg_1" }
      ],
      messages: [{ role: "user", content: "a" }],
      tools: [{ type: "function", name: "f", parameters: schema }, { type: "strange", a: 1 }],
      tool_choice: { type: "strange", a: { b: 1 } },
      text: { format: { type: "json_schema", name: "s", schema } },
      other: [1]
    }
  },
  "responses of one item": {
    schema: ResponseRequest,
    body: {
      model: "m",
      input: { role: "user", content: [{ type: "input_text", text: "a" }] },
      tool_choice: { type: "function", name: "f", other: 1 }
    }
  },
  messages: {
    schema: MessagesRequest,
    body: {
      model: "m",
      system: [{ type: "text", text: "a" }],
      messages: [
        { role: "assistant", content: [{ type: "tool_use", id: "a", name: "f", input: { a: [1] }, content: [5] }] },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "a", content: [{ type: "text", text: "b" }] },
            { type: "document", source: { type: "content", content: [{ type: "text", text: "b" }] } },
            { type: "strange", data: { a: 1 } }
          ]
        }
      ],
      tools: [{ name: "f", input_schema: schema }],
      output_config: { format: { type: "json_schema", schema } }
    }
  },
  generation: {
    schema: GenerateRequest,
    body: {
      contents: [
        {
          role: "model",
          parts: [{ text: "a" }, { functionCall: { name: "f", args: { a: [1] } } }, { strange: { a: 1 } }]
        },
        { parts: [{ functionResponse: { name: "f", response: { a: 1 }, parts: [{ inlineData: { data: "aa" } }] } }] }
      ],
      systemInstruction: { parts: [{ text: "a" }] },
      tools: [{ functionDeclarations: [{ name: "f", parameters: schema }], other: 1 }],
      generationConfig: { responseSchema: schema, temperature: 1 }
    }
  }
}

/** Parts of a generation request keep their unknown fields; the normal form has few. */
const keepsAll = (field: string) => field === "parts"

/** A copy whose objects report when all their keys are read, except for a field that keeps all keys. */
const watched = (value: unknown, enumerated: () => void, field = ""): unknown => {
  if (Array.isArray(value)) return value.map((element) => watched(element, enumerated, field))
  if (typeof value !== "object" || value === null) return value
  const copy = Object.fromEntries(
    Object.entries(value).map(([key, field]) => [key, watched(field, enumerated, key)])
  )
  return keepsAll(field) ? copy : new Proxy(copy, {
    ownKeys(target) {
      enumerated()
      return Reflect.ownKeys(target)
    }
  })
}

describe.each(Object.entries(styles))("a %s body that is taken apart", (_, { body, schema }) => {
  const whole = Schema.decodeUnknownResult(schema)
  const inPieces = planDecoder(schema)

  it("decodes in slices to the result of the whole Schema, faults included", () => {
    assert.isTrue(Result.isSuccess(whole(body)))
    fc.assert(fc.property(fc.oneof(fc.constant(body), hostileBodies(body)), (given) => {
      const expected = whole(given)
      const decoded = runSync(inPieces(given))
      assert.strictEqual(Result.isSuccess(decoded), Result.isSuccess(expected), JSON.stringify(given))
      if (Result.isSuccess(decoded) && Result.isSuccess(expected)) {
        assert.deepStrictEqual(decoded.success, expected.success)
      }
    }))
  })

  it("reads only the keys that the Schema reads", () => {
    let enumerations = 0
    const decoded = runSync(inPieces(watched(body, () => enumerations++)))
    assert.isTrue(Result.isSuccess(decoded))
    assert.strictEqual(enumerations, 0)
  })
})
