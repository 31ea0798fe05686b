/** Embeddings of the content-generation style, by the official client and on the wire. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { ApiError, GoogleGenAI } from "@google/genai"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import type { RawConfig } from "../../../src/config/json.ts"
import { generateErrors } from "../../../src/contracts/generate/clientErrors.ts"
import { BatchEmbedContentsResponse, EmbedContentResponse } from "../../../src/contracts/generate/schema.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { json, type OpenAiServer, startOpenAiServer } from "../../support/openaiServer.ts"

let gateway: RunningGateway
afterEach(() => gateway.stop())

const start = async (config: RawConfig = { embeddings: { provider: "builtin" } }) => {
  const lines: Array<Record<string, unknown>> = []
  const logger = Logger.make<unknown, void>(({ fiber, message }) => {
    lines.push({ message: String(message), ...fiber.getRef(References.CurrentLogAnnotations) })
  })
  gateway = await startGateway(config, { logger })
  return lines
}

const clientOf = (apiVersion = "v1beta") =>
  new GoogleGenAI({ apiKey: businessKey, httpOptions: { baseUrl: gateway.url, apiVersion } })

const post = async (method: string, body: unknown, version = "v1beta", key = businessKey) => {
  const response = await fetch(`${gateway.url}/${version}/models/upstream-chat:${method}`, {
    method: "POST",
    headers: { "x-goog-api-key": key, "content-type": "application/json" },
    body: JSON.stringify(body)
  })
  return { status: response.status, body: await response.json() as unknown }
}

/** The vector that `/v1/embeddings` makes of the same text. */
const openAiVector = async (input: string, dimensions?: number) => {
  const response = await fetch(`${gateway.url}/v1/embeddings`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}` },
    body: JSON.stringify({ model: "upstream-chat", input, dimensions })
  })
  const { data } = await response.json() as { data: ReadonlyArray<{ embedding: ReadonlyArray<number> }> }
  return data[0]!.embedding
}

const text = (words: string) => ({ parts: [{ text: words }] })

const failureOf = async (call: Promise<unknown>) => {
  const error: unknown = await call.then(() => undefined, (error: unknown) => error)
  assert.instanceOf(error, ApiError)
  const { error: { code, message, status } } = Schema.decodeUnknownSync(
    Schema.fromJsonString(Schema.Struct({
      error: Schema.Struct({ code: Schema.Int, message: Schema.String, status: Schema.String })
    }))
  )(error.message)
  assert.strictEqual(code, error.status)
  return { code, message, status }
}

describe("embedContent and batchEmbedContents of the gateway's own", () => {
  it.each(["v1", "v1beta"])("give the official client the vectors of /v1/embeddings (%s)", async (version) => {
    await start()
    const { embeddings = [] } = await clientOf(version).models.embedContent({
      model: "gemini-embedding-001",
      contents: ["first text", "second"],
      config: { outputDimensionality: 64, taskType: "RETRIEVAL_DOCUMENT", title: "A title" }
    })
    assert.deepEqual<unknown>(embeddings.map(({ values }) => values), [
      await openAiVector("first text", 64),
      await openAiVector("second", 64)
    ])
  })

  it.each(["v1", "v1beta"])("are documented as they are (%s)", async (version) => {
    const lines = await start()
    const one = await post("embedContent", { content: text("a text") }, version)
    assert.strictEqual(one.status, 200)
    const { embedding, usageMetadata } = Schema.decodeUnknownSync(EmbedContentResponse)(one.body, {
      onExcessProperty: "error"
    })
    assert.deepEqual(embedding.values, await openAiVector("a text"))
    assert.isAbove(usageMetadata.promptTokenCount, 0)
    const many = await post("batchEmbedContents", {
      requests: [{ model: "models/upstream-chat", content: text("a text") }]
    }, version)
    const batch = Schema.decodeUnknownSync(BatchEmbedContentsResponse)(many.body, { onExcessProperty: "error" })
    assert.deepEqual(batch, { embeddings: [embedding], usageMetadata })
    const logged = lines.find(({ message }) => message === "request")
    assert.deepInclude(logged, {
      style: "generate",
      model: "upstream-chat",
      outcome: "ok",
      input_tokens: usageMetadata.promptTokenCount
    })
  })

  it("take the spellings that the style takes elsewhere", async () => {
    await start()
    const expected = await openAiVector("one\ntwo", 8)
    const bodies = [
      { content: { parts: [{ text: "one" }, { text: "two" }] }, outputDimensionality: 8 },
      { content: "one\ntwo", output_dimensionality: 8, task_type: "CLUSTERING" },
      { content: { text: "one\ntwo" }, outputDimensionality: 8, title: null }
    ]
    for (const body of bodies) {
      const reply = await post("embedContent", body)
      assert.deepInclude(reply.body, { embedding: { values: expected } })
    }
  })

  const many = (count: number, more: object = {}) => ({
    requests: Array.from({ length: count }, () => ({ content: text("a"), ...more }))
  })

  it.each([
    ["embedContent", {}, "content"],
    ["embedContent", { content: { parts: [] } }, "content.parts"],
    ["embedContent", { content: text("") }, "content.parts"],
    ["embedContent", { content: { parts: [{ text: "a" }, { inlineData: { data: "AA==" } }] } }, "content.parts[1]"],
    ["embedContent", { content: text("a"), outputDimensionality: 0 }, "outputDimensionality"],
    ["embedContent", { content: text("a"), outputDimensionality: 4097 }, "outputDimensionality"],
    ["embedContent", { content: text("a"), taskType: 5 }, "taskType"],
    ["embedContent", { content: text("a"), model: "models/upstream-reasoner" }, "model"],
    ["embedContent", { content: text("a".repeat(4 * 1024 * 1024 + 1)) }, "content"],
    ["batchEmbedContents", { requests: [] }, "requests[0]"],
    ["batchEmbedContents", many(2049), "requests"],
    ["batchEmbedContents", many(1025, { outputDimensionality: 4096 }), "requests[0].outputDimensionality"],
    [
      "batchEmbedContents",
      { requests: [{ content: text("a") }, { content: text("b"), outputDimensionality: 3 }] },
      "requests[1].outputDimensionality"
    ],
    [
      "batchEmbedContents",
      { requests: [{ content: text("a") }, { content: text("b"), model: "other" }] },
      "requests[1].model"
    ],
    [
      "batchEmbedContents",
      { requests: [{ content: text("a") }, { content: { role: "user" } }] },
      "requests[1].content.parts"
    ],
    ["batchEmbedContents", { requests: [{ content: text("a") }, {}] }, "requests[1].content"]
  ])("%s refuses what it cannot embed, naming the field: %#", async (method, body, field) => {
    await start()
    const { body: reply, status } = await post(method, body)
    assert.strictEqual(status, 400)
    const { error } = Schema.decodeUnknownSync(generateErrors.body)(reply)
    assert.strictEqual(error.status, "INVALID_ARGUMENT")
    assert.isTrue(error.message.startsWith(`${field}: `), error.message)
  })

  it("fail with the client's own error without a provider, without the model, and without permission", async () => {
    await start({ embeddings: { provider: "" }, auth: { direct_tokens: false } })
    const asked = { model: "upstream-chat", contents: "a" }
    assert.deepInclude(await failureOf(clientOf().models.embedContent(asked)), { code: 501, status: "UNIMPLEMENTED" })
    assert.strictEqual((await post("embedContent", { content: "a" }, "v1", "")).status, 401)
    await gateway.stop()
    await start()
    const failure = await failureOf(clientOf().models.embedContent({ ...asked, model: "no-such-model" }))
    assert.deepInclude(failure, { code: 400, status: "INVALID_ARGUMENT" })
    assert.include(failure.message, "no-such-model")
  })

  it("are in the models' methods while there are any", async () => {
    await start()
    const methods = async () => (await clientOf().models.get({ model: "upstream-chat" })).supportedActions
    assert.includeMembers(await methods() ?? [], ["embedContent", "batchEmbedContents"])
    await gateway.stop()
    await start({ embeddings: { provider: "" } })
    assert.notInclude(await methods() ?? [], "embedContent")
  })
})

describe("embedContent of an upstream", () => {
  let server: OpenAiServer
  beforeAll(async () => {
    server = await startOpenAiServer()
  })
  afterAll(() => server.stop())

  const vectors = [[0.25, -0.5], [1, 0]]
  const upstream = () => ({
    embeddings: { provider: "upstream" },
    accounts: [{ token: "sk-one" }, { token: "sk-two" }],
    upstream: { driver: "openai", base_url: server.baseUrl, models: { "my-embedder": "nomic-embed-text" } }
  })

  it("gives the server's vectors, asked of an account, and is logged and counted as embeddings", async () => {
    const lines = await start(upstream())
    server.answer(() =>
      json(200, { data: vectors.map((embedding, index) => ({ index, embedding })), usage: { prompt_tokens: 7 } })
    )
    const { embeddings = [] } = await clientOf().models.embedContent({
      model: "my-embedder",
      contents: ["one", "two"],
      config: { outputDimensionality: 2 }
    })
    assert.deepEqual(embeddings.map(({ values }) => values), vectors)
    const [seen] = server.requests
    assert.deepEqual([seen?.path, seen?.body], ["/v1/embeddings", {
      model: "nomic-embed-text",
      input: ["one", "two"],
      encoding_format: "float",
      dimensions: 2
    }])
    assert.match(seen?.key ?? "", /^sk-(?:one|two)$/)
    const logged = lines.find(({ message }) => message === "request")
    assert.deepInclude(logged, { outcome: "ok", input_tokens: 7, attempts: 1 })
    const metrics = await fetch(`${gateway.url}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } })
    assert.match(await metrics.text(), /gen_ai_server_request_duration_seconds_count\{[^}]*"embeddings"/)
  })

  it("fails with the server's message in the style's shape", async () => {
    await start(upstream())
    server.answer(() => json(400, { error: { message: "input is too odd" } }))
    const failure = await failureOf(clientOf().models.embedContent({ model: "my-embedder", contents: "one" }))
    assert.deepInclude(failure, { code: 400, status: "INVALID_ARGUMENT" })
    assert.include(failure.message, "input is too odd")
  })
})
