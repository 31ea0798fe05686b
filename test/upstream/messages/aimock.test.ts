/** The whole gateway between the official client and a messages server that none of us wrote. */
import Anthropic from "@anthropic-ai/sdk"
import { LLMock } from "@copilotkit/aimock"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"

let mock: LLMock
let gateway: RunningGateway
beforeAll(async () => {
  mock = await LLMock.create({ port: 0, auth: { apiKeys: ["sk-right"] }, chunkSize: 4 })
  gateway = await startGateway({
    accounts: [{ token: "sk-wrong" }, { token: "sk-right" }],
    upstream: { driver: "messages", base_url: mock.url, models: { mine: "claude-sonnet-4-5" } }
  })
})
afterAll(async () => {
  await gateway.stop()
  await mock.stop()
})

const client = () => new Anthropic({ baseURL: gateway.url, apiKey: businessKey, maxRetries: 0 })

type Request = Anthropic.MessageCreateParamsNonStreaming

const ask = (content: string): Request => ({ model: "mine", max_tokens: 4000, messages: [{ role: "user", content }] })

/** Both ways to the same reply: whole, and accumulated from a stream by the SDK. */
const ways: Record<string, (request: Request) => Promise<Anthropic.Message>> = {
  whole: (request) => client().messages.create(request),
  streamed: (request) => client().messages.stream(request).finalMessage()
}

const tools: Array<Anthropic.Tool> = [{ name: "get_weather", input_schema: { type: "object" } }]

describe.each(Object.entries(ways))("somebody else's messages server through the gateway, %s", (_, send) => {
  it("gives text; a key that it refuses is not met again", async () => {
    mock.onMessage("hello", { content: "Hällo there, 世界!" })
    for (let i = 0; i < 3; i++) {
      const reply = await send(ask("hello"))
      assert.deepInclude(reply.content[0], { type: "text", text: "Hällo there, 世界!" })
      assert.deepInclude(reply, { model: "mine", stop_reason: "end_turn" })
    }
  })

  it("gives the calls of a tool loop, and takes their results", async () => {
    mock.on({ userMessage: "weather", hasToolResult: false }, {
      toolCalls: [{ name: "get_weather", arguments: `{"city":"Oslo"}` }]
    })
    mock.on({ userMessage: "weather", hasToolResult: true }, { content: "Sunny at noon." })
    const first = await send({ ...ask("weather"), tools })
    const [call] = first.content
    assert(call?.type === "tool_use")
    assert.deepInclude(call, { name: "get_weather", input: { city: "Oslo" } })
    assert.strictEqual(first.stop_reason, "tool_use")
    const second = await send({
      ...ask("weather"),
      tools,
      messages: [
        ...ask("weather").messages,
        { role: "assistant", content: first.content },
        { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "sunny" }] }
      ]
    })
    assert.deepInclude(second.content[0], { text: "Sunny at noon." })
  })

  it("gives thinking to a caller that asks for it", async () => {
    mock.onMessage("think", { content: "Four.", reasoning: "Two and two." })
    const reply = await send({ ...ask("think"), thinking: { type: "enabled", budget_tokens: 2000 } })
    assert.deepInclude(reply.content[0], { type: "thinking", thinking: "Two and two." })
    assert.deepInclude(reply.content.at(-1), { type: "text", text: "Four." })
  })

  it("outlives the server's moments of weakness", async () => {
    mock.onMessage("hello", { content: "Hello" })
    for (const status of [500, 503]) {
      mock.nextRequestError(status, { message: "not now", type: "api_error" })
      assert.strictEqual((await send(ask("hello"))).content.length, 1)
    }
  })

  it("never takes a stream that breaks off for a whole one", async () => {
    // So much output is asked for as a stream.
    mock.on({ userMessage: "break off" }, { content: "one two three four five six" }, { truncateAfterChunks: 3 })
    const failure: unknown = await send({ ...ask("break off"), max_tokens: 9_000 }).then(
      () => undefined,
      (reason: unknown) => reason
    )
    assert.instanceOf(failure, Anthropic.APIError)
  })
})
