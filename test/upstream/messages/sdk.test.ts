/** The gateway between the official client and a messages server: requests arrive, and replies return, in the same words. */
import Anthropic from "@anthropic-ai/sdk"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import {
  failed,
  json,
  type MessagesServer,
  startMessagesServer,
  streamedMessage,
  textBlock,
  wholeMessage
} from "../../support/messagesServer.ts"

let server: MessagesServer
let gateway: RunningGateway
beforeAll(async () => {
  server = await startMessagesServer()
  gateway = await startGateway({
    accounts: [{ token: "sk-server" }],
    upstream: { driver: "messages", base_url: server.url, models: { mine: "server-model" } }
  })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

const through = () => new Anthropic({ baseURL: gateway.url, apiKey: businessKey, maxRetries: 0 })

const ask = (): Anthropic.MessageCreateParamsNonStreaming => ({
  model: "mine",
  max_tokens: 99,
  messages: [{ role: "user", content: "Hi" }]
})

describe("a text completion of the official client", () => {
  it.each([["whole", wholeMessage], ["streamed", streamedMessage]] as const)(
    "arrives at a server whose replies are %s",
    async (_, answer) => {
      server.answer(() => answer([textBlock("Hello there")]))
      const whole = await through().messages.create(ask())
      const streamed = await through().messages.stream(ask()).finalMessage()
      for (const reply of [whole, streamed]) {
        assert.deepInclude(reply.content[0], { type: "text", text: "Hello there" })
        assert.strictEqual(reply.model, "mine")
        assert.strictEqual(reply.id, "msg_server_1")
        assert.deepInclude(reply.usage, { input_tokens: 11, output_tokens: 7, cache_read_input_tokens: 5 })
      }
      for (const { headers, key, path } of server.requests) {
        assert.deepInclude({ key, path }, { key: "sk-server", path: "/v1/messages" })
        assert.match(String(headers["anthropic-version"]), /^\d{4}-\d\d-\d\d$/)
      }
    }
  )
})

describe("accounts and records of a messages server", () => {
  const admin = async (path: string, body?: object) => {
    const response = await fetch(`${gateway.url}/admin/${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    return await response.json() as { readonly [field: string]: unknown }
  }

  it("are tested by its list of models", async () => {
    server.list(() => json(200, { data: [] }))
    assert.deepInclude(await admin("accounts/test-all", {}), { total: 1, success: 1, failed: 0 })
    assert.deepInclude(server.lists[0], { method: "GET", path: "/v1/models", key: "sk-server" })
    server.list(() => failed(403, "permission_error"))
    assert.deepInclude(await admin("accounts/test-all", {}), { total: 1, success: 0, failed: 1 })
  })

  it("name its protocol, and have no key", async () => {
    server.answer(() => streamedMessage([textBlock("sk-server")]))
    await through().messages.create(ask())
    const { items } = await admin("dev/captures") as { readonly items: ReadonlyArray<{ readonly id: string }> }
    const capture = await admin(`dev/captures/${items[0]?.id}`)
    assert.include(JSON.stringify(capture), "/v1/messages")
    assert.notInclude(JSON.stringify(capture), "sk-server")
  })
})
