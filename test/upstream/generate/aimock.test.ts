/** The whole gateway between official clients and a generate server that none of us wrote. */
import { LLMock } from "@copilotkit/aimock"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { GoogleGenAI } from "@google/genai"
import OpenAI from "openai"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"

let mock: LLMock
let gateway: RunningGateway

beforeAll(async () => {
  mock = await LLMock.create({ port: 0, auth: { apiKeys: ["right"] }, chunkSize: 4 })
  gateway = await startGateway({
    accounts: [{ token: "wrong" }, { token: "right" }],
    upstream: {
      driver: "generate",
      base_url: mock.url,
      models: { "upstream-chat": "gemini-2.5-flash", thinker: "gemini-2.5-pro" }
    }
  })
})
afterAll(async () => {
  await gateway.stop()
  await mock.stop()
})

const genai = () =>
  new GoogleGenAI({ apiKey: businessKey, httpOptions: { baseUrl: gateway.url, retryOptions: { attempts: 1 } } }).models
const openai = () => new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: businessKey, maxRetries: 0 })
const model = "upstream-chat"
const parameters = { type: "object", properties: { city: { type: "string" } } }

describe("a third party's generate server through the gateway", () => {
  it("gives text, whole and streamed; a key that it refuses is not met again", async () => {
    mock.onMessage("hello", { content: "Hällo there, 世界!" })
    for (let i = 0; i < 3; i++) {
      assert.strictEqual((await genai().generateContent({ model, contents: "hello" })).text, "Hällo there, 世界!")
      let text = ""
      for await (const chunk of await genai().generateContentStream({ model, contents: "hello" })) {
        text += chunk.text ?? ""
      }
      assert.strictEqual(text, "Hällo there, 世界!")
    }
    const completion = await openai().chat.completions.create({ model, messages: [{ role: "user", content: "hello" }] })
    assert.strictEqual(completion.choices[0]?.message.content, "Hällo there, 世界!")
  })

  it("gives thoughts to clients of another style", async () => {
    mock.onMessage("think", { content: "Four.", reasoning: "Two and two." })
    const { choices } = await openai().chat.completions.create({
      model: "thinker",
      reasoning_effort: "low",
      messages: [{ role: "user", content: "think" }]
    })
    // The types of the SDK lack the field.
    assert.deepInclude(choices[0]?.message as object, { content: "Four.", reasoning_content: "Two and two." })
  })

  it("gives calls and takes their results, in two styles", async () => {
    mock.on({ userMessage: "weather", hasToolResult: false }, {
      toolCalls: [
        { name: "get_weather", arguments: "{\"city\":\"Oslo\"}" },
        { name: "get_weather", arguments: "{\"city\":\"Rome\"}" }
      ]
    })
    mock.on({ userMessage: "weather", hasToolResult: true }, { content: "Sunny in both." })
    const tools = [{ type: "function" as const, function: { name: "get_weather", parameters } }]
    const messages = [{ role: "user" as const, content: "weather" }]
    const first = await openai().chat.completions.create({ model, messages, tools })
    const message = first.choices[0]!.message
    const calls = message.tool_calls ?? []
    assert.deepStrictEqual(
      calls.map((call) => call.type === "function" ? call.function.arguments : ""),
      [`{"city":"Oslo"}`, `{"city":"Rome"}`]
    )
    const results = calls.map(({ id }) => ({ role: "tool" as const, tool_call_id: id, content: "sunny" }))
    const second = await openai().chat.completions.create({
      model,
      tools,
      messages: [...messages, message, ...results]
    })
    assert.strictEqual(second.choices[0]?.message.content, "Sunny in both.")

    const config = { tools: [{ functionDeclarations: [{ name: "get_weather", parametersJsonSchema: parameters }] }] }
    const asked = [{ role: "user", parts: [{ text: "weather" }] }]
    const reply = await genai().generateContent({ model, contents: asked, config })
    assert.deepStrictEqual(reply.functionCalls?.map(({ args }) => args), [{ city: "Oslo" }, { city: "Rome" }])
    const responses = (reply.functionCalls ?? []).map(({ id = "", name = "" }) => ({
      functionResponse: { id, name, response: { output: "sunny" } }
    }))
    const end = await genai().generateContent({
      model,
      contents: [...asked, reply.candidates![0]!.content!, { role: "user", parts: responses }],
      config
    })
    assert.strictEqual(end.text, "Sunny in both.")
  })
})
