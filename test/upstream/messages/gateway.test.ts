/**
 * What only a messages server has, through the gateway and in the styles of other vendors; `test/upstream/matrix` has what every driver
 * does.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { text } from "../../styles/replies.ts"
import { citySchema, tools } from "../../styles/support.ts"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import {
  events,
  failed,
  messageEvents,
  type MessagesServer,
  startMessagesServer,
  streamedMessage,
  textBlock
} from "../../support/messagesServer.ts"
import { assertSame, type Clients } from "../../support/sameReply.ts"
import { type Ask, styleClients } from "../../support/styleClients.ts"
import { ask as askRaw, styleNames, styles } from "../openai/callStyles.ts"

let server: MessagesServer
let gateway: RunningGateway
let clients: Clients
beforeAll(async () => {
  server = await startMessagesServer()
  gateway = await startGateway({
    accounts: [{ token: "sk-server" }],
    runtime: { account_max_inflight: 8 },
    upstream: {
      driver: "messages",
      base_url: server.url,
      models: { "upstream-chat": "server-chat", "upstream-reasoner": { model: "server-thinker", max_tokens: 16_000 } }
    }
  })
  clients = styleClients(gateway.url)
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

const counts = {
  input_tokens: 14,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 5,
  output_tokens: 7,
  output_tokens_details: { thinking_tokens: 2 }
}

describe("a request of every style", () => {
  const asked: ReadonlyArray<readonly [what: string, ask: Partial<Ask>, arrives: object]> = [
    ["tools", { tools }, { tools: tools.map(({ parameters, ...tool }) => ({ ...tool, input_schema: parameters })) }],
    ["a schema", { schema: citySchema }, { output_config: { format: { type: "json_schema", schema: citySchema } } }],
    ["a stop sequence", { stop: ["END"] }, { stop_sequences: ["END"] }]
  ]
  it.each(asked)("has the vendor's headers and its words for %s, and the server's counts", async (_, ask, arrives) => {
    server.answer(() => streamedMessage([textBlock("{}")], { usage: counts }))
    const shown = { pieces: [text("{}")], finish: "stop" } as const
    const usage = await assertSame(clients, { content: "Hi", ...ask }, shown)
    assert.deepStrictEqual(usage, { prompt: 19, completion: 7, reasoning: 2, cached: 5 })
    assert.deepStrictEqual(new Set(server.requests.map(({ body }) => body["stream"])), new Set([false, true]))
    for (const { body, headers, key, path } of server.requests) {
      assert.deepStrictEqual([path, key], ["/v1/messages", "sk-server"])
      assert.match(String(headers["anthropic-version"]), /^\d{4}-\d\d-\d\d$/)
      assert.deepInclude(body, { messages: [{ role: "user", content: "Hi" }], ...arrives })
    }
  })
})

const paths = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  generate: "/v1beta/models/upstream-reasoner:generateContent"
} as const

const schema = { type: "object", properties: { city: { type: "string" } } }

const post = (path: string, body: object) =>
  fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })

describe("sealed thinking", () => {
  const thinking = [
    { type: "thinking", thinking: "I should ask.", signature: "c2ln" },
    { type: "redacted_thinking", data: "c2VjcmV0" }
  ]
  const tool = { name: "f", parameters: schema }

  it.each(["chat", "responses", "generate"] as const)("goes back with the calls that it led to (%s)", async (style) => {
    const id = `toolu_${style}`
    server.answer((_, index) =>
      index === 0
        ? streamedMessage([...thinking, { type: "tool_use", id, name: "f", input: {} }], {
          stop: { stop_reason: "tool_use" }
        })
        : streamedMessage([textBlock("Sunny.")])
    )
    const turns = {
      chat: [
        {
          messages: [{ role: "user", content: "Hi" }],
          tools: [{ type: "function", function: tool }],
          reasoning_effort: "low"
        },
        {
          messages: [
            { role: "user", content: "Hi" },
            { role: "assistant", tool_calls: [{ id, type: "function", function: { name: "f", arguments: "{}" } }] },
            { role: "tool", tool_call_id: id, content: "sunny" }
          ],
          tools: [{ type: "function", function: tool }],
          reasoning_effort: "low"
        }
      ],
      responses: [
        { input: "Hi", tools: [{ type: "function", ...tool }], reasoning: { effort: "low" } },
        {
          input: [
            { role: "user", content: "Hi" },
            { role: "assistant", content: "Asking." },
            { type: "function_call", call_id: id, name: "f", arguments: "{}" },
            { type: "function_call_output", call_id: id, output: "sunny" }
          ],
          tools: [{ type: "function", ...tool }],
          reasoning: { effort: "low" }
        }
      ],
      generate: [
        {
          contents: [{ role: "user", parts: [{ text: "Hi" }] }],
          tools: [{ functionDeclarations: [{ name: "f", parametersJsonSchema: schema }] }],
          generationConfig: { thinkingConfig: { thinkingBudget: 2048 } }
        },
        {
          contents: [
            { role: "user", parts: [{ text: "Hi" }] },
            { role: "model", parts: [{ functionCall: { id, name: "f", args: {} } }] },
            { role: "user", parts: [{ functionResponse: { id, name: "f", response: { output: "sunny" } } }] }
          ],
          tools: [{ functionDeclarations: [{ name: "f", parametersJsonSchema: schema }] }],
          generationConfig: { thinkingConfig: { thinkingBudget: 2048 } }
        }
      ]
    }[style]
    for (const turn of turns) {
      const body = { ...(style === "generate" ? {} : { model: "upstream-reasoner" }), ...turn }
      assert.strictEqual((await post(paths[style], body)).status, 200)
    }
    const messages = server.requests[1]?.body["messages"] as ReadonlyArray<{ readonly content: unknown }>
    const said = style === "responses" ? [textBlock("Asking.")] : []
    assert.deepStrictEqual(messages[1]?.content, [...thinking, ...said, { type: "tool_use", id, name: "f", input: {} }])
    assert.deepInclude(server.requests[1]?.body, { thinking: { type: "enabled", budget_tokens: 2048 } })
  })

  it("is not asked for where the gateway has none of the open calls, because the vendor rejects that", async () => {
    server.answer(() => streamedMessage([textBlock("Sunny.")]))
    await post(paths.chat, {
      model: "upstream-reasoner",
      reasoning_effort: "low",
      messages: [
        { role: "user", content: "Hi" },
        {
          role: "assistant",
          tool_calls: [{ id: "unknown", type: "function", function: { name: "f", arguments: "{}" } }]
        },
        { role: "tool", tool_call_id: "unknown", content: "sunny" }
      ]
    })
    assert.notProperty(server.requests[0]?.body, "thinking")
  })
})

describe("a refusal of the server", () => {
  it.each(styleNames)("is one in the style (%s)", async (style) => {
    server.answer(() =>
      streamedMessage([], {
        stop: { stop_reason: "refusal", stop_details: { type: "refusal", category: null, explanation: "I cannot." } }
      })
    )
    const { body, path } = styles[style]
    const reply = await (await post(path("upstream-chat", false), body("upstream-chat", false))).text()
    const words = {
      chat: `"refusal":"I cannot."`,
      responses: `"refusal":"I cannot."`,
      messages: `"explanation":"I cannot."`,
      generate: `"finishMessage":"I cannot."`
    }
    assert.include(reply, words[style])
  })
})

describe("a citation of a page", () => {
  const citation = {
    type: "web_search_result_location",
    url: "https://example.com",
    title: "News",
    cited_text: "news",
    encrypted_index: "sealed"
  }
  const facts = { start_index: 6, end_index: 9, title: "News", url: "https://example.com" }

  it.each(
    [
      ["chat", { type: "url_citation", url_citation: facts }],
      ["responses", { type: "url_citation", ...facts }]
    ] as const
  )("is an annotation (%s)", async (style, annotation) => {
    server.answer(() => streamedMessage([textBlock("Found "), { type: "text", text: "it.", citations: [citation] }]))
    for (const stream of [false, true]) {
      const body = styles[style].body("upstream-chat", stream)
      const reply = await (await post(paths[style], body)).text()
      assert.include(reply, JSON.stringify(annotation).slice(1, -1))
    }
  })
})

describe("a failure of the server", () => {
  const single: Array<RunningGateway> = []
  afterAll(async () => {
    for (const each of single) await each.stop()
  })

  it.each(
    [
      ["its key is refused", failed(401, "authentication_error", "invalid x-api-key")],
      ["its credit is used up", failed(402, "billing_error", "no credit")],
      ["it has a limit", failed(429, "rate_limit_error", "slow down", { "retry-after": "7" })],
      ["it is overloaded", failed(529, "overloaded_error")],
      ["it overloads in the stream", {
        pieces: [events({ type: "error", error: { type: "overloaded_error", message: "busy" } })]
      }]
    ] as const
  )("leads to another account: %s", async (_, answer) => {
    const two = await startGateway({
      accounts: [{ token: "sk-bad" }, { token: "sk-good" }],
      upstream: { driver: "messages", base_url: server.url }
    })
    single.push(two)
    server.answer(({ key }) => key === "sk-bad" ? answer : streamedMessage([textBlock("Hello")]))
    for (let i = 0; i < 2; i++) assert.deepInclude(await askRaw(two.url, "chat", false), { status: 200, text: "Hello" })
    // The account is not asked again while it rests.
    assert.isAtMost(server.requests.filter(({ key }) => key === "sk-bad").length, 1)
  })

  it.each(styleNames)("never makes a reply that breaks off look whole (%s)", async (style) => {
    server.answer(() => ({
      pieces: [events(...messageEvents([textBlock("one two three")]).slice(0, 5))],
      after: "end"
    }))
    const said = await askRaw(gateway.url, style, true)
    assert.strictEqual(said.text, "one two ")
    assert.isDefined(said.error)
  })
})

describe("a credential", () => {
  it.each(
    [
      ["a key", "sk-ant-api03-x", { "x-api-key": "sk-ant-api03-x" }],
      ["a token of the vendor's login", "sk-ant-oat01-x", { authorization: "Bearer sk-ant-oat01-x" }],
      ["a bearer token", "Bearer abc", { authorization: "Bearer abc" }]
    ] as const
  )("is sent as the vendor has it: %s", async (_, token, header) => {
    const own = await startGateway({
      accounts: [{ token }],
      upstream: { driver: "messages", base_url: `${server.url}/v1/messages` }
    })
    try {
      server.answer(() => streamedMessage([textBlock("Hello")]))
      await askRaw(own.url, "chat", false)
      const { authorization, "x-api-key": key } = server.requests[0]?.headers ?? {}
      assert.deepStrictEqual(JSON.parse(JSON.stringify({ authorization, "x-api-key": key })), header)
    } finally {
      await own.stop()
    }
  })
})
