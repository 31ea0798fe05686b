import type Anthropic from "@anthropic-ai/sdk"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import { decodeMessages } from "../../../src/contracts/messages/readRequest.ts"
import { MessagesRequest } from "../../../src/contracts/messages/schema.ts"
import { type FilePart, noSampling, plainConversation, Reasoning, Text } from "../../../src/domain/Conversation.ts"
import { estimateConversation } from "../../../src/domain/estimateConversation.ts"
import { jsonBody } from "../../../src/http/jsonBody.ts"
import { runs } from "../../support/effort.ts"
import { conversationReader, withoutVendorFields } from "../../support/readBody.ts"
import { hostileBodies, wrongTypes } from "../../support/wrongTypes.ts"

const readBody = conversationReader(jsonBody(MessagesRequest), decodeMessages)

const read = (body: unknown) => Effect.map(readBody(body), withoutVendorFields)

const base = { model: "msgcompat-haiku-4-5", messages: [{ role: "user", content: "Hi" }] }

/** Sampling that the vendor's types have no more and its older clients send. */
interface OlderSampling {
  readonly temperature: number
  readonly top_p: number
  readonly top_k: number
}

/** Every field that the gateway reads, as the vendor's types have it. */
const full: Anthropic.MessageCreateParams & OlderSampling = {
  model: "msgcompat-sonnet-4-5",
  max_tokens: 100,
  stream: true,
  temperature: 0.5,
  top_p: 0.9,
  top_k: 40,
  stop_sequences: ["END"],
  metadata: { user_id: "u" },
  thinking: { type: "enabled", budget_tokens: 2048 },
  output_config: { effort: "high", format: { type: "json_schema", schema: { type: "object" } } },
  system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
  tools: [
    {
      name: "get_weather",
      description: "Weather of a city",
      input_schema: { type: "object", properties: { city: { type: "string" } } },
      strict: true
    },
    { type: "web_search_20250305", name: "web_search" }
  ],
  tool_choice: { type: "tool", name: "get_weather", disable_parallel_tool_use: true },
  messages: [
    {
      role: "user",
      content: [
        { type: "text", text: "Look", cache_control: { type: "ephemeral" } },
        { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } },
        { type: "image", source: { type: "url", url: "https://example.com/a.png" } },
        { type: "image", source: { type: "file", file_id: "file_1" } },
        { type: "document", source: { type: "base64", media_type: "application/pdf", data: "cGRm" }, title: "Paper" },
        { type: "document", source: { type: "url", url: "https://example.com/a.pdf" }, context: "from the web" },
        { type: "document", source: { type: "file", file_id: "file_2" } },
        { type: "document", source: { type: "text", media_type: "text/plain", data: "plain words" }, title: "Notes" },
        { type: "document", source: { type: "content", content: [{ type: "text", text: "inner" }] } },
        {
          type: "search_result",
          source: "https://example.com",
          title: "Found",
          content: [{ type: "text", text: "a result" }]
        }
      ]
    },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "I should ask.", signature: "s" },
        { type: "redacted_thinking", data: "xyz" },
        { type: "text", text: "Asking." },
        { type: "tool_use", id: "call_1", name: "get_weather", input: { city: "Paris" } },
        { type: "tool_use", id: "call_2", name: "get_weather", input: {} }
      ]
    },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "call_1", content: "sunny" },
        {
          type: "tool_result",
          tool_use_id: "call_2",
          is_error: true,
          content: [
            { type: "text", text: "no city" },
            { type: "image", source: { type: "url", url: "https://example.com/b.png" } }
          ]
        },
        { type: "text", text: "Well?" }
      ]
    },
    { role: "system", content: "Now answer." }
  ]
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

describe("a messages request", () => {
  it.effect("is decoded with every field", () =>
    Effect.gen(function*() {
      const conversation = yield* read(full)
      assert.deepStrictEqual(conversation, {
        ...plainConversation,
        places: ["system", "messages[0]", "messages[1]", "messages[2]", "messages[2]", "messages[3]"],
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
              {
                _tag: "Image",
                url: "https://example.com/a.png",
                data: undefined,
                mediaType: undefined,
                detail: undefined,
                vendorFields: undefined
              },
              { ...file, id: "file_1" },
              { ...file, name: "Paper", data: "cGRm", mediaType: "application/pdf" },
              Text("from the web"),
              { ...file, url: "https://example.com/a.pdf" },
              { ...file, id: "file_2" },
              Text("Notes"),
              Text("plain words"),
              Text("inner"),
              Text("Found\nhttps://example.com\na result")
            ]
          },
          {
            role: "assistant",
            parts: [
              Reasoning("I should ask."),
              Reasoning(""),
              Text("Asking."),
              {
                _tag: "Call",
                id: "call_1",
                name: "get_weather",
                arguments: "{\"city\":\"Paris\"}",
                vendorFields: undefined,
                sealed: undefined
              },
              {
                _tag: "Call",
                id: "call_2",
                name: "get_weather",
                arguments: "{}",
                vendorFields: undefined,
                sealed: undefined
              }
            ]
          },
          {
            role: "tool",
            parts: [
              {
                _tag: "Result",
                callId: "call_1",
                name: undefined,
                content: [Text("sunny")],
                isError: false,
                isNamed: undefined,
                vendorFields: undefined
              },
              {
                _tag: "Result",
                callId: "call_2",
                name: undefined,
                content: [
                  Text("no city"),
                  {
                    _tag: "Image",
                    url: "https://example.com/b.png",
                    data: undefined,
                    mediaType: undefined,
                    detail: undefined,
                    vendorFields: undefined
                  }
                ],
                isError: true,
                isNamed: undefined,
                vendorFields: undefined
              }
            ]
          },
          { role: "user", parts: [Text("Well?")] },
          { role: "system", parts: [Text("Now answer.")] }
        ],
        tools: [{
          name: "get_weather",
          description: "Weather of a city",
          parameters: { type: "object", properties: { city: { type: "string" } } },
          strict: true
        }],
        toolChoice: { _tag: "Function", name: "get_weather" },
        parallelToolCalls: false,
        stop: ["END"],
        sampling: { ...noSampling, temperature: 0.5, topP: 0.9, topK: 40, maxTokens: 100 },
        thinking: { mode: "on", effort: "high", budget: 2048, fields: ["thinking", "output_config.effort"] },
        output: {
          _tag: "JsonSchema",
          name: undefined,
          description: undefined,
          schema: { type: "object" },
          strict: undefined
        }
      })
    }))

  it.effect("needs no more than model and messages, and passes on no limit that it did not give", () =>
    Effect.gen(function*() {
      const conversation = yield* read(base)
      assert.deepStrictEqual(conversation.turns, [{ role: "user", parts: [Text("Hi")] }])
      assert.isUndefined(conversation.sampling.maxTokens)
      assert.deepStrictEqual(conversation.toolChoice, { _tag: "Auto" })
      assert.isTrue(conversation.parallelToolCalls)
    }))

  it.effect("may give the system prompt as a string", () =>
    Effect.gen(function*() {
      const { turns } = yield* read({ ...base, system: "Be brief." })
      assert.deepStrictEqual(turns[0], { role: "system", parts: [Text("Be brief.")] })
    }))

  it.effect("has the structured output of the vendor's earlier field too", () =>
    Effect.gen(function*() {
      const { output } = yield* read({ ...base, output_format: { type: "json_schema", schema: { type: "array" } } })
      assert.deepInclude(output, { _tag: "JsonSchema", schema: { type: "array" } })
    }))

  it.effect("carries the words of unknown blocks, and names what has none", () =>
    Effect.gen(function*() {
      const { turns } = yield* read({
        ...base,
        messages: [{
          role: "user",
          content: [
            { type: "container_upload", file_id: "f" },
            { type: "image", source: { type: "moon" } },
            { type: "document", source: { type: "moon", data: 5 } },
            { type: "tool_result", tool_use_id: "a", content: [{ type: "tool_reference", tool_name: "x" }] }
          ]
        }, {
          role: "assistant",
          content: [{ type: "server_tool_use", id: "s", name: "web_search", input: {} }]
        }]
      })
      assert.deepStrictEqual(turns.flatMap((turn) => turn.parts), [
        Text("[container_upload omitted]"),
        Text("[image omitted]"),
        Text("[document omitted]"),
        {
          _tag: "Result",
          callId: "a",
          name: undefined,
          content: [Text("Tool loaded: x")],
          isError: false,
          vendorFields: undefined,
          isNamed: undefined
        },
        Text("[web_search called with {}]")
      ])
    }))

  const choices = [
    [{ type: "auto" }, { _tag: "Auto" }],
    [{ type: "any" }, { _tag: "Required" }],
    [{ type: "none" }, { _tag: "None" }],
    [{ type: "tool", name: "f" }, { _tag: "Function", name: "f" }]
  ] as const

  it.effect.each(choices)("chooses tools by %j", ([choice, expected]) =>
    Effect.gen(function*() {
      const { toolChoice } = yield* read({ ...base, tool_choice: choice })
      assert.deepStrictEqual(toolChoice, expected)
    }))

  const user = (...content: ReadonlyArray<unknown>) => ({ ...base, messages: [{ role: "user", content }] })
  const refused: ReadonlyArray<readonly [field: string, body: unknown]> = [
    ["model", { messages: base.messages }],
    ["model", { ...base, model: "" }],
    ["messages", { model: "m" }],
    ["messages[0]", { ...base, messages: [] }],
    ["messages[0].role", { ...base, messages: [{ role: "tool", content: "" }] }],
    ["messages[0].content", { ...base, messages: [{ role: "user" }] }],
    ["messages[0].content[0].type", user({})],
    ["messages[0].content[0].text", user({ type: "text" })],
    ["messages[0].content[0].source", user({ type: "image" })],
    ["messages[0].content[0].source.data", user({ type: "image", source: { type: "base64" } })],
    ["messages[0].content[0].tool_use_id", user({ type: "tool_result", content: "" })],
    ["messages[0].content[0].type", user({ type: "tool_use", id: "a", name: "f", input: {} })],
    ["messages[0].content[0].type", user({ type: "thinking", thinking: "a", signature: "" })],
    [
      "messages[0].content[0].type",
      { ...base, messages: [{ role: "assistant", content: [{ type: "tool_result", tool_use_id: "a" }] }] }
    ],
    ["tools[0].name", { ...base, tools: [{ input_schema: {} }] }],
    ["tools[0].input_schema", { ...base, tools: [{ name: "f" }] }],
    ["tool_choice.name", { ...base, tool_choice: { type: "tool" } }],
    ["tool_choice.type", { ...base, tool_choice: { type: "sometimes" } }],
    ["output_config.format.schema", { ...base, output_config: { format: { type: "json_schema" } } }]
  ]

  it.effect.each(refused)("is refused for a fault in %s", ([field, body]) =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(read(body))
      assert.strictEqual(error.param, field)
      assert.strictEqual(error.code, "invalid_request")
      assert.include(error.message, field)
    }))

  it.effect("is refused for a value of a wrong type in any field, which is named", () =>
    Effect.gen(function*() {
      const free = ["metadata", "cache_control", "input_schema", "schema", "input"]
      const unread =
        /metadata|cache_control|signature|messages\[1\]\.content\[1\]\.data|content\[7\]\.source\.media_type/
      const faulty = wrongTypes(JSON.parse(JSON.stringify(full)), free).filter(({ field }) => !unread.test(field))
      assert.isAbove(faulty.length, 150)
      for (const { body, field } of faulty) {
        const result = yield* Effect.result(read(body))
        assert.isTrue(result._tag === "Failure", `${field} was accepted`)
        if (result._tag === "Success") continue
        assert.strictEqual(result.failure.status, 400)
        const named = String(result.failure.param)
        assert.isTrue(field.startsWith(named) || named.startsWith(field), `${named} was named instead of ${field}`)
      }
    }))

  it("is decoded or refused as the caller's mistake, whatever JSON it holds", () =>
    fc.assert(
      fc.asyncProperty(hostileBodies(JSON.parse(JSON.stringify(full))), async (body) => {
        const result = await Effect.runPromise(Effect.result(read(body)))
        if (result._tag === "Failure") assert.strictEqual(result.failure.code, "invalid_request")
      }),
      { numRuns: runs(500) }
    ))

  it.effect("has the token count of its system prompt, messages and tools", () =>
    Effect.gen(function*() {
      const count = (body: unknown) => Effect.map(read(body), estimateConversation)
      const bare = yield* count(base)
      assert.isAbove(yield* count({ ...base, system: "You are a pirate and speak like one." }), bare)
      assert.isAbove(yield* count({ ...base, tools: full.tools }), bare)
    }))
})
