/** Counts of tokens: by a server that counts, and by the gateway's estimate. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { failed, json, type MessagesServer, startMessagesServer } from "../../support/messagesServer.ts"

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

const tool = { name: "f", input_schema: { type: "object" } }

const styles = {
  messages: {
    path: "/v1/messages/count_tokens",
    body: {
      model: "mine",
      system: "Be brief.",
      messages: [{ role: "user", content: "Hi" }],
      tools: [tool],
      thinking: { type: "enabled", budget_tokens: 2000 }
    },
    field: "input_tokens"
  },
  responses: {
    path: "/v1/responses/input_tokens",
    body: {
      model: "mine",
      instructions: "Be brief.",
      input: "Hi",
      tools: [{ type: "function", name: "f", parameters: { type: "object" } }]
    },
    field: "input_tokens"
  },
  generate: {
    path: "/v1beta/models/mine:countTokens",
    body: {
      systemInstruction: { parts: [{ text: "Be brief." }] },
      contents: [{ role: "user", parts: [{ text: "Hi" }] }],
      tools: [{ functionDeclarations: [{ name: "f", parametersJsonSchema: { type: "object" } }] }]
    },
    field: "totalTokens"
  }
} as const

const ask = async (style: keyof typeof styles) => {
  const { body, field, path } = styles[style]
  const response = await fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })
  const reply = await response.json() as { readonly [field: string]: unknown }
  return { status: response.status, count: reply[field], reply }
}

describe.each(Object.keys(styles) as ReadonlyArray<keyof typeof styles>)("a count of tokens (%s)", (style) => {
  it("is the server's", async () => {
    server.answer(() => json(200, { input_tokens: 4321 }))
    assert.deepInclude(await ask(style), { status: 200, count: 4321 })
    const [request] = server.requests
    assert.strictEqual(request?.path, "/v1/messages/count_tokens")
    assert.deepInclude(request?.body, {
      model: "server-model",
      system: "Be brief.",
      messages: [{ role: "user", content: "Hi" }],
      tools: [tool]
    })
    for (const field of ["max_tokens", "stream"]) assert.notProperty(request?.body, field)
  })

  it("is an estimate if the server has no such endpoint", async () => {
    server.answer(() => failed(404, "not_found_error", "no such path"))
    const { count, status } = await ask(style)
    assert.strictEqual(status, 200)
    assert.isAbove(Number(count), 1)
    assert.isBelow(Number(count), 4321)
  })

  it("fails as the server fails", async () => {
    server.answer(() => failed(400, "invalid_request_error", "messages: too strange"))
    const { reply, status } = await ask(style)
    assert.strictEqual(status, 400)
    assert.include(JSON.stringify(reply), "too strange")
  })
})
