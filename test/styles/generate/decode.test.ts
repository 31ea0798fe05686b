import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import { decodeGenerate, showsThoughts } from "../../../src/contracts/generate/readRequest.ts"
import { type FilePart, noSampling, plainConversation, Reasoning, Text } from "../../../src/domain/Conversation.ts"
import { readCountRequest, readGenerateRequest } from "../../../src/styles/generate/readRequest.ts"
import { runs } from "../../support/effort.ts"
import { conversationReader } from "../../support/readBody.ts"
import { hostileBodies, wrongTypes } from "../../support/wrongTypes.ts"

const read = conversationReader(readGenerateRequest, ({ body }) => decodeGenerate(body))

const base = { contents: [{ role: "user", parts: [{ text: "Hi" }] }] }

/** Every field that the gateway reads. */
const full = {
  systemInstruction: { parts: [{ text: "Be brief." }] },
  contents: [
    {
      role: "user",
      parts: [
        { text: "Look" },
        { inlineData: { mimeType: "image/png", data: "aGk=", displayName: "a" } },
        { inlineData: { mimeType: "audio/wav", data: "aGk=" } },
        { fileData: { mimeType: "video/mp4", fileUri: "gs://a.mp4", displayName: "b" } },
        { fileData: { fileUri: "gs://a.pdf" } }
      ]
    },
    {
      role: "model",
      parts: [
        { text: "I should ask.", thought: true },
        { text: "Asking.", thoughtSignature: "s" },
        { functionCall: { id: "call_1", name: "get_weather", args: { city: "Paris" } } },
        { functionCall: { name: "get_time" } }
      ]
    },
    {
      role: "user",
      parts: [
        { functionResponse: { id: "call_1", name: "get_weather", response: { output: "sunny" } } },
        {
          functionResponse: {
            name: "get_time",
            response: { error: { code: 5 } },
            parts: [{ inlineData: { mimeType: "image/png", data: "aGk=" } }]
          }
        },
        { text: "Well?" }
      ]
    }
  ],
  tools: [
    {
      functionDeclarations: [
        {
          name: "get_weather",
          description: "Weather of a city",
          parameters: { type: "OBJECT", properties: { city: { type: "STRING" } } }
        },
        { name: "get_time", parametersJsonSchema: { type: "object" } }
      ]
    },
    { googleSearch: {} }
  ],
  toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["get_weather"] } },
  generationConfig: {
    stopSequences: ["END"],
    maxOutputTokens: 100,
    temperature: 0.5,
    topP: 0.9,
    topK: 40,
    seed: 7,
    presencePenalty: 0.1,
    frequencyPenalty: 0.2,
    candidateCount: 1,
    responseMimeType: "application/json",
    responseSchema: { type: "OBJECT", properties: { a: { type: "INTEGER" } } },
    thinkingConfig: { includeThoughts: true, thinkingBudget: 100, thinkingLevel: "LOW" }
  }
}

const file: FilePart = {
  _tag: "File",
  kind: "file",
  name: undefined,
  url: undefined,
  id: undefined,
  data: undefined,
  mediaType: undefined,
  vendorFields: undefined
}

describe("a content generation", () => {
  it.effect("is decoded with every field", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* read(full), {
        ...plainConversation,
        places: ["systemInstruction", "contents[0]", "contents[1]", "contents[2]", "contents[2]"],
        turns: [
          { role: "system", parts: [Text("Be brief.")] },
          {
            role: "user",
            parts: [
              Text("Look"),
              {
                _tag: "Image",
                url: undefined,
                data: "aGk=",
                mediaType: "image/png",
                detail: undefined,
                vendorFields: undefined
              },
              { ...file, kind: "audio", data: "aGk=", mediaType: "audio/wav" },
              { ...file, kind: "video", name: "b", url: "gs://a.mp4", mediaType: "video/mp4" },
              { ...file, url: "gs://a.pdf" }
            ]
          },
          {
            role: "assistant",
            parts: [
              Reasoning("I should ask."),
              Text("Asking."),
              {
                _tag: "Call",
                id: "call_1",
                name: "get_weather",
                arguments: "{\"city\":\"Paris\"}",
                vendorFields: undefined,
                sealed: undefined
              },
              { _tag: "Call", id: "", name: "get_time", arguments: "{}", vendorFields: undefined, sealed: undefined }
            ]
          },
          {
            role: "tool",
            parts: [
              {
                _tag: "Result",
                callId: "call_1",
                name: "get_weather",
                content: [Text("sunny")],
                isError: false,
                isNamed: undefined,
                vendorFields: undefined
              },
              {
                _tag: "Result",
                callId: "",
                name: "get_time",
                content: [
                  Text("{\"code\":5}"),
                  {
                    _tag: "Image",
                    url: undefined,
                    data: "aGk=",
                    mediaType: "image/png",
                    detail: undefined,
                    vendorFields: undefined
                  }
                ],
                isError: true,
                vendorFields: undefined,
                isNamed: undefined
              }
            ]
          },
          { role: "user", parts: [Text("Well?")] }
        ],
        tools: [{
          name: "get_weather",
          description: "Weather of a city",
          parameters: { type: "object", properties: { city: { type: "string" } } },
          strict: undefined
        }],
        toolChoice: { _tag: "Function", name: "get_weather" },
        stop: ["END"],
        sampling: {
          ...noSampling,
          temperature: 0.5,
          topP: 0.9,
          topK: 40,
          maxTokens: 100,
          seed: 7,
          presencePenalty: 0.1,
          frequencyPenalty: 0.2
        },
        thinking: {
          mode: "on",
          effort: "low",
          budget: 100,
          fields: [
            "generationConfig.thinkingConfig.thinkingLevel",
            "generationConfig.thinkingConfig.thinkingBudget"
          ]
        },
        output: {
          _tag: "JsonSchema",
          name: undefined,
          description: undefined,
          schema: { type: "object", properties: { a: { type: "integer" } } },
          strict: undefined
        }
      })
    }))

  it.effect("needs no more than contents, whose role is the user's where it is absent", () =>
    Effect.gen(function*() {
      const conversation = yield* read({ contents: "Hi" })
      assert.deepStrictEqual(conversation.turns, [{ role: "user", parts: [Text("Hi")] }])
      assert.deepStrictEqual(conversation.toolChoice, { _tag: "Auto" })
    }))

  it.effect("names parts of unknown kinds to the model, and passes over what is no content", () =>
    Effect.gen(function*() {
      const { turns } = yield* read({
        contents: [{ role: "model", parts: [{ hologram: { code: "1" } }, { thoughtSignature: "s" }] }]
      })
      assert.deepStrictEqual(turns, [{ role: "assistant", parts: [Text("[hologram omitted]")] }])
    }))

  const response = (response: unknown) => ({
    contents: [{ role: "function", parts: [{ functionResponse: { name: "f", response } }] }]
  })

  it.effect.each<readonly [unknown, string, boolean]>([
    [{ output: { a: 1 } }, "{\"a\":1}", false],
    [{ output: "x" }, "x", false],
    [{ result: 1, more: 2 }, "{\"result\":1,\"more\":2}", false],
    [{ error: "no" }, "no", true],
    [{ error: "no", code: 5 }, "{\"error\":\"no\",\"code\":5}", true],
    ["plain", "plain", false],
    [null, "{}", false]
  ])("has the answer of a function: %j", ([given, expected, isError]) =>
    Effect.gen(function*() {
      const { turns } = yield* read(response(given))
      assert.deepStrictEqual(turns, [{
        role: "tool",
        parts: [{
          _tag: "Result",
          callId: "",
          name: "f",
          content: [Text(expected)],
          isError,
          isNamed: undefined,
          vendorFields: undefined
        }]
      }])
    }))

  const calling = (functionCallingConfig: unknown) => ({ ...full, toolConfig: { functionCallingConfig } })
  const both = ["get_weather", "get_time"]

  it.effect.each<readonly [unknown, unknown, ReadonlyArray<string>]>([
    [undefined, { _tag: "Auto" }, both],
    [{ mode: "AUTO" }, { _tag: "Auto" }, both],
    [{ mode: "MODE_UNSPECIFIED" }, { _tag: "Auto" }, both],
    [{ mode: "none" }, { _tag: "None" }, both],
    [{ mode: "ANY" }, { _tag: "Required" }, both],
    [{ mode: "ANY", allowedFunctionNames: both }, { _tag: "Required" }, both],
    [{ mode: "ANY", allowedFunctionNames: ["get_time"] }, { _tag: "Function", name: "get_time" }, ["get_time"]],
    [{ mode: "VALIDATED" }, { _tag: "Auto" }, both],
    [{ mode: "VALIDATED", allowed_function_names: ["get_time"] }, { _tag: "Auto" }, ["get_time"]]
  ])("calls functions by %j", ([config, choice, names]) =>
    Effect.gen(function*() {
      const { toolChoice, tools } = yield* read(calling(config))
      assert.deepStrictEqual(toolChoice, choice)
      assert.deepStrictEqual(tools.map((tool) => tool.name), names)
    }))

  it.effect("may ask for any JSON object, or say that it wants text", () =>
    Effect.gen(function*() {
      const of = (responseMimeType: string) => read({ ...base, generationConfig: { responseMimeType } })
      assert.deepStrictEqual((yield* of("application/json")).output, { _tag: "JsonObject" })
      assert.isUndefined((yield* of("text/plain")).output)
    }))

  it.effect("shows thoughts unless it says no", () =>
    Effect.sync(() => {
      const config = (includeThoughts?: boolean) => ({
        contents: [{}] as const,
        generationConfig: { thinkingConfig: includeThoughts === undefined ? {} : { includeThoughts } }
      })
      assert.deepStrictEqual([config(), config(true), config(false)].map(showsThoughts), [true, true, false])
    }))

  const refused: ReadonlyArray<readonly [field: string, body: unknown]> = [
    ["contents", {}],
    ["contents", { contents: null }],
    ["contents[0]", { contents: [] }],
    ["contents[0]", { contents: [5] }],
    ["contents[0].role", { contents: [{ role: "robot", parts: [] }] }],
    ["contents[0].parts[0]", { contents: [{ role: "user", parts: [5] }] }],
    ["contents[0].parts[0].inlineData.data", { contents: { parts: [{ inline_data: {} }] } }],
    ["contents[0].parts[0].functionCall", { contents: { role: "user", parts: [{ functionCall: { name: "f" } }] } }],
    [
      "contents[0].parts[0].functionResponse",
      { contents: { role: "model", parts: [{ functionResponse: { name: "f" } }] } }
    ],
    ["tools[0].functionDeclarations[0].name", { ...base, tools: [{ functionDeclarations: [{}] }] }],
    ["generationConfig.candidateCount", { ...base, generation_config: { candidate_count: 2 } }],
    ["toolConfig.functionCallingConfig.mode", { ...base, toolConfig: { functionCallingConfig: { mode: "ANY" } } }],
    ["toolConfig.functionCallingConfig.mode", calling({ mode: "SOMETIMES" })],
    [
      "toolConfig.functionCallingConfig.allowedFunctionNames[0]",
      calling({ mode: "ANY", allowedFunctionNames: ["other"] })
    ]
  ]

  it.effect.each(refused)("is refused for a fault in %s", ([field, body]) =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(read(body))
      assert.strictEqual(error.param, field)
      assert.strictEqual(error.rpc, "INVALID_ARGUMENT")
      assert.include(error.message, field)
    }))

  it.effect("is refused for a value of a wrong type in any field, which is named", () =>
    Effect.gen(function*() {
      const free = ["args", "response", "parameters", "parametersJsonSchema", "responseSchema", "googleSearch"]
      const unread = /thoughtSignature|googleSearch|response$/
      const faulty = wrongTypes(full, free).filter(({ field }) => !unread.test(field))
      assert.isAbove(faulty.length, 120)
      for (const { body, field } of faulty) {
        const result = yield* Effect.result(read(body))
        assert.isTrue(result._tag === "Failure", `${field} was accepted: ${JSON.stringify(body)}`)
        if (result._tag === "Success") continue
        assert.strictEqual(result.failure.status, 400)
        const named = String(result.failure.param)
        assert.isTrue(field.startsWith(named) || named.startsWith(field), `${named} was named instead of ${field}`)
      }
    }))

  it("is decoded or refused as the caller's mistake, whatever JSON it holds", () =>
    fc.assert(
      fc.asyncProperty(hostileBodies(full), async (body) => {
        const result = await Effect.runPromise(Effect.result(read(body)))
        if (result._tag === "Failure") assert.strictEqual(result.failure.code, "invalid_request")
      }),
      { numRuns: runs(500) }
    ))

  it.effect("may be counted within a request of its own", () =>
    Effect.gen(function*() {
      const count = conversationReader(readCountRequest, ({ body }) => decodeGenerate(body))
      const { turns } = yield* count({ generateContentRequest: { model: "m", ...base } })
      assert.deepStrictEqual(turns, [{ role: "user", parts: [Text("Hi")] }])
      assert.strictEqual((yield* Effect.flip(count({ generateContentRequest: {} }))).param, "contents")
    }))
})
