import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"

let server: OpenAiServer
let gateway: RunningGateway

beforeAll(async () => {
  server = await startOpenAiServer()
  server.answer(() => streamed({ content: "hello" }))
  const upstreams = {
    gpu: { driver: "openai", base_url: server.baseUrl, models: { "Qwen/Qwen3-8B": "served" } }
  }
  gateway = await startGateway({ upstreams })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

const get = (path: string) => fetch(`${gateway.url}${path}`, { headers: { authorization: `Bearer ${businessKey}` } })

describe("the name of a model in a path", () => {
  it("may have slashes, as they are or encoded", async () => {
    for (const name of ["gpu/Qwen/Qwen3-8B", "gpu%2FQwen%2FQwen3-8B", "Qwen/Qwen3-8B"]) {
      const listed = await get(`/v1/models/${name}`)
      assert.strictEqual(listed.status, 200, name)
      assert.deepInclude(await listed.json(), { id: decodeURIComponent(name) })
      assert.strictEqual((await get(`/v1beta/models/${name}`)).status, 200, name)
    }
  })

  it("may have slashes in a call of content generation", async () => {
    for (const name of ["gpu/Qwen/Qwen3-8B", "gpu%2FQwen%2FQwen3-8B"]) {
      const reply = await fetch(`${gateway.url}/v1beta/models/${name}:generateContent`, {
        method: "POST",
        headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
        body: JSON.stringify({ contents: [{ parts: [{ text: "hi" }] }] })
      })
      assert.strictEqual(reply.status, 200, name)
      assert.deepInclude(await reply.json(), { modelVersion: decodeURIComponent(name) })
    }
  })

  it("is unknown with an upstream that lacks it, in words that name the upstream's models", async () => {
    const reply = await get("/v1/models/gpu/none")
    assert.strictEqual(reply.status, 404)
    assert.include(await reply.text(), "the upstream \\\"gpu\\\" has \\\"Qwen/Qwen3-8B\\\"")
  })
})
