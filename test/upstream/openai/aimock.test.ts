/** The whole gateway between the official client and a server that none of us wrote. */
import { LLMock } from "@copilotkit/aimock"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import OpenAI from "openai"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"

const model = "upstream-chat"
const keys = ["sk-wrong", "sk-right"]

let mock: LLMock
let vendorFields: RunningGateway
let prompt: RunningGateway
let router: RunningGateway

beforeAll(async () => {
  mock = await LLMock.create({ port: 0, auth: { apiKeys: ["sk-right"] }, chunkSize: 4 })
  const start = (path: string, tools: string, accounts: ReadonlyArray<string>) =>
    startGateway({
      accounts: accounts.map((token) => ({ token })),
      upstream: {
        driver: "openai",
        base_url: mock.url + path,
        tools,
        models: { "upstream-chat": "gpt-5", mine: { model: "o3", reasoning: true } }
      }
    })
  vendorFields = await start("/v1", "native", keys)
  prompt = await start("/v1", "prompt", ["sk-right"])
  router = await start("/api/v1", "native", ["sk-right"])
})
afterAll(async () => {
  for (const gateway of [vendorFields, prompt, router]) await gateway.stop()
  await mock.stop()
})

const clientOf = (gateway: RunningGateway) =>
  new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: businessKey, maxRetries: 0 })

type Request = Pick<OpenAI.ChatCompletionCreateParamsNonStreaming, "model" | "messages" | "tools" | "max_tokens">

const ask = (content: string): Request => ({
  model,
  messages: [{ role: "user", content }]
})

const tools: Array<OpenAI.ChatCompletionTool> = ["get_weather", "get_time"].map((name) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties: { city: { type: "string" } } } }
}))

const failure = async (attempt: PromiseLike<unknown>) => {
  const caught: unknown = await attempt.then(() => undefined, (reason: unknown) => reason)
  assert(caught instanceof OpenAI.APIError, `expected an API error, got ${String(caught)}`)
  return caught
}

const lastBody = () => {
  const body = mock.getLastRequest()?.body
  assert(typeof body === "object" && body !== null)
  return body as unknown as { readonly [key: string]: unknown }
}

/** The types of the SDK lack the field. */
const reasoningOf = (message: object | undefined): string => {
  const reasoning: unknown = message === undefined ? undefined : Reflect.get(message, "reasoning_content")
  return typeof reasoning === "string" ? reasoning : ""
}

/** Both ways to the same reply: whole, and accumulated from a stream by the SDK. */
const ways: Record<
  string,
  (gateway: RunningGateway, request: Request) => Promise<OpenAI.ChatCompletion>
> = {
  whole: (gateway, request) => clientOf(gateway).chat.completions.create(request),
  streamed: (gateway, request) => clientOf(gateway).chat.completions.stream(request).finalChatCompletion()
}

describe.each(Object.entries(ways))("a third party's server through the gateway, %s", (name, send) => {
  const read = (completion: OpenAI.ChatCompletion) => {
    const [choice] = completion.choices
    return {
      text: choice?.message.content,
      finish: choice?.finish_reason,
      calls: (choice?.message.tool_calls ?? []).map((call) =>
        call.type === "function" ? [call.function.name, JSON.parse(call.function.arguments)] : []
      )
    }
  }

  it("gives text and the server's own usage; a key that it refuses is not met again", async () => {
    mock.onMessage("hello", {
      content: "Hällo there, 世界!",
      usage: { prompt_tokens: 21, completion_tokens: 8, total_tokens: 29 }
    })
    for (let i = 0; i < 3; i++) {
      const reply = await send(vendorFields, ask("hello"))
      assert.deepStrictEqual(read(reply), { text: "Hällo there, 世界!", finish: "stop", calls: [] })
      assert.deepInclude(reply.usage, { prompt_tokens: 21, completion_tokens: 8, total_tokens: 29 })
    }
    const asked = name === "whole" ? { stream: false } : { stream: true, stream_options: { include_usage: true } }
    assert.deepInclude(lastBody(), { model: "gpt-5", ...asked })
  })

  it("gives the calls of a tool loop, several together, and takes their results", async () => {
    mock.on({ userMessage: "weather", hasToolResult: false }, {
      toolCalls: [
        { name: "get_weather", arguments: "{\"city\":\"Oslo\"}" },
        { name: "get_time", arguments: "{\"city\":\"Rome\"}" }
      ]
    })
    mock.on({ userMessage: "weather", hasToolResult: true }, { content: "Sunny at noon." })
    const first = await send(vendorFields, { ...ask("weather"), tools })
    assert.deepInclude(read(first), {
      finish: "tool_calls",
      calls: [["get_weather", { city: "Oslo" }], ["get_time", { city: "Rome" }]]
    })
    const message = first.choices[0]!.message
    const second = await send(vendorFields, {
      model,
      tools,
      messages: [
        ...ask("weather").messages,
        message,
        ...(message.tool_calls ?? []).map(({ id }) => ({ role: "tool" as const, tool_call_id: id, content: "sunny" }))
      ]
    })
    assert.strictEqual(read(second).text, "Sunny at noon.")
  })

  it("gives the calls that a model writes as text, with tools in the prompt and without the server knowing", async () => {
    mock.on({ userMessage: "by hand", systemMessage: "get_weather" }, {
      content:
        "Let me see.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>"
    })
    const reply = await send(prompt, { ...ask("by hand"), tools })
    assert.deepInclude(read(reply), { finish: "tool_calls", calls: [["get_weather", { city: "Oslo" }]] })
    assert.notProperty(lastBody(), "tools")
  })

  it("passes images on", async () => {
    mock.onMessage("picture", { content: "A cat." })
    const content = [
      { type: "text" as const, text: "picture" },
      { type: "image_url" as const, image_url: { url: "data:image/png;base64,AAAA" } }
    ]
    const reply = await send(vendorFields, { model, messages: [{ role: "user", content }] })
    assert.strictEqual(read(reply).text, "A cat.")
    assert.deepStrictEqual(lastBody()["messages"], [{ role: "user", content }])
  })

  it("reports its errors by their kind", async () => {
    const cases = [
      [400, { code: "context_length_exceeded", message: "too long" }, "context_length_exceeded"],
      [400, { type: "invalid_request_error", message: "bad seed" }, "invalid_request"],
      [404, { code: "model_not_found", message: "no such model" }, "model_not_found"]
    ] as const
    for (const [status, error, code] of cases) {
      mock.nextRequestError(status, error)
      const failed = await failure(send(vendorFields, ask("hello")))
      assert.instanceOf(failed, OpenAI.APIError)
      assert.deepStrictEqual([failed.status, failed.code], [status, code])
    }
  })

  it("outlives the server's moments of weakness", async () => {
    for (const status of [500, 503]) {
      mock.nextRequestError(status, { message: "not now" })
      assert.strictEqual(read(await send(vendorFields, ask("hello"))).text, "Hällo there, 世界!")
    }
  })

  it("never takes a stream that breaks off for a whole one", async () => {
    mock.on({ userMessage: "break off" }, { content: "one two three four five six" }, { truncateAfterChunks: 3 })
    // So much output is asked for as a stream.
    const failed = await failure(send(vendorFields, { ...ask("break off"), max_tokens: 9_000 }))
    assert.strictEqual(failed.code, "upstream_error")
  })
})

describe("a third party's server through the gateway", () => {
  it("gives reasoning by either name, whole and streamed", async () => {
    mock.onMessage("think", { content: "Four.", reasoning: "Two and two." })
    for (const gateway of [vendorFields, router]) {
      const client = clientOf(gateway)
      const whole = await client.chat.completions.create({ ...ask("think"), model: "mine" })
      assert.strictEqual(whole.choices[0]?.message.content, "Four.")
      assert.strictEqual(reasoningOf(whole.choices[0]?.message), "Two and two.")
      let reasoning = ""
      let text = ""
      for await (
        const chunk of await client.chat.completions.create({ ...ask("think"), model: "mine", stream: true })
      ) {
        reasoning += reasoningOf(chunk.choices[0]?.delta)
        text += chunk.choices[0]?.delta.content ?? ""
      }
      assert.deepStrictEqual({ reasoning, text }, { reasoning: "Two and two.", text: "Four." })
    }
  })
})
