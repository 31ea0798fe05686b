import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Normalize from "../../../src/contracts/generate/normalizeRequest.ts"
import { runSync } from "../../../src/domain/stream/cooperative.ts"
import { runs } from "../../support/effort.ts"

const normalizeRequest = (body: unknown) => runSync(Normalize.normalizeRequest(body))
const normalizeCountRequest = (body: unknown) => runSync(Normalize.normalizeCountRequest(body))

const snake = {
  system_instruction: { parts: [{ text: "s" }] },
  contents: [{
    role: "user",
    parts: [
      { inline_data: { mime_type: "image/png", data: "aGk=" } },
      { file_data: { file_uri: "gs://a", mime_type: "image/png" } },
      { function_call: { name: "f", args: { snake_key: { inner_key: 1 } } } },
      { function_response: { name: "f", response: { snake_key: 1 } } }
    ]
  }],
  tools: [{
    function_declarations: [{
      name: "f",
      parameters: { type: "OBJECT", properties: { snake_key: { type: "STRING" } } },
      parameters_json_schema: { properties: { snake_key: {} } }
    }]
  }],
  tool_config: { function_calling_config: { mode: "any", allowed_function_names: ["snake_name"] } },
  generation_config: {
    stop_sequences: ["a_b"],
    max_output_tokens: 5,
    top_k: 1,
    response_mime_type: "application/json",
    response_schema: { type: "OBJECT", properties: { snake_key: { type: "STRING" } } },
    thinking_config: { include_thoughts: true }
  }
}

describe("a content-generation body", () => {
  it("keeps a name that is too long for a field as it is", () => {
    const long = "_a".repeat(100)
    assert.deepStrictEqual(normalizeRequest({ [long]: 1, contents: [] }), { [long]: 1, contents: [] })
  })

  it("may have its fields in snake_case, and keeps the caller's own keys", () => {
    assert.deepStrictEqual(normalizeRequest(snake), {
      systemInstruction: { parts: [{ text: "s" }] },
      contents: [{
        role: "user",
        parts: [
          { inlineData: { mimeType: "image/png", data: "aGk=" } },
          { fileData: { fileUri: "gs://a", mimeType: "image/png" } },
          { functionCall: { name: "f", args: { snake_key: { inner_key: 1 } } } },
          { functionResponse: { name: "f", response: { snake_key: 1 } } }
        ]
      }],
      tools: [{
        functionDeclarations: [{
          name: "f",
          parameters: { type: "OBJECT", properties: { snake_key: { type: "STRING" } } },
          parametersJsonSchema: { properties: { snake_key: {} } }
        }]
      }],
      toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["snake_name"] } },
      generationConfig: {
        stopSequences: ["a_b"],
        maxOutputTokens: 5,
        topK: 1,
        responseMimeType: "application/json",
        responseSchema: { type: "OBJECT", properties: { snake_key: { type: "STRING" } } },
        thinkingConfig: { includeThoughts: true }
      }
    })
  })

  it.each<readonly [unknown, unknown]>([
    ["Hi", [{ parts: [{ text: "Hi" }] }]],
    [["Hi", "there"], [{ parts: [{ text: "Hi" }] }, { parts: [{ text: "there" }] }]],
    [{ text: "Hi" }, [{ parts: [{ text: "Hi" }] }]],
    [{ role: "user", parts: "Hi" }, [{ role: "user", parts: [{ text: "Hi" }] }]],
    [{ role: "user", parts: { text: "Hi" } }, [{ role: "user", parts: [{ text: "Hi" }] }]],
    [{ role: "model", parts: ["a", { text: "b" }] }, [{ role: "model", parts: [{ text: "a" }, { text: "b" }] }]],
    [[{ text: "Hi" }], [{ parts: [{ text: "Hi" }] }]]
  ])("may shorten its contents: %j", (contents, expected) => {
    assert.deepStrictEqual(normalizeRequest({ contents }), { contents: expected })
  })

  it.each<readonly [unknown]>([["s"], [["s"]], [[{ text: "s" }]], [{ text: "s" }], [{ parts: ["s"] }]])(
    "may shorten its system instruction: %j",
    (systemInstruction) => {
      assert.deepStrictEqual(normalizeRequest({ systemInstruction }), {
        systemInstruction: { parts: [{ text: "s" }] }
      })
    }
  )

  it("may have one tool and one declaration where lists stand", () => {
    assert.deepStrictEqual(normalizeRequest({ tools: { functionDeclarations: { name: "f" } } }), {
      tools: [{ functionDeclarations: [{ name: "f" }] }]
    })
  })

  it("counts what stands in camelCase where a field is there twice", () => {
    assert.deepStrictEqual(normalizeRequest({ top_k: 1, topK: 2 }), { topK: 2 })
  })

  it("of a token count may stand within a request", () => {
    const expected = { contents: [{ parts: [{ text: "Hi" }] }] }
    assert.deepStrictEqual(normalizeCountRequest({ generate_content_request: { contents: "Hi" } }), expected)
    assert.deepStrictEqual(normalizeCountRequest({ contents: "Hi" }), expected)
  })

  it("is brought to the same form once and twice, whatever it is, and never changed in place", () =>
    fc.assert(
      fc.property(fc.oneof(fc.constant(snake), fc.jsonValue(), fc.record({ contents: fc.jsonValue() })), (body) => {
        const before = JSON.stringify(body)
        const once = normalizeRequest(body)
        assert.deepStrictEqual(normalizeRequest(once), once)
        assert.strictEqual(JSON.stringify(body), before)
      }),
      { numRuns: runs(200) }
    ))
})
