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
    messages: server.requests[0]?.body["messages"],
    tools: server.requests[0]?.body["tools"] as ReadonlyArray<{ readonly function: { readonly name: string } }>
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

  it.each([
    ["a block", (line: string) => [{ type: "text", text: line }, { type: "text", text: "Be brief." }]],
    ["the first line of a block", (line: string) => [{ type: "text", text: `${line}\nBe brief.` }]],
    ["the first line of a text", (line: string) => `${line}\nBe brief.`]
  ])("has the same prompt whatever the client tells its vendor of payments: %s", async (_, system) => {
    for (const cch of ["fa690", "36ee5"]) {
      const line = `x-anthropic-billing-header: cc_version=2.1.37.0d9; cc_entrypoint=cli; cch=${cch};`
      const { messages } = await ask({ system: system(line), ...user({ type: "text", text: "Hi" }) })
      assert.deepStrictEqual(messages, [{ role: "system", content: "Be brief." }, { role: "user", content: "Hi" }])
    }
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

  it("declares deferred tools once references name them, behind the others and in their order", async () => {
    const tool = (name: string, defer_loading?: boolean) => ({
      name,
      input_schema: { type: "object" },
      ...(defer_loading === undefined ? {} : { defer_loading })
    })
    const tools = [tool("a", true), tool("b", true), tool("search"), tool("c", true)]
    const found = (id: string, ...names: ReadonlyArray<string>) => [
      { role: "assistant", content: [{ type: "tool_use", id, name: "search", input: {} }] },
      {
        role: "user",
        content: [{
          type: "tool_result",
          tool_use_id: id,
          content: names.map((tool_name) => ({ type: "tool_reference", tool_name }))
        }]
      }
    ]
    const start = { role: "user", content: "Hi" }
    const declared = async (messages: ReadonlyArray<object>, more: object = {}) => {
      const asked = await ask({ messages, tools, ...more })
      return { ...asked, names: asked.tools.map(({ function: { name } }) => name) }
    }
    const none = await declared([start])
    assert.deepStrictEqual([none.names, none.ignored], [["search"], null])
    const some = await declared([start, ...found("c1", "c"), ...found("c2", "a", "c", "absent")])
    assert.deepStrictEqual(some.names, ["search", "c", "a"])
    assert.include(JSON.stringify(some.messages), "Tool loaded: c")
    const forced = await declared([start], { tool_choice: { type: "tool", name: "b" } })
    assert.deepStrictEqual(forced.names, ["b", "search"])
    const search = { type: "tool_search_tool_regex_20251119", name: "tool_search_tool_regex" }
    const all = await declared([start], { tools: [...tools, search] })
    assert.deepStrictEqual([all.names, all.ignored], [["a", "b", "search", "c"], "tools[4]"])
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
