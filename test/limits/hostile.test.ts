/** Large and hostile bodies of every shape are served, or rejected with a 4xx, in slices; large legitimate ones are served. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Context } from "effect"
import { CurrentBufferedBytes } from "../../src/config/limits.ts"
import { sliceChars, sliceItems, type SliceSize } from "../../src/domain/stream/cooperative.ts"
import { sized } from "../support/effort.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { untilHolds } from "../support/until.ts"

let gateway: RunningGateway
const slices: Array<SliceSize> = []
beforeAll(async () => {
  gateway = await startGateway({ embeddings: { provider: "builtin" } }, { watchSlices: (size) => slices.push(size) })
})
afterAll(() => gateway.stop())

const post = async (path: string, body: unknown) => {
  slices.length = 0
  const response = await fetch(`${gateway.url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}` },
    body: JSON.stringify(body)
  })
  await response.text()
  return { status: response.status, slices: [...slices] }
}

const size = sized(8 * 1024 * 1024)
/** Enough for many slices; these texts are the most expensive. */
const less = sized(2 * 1024 * 1024)
const repeat = <A>(count: number, item: A): ReadonlyArray<A> => Array.from({ length: count }, () => item)
const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i]))

const chat = "/v1/chat/completions"
const user = (content: unknown) => ({ model: "gpt-5", messages: [{ role: "user", content }] })

const shapes: ReadonlyArray<readonly [string, string, object]> = [
  ["one text", chat, user("x".repeat(size))],
  ["`<` characters", chat, user("<".repeat(less))],
  ["role markers", chat, user("<|user|>".repeat(less / 8))],
  ["`<` and spaces", chat, user("< a b c ".repeat(less / 8))],
  ["up to 150,000 messages", chat, {
    model: "gpt-5",
    messages: repeat(sized(150_000), { role: "user", content: "a" })
  }],
  ["up to 20,000 messages", chat, {
    model: "gpt-5",
    messages: repeat(sized(20_000), { role: "user", content: "x".repeat(100) })
  }],
  ["up to 150,000 content parts", chat, user(repeat(sized(150_000), { type: "text", text: "a" }))],
  ["up to 100,000 content parts", chat, user(repeat(sized(100_000), { type: "text", text: "a".repeat(50) }))],
  ["call arguments of up to 2 MB", chat, {
    model: "gpt-5",
    messages: [
      { role: "user", content: "a" },
      {
        role: "assistant",
        tool_calls: [{ id: "a", function: { name: "f", arguments: JSON.stringify({ a: "<".repeat(less) }) } }]
      },
      { role: "tool", tool_call_id: "a", content: "b" }
    ]
  }],
  ["call arguments of many keys", chat, {
    model: "gpt-5",
    messages: [
      { role: "user", content: "a" },
      { role: "assistant", tool_calls: [{ function: { name: "f", arguments: keys(sized(100_000)) } }] }
    ]
  }],
  ["tool results without ids", chat, {
    model: "gpt-5",
    messages: [
      { role: "user", content: "a" },
      { role: "assistant", tool_calls: repeat(sized(19_000), { function: { name: "f", arguments: "{}" } }) },
      ...repeat(sized(19_000), { role: "tool", content: "b" })
    ]
  }],
  ["a long tool name with many results", chat, {
    model: "gpt-5",
    messages: [
      {
        role: "assistant",
        tool_calls: [{ id: "a", function: { name: "n".repeat(1_000_000), arguments: "{}" } }]
      },
      ...repeat(sized(19_000), { role: "tool", tool_call_id: "a", content: "b" }),
      { role: "user", content: "a" }
    ]
  }],
  ["a model of 1 MB", chat, { ...user("a"), model: "m".repeat(1_000_000) }],
  ["stop sequences of 2.5 MB", chat, { ...user("a"), stop: repeat(4, "s".repeat(600_000)) }],
  ["unknown fields in a chat request", chat, { ...user("a"), ...keys(sized(200_000)) }],
  ["a content part of many kinds", "/v1beta/models/gemini-x:generateContent", {
    contents: [{ parts: [keys(sized(200_000))] }]
  }],
  ["unknown fields in a generateContent request", "/v1beta/models/gemini-x:generateContent", {
    contents: [{ parts: [{ text: "a" }] }],
    ...keys(sized(200_000))
  }],
  ["a response schema of many properties", "/v1beta/models/gemini-x:generateContent", {
    contents: [{ parts: [{ text: "a" }] }],
    generationConfig: { responseSchema: { type: "OBJECT", properties: keys(sized(40_000)) } }
  }],
  ["a tool choice of many keys", "/v1/responses", {
    model: "gpt-5",
    input: { role: "user", content: repeat(sized(90_000), { type: "input_text", text: "a" }) },
    tool_choice: { type: "strange", ...keys(sized(100_000)) }
  }],
  ["a logit bias of many keys", chat, { ...user("a"), logit_bias: keys(sized(100_000)) }],
  ["items of unknown types", "/v1/responses", {
    model: "gpt-5",
    input: [{ role: "user", content: "a" }, { type: "strange", data: repeat(sized(150_000), [1, { a: 2 }]) }]
  }],
  ["tool results of many blocks", "/v1/messages", {
    model: "claude-x",
    messages: [
      { role: "user", content: "a" },
      { role: "assistant", content: [{ type: "tool_use", id: "a", name: "f", input: keys(sized(100_000)) }] },
      {
        role: "user",
        content: [{
          type: "tool_result",
          tool_use_id: "a",
          content: repeat(sized(90_000), { type: "text", text: "b" })
        }]
      }
    ]
  }],
  ["texts to count", "/v1/messages/count_tokens", {
    model: "claude-x",
    messages: repeat(8, { role: "user", content: "Some words to count. ".repeat(sized(50_000)) })
  }],
  ["parts of contents", "/v1beta/models/gemini-x:generateContent", {
    contents: [{ role: "user", parts: repeat(sized(60_000), { text: "x".repeat(60) }) }]
  }],
  ["snake_case everywhere", "/v1beta/models/gemini-x:generateContent", {
    contents: [{ parts: [{ text: "a" }] }],
    generation_config: { some_thing: repeat(sized(100_000), { an_other_key: 1 }) }
  }],
  ["token ids", "/v1/embeddings", { model: "gpt-5", input: repeat(sized(1024 * 1024), 7) }],
  ["inputs of embeddings", "/v1/embeddings", {
    model: "gpt-5",
    input: repeat(1024, "a b c d ".repeat(500)),
    dimensions: 64
  }]
]

describe("a hostile request body of up to 8 MB", () => {
  it.each(shapes)("with %s gets 200 or 4xx, in slices of bounded size", async (_, path, body) => {
    const { slices, status } = await post(path, body)
    assert.isTrue(status === 200 || (status >= 400 && status < 500), `status ${status}`)
    for (const { chars, items } of slices) {
      assert.isAtMost(items, sliceItems + 1024)
      assert.isAtMost(chars, sliceChars + 1024 * 1024)
    }
  })
})

describe("a large legitimate request", () => {
  it("with 2 MB of prompt, 5,000 messages, 400 large tools and 1 MB of arguments is served", async () => {
    const turn = [
      { role: "user", content: "Please go on. ".repeat(15) },
      { role: "assistant", content: "Certainly. ".repeat(18) }
    ]
    const messages = [
      ...repeat(2_499, turn).flat(),
      {
        role: "assistant",
        tool_calls: [{
          id: "a",
          type: "function",
          function: { name: "tool_1", arguments: JSON.stringify({ text: "line\n".repeat(200_000) }) }
        }]
      },
      { role: "tool", tool_call_id: "a", content: "done" },
      { role: "user", content: "And?" }
    ]
    const properties = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [
      `field_${i}`,
      { type: "string", description: "A field that has a description of some length." }
    ]))
    const tools = Array.from({ length: 400 }, (_, i) => ({
      type: "function",
      function: { name: `tool_${i}`, description: "Does it.", parameters: { type: "object", properties } }
    }))
    assert.strictEqual((await post(chat, { model: "gpt-5", messages, tools })).status, 200)
  })
})

it("buffered bytes return to 0 after large requests", async () => {
  await post(chat, user("x".repeat(200_000)))
  await untilHolds(() => Context.get(gateway.services, CurrentBufferedBytes).used === 0)
})
