/** What only the server reads of a call comes back to it through another node. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { chunk, frames, type OpenAiServer, startOpenAiServer } from "../support/openaiServer.ts"
import { command, listOf } from "../support/redisServer.ts"
import { at, post, values } from "../upstream/openai/extraReplies.ts"
import { type Cluster, startCluster } from "./cluster.ts"

const signature = "c2lnbmVk"
const extra = { extra_content: { google: { thought_signature: signature } } }
const details = [{ type: "reasoning.encrypted", data: "x", index: 0 }]
const parameters = { type: "object", properties: {} }

let server: OpenAiServer
let cluster: Cluster
beforeAll(async () => {
  server = await startOpenAiServer()
  cluster = await startCluster({
    nodes: 2,
    config: {
      keys: ["test-key", "other-key"],
      upstream: { driver: "openai", base_url: server.baseUrl },
      responses: { store_ttl_seconds: 60 }
    }
  })
})
afterAll(async () => {
  await cluster.stop()
  await server.stop()
})

/** Answers the first request with a call, and the others with text. */
const callThenText = (id: string): void =>
  server.answer((_, index) => ({
    pieces: [
      index === 0
        ? frames(
          chunk({ reasoning_details: details }),
          chunk({
            tool_calls: [{ index: 0, id, type: "function", function: { name: "get_time", arguments: "{}" }, ...extra }]
          }),
          chunk({}, "tool_calls"),
          "[DONE]"
        )
        : frames(chunk({ content: "Noon" }), chunk({}, "stop"), "[DONE]")
    ]
  }))

const question = { role: "user", content: "Time?" }
const ask = { model: "upstream-chat", max_tokens: 9, tools: [{ name: "get_time", input_schema: parameters }] }
const history = (id: string) => [
  question,
  { role: "assistant", content: [{ type: "tool_use", id, name: "get_time", input: {} }] },
  { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "12:00" }] }
]
const sentCall = (index: number) => at(server.requests[index]?.body["messages"], 1)

describe("what only the server reads of a call", () => {
  it.each([false, true])("comes back through another node, streamed: %s", async (stream) => {
    const [one, other] = cluster.nodes
    const id = `call_${String(stream)}`
    callThenText(id)
    const reply = await post(one!.url, "/v1/messages", { ...ask, stream, messages: [question] })
    assert.include(JSON.stringify(stream ? values(reply) : reply), id)
    await post(other!.url, "/v1/messages", { ...ask, stream, messages: history(id) })
    assert.deepInclude(at(sentCall(1), "tool_calls", 0), { id, ...extra })
    assert.deepStrictEqual(at(sentCall(1), "reasoning_details"), details)
  })

  it("is encrypted in the store, expires, and belongs to its caller", async () => {
    const [one, other] = cluster.nodes
    callThenText("call_own")
    await post(one!.url, "/v1/messages", { ...ask, messages: [question] })
    const client = await cluster.client()
    const keys = [
      ...await listOf(client, "KEYS", "gw:{main}:item:*"),
      ...await listOf(client, "KEYS", "gw:{main}:resp:*")
    ]
    assert.isAtLeast(keys.length, 2)
    for (const key of keys) {
      assert.notInclude(key, "call_own")
      const seconds = Number(await command(client, "TTL", key))
      assert.isTrue(seconds > 0 && seconds <= 60, `${key}: ${seconds}`)
      assert.notInclude(String(await command(client, "DUMP", key)), signature)
    }
    const reply = await fetch(`${other!.url}/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": "other-key" },
      body: JSON.stringify({ ...ask, messages: history("call_own") })
    })
    assert.strictEqual(reply.status, 200)
    assert.hasAllKeys(at(sentCall(1), "tool_calls", 0), ["id", "type", "function"])
    const direct = await fetch(`${other!.url}/v1/responses/call_own`, { headers: { "x-api-key": "test-key" } })
    assert.strictEqual(direct.status, 404)
  })
})
