/** The gateway in front of a scripted content-generation server, with the official client. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { GoogleGenAI } from "@google/genai"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { type GenerateServer, json, said, startGenerateServer } from "../../support/generateServer.ts"

let server: GenerateServer
let gateway: RunningGateway

beforeAll(async () => {
  server = await startGenerateServer()
  gateway = await startGateway({
    accounts: [{ token: "server-key" }],
    embeddings: { provider: "upstream" },
    upstream: { driver: "generate", base_url: server.baseUrl, models: { "upstream-chat": "gemini-server" } }
  })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

const client = () =>
  new GoogleGenAI({ apiKey: businessKey, httpOptions: { baseUrl: gateway.url, retryOptions: { attempts: 1 } } })

describe("a text completion by the official client", () => {
  const ask = { model: "upstream-chat", contents: "Hi" }

  it("comes whole, with the key and the model's name of the server", async () => {
    server.answer(() => said("Hello"))
    const reply = await client().models.generateContent(ask)
    assert.strictEqual(reply.text, "Hello")
    assert.strictEqual(reply.modelVersion, "upstream-chat")
    const [request] = server.requests
    assert.strictEqual(request?.path, "/v1beta/models/gemini-server:generateContent")
    assert.strictEqual(request?.key, "server-key")
    assert.deepStrictEqual(request?.body, { contents: [{ role: "user", parts: [{ text: "Hi" }] }] })
  })

  it("comes as a stream", async () => {
    server.answer(() => said("Hello"))
    let text = ""
    for await (const chunk of await client().models.generateContentStream(ask)) text += chunk.text ?? ""
    assert.strictEqual(text, "Hello")
  })
})

const post = async (path: string, body: object) => {
  const response = await fetch(gateway.url + path, {
    method: "POST",
    headers: { "authorization": `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })
  return {
    body: JSON.parse(await response.text()),
    ignored: response.headers.get("x-gateway-ignored"),
    status: response.status
  }
}

describe("embeddings", () => {
  const vectors = json(200, { embeddings: [{ values: [1, 2] }, { values: [3, 4] }] })

  it("of the generate style have their tasks, titles and dimensions at the server", async () => {
    server.answer(() => vectors)
    const { body, ignored } = await post("/v1beta/models/upstream-chat:batchEmbedContents", {
      requests: [
        { content: { parts: [{ text: "a" }] }, taskType: "RETRIEVAL_QUERY", outputDimensionality: 2 },
        { content: { parts: [{ text: "b" }] }, title: "B", outputDimensionality: 2 }
      ]
    })
    assert.deepStrictEqual(body.embeddings, [{ values: [1, 2] }, { values: [3, 4] }])
    assert.isNull(ignored)
    const common = { model: "models/gemini-server", outputDimensionality: 2 }
    assert.deepStrictEqual(server.requests[0]?.body, {
      requests: [
        { ...common, content: { parts: [{ text: "a" }] }, taskType: "RETRIEVAL_QUERY" },
        { ...common, content: { parts: [{ text: "b" }] }, title: "B" }
      ]
    })
  })

  it("of the chat family are the server's; fields that it lacks are named", async () => {
    server.answer(() => vectors)
    const { body, ignored } = await post("/v1/embeddings", {
      model: "upstream-chat",
      input: ["a", "b"],
      input_type: "query"
    })
    assert.deepStrictEqual(body.data.map(({ embedding }: { readonly embedding: unknown }) => embedding), [[1, 2], [
      3,
      4
    ]])
    assert.strictEqual(ignored, "input_type")
  })

  it("of token ids are refused, since the server embeds texts", async () => {
    server.answer(() => vectors)
    const { body, status } = await post("/v1/embeddings", { model: "upstream-chat", input: [[1, 2]] })
    assert.strictEqual(status, 400)
    assert.match(body.error.message, /texts, not token ids/)
    assert.strictEqual(body.error.param, "input")
  })
})

describe("counts of tokens", () => {
  const requests = {
    "/v1beta/models/upstream-chat:countTokens": {
      contents: [{ role: "user", parts: [{ text: "Hi" }] }],
      labels: { a: "b" }
    },
    "/v1/messages/count_tokens": { model: "upstream-chat", messages: [{ role: "user", content: "Hi" }] }
  }

  it.each(Object.entries(requests))("are the server's (%s)", async (path, request) => {
    server.answer(() => json(200, { totalTokens: 42 }))
    const { body, ignored } = await post(path, request)
    assert.strictEqual(body.totalTokens ?? body.input_tokens, 42)
    assert.isNull(ignored)
    assert.deepStrictEqual(server.requests[0]?.body, {
      generateContentRequest: {
        model: "models/gemini-server",
        contents: [{ role: "user", parts: [{ text: "Hi" }] }],
        ...("labels" in request ? { labels: request.labels } : {})
      }
    })
  })

  it("are an estimate where the server has no such call", async () => {
    server.answer(() => json(404, "Not found"))
    const { body } = await post("/v1beta/models/upstream-chat:countTokens", {
      contents: [{ role: "user", parts: [{ text: "Hi" }] }]
    })
    assert.isAbove(body.totalTokens, 0)
  })
})

describe("upstream.fields", () => {
  const body = {
    contents: [{ role: "user", parts: [{ text: "Hi", partMetadata: { a: 1 } }] }],
    safetySettings: [{ category: "A", threshold: "B" }],
    labels: { a: "b" },
    unheard: 1,
    generationConfig: { responseSchema: { type: "OBJECT" }, topK: 3, responseLogprobs: true },
    tools: [{ functionDeclarations: [{ name: "f", parameters: { type: "OBJECT" } }] }, { googleSearch: {} }]
  }
  const translated = {
    contents: [{ role: "user", parts: [{ text: "Hi" }] }],
    generationConfig: { responseSchema: { type: "OBJECT" }, topK: 3 },
    tools: [{ functionDeclarations: [{ name: "f", parametersJsonSchema: { type: "object" } }] }]
  }
  const named = ["tools[1]", "safetySettings", "unheard"]
  const all = [...named, "generationConfig.responseLogprobs"]

  it.each(
    [
      ["drop", translated, all],
      [["labels"], { ...translated, labels: { a: "b" } }, all],
      [["generationConfig"], { ...translated, generationConfig: body.generationConfig }, named]
    ] as const
  )("limits the caller's vendor fields: %j", async (fields, expected, ignored) => {
    const limited = await startGateway({
      accounts: [{ token: "server-key" }],
      upstream: {
        driver: "generate",
        base_url: server.baseUrl,
        fields: typeof fields === "string" ? fields : [...fields]
      }
    })
    try {
      server.answer(() => said("Hello"))
      const response = await fetch(`${limited.url}/v1beta/models/upstream-chat:generateContent`, {
        method: "POST",
        headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
        body: JSON.stringify(body)
      })
      assert.strictEqual(response.status, 200)
      assert.sameMembers(response.headers.get("x-gateway-ignored")?.split(",") ?? [], ignored)
      assert.deepStrictEqual(server.requests[0]?.body, expected)
    } finally {
      await limited.stop()
    }
  })
})
