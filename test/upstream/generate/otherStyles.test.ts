/** What only the vendor of content generation has, in the styles of the others; `test/upstream/matrix` has what every driver does. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { reasoning, text } from "../../styles/replies.ts"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import {
  chunk,
  type GenerateServer,
  refused,
  said,
  startGenerateServer,
  streamed
} from "../../support/generateServer.ts"
import { assertSame, type Clients } from "../../support/sameReply.ts"
import { styleClients, type StyleName, styleNames } from "../../support/styleClients.ts"
import { sharedRequests } from "../matrix/requests.ts"
import { ask } from "../openai/callStyles.ts"

let server: GenerateServer
let gateway: RunningGateway
let clients: Clients

beforeAll(async () => {
  server = await startGenerateServer()
  gateway = await startGateway({
    // So many keys that no fault leaves a request without one.
    accounts: Array.from({ length: 900 }, (_, i) => ({ token: `key-${i}` })),
    captures: { enabled: false },
    upstream: {
      driver: "generate",
      base_url: server.baseUrl,
      timeouts: { queue: 0 },
      models: { "upstream-reasoner": "gemini-3-pro", mine: "gemini-2.5-flash" }
    }
  })
  clients = styleClients(gateway.url)
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

const thought = (text: string, more: object = {}) => ({ text, thought: true, ...more })
const stop = (parts: ReadonlyArray<object> = [], more: object = {}) => chunk(parts, { finishReason: "STOP" }, more)

describe("a reply is the same in every style:", () => {
  it("stop sequences beyond the server's five are applied by the gateway", async () => {
    server.answer(() => said("Hello END more"))
    const stop = ["1", "2", "3", "4", "5", "END"]
    await assertSame(clients, { content: "Go", stop }, { pieces: [text("Hello ")], finish: "stop_sequence" })
    for (const { body } of server.requests) {
      assert.deepInclude(body["generationConfig"], { stopSequences: stop.slice(0, 5) })
    }
  })

  it("token counts of the prompt include those of tools, and those of the reply the thoughts", async () => {
    const usageMetadata = {
      promptTokenCount: 50,
      toolUsePromptTokenCount: 4,
      cachedContentTokenCount: 20,
      candidatesTokenCount: 6,
      thoughtsTokenCount: 7,
      totalTokenCount: 67
    }
    server.answer(() => streamed(chunk([thought("Hm.")]), stop([{ text: "Hi" }], { usageMetadata })))
    const usage = await assertSame(
      clients,
      { content: "Go", reasoner: true },
      { pieces: [reasoning("Hm."), text("Hi")], finish: "stop" },
      ["chat", "responses"]
    )
    assert.deepStrictEqual(usage, { prompt: 54, completion: 13, reasoning: 7, cached: 20 })
  })

  it("pictures, code and citations come in the style's own place", async () => {
    server.answer(() =>
      streamed(
        chunk([{ executableCode: { language: "PYTHON", code: "print(1)" } }]),
        chunk([{ codeExecutionResult: { outcome: "OUTCOME_OK", output: "1" } }]),
        chunk([{ inlineData: { mimeType: "image/png", data: "aGk=" } }]),
        chunk([{ text: "Paris." }]),
        chunk([], {
          finishReason: "STOP",
          groundingMetadata: {
            groundingChunks: [{ web: { uri: "https://x.test", title: "X" } }],
            groundingSupports: [{ segment: { startIndex: 0, endIndex: 5 }, groundingChunkIndices: [0] }]
          }
        })
      )
    )
    const { body } = await post("chat", { messages: [{ role: "user", content: "Go" }] })
    const { message } = body.choices[0]
    assert.strictEqual(message.content, "\n```python\nprint(1)\n```\n\n```\n1\n```\nParis.")
    assert.deepStrictEqual(message.images, [{
      type: "image_url",
      image_url: { url: "data:image/png;base64,aGk=" }
    }])
    assert.strictEqual(message.annotations[0].url_citation.url, "https://x.test")
  })
})

const paths: Record<StyleName, string> = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
  generate: "/v1beta/models/mine:generateContent"
}

const post = async (style: StyleName, fields: object) => {
  const response = await fetch(gateway.url + paths[style], {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify({ ...(style === "messages" ? { max_tokens: 64 } : {}), ...fields, model: "mine" })
  })
  const text = await response.text()
  assert.strictEqual(response.status, 200, text)
  return { body: JSON.parse(text), ignored: response.headers.get("x-gateway-ignored") }
}

/** What the server is sent for a request. */
const sent = async (style: StyleName, fields: object) => {
  server.answer(() => said("Hello"))
  const { ignored } = await post(style, fields)
  const [request] = server.requests
  const { generationConfig, ...body } = request!.body
  return { body, generationConfig, ignored }
}

const model = (...parts: ReadonlyArray<object>) => ({ role: "model", parts })
const weather = { functionCall: { id: "c1", name: "get_weather", args: { city: "Oslo" } } }

type Foreign = Exclude<StyleName, "generate">

const foreign = styleNames.filter((style): style is Foreign => style !== "generate")

describe("a request of another style arrives as contents:", () => {
  const ofChat = async (fields: object) => {
    const { generationConfig, ignored } = await sent("chat", { messages: [{ role: "user", content: "Hi" }], ...fields })
    return { ignored, config: generationConfig }
  }

  it("sampling, limits and the form of the reply are its generationConfig", async () => {
    const schema = { type: "object", properties: { a: { type: "integer" } } }
    const { config, ignored } = await ofChat({
      temperature: 0.5,
      top_p: 0.9,
      seed: 7,
      presence_penalty: 0.1,
      frequency_penalty: 0.2,
      max_completion_tokens: 100,
      logit_bias: { 1: 2 },
      stop: ["END"],
      response_format: { type: "json_schema", json_schema: { name: "a", schema } }
    })
    assert.deepStrictEqual(config, {
      temperature: 0.5,
      topP: 0.9,
      seed: 7,
      presencePenalty: 0.1,
      frequencyPenalty: 0.2,
      maxOutputTokens: 100,
      stopSequences: ["END"],
      responseMimeType: "application/json",
      responseJsonSchema: schema
    })
    assert.strictEqual(ignored, "logit_bias")
  })

  it.each(
    [
      ["an effort", "mine", { reasoning_effort: "low" }, { includeThoughts: true, thinkingBudget: 2048 }],
      ["an effort", "gemini-3-pro", { reasoning_effort: "xhigh" }, { includeThoughts: true, thinkingLevel: "HIGH" }],
      ["a budget", "mine", { thinking: { type: "enabled", budget_tokens: 512 } }, {
        includeThoughts: true,
        thinkingBudget: 512
      }],
      ["thinking", "mine", { enable_thinking: true }, { includeThoughts: true, thinkingBudget: -1 }],
      ["no thinking", "mine", { reasoning_effort: "none" }, { thinkingBudget: 0 }]
    ] as const
  )("%s is its thinkingConfig (%s)", async (_, name, fields, expected) => {
    const alone = await startGateway({
      accounts: [{ token: "key" }],
      upstream: { driver: "generate", base_url: server.baseUrl, models: { mine: "gemini-2.5-flash", [name]: name } }
    })
    try {
      server.answer(() => said("Hello"))
      const response = await fetch(`${alone.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
        body: JSON.stringify({ model: name, messages: [{ role: "user", content: "Hi" }], ...fields })
      })
      assert.strictEqual(response.status, 200)
      assert.isNull(response.headers.get("x-gateway-ignored"))
      assert.deepStrictEqual(server.requests[0]?.body["generationConfig"], { thinkingConfig: expected })
    } finally {
      await alone.stop()
    }
  })

  it("signatures of calls go back with them, in every style", async () => {
    for (const style of foreign) {
      server.answer(() => streamed(stop([{ ...weather, thoughtSignature: "c2ln" }])))
      const tool = sharedRequests["a loop of tools"][style]
      await post(style, tool)
      const { contents } = (await sent(style, tool)).body as { readonly contents?: ReadonlyArray<object> }
      assert.deepStrictEqual(contents?.[1], model({ ...weather, thoughtSignature: "c2ln" }), style)
    }
  })
})

const retry = { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "17.2s" }

describe("a failure is a plain error:", () => {
  it("the time to wait is the server's", async () => {
    server.answer(() => refused(429, "RESOURCE_EXHAUSTED", "slowly", [retry]))
    assert.strictEqual((await ask(gateway.url, "chat", false)).retryAfter, "18")
  })

  it("a prompt that the server blocks, in the styles of other vendors", async () => {
    server.answer(() => streamed({ promptFeedback: { blockReason: "SAFETY" } }))
    for (const style of foreign) {
      const { error, status } = await ask(gateway.url, style, false)
      assert.strictEqual(status, 400)
      assert.match(error?.message ?? "", /filter/)
    }
  })
})
