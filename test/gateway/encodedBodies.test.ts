/** Request bodies that clients compress, at every kind of endpoint that reads one. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { createHash } from "node:crypto"
import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { json, type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"

const model = "upstream-chat"
const ears = "ears"

let gateway: RunningGateway
let server: OpenAiServer
beforeAll(async () => {
  server = await startOpenAiServer()
  gateway = await startGateway({
    upstream: {
      driver: "openai",
      base_url: server.baseUrl,
      models: { [model]: model, [ears]: ears }
    },
    embeddings: { provider: "builtin" },
    limits: { body_bytes: 4 * 1024 * 1024 }
  })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

/** The best quality takes seconds for megabytes. */
const brotli = (text: string) => brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } })

const encodings: ReadonlyArray<readonly [name: string, encode: (text: string) => Uint8Array]> = [
  ["gzip", gzipSync],
  ["X-GZIP", gzipSync],
  ["br", brotli],
  ["deflate", deflateSync],
  ["deflate", deflateRawSync],
  ["zstd", zstdCompressSync]
]

const post = (path: string, body: Uint8Array, encoding: string, headers: Record<string, string> = {}) =>
  fetch(gateway.url + path, {
    method: "POST",
    headers: {
      authorization: `Bearer ${businessKey}`,
      "content-type": "application/json",
      "content-encoding": encoding,
      ...headers
    },
    body: Buffer.from(body)
  })

/** The words of a refusal. */
const refusal = async (response: Response) => {
  const { error } = await response.json() as { readonly error: { readonly message: string } }
  return [response.status, error.message]
}

const messages = [{ role: "user", content: "Grüße 🌍" }]

const endpoints: ReadonlyArray<readonly [name: string, path: string, body: object]> = [
  ["a chat", "/v1/chat/completions", { model, messages }],
  ["a response", "/v1/responses", { model, input: "Hi" }],
  ["a message", "/v1/messages", { model, max_tokens: 9, messages }],
  ["a count of tokens", "/v1/messages/count_tokens", { model, messages }],
  ["a generation", `/v1beta/models/${model}:generateContent`, {
    contents: [{ role: "user", parts: [{ text: "Hi" }] }]
  }],
  ["embeddings", "/v1/embeddings", { model, input: "Hi" }],
  ["a relayed request", "/v1/images/generations", { model, prompt: "Hi" }]
]

/** Text that no encoding makes much smaller. */
const incompressible = Array.from({ length: 90_000 }, (_, i) => createHash("sha256").update(`${i}`).digest("hex")).join(
  ""
)

const chat = (text: string) => JSON.stringify({ model, messages: [{ role: "user", content: text }] })

describe("a body in a content encoding", () => {
  it.each(encodings)("%s reaches the server decoded, with each of its characters", async (name, encode) => {
    server.answer(() => streamed({ content: "Hello" }))
    const text = "Grüße 🌍 ".repeat(20_000)
    const response = await post("/v1/chat/completions", encode(chat(text)), name)
    assert.strictEqual(response.status, 200, await response.text())
    assert.deepInclude(server.requests.at(-1)?.body, { messages: [{ role: "user", content: text }] })
  })

  it.each(endpoints)("is read by each endpoint: %s", async (_, path, body) => {
    server.answer(() => path.includes("images") ? json(200, { data: [] }) : streamed({ content: "Hello" }))
    const response = await post(path, zstdCompressSync(JSON.stringify(body)), "zstd")
    assert.strictEqual(response.status, 200, await response.text())
  })

  it("is read by the endpoints of admins and of forms", async () => {
    const login = await post("/admin/login", gzipSync(JSON.stringify({ admin_key: adminKey })), "gzip")
    assert.strictEqual(login.status, 200)
    server.answer(() => json(200, { text: "Hello" }))
    const form = "--cut\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nears\r\n--cut\r\n" +
      "Content-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nRIFF\r\n--cut--\r\n"
    const type = { "content-type": "multipart/form-data; boundary=cut" }
    const response = await post("/v1/audio/transcriptions", gzipSync(form), "gzip", type)
    assert.strictEqual(response.status, 200, await response.text())
    assert.notProperty(server.requests.at(-1)?.headers ?? {}, "content-encoding")
  })

  it.each([
    ["an unknown one", "compress", /"compress" is not supported; send gzip, br, deflate, zstd or none/],
    ["several", "gzip, br", /several content encodings, "gzip, br"/]
  ])("is refused by its name: %s", async (_, encoding, message) => {
    const [status, words] = await refusal(await post("/v1/chat/completions", gzipSync(chat("Hi")), encoding))
    assert.strictEqual(status, 415)
    assert.match(String(words), message)
  })

  it.each(encodings)("%s that is broken or cut off is a mistake of the client", async (name, encode) => {
    const whole = encode(chat("Hi".repeat(200)))
    for (const body of [whole.subarray(0, whole.length - 6), Buffer.from("{\"model\":\"upstream-chat\"}")]) {
      const [status, words] = await refusal(await post("/v1/chat/completions", body, name))
      assert.strictEqual(status, 400)
      assert.strictEqual(words, `The request body is not valid ${name.toLowerCase()}`)
    }
  })

  it.each(encodings)("%s is bound by the decoded bytes, and by the ratio", async (name, encode) => {
    const large = await refusal(await post("/v1/chat/completions", encode(chat(incompressible)), name))
    assert.deepStrictEqual(large, [413, "The request body is larger than the limit of 4 MiB"])
    const dense = await refusal(await post("/v1/chat/completions", encode(chat("a".repeat(3 * 1024 * 1024))), name))
    assert.strictEqual(dense[0], 413)
    assert.match(String(dense[1]), /grows more than 100 times/)
  })
})
