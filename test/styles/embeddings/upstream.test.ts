/** Embeddings that the upstream makes: its models, its accounts, its limits, its refusals. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import OpenAI from "openai"
import type { RawConfig } from "../../../src/config/json.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { json, type OpenAiServer, startOpenAiServer } from "../../support/openaiServer.ts"

let server: OpenAiServer
beforeAll(async () => {
  server = await startOpenAiServer()
})
afterAll(() => server.stop())

let gateway: RunningGateway
afterEach(() => gateway.stop())

const start = async (config: RawConfig = {}, upstream: RawConfig = {}) => {
  gateway = await startGateway({
    embeddings: { provider: "upstream" },
    accounts: [{ token: "sk-one" }, { token: "sk-two" }],
    ...config,
    upstream: { driver: "openai", base_url: server.baseUrl, models: { "my-embedder": "nomic-embed-text" }, ...upstream }
  })
  return new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: businessKey, maxRetries: 0 })
}

const answer = (vectors: ReadonlyArray<ReadonlyArray<number>>) =>
  json(200, {
    object: "list",
    // Out of order, as servers may answer.
    data: vectors.map((embedding, index) => ({ object: "embedding", index, embedding })).toReversed(),
    model: "nomic-embed-text",
    usage: { prompt_tokens: 7, total_tokens: 7 }
  })

const vectors = [[0.25, -0.5], [1, 0]]

describe("embeddings of the upstream", () => {
  it.each(["float", "base64"] as const)(
    "are the server's vectors in the inputs' order (%s)",
    async (encoding_format) => {
      const client = await start()
      server.answer(() => answer(vectors))
      const list = await client.embeddings.create({
        model: "my-embedder",
        input: ["one", "two"],
        dimensions: 2,
        encoding_format
      })
      const numbers = list.data.map(({ embedding }) =>
        typeof embedding === "string"
          ? [...new Float32Array(new Uint8Array(Buffer.from(embedding, "base64")).buffer)]
          : embedding
      )
      assert.deepEqual(numbers, vectors)
      assert.deepEqual([list.model, list.usage.prompt_tokens], ["my-embedder", 7])
      const [seen] = server.requests
      assert.strictEqual(seen?.path, "/v1/embeddings")
      assert.deepEqual(seen?.body, {
        model: "nomic-embed-text",
        input: ["one", "two"],
        encoding_format: "float",
        dimensions: 2
      })
      assert.match(seen?.key ?? "", /^sk-(?:one|two)$/)
    }
  )

  it("use an id of upstream.models and by well-known names, which are sent as they are or as they are mapped", async () => {
    const client = await start({}, { models: { mine: "their-embedder", "nomic-embed-text": "nomic:v1.5" } })
    server.answer(() => answer([[1, 2]]))
    for (const model of ["mine", "text-embedding-3-small", "Nomic-Embed-Text", "gemini-embedding-001"]) {
      assert.strictEqual((await client.embeddings.create({ model, input: "one" })).model, model)
    }
    const generate = await fetch(`${gateway.url}/v1beta/models/text-embedding-004:embedContent`, {
      method: "POST",
      headers: { "x-gen-api-key": businessKey },
      body: JSON.stringify({ content: { parts: [{ text: "one" }] } })
    })
    assert.strictEqual(generate.status, 200, await generate.text())
    assert.deepStrictEqual(server.requests.map(({ body }) => body["model"]), [
      "their-embedder",
      "text-embedding-3-small",
      "nomic:v1.5",
      "gemini-embedding-001",
      "text-embedding-004"
    ])
    const unknown: unknown = await client.embeddings.create({ model: "text-embedding-of-mine", input: "one" }).catch(
      (error: unknown) => error
    )
    assert(unknown instanceof OpenAI.APIError)
    assert.deepEqual([unknown.status, unknown.code], [400, "model_not_found"])
  })

  it("may be the only ones that a key is for", async () => {
    await start()
    server.answer(() => answer([[1, 2]]))
    const admin = { authorization: `Bearer ${adminKey}` }
    const body = JSON.stringify({ key: "for-vectors", models: ["text-embedding-3-small"] })
    assert.strictEqual((await fetch(`${gateway.url}/admin/keys`, { method: "POST", headers: admin, body })).status, 200)
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: "for-vectors", maxRetries: 0 })
    assert.lengthOf((await client.embeddings.create({ model: "text-embedding-3-small", input: "one" })).data, 1)
    const refused: unknown = await client.embeddings.create({ model: "my-embedder", input: "one" }).catch(
      (error: unknown) => error
    )
    assert(refused instanceof OpenAI.APIError)
    assert.deepEqual([refused.status, refused.code], [403, "model_not_allowed"])
  })

  it("fail over to another account, and end with the server's message", async () => {
    const client = await start()
    server.answer((_, index) => index === 0 ? json(429, { error: { message: "slow down" } }) : answer([[1, 2]]))
    assert.lengthOf((await client.embeddings.create({ model: "my-embedder", input: "one" })).data, 1)
    assert.lengthOf(new Set(server.requests.map(({ key }) => key)), 2)
    server.answer(() => json(400, { error: { message: "input is too odd" } }))
    const failure: unknown = await client.embeddings.create({ model: "my-embedder", input: "one" }).then(
      () => undefined,
      (error: unknown) => error
    )
    assert(failure instanceof OpenAI.APIError)
    assert.deepEqual([failure.status, failure.code], [400, "invalid_request"])
    assert.match(failure.message, /input is too odd/)
  })

  it("are no success where the server answers with something else", async () => {
    const client = await start({ accounts: [] })
    for (const body of [{ data: [] }, { data: [{ embedding: ["x"] }] }, { data: [{ index: 5, embedding: [1] }] }]) {
      server.answer(() => json(200, body))
      const failure: unknown = await client.embeddings.create({ model: "my-embedder", input: "one" }).then(
        () => undefined,
        (error: unknown) => error
      )
      assert(failure instanceof OpenAI.APIError)
      assert.deepEqual([failure.status, failure.code], [503, "upstream_error"])
    }
  })

  it("fail with an upstream that makes no embeddings", async () => {
    const client = await start({}, { driver: "embedded", base_url: "" })
    const failure: unknown = await client.embeddings.create({ model: "my-embedder", input: "one" }).then(
      () => undefined,
      (error: unknown) => error
    )
    assert(failure instanceof OpenAI.APIError)
    assert.deepEqual([failure.status, failure.code], [501, "embeddings_unavailable"])
  })
})
