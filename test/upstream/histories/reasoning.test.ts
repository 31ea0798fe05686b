/** Thinking that a conversation brings to another server, or back to one that wants it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { oslo, reasoning } from "../../styles/replies.ts"
import { type StyleName, styleNames } from "../../support/styleClients.ts"
import { drivers, startAsking } from "./histories.ts"

type Fields = { readonly [field: string]: unknown }

const at = (value: unknown, ...path: ReadonlyArray<string | number>): unknown =>
  path.reduce<unknown>((inner, key) => (inner as Fields | undefined)?.[key], value)

const parameters = { type: "object", properties: { city: { type: "string" } } }
const name = "get_weather"
const args = { city: "Oslo" }

const tools: Readonly<Record<StyleName, unknown>> = {
  chat: [{ type: "function", function: { name, parameters } }],
  responses: [{ type: "function", name, parameters }],
  messages: [{ name, input_schema: parameters }],
  generate: [{ functionDeclarations: [{ name, parametersJsonSchema: parameters }] }]
}

/** A question, a call without its thinking, and its result. */
const loops: Readonly<Record<StyleName, (id: string) => Fields>> = {
  chat: (id) => ({
    messages: [
      { role: "user", content: "Go" },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id, type: "function", function: { name, arguments: JSON.stringify(args) } }]
      },
      { role: "tool", tool_call_id: id, content: "Rain" }
    ]
  }),
  responses: (id) => ({
    input: [
      { role: "user", content: "Go" },
      { type: "function_call", call_id: id, name, arguments: JSON.stringify(args) },
      { type: "function_call_output", call_id: id, output: "Rain" }
    ]
  }),
  messages: (id) => ({
    messages: [
      { role: "user", content: "Go" },
      { role: "assistant", content: [{ type: "tool_use", id, name, input: args }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "Rain" }] }
    ]
  }),
  generate: (id) => ({
    contents: [
      { role: "user", parts: [{ text: "Go" }] },
      { role: "model", parts: [{ functionCall: { id, name, args } }] },
      { role: "user", parts: [{ functionResponse: { id, name, response: { output: "Rain" } } }] }
    ]
  })
}

const thinks = [reasoning("Hm, Oslo."), oslo]

describe.each([["whole", false], ["streamed", true]] as const)(
  "a server that thinks without being asked, %s",
  (_, stream) => {
    it.effect.each(styleNames)(
      "gets the thinking before a call back from a client that drops it: %s",
      (style) =>
        Effect.gen(function*() {
          const ask = yield* startAsking(drivers.chat, {}, (stream) => drivers.chat.write(thinks, "tool_calls", stream))
          const first = yield* Effect.promise(() => ask(style, { tools: tools[style] }, stream))
          if (style === "messages") assert.notInclude(first.text, "Hm, Oslo.")
          const id = /"(call_\d+)"/.exec(first.text)?.[1] ?? assert.fail(first.text)
          const second = yield* Effect.promise(() => ask(style, { tools: tools[style], ...loops[style](id) }, stream))
          const message = at(second.received[0], "messages", 1)
          assert.strictEqual(at(message, "tool_calls", 0, "id"), id)
          assert.strictEqual(at(message, "reasoning_content"), "Hm, Oslo.")
          assert.hasAllKeys(at(message, "tool_calls", 0), ["id", "type", "function"])
          const other = yield* Effect.promise(() => ask(style, loops[style]("call_other")))
          assert.notProperty(at(other.received[0], "messages", 1), "reasoning_content")
        })
    )
  }
)

describe("thinking without a signature before a server that signs", () => {
  const thinking = (signature: string) => ({ type: "thinking", thinking: "Hm.", signature })
  const loop = (signature: string) => [
    { role: "user", content: "Go" },
    { role: "assistant", content: [thinking(signature), { type: "tool_use", id: "c1", name, input: args }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "Rain" }] }
  ]
  const asked = { max_tokens: 4_000, thinking: { type: "enabled", budget_tokens: 2_048 } }

  it.effect("is left out, and in an open tool loop the request to think with it", () =>
    Effect.gen(function*() {
      const ask = yield* startAsking(drivers.messages)
      for (const stream of [false, true]) {
        const fields = { ...asked, messages: loop("") }
        const { ignored, received } = yield* Effect.promise(() => ask("messages", fields, stream))
        assert.strictEqual(ignored, "messages[1]: thinking without a signature")
        assert.deepStrictEqual(at(received[0], "messages", 1, "content"), [
          { type: "tool_use", id: "c1", name, input: args }
        ])
        assert.notProperty(received[0], "thinking")
      }
      const next = [...loop(""), { role: "assistant", content: "Rain." }, { role: "user", content: "And?" }]
      const later = yield* Effect.promise(() => ask("messages", { ...asked, messages: next }))
      assert.deepStrictEqual([later.ignored, later.received[0]?.["thinking"]], [null, asked.thinking])
      assert.notInclude(JSON.stringify(later.received[0]?.["messages"]), "Hm.")
    }))

  it.effect("stays if it is signed", () =>
    Effect.gen(function*() {
      const ask = yield* startAsking(drivers.messages)
      const { ignored, received } = yield* Effect.promise(() => ask("messages", { ...asked, messages: loop("c2ln") }))
      assert.deepStrictEqual([ignored, received[0]?.["thinking"]], [null, asked.thinking])
      assert.deepStrictEqual(received[0]?.["messages"], loop("c2ln"))
    }))

  it.effect("comes back to a server that has sent it so with a call", () =>
    Effect.gen(function*() {
      const answer = drivers.messages.write(thinks, "tool_calls", false)
      const unsigned = { ...answer, pieces: answer.pieces?.map((piece) => String(piece).replace("c2ln", "")) ?? [] }
      const ask = yield* startAsking(drivers.messages, {}, () => unsigned)
      const asks = { ...asked, model: "upstream-reasoner", tools: tools.messages }
      const first = yield* Effect.promise(() => ask("messages", asks))
      const { content } = JSON.parse(first.text) as { readonly content: ReadonlyArray<{ readonly id: string }> }
      const result = { type: "tool_result", tool_use_id: content[1]!.id, content: "Rain" }
      const messages = [{ role: "user", content: "Go" }, { role: "assistant", content }, {
        role: "user",
        content: [result]
      }]
      const second = yield* Effect.promise(() => ask("messages", { ...asks, messages }))
      assert.deepStrictEqual(second.received[0]?.["messages"], messages)
    }))
})

describe("calls without a signature before a model that wants one", () => {
  const models = { "upstream-chat": "gemini-3-pro" }
  const standIn = "skip_thought_signature_validator"

  it.effect.each(styleNames)("get the stand-in of the vendor's document: %s", (style) =>
    Effect.gen(function*() {
      const own = yield* startAsking(drivers.generate, { models })
      const generated = yield* Effect.promise(() => own(style, loops[style]("c1")))
      assert.strictEqual(at(generated.received[0], "contents", 1, "parts", 0, "thoughtSignature"), standIn)
      const streamed = yield* Effect.promise(() => own(style, loops[style]("c1"), true))
      assert.deepStrictEqual(streamed.received[0]?.["contents"], generated.received[0]?.["contents"])
      const compatible = yield* startAsking(drivers.chat, { models })
      const chat = yield* Effect.promise(() => compatible(style, loops[style]("c1")))
      assert.deepStrictEqual(at(chat.received[0], "messages", 1, "tool_calls", 0, "extra_content"), {
        google: { thought_signature: standIn }
      })
    }))

  it.effect("get none before other models", () =>
    Effect.gen(function*() {
      const ask = yield* startAsking(drivers.generate, { models: { "upstream-chat": "gemini-2.5-pro" } })
      const { received } = yield* Effect.promise(() => ask("chat", loops.chat("c1")))
      assert.notProperty(at(received[0], "contents", 1, "parts", 0), "thoughtSignature")
    }))

  it.effect("keep the signature of their turn", () =>
    Effect.gen(function*() {
      const ask = yield* startAsking(drivers.generate, { models })
      const contents = [
        { role: "user", parts: [{ text: "Go" }] },
        {
          role: "model",
          parts: [
            { functionCall: { id: "c1", name, args }, thoughtSignature: "c2ln" },
            { functionCall: { id: "c2", name, args } }
          ]
        },
        {
          role: "user",
          parts: ["c1", "c2"].map((id) => ({ functionResponse: { id, name, response: { output: "Rain" } } }))
        }
      ]
      const { received } = yield* Effect.promise(() => ask("generate", { contents }))
      assert.deepStrictEqual(received[0]?.["contents"], contents)
    }))
})
