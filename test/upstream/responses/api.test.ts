/** Which API of an OpenAI-compatible server is asked: the configuration, the style of the request, and what the server turns out to have. */
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { makeMovedClock } from "../../support/movedClock.ts"
import { json, type OpenAiServer, type SeenRequest, streamed as chatStreamed } from "../../support/openaiServer.ts"
import { callItem, responseOf, said, startResponsesServer, streamed } from "../../support/responsesServer.ts"

type Fields = { readonly [field: string]: unknown }

const chatPath = "/v1/chat/completions"
const ownPath = "/v1/responses"
const clock = makeMovedClock({ still: true })

let server: OpenAiServer
let gateway: RunningGateway
beforeEach(async () => {
  server = await startResponsesServer()
  server.answer(bothApis)
})
afterEach(async () => {
  await gateway.stop()
  await server.stop()
})

const bothApis = ({ path }: SeenRequest) => path === ownPath ? said("Hello") : chatStreamed({ content: "Hello" })

const start = async (upstream: object) => {
  gateway = await startGateway(
    JSON.parse(JSON.stringify({
      accounts: [{ token: "sk-1" }],
      upstream: { base_url: server.baseUrl, timeouts: { queue: 0 }, ...upstream }
    })),
    { clock }
  )
}

const post = async (path: string, body: object) => {
  const response = await fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "upstream-chat", ...body })
  })
  const text = await response.text()
  assert.strictEqual(response.status, 200, text)
  return { ignored: response.headers.get("x-gateway-ignored"), body: JSON.parse(text) as Fields }
}

const chat = (more: object = {}) => post(chatPath, { messages: [{ role: "user", content: "Hi" }], ...more })
const own = (more: object = {}) => post(ownPath, { input: "Hi", ...more })
const asked = () => server.requests.map(({ path }) => path)

describe("the API of a server", () => {
  it("is chat completions for the driver openai, whatever the style", async () => {
    await start({ driver: "openai" })
    await own()
    await chat()
    assert.deepStrictEqual(asked(), [chatPath, chatPath])
  })

  it("is the configured one, and an entry of the models wins", async () => {
    await start({
      driver: "responses",
      api: "chat",
      models: {
        "upstream-chat": "m",
        "upstream-reasoner": { model: "r", api: "responses" },
        both: { model: "b", api: "auto" }
      }
    })
    await own()
    await own({ model: "upstream-reasoner", store: false })
    await own({ model: "both", truncation: "auto" })
    await chat({ model: "both" })
    await chat({ model: "upstream-reasoner" })
    assert.deepStrictEqual(asked(), [chatPath, ownPath, ownPath, chatPath, ownPath])
    assert.deepStrictEqual(server.requests[2]?.body, { model: "b", input: "Hi", truncation: "auto", stream: false })
  })

  it("is the one of the style with auto, so that neither is translated", async () => {
    await start({ driver: "openai", api: "auto" })
    const { ignored } = await own({ truncation: "auto", tools: [{ type: "web_search" }] })
    assert.isNull(ignored)
    await chat({ seed: 1 })
    await post("/v1/messages", { max_tokens: 9, messages: [{ role: "user", content: "Hi" }] })
    assert.deepStrictEqual(asked(), [ownPath, chatPath, chatPath])
    assert.strictEqual(server.requests[1]?.body["seed"], 1)
  })

  it("is what the server's list of models says with auto", async () => {
    const models = [
      { id: "new", supported_endpoints: ["/responses"] },
      { id: "old", supported_endpoints: ["/chat/completions"] },
      { id: "any" }
    ]
    server.list(() => json(200, { object: "list", data: models }))
    await start({ driver: "openai", api: "auto", models: { new: "new", old: "old", any: "any" } })
    // The gateway reads the list at its start, and the driver at the first request.
    await server.until(() => server.lists.length === 1)
    await chat({ model: "new" })
    const { ignored } = await own({ model: "old", truncation: "auto" })
    assert.strictEqual(ignored, "truncation")
    await own({ model: "any" })
    assert.deepStrictEqual(asked(), [ownPath, chatPath, ownPath])
    assert.strictEqual(server.lists.length, 2)
    clock.move(10 * 60_000)
    server.list(() => json(200, { object: "list", data: [{ id: "old", supported_endpoints: ["/responses"] }] }))
    await chat({ model: "old" })
    assert.strictEqual(asked().at(-1), ownPath)
  })

  it("is chat completions where the server has no other with auto, and it is asked once in ten minutes", async () => {
    for (const status of [404, 405, 501]) {
      server.answer((request) => request.path === ownPath ? json(status, { detail: "Not Found" }) : bothApis(request))
      await start({ driver: "openai", api: "auto" })
      const { body, ignored } = await own({ truncation: "auto" })
      assert.strictEqual(body["output_text"], "Hello")
      assert.strictEqual(ignored, "truncation")
      await own()
      assert.deepStrictEqual(asked(), [ownPath, chatPath, chatPath], String(status))
      clock.move(10 * 60_000)
      await own()
      assert.deepStrictEqual(asked().slice(3), [ownPath, chatPath], String(status))
      await gateway.stop()
    }
    await start({ driver: "openai" })
  })

  it("is not another one where the server lacks the model alone, or the API is configured", async () => {
    const refused = async () => {
      const response = await fetch(gateway.url + ownPath, {
        method: "POST",
        headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "upstream-chat", input: "Hi" })
      })
      await response.text()
      return response.status
    }
    server.answer(() => json(404, { error: { code: "model_not_found", message: "There is no such model" } }))
    await start({ driver: "openai", api: "auto" })
    assert.strictEqual(await refused(), 404)
    assert.deepStrictEqual(asked(), [ownPath])
    await gateway.stop()
    server.answer(() => json(404, { detail: "Not Found" }))
    await start({ driver: "responses" })
    assert.strictEqual(await refused(), 503)
    assert.deepStrictEqual(asked(), [ownPath])
  })
})

describe("a server that has functions alone", () => {
  const tools = [
    { type: "custom", name: "grep", description: "G" },
    { type: "namespace", name: "files", tools: [{ type: "function", name: "read", parameters: { type: "object" } }] },
    { type: "local_shell" },
    { type: "web_search" }
  ]
  const input = [
    { role: "user", content: "Go" },
    { type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }], encrypted_content: "c2VhbA==" },
    { type: "custom_tool_call", call_id: "c1", name: "grep", input: "a" },
    { type: "custom_tool_call_output", call_id: "c1", output: "b" },
    {
      type: "local_shell_call",
      id: "l1",
      call_id: "c2",
      status: "completed",
      action: { type: "exec", command: ["ls"], env: {} }
    },
    { type: "local_shell_call_output", id: "l2", call_id: "c2", output: "c" },
    { type: "web_search_call", id: "w1", status: "completed", action: { type: "search", query: "q" } }
  ]

  it("gets functions and four kinds of items, and its caller gets the vendor's items back", async () => {
    for (const upstream of [{ driver: "responses" }, { driver: "openai", api: "auto" }]) {
      await start({ ...upstream, tools: "functions" })
      const calls = [
        callItem("grep", { input: "x" }),
        callItem("files__read", {}),
        callItem("local_shell", { command: ["ls"] })
      ]
      server.answer(() => streamed(responseOf(calls)))
      const { body, ignored } = await own({ input, tools })
      const seen = server.requests[0]!
      assert.strictEqual(seen.path, ownPath)
      const sentTools = seen.body["tools"] as ReadonlyArray<Fields>
      assert.deepStrictEqual(sentTools.map(({ name, type }) => [type, name]), [
        ["function", "grep"],
        ["function", "files__read"],
        ["function", "local_shell"]
      ])
      const kinds = new Set((seen.body["input"] as ReadonlyArray<Fields>).map(({ type }) => type))
      assert.deepStrictEqual([...kinds], ["message", "function_call", "function_call_output"])
      assert.include(ignored, "tools[3]")
      assert.deepStrictEqual(
        (body["output"] as ReadonlyArray<Fields>).map(({ name, namespace, type }) => [type, name, namespace]),
        [
          ["custom_tool_call", "grep", undefined],
          ["function_call", "read", "files"],
          ["local_shell_call", undefined, undefined]
        ]
      )
      await gateway.stop()
    }
    await start({ driver: "openai" })
  })
})

describe("tools in the prompt", () => {
  it("are declared in the instructions, and calls in the text come back as the vendor's items", async () => {
    await start({ driver: "responses", tools: "prompt" })
    const call = `<tool_call>{"name":"get_weather","arguments":{"city":"Oslo"}}</tool_call>`
    server.answer(() => said(call))
    const tools = [{
      type: "function",
      name: "get_weather",
      description: "Looks outside",
      parameters: { type: "object" }
    }]
    const { body } = await own({ input: [{ role: "user", content: "Go" }], instructions: "Be brief.", tools })
    const seen = server.requests[0]!
    assert.notProperty(seen.body, "tools")
    assert.match(String(seen.body["instructions"]), /^Be brief\.[^]*Looks outside/)
    assert.deepStrictEqual(seen.body["input"], [{ type: "message", role: "user", content: "Go" }])
    assert.deepStrictEqual(
      (body["output"] as ReadonlyArray<Fields>).map(({ arguments: args, name, type }) => [type, name, args]),
      [["function_call", "get_weather", `{"city":"Oslo"}`]]
    )
  })
})

describe("the configuration", () => {
  it("has an API only where a server has several", async () => {
    await start({ driver: "openai" })
    for (
      const [upstream, fault] of [
        [{ driver: "messages", api: "responses" }, "upstream.api must be unset with the messages driver"],
        [
          { driver: "generate", models: { m: { model: "m", api: "auto" } } },
          "upstream.models.m.api must be unset with the generate driver"
        ],
        [{ driver: "messages", tools: "functions" }, "upstream.tools must not be functions with the messages driver"]
      ] as const
    ) {
      const refused = await startGateway({ upstream: { base_url: server.baseUrl, ...upstream } }).then(
        () => "started",
        (error: unknown) => String(error)
      )
      assert.include(refused, fault)
    }
  })
})
