/** The gateway in front of a scripted content-generation server, with the official client. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { GoogleGenAI } from "@google/genai"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { type GenerateServer, said, startGenerateServer } from "../../support/generateServer.ts"

let server: GenerateServer
let gateway: RunningGateway

beforeAll(async () => {
  server = await startGenerateServer()
  gateway = await startGateway({
    accounts: [{ token: "server-key" }],
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
    assert.strictEqual(request?.path, "/v1beta/models/gemini-server:streamGenerateContent?alt=sse")
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
