import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import OpenAI from "openai"
import { EmbeddingsList } from "../../../src/styles/embeddings/Api.ts"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"

let gateway: RunningGateway
let client: OpenAI

beforeAll(async () => {
  // No account could serve a completion: embeddings need none.
  gateway = await startGateway({
    embeddings: { provider: "deterministic" },
    model_aliases: { "small": "upstream-chat" }
  })
  client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: businessKey, maxRetries: 0 })
})
afterAll(() => gateway.stop())

const post = async (body: unknown, key = businessKey) => {
  const response = await fetch(`${gateway.url}/v1/embeddings`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: typeof body === "string" ? body : JSON.stringify(body)
  })
  const text = await response.text()
  return { status: response.status, body: JSON.parse(text) as { error: { code: string; param: string | null } } }
}

const floats = async (input: OpenAI.EmbeddingCreateParams["input"], more: object = {}) => {
  const { data } = await client.embeddings.create({ model: "small", input, encoding_format: "float", ...more })
  return data.map((each) => each.embedding)
}

describe("embeddings, by the official client", () => {
  it("are a list in the order of the inputs, with the model that was asked for and their tokens", async () => {
    const reply = await client.embeddings.create({
      model: "small",
      input: ["first text", "second"],
      encoding_format: "float"
    })
    Schema.decodeUnknownSync(EmbeddingsList)(reply, { onExcessProperty: "error" })
    assert.strictEqual(reply.object, "list")
    assert.strictEqual(reply.model, "small")
    assert.deepStrictEqual(reply.data.map(({ index, object }) => ({ index, object })), [
      { index: 0, object: "embedding" },
      { index: 1, object: "embedding" }
    ])
    assert.deepStrictEqual([reply.data[1]!.embedding], await floats("second"))
    assert.isAbove(reply.usage.prompt_tokens, 0)
    assert.strictEqual(reply.usage.total_tokens, reply.usage.prompt_tokens)
  })

  it("are the same in Base64, which the client asks for by itself", async () => {
    const { data } = await client.embeddings.create({ model: "small", input: "a text" })
    const [expected] = await floats("a text")
    assert.strictEqual(data[0]!.embedding.length, 256)
    assert.deepStrictEqual([...data[0]!.embedding], expected!.map(Math.fround))
  })

  it("have the dimensions that are asked for", async () => {
    for (const dimensions of [1, 1536, 3072]) {
      const [embedding] = await floats("a text", { dimensions })
      assert.strictEqual(embedding!.length, dimensions)
    }
  })

  it("are made of texts and of token arrays", async () => {
    assert.strictEqual((await floats("text")).length, 1)
    assert.strictEqual((await floats(["a", "b", "c"])).length, 3)
    assert.strictEqual((await floats([1, 2, 3])).length, 1)
    const [one, two] = await floats([[1, 2, 3], [4, 5]])
    assert.deepStrictEqual([one], await floats([1, 2, 3]))
    assert.notDeepEqual(one, two)
  })

  it("come as they are made: a large request holds up nothing and is never in memory as a whole", async () => {
    const response = await fetch(`${gateway.url}/v1/embeddings`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}` },
      body: JSON.stringify({
        model: "small",
        input: Array.from({ length: 2048 }, (_, i) => `text ${i}`),
        dimensions: 2048,
        encoding_format: "base64"
      })
    })
    const reader = response.body!.getReader()
    const decoder = new TextDecoder()
    let text = decoder.decode((await reader.read()).value, { stream: true })
    // The sockets hold far less than the 22 MB of the reply: it cannot be finished before it is read.
    assert.strictEqual((await fetch(`${gateway.url}/healthz`)).status, 200)
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      text += decoder.decode(value, { stream: true })
    }
    assert.isAbove(text.length, 22_000_000)
    const { data } = JSON.parse(text) as { data: ReadonlyArray<{ index: number }> }
    assert.deepStrictEqual(data.map((each) => each.index), Array.from({ length: 2048 }, (_, i) => i))
  })
})

describe("a request for embeddings", () => {
  it.each([
    ["", "input"],
    [[], "input"],
    [["a", ""], "input[1]"],
    [["a", []], "input[1]"],
    [[1, -1], "input[1]"],
    [[1, 1.5], "input[1]"],
    [[1, "a"], "input[1]"],
    [["a", [1]], "input[1]"],
    [["a", "b", [1]], "input[2]"],
    [[[1], "a"], "input[1]"],
    [["a", 1], "input[1]"],
    [["a", null], "input[1]"],
    [[[1, "a"]], "input[0][1]"],
    [[{}], "input[0]"],
    [5, "input"],
    [null, "input"],
    [Array.from({ length: 2049 }, () => "a"), "input"]
  ])("is refused for the input %j", async (input, param) => {
    const { body, status } = await post({ model: "small", input })
    assert.strictEqual(status, 400)
    assert.strictEqual(body.error.param, param)
  })

  it.each([
    [{ dimensions: 0 }, "dimensions"],
    [{ dimensions: 4097 }, "dimensions"],
    [{ dimensions: 4096, input: Array.from({ length: 1025 }, () => "a") }, "dimensions"],
    [{ input: "a".repeat(4 * 1024 * 1024 + 1) }, "input"],
    [{ input: Array.from({ length: 1024 * 1024 + 1 }, () => 1) }, "input"],
    [{ dimensions: 1.5 }, "dimensions"],
    [{ dimensions: "256" }, "dimensions"],
    [{ encoding_format: "hex" }, "encoding_format"],
    [{ model: "no-such-model" }, "model"],
    [{ model: 5 }, "model"],
    [{ user: 5 }, "user"]
  ])("is refused for %j", async (fields, param) => {
    const { body, status } = await post({ model: "small", input: "a", ...fields })
    assert.strictEqual(status, 400)
    assert.strictEqual(body.error.param, param)
  })

  it("is refused without a credential before its body is read", async () => {
    const { status } = await post("{", " ")
    assert.strictEqual(status, 401)
  })

  it.each(["", "openai", "Mock"])("is answered with 501 while the provider is %j", async (provider) => {
    const other = await startGateway({ embeddings: { provider } })
    const error: unknown = await new OpenAI({ baseURL: `${other.url}/v1`, apiKey: businessKey, maxRetries: 0 })
      .embeddings.create({ model: "upstream-chat", input: "a" })
      .catch((error: unknown) => error)
    await other.stop()
    assert(error instanceof OpenAI.APIError)
    assert.strictEqual(error.status, 501)
    assert.strictEqual(error.code, "embeddings_unavailable")
    assert.strictEqual(error.type, "api_error")
    assert.match(error.message, /not enabled on this gateway\. Ask the gateway's operator\.$/)
  })

  it.each(["mock", "builtin"])("is served while the provider is %j", async (provider) => {
    const other = await startGateway({ embeddings: { provider } })
    const reply = await new OpenAI({ baseURL: `${other.url}/v1`, apiKey: businessKey, maxRetries: 0 })
      .embeddings.create({ model: "gpt-4o", input: "a" })
    await other.stop()
    assert.strictEqual(reply.data.length, 1)
  })
})
