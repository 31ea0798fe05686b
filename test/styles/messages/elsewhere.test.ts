/** What the vendor's contract says of single elements, in front of a server of another contract: sent, told, or refused. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { type OpenAiServer, startOpenAiServer, streamed } from "../../support/openaiServer.ts"

let server: OpenAiServer
let gateway: RunningGateway
beforeAll(async () => {
  server = await startOpenAiServer()
  gateway = await startGateway({ upstream: { driver: "openai", base_url: server.baseUrl } })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

const ask = async (fields: object) => {
  server.answer(() => streamed({ content: "Hello" }))
  const response = await fetch(`${gateway.url}/v1/messages`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "upstream-chat", max_tokens: 9, ...fields })
  })
  return {
    status: response.status,
    ignored: response.headers.get("x-gateway-ignored"),
    text: await response.text(),
    messages: server.requests[0]?.body["messages"]
  }
}

const user = (...content: ReadonlyArray<object>) => ({ messages: [{ role: "user", content }] })

describe("a request of the messages style to a server of another contract", () => {
  it("with a picture that another server stores is refused, and names the field", async () => {
    const { status, text } = await ask(user({ type: "image", source: { type: "file", file_id: "file_1" } }))
    assert.strictEqual(status, 400)
    assert.include(text, "messages[0].content[0].source")
    assert.strictEqual(server.requests.length, 0)
  })

  it("with marks of the cache is sent without a word about them", async () => {
    const cache_control = { type: "ephemeral" }
    const { ignored, messages } = await ask({
      system: [{ type: "text", text: "Be brief.", cache_control }],
      ...user({ type: "text", text: "Hi", cache_control })
    })
    assert.isNull(ignored)
    assert.deepStrictEqual(messages, [{ role: "system", content: "Be brief." }, { role: "user", content: "Hi" }])
  })

  it("tells what of its elements has no effect, by its path", async () => {
    const { ignored } = await ask({
      ...user({
        type: "document",
        source: { type: "text", media_type: "text/plain", data: "words" },
        citations: { enabled: true }
      }),
      tools: [
        { name: "f", input_schema: { type: "object" }, input_examples: [{}], defer_loading: false },
        { type: "web_search_20250305", name: "web_search" }
      ]
    })
    assert.strictEqual(ignored, "messages[0].content[0].citations,tools[0].input_examples,tools[1]")
  })

  it("that demands a call of a tool that only the vendor runs is refused", async () => {
    const { status, text } = await ask({
      ...user({ type: "text", text: "Hi" }),
      tools: [{ type: "web_search_20250305", name: "web_search" }],
      tool_choice: { type: "any" }
    })
    assert.strictEqual(status, 400)
    assert.include(text, "tool_choice")
  })

  it("sends thinking without its seal, and nothing of what only the vendor can read", async () => {
    const { ignored, messages } = await ask({
      messages: [
        { role: "user", content: "Hi" },
        {
          role: "assistant",
          content: [
            { type: "redacted_thinking", data: "c2VjcmV0" },
            { type: "thinking", thinking: "Hm.", signature: "c2ln" },
            { type: "text", text: "Hello" }
          ]
        },
        { role: "user", content: "Again" }
      ]
    })
    assert.isNull(ignored)
    assert.deepStrictEqual(messages, [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Hello", reasoning_content: "Hm.", reasoning: "Hm." },
      { role: "user", content: "Again" }
    ])
  })
})
