/**
 * Every style in front of a messages server: what each sends there, whole replies and streams of the server, and its failures, over real
 * sockets and by the vendors' SDKs.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { oslo, reasoning, rome, text } from "../../styles/replies.ts"
import { citySchema, tools } from "../../styles/support.ts"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import {
  type Answer,
  events,
  failed,
  messageEvents,
  type MessageOptions,
  type MessagesServer,
  startMessagesServer,
  streamedMessage,
  textBlock,
  wholeMessage
} from "../../support/messagesServer.ts"
import { assertSame, type Clients, type Written } from "../../support/sameReply.ts"
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

type Content = Parameters<typeof streamedMessage>[0]

interface Reply extends Written {
  readonly content: Content
  readonly options?: MessageOptions
  readonly ask?: Partial<Ask>
}

const counts = {
  input_tokens: 14,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 5,
  output_tokens: 7,
  output_tokens_details: { thinking_tokens: 2 }
}

const toolUse = (id: string, name: string, city: string) => ({ type: "tool_use", id, name, input: { city } })

const replies: { readonly [name: string]: Reply } = {
  text: { content: [textBlock("Hello 🌍")], pieces: [text("Hello 🌍")], finish: "stop" },
  "thinking and text": {
    content: [{ type: "thinking", thinking: "Two and two.", signature: "c2ln" }, textBlock("Four.")],
    pieces: [reasoning("Two and two."), text("Four.")],
    finish: "stop",
    ask: { reasoner: true }
  },
  "calls, after text": {
    content: [
      textBlock("Let me see."),
      toolUse("toolu_1", "get_weather", "Oslo"),
      toolUse("toolu_2", "get_time", "Rome")
    ],
    options: { stop: { stop_reason: "tool_use" } },
    pieces: [text("Let me see."), oslo, rome],
    finish: "tool_calls",
    ask: { tools }
  },
  "a call that leaked into the text": {
    content: [textBlock(`<tool_call>\n{"name":"get_weather","arguments":{"city":"Oslo"}}\n</tool_call>`)],
    pieces: [oslo],
    finish: "tool_calls",
    ask: { tools }
  },
  "a limit": {
    content: [textBlock("So far")],
    options: { stop: { stop_reason: "max_tokens" } },
    pieces: [text("So far")],
    finish: "length"
  },
  "a stop sequence": {
    content: [textBlock("So far")],
    options: { stop: { stop_reason: "stop_sequence", stop_sequence: "END" } },
    pieces: [text("So far")],
    finish: "stop_sequence",
    ask: { stop: ["END"] }
  },
  "a pause": {
    content: [textBlock("Wait")],
    options: { stop: { stop_reason: "pause_turn" } },
    pieces: [text("Wait")],
    finish: "stop"
  },
  "output by a schema": {
    content: [textBlock(`{"city":"Oslo"}`)],
    pieces: [text(`{"city":"Oslo"}`)],
    finish: "stop",
    ask: { schema: citySchema }
  }
}

describe.each([["whole", wholeMessage], ["streamed", streamedMessage]] as const)(
  "a reply that the server sends %s",
  (_, answer) => {
    it.each(Object.entries(replies))("is the same in every style, streamed and not: %s", async (name, reply) => {
      server.answer(() => answer(reply.content, { usage: counts, ...reply.options }))
      // The messages style has the server's own words: `sameWords.test.ts`.
      const usage = await assertSame(
        clients,
        { content: "Hi", ...reply.ask },
        reply,
        name === "a pause"
          ? ["chat", "responses", "generate"]
          : undefined
      )
      assert.deepStrictEqual(usage, { prompt: 19, completion: 7, reasoning: 2, cached: 5 })
      for (const { body, headers, key, path } of server.requests) {
        assert.deepStrictEqual([path, key, headers["anthropic-version"]], ["/v1/messages", "sk-server", "2023-06-01"])
        assert.deepStrictEqual(body["messages"], [{ role: "user", content: "Hi" }])
        assert.deepInclude(body, { stream: true, ...reply.ask?.stop === undefined ? {} : { stop_sequences: ["END"] } })
        if (reply.ask?.tools !== undefined) {
          assert.deepStrictEqual(
            body["tools"],
            tools.map(({ parameters, ...tool }) => ({ ...tool, input_schema: parameters }))
          )
        }
        if (reply.ask?.schema !== undefined) {
          assert.deepStrictEqual(body["output_config"], { format: { type: "json_schema", schema: citySchema } })
        }
      }
    })
  }
)

/** The paths and bodies of one request in each style. */
type Requests = { readonly [Style in "chat" | "responses" | "generate"]?: object }

const paths = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  generate: "/v1beta/models/upstream-reasoner:generateContent"
} as const

interface Sent {
  readonly requests: Requests
  /** What arrives, beside the model. */
  readonly arrives: object
  readonly ignored?: Partial<Record<keyof typeof paths, string>>
}

const png = "aGk="
const schema = { type: "object", properties: { city: { type: "string" } } }
const chatTool = { type: "function", function: { name: "f", parameters: schema } }
const arrivingTools = [{ name: "f", input_schema: schema }]

const sent: { readonly [name: string]: Sent } = {
  "a system prompt, and turns that alternate": {
    requests: {
      chat: {
        messages: [
          { role: "system", content: "One." },
          { role: "developer", content: "Two." },
          { role: "user", content: "A" },
          { role: "user", content: "B" },
          { role: "assistant", content: "C" },
          { role: "user", content: "D" }
        ]
      },
      responses: {
        instructions: "One.\n\nTwo.",
        input: [
          { role: "user", content: "A" },
          { role: "user", content: "B" },
          { role: "assistant", content: "C" },
          { role: "user", content: "D" }
        ]
      },
      generate: {
        systemInstruction: { parts: [{ text: "One.\n\nTwo." }] },
        contents: [
          { role: "user", parts: [{ text: "A" }, { text: "B" }] },
          { role: "model", parts: [{ text: "C" }] },
          { role: "user", parts: [{ text: "D" }] }
        ]
      }
    },
    arrives: {
      system: "One.\n\nTwo.",
      messages: [
        { role: "user", content: [textBlock("A"), textBlock("B")] },
        { role: "assistant", content: "C" },
        { role: "user", content: "D" }
      ]
    }
  },
  "no blank text, and no message without words": {
    requests: {
      chat: {
        messages: [
          { role: "user", content: "A" },
          { role: "assistant", content: "" },
          { role: "user", content: [{ type: "text", text: "  " }, { type: "text", text: "B" }] }
        ]
      }
    },
    arrives: { messages: [{ role: "user", content: [textBlock("A"), textBlock("B")] }] }
  },
  "a system message in the midst": {
    requests: {
      chat: {
        messages: [
          { role: "user", content: "A" },
          { role: "assistant", content: "B" },
          { role: "system", content: "Be brief." }
        ]
      }
    },
    arrives: {
      messages: [
        { role: "user", content: "A" },
        { role: "assistant", content: "B" },
        { role: "user", content: "Be brief." }
      ]
    }
  },
  "a tool loop, with results first": {
    requests: {
      chat: {
        tools: [chatTool],
        messages: [
          { role: "user", content: "Hi" },
          {
            role: "assistant",
            content: null,
            tool_calls: [
              { id: "call_1", type: "function", function: { name: "f", arguments: `{"city":"Oslo"}` } },
              { id: "call:2", type: "function", function: { name: "f", arguments: "{}" } }
            ]
          },
          { role: "tool", tool_call_id: "call_1", content: "sunny" },
          { role: "user", content: "Go on." },
          { role: "tool", tool_call_id: "call:2", content: "rain" }
        ]
      }
    },
    arrives: {
      tools: arrivingTools,
      messages: [
        { role: "user", content: "Hi" },
        {
          role: "assistant",
          content: [
            { type: "tool_use", id: "call_1", name: "f", input: { city: "Oslo" } },
            { type: "tool_use", id: "call_2", name: "f", input: {} }
          ]
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "call_1", content: "sunny" },
            { type: "tool_result", tool_use_id: "call_2", content: "rain" },
            textBlock("Go on.")
          ]
        }
      ]
    }
  },
  "pictures and a document": {
    requests: {
      chat: {
        messages: [{
          role: "user",
          content: [
            { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } },
            { type: "image_url", image_url: { url: "https://example.com/a.png" } },
            { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,cGRm" } },
            { type: "text", text: "What?" }
          ]
        }]
      },
      responses: {
        input: [{
          role: "user",
          content: [
            { type: "input_image", image_url: `data:image/png;base64,${png}`, detail: "auto" },
            { type: "input_image", image_url: "https://example.com/a.png", detail: "auto" },
            { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,cGRm" },
            { type: "input_text", text: "What?" }
          ]
        }]
      }
    },
    arrives: {
      messages: [{
        role: "user",
        content: [
          { type: "image", source: { type: "base64", media_type: "image/png", data: png } },
          { type: "image", source: { type: "url", url: "https://example.com/a.png" } },
          { type: "document", source: { type: "base64", media_type: "application/pdf", data: "cGRm" }, title: "a.pdf" },
          textBlock("What?")
        ]
      }]
    }
  },
  "a forced tool, one at a time": {
    requests: {
      chat: {
        messages: [{ role: "user", content: "Hi" }],
        tools: [chatTool],
        tool_choice: { type: "function", function: { name: "f" } },
        parallel_tool_calls: false
      },
      responses: {
        input: "Hi",
        tools: [{ type: "function", name: "f", parameters: schema }],
        tool_choice: { type: "function", name: "f" },
        parallel_tool_calls: false
      }
    },
    arrives: { tools: arrivingTools, tool_choice: { type: "tool", name: "f", disable_parallel_tool_use: true } }
  },
  "sampling within the vendor's range, and what the vendor lacks": {
    requests: {
      chat: {
        messages: [{ role: "user", content: "Hi" }],
        temperature: 1.7,
        top_p: 0.5,
        seed: 3,
        frequency_penalty: 0.1,
        max_tokens: 9
      },
      generate: {
        contents: [{ role: "user", parts: [{ text: "Hi" }] }],
        generationConfig: { temperature: 1.7, topP: 0.5, seed: 3, frequencyPenalty: 0.1, maxOutputTokens: 9 }
      }
    },
    arrives: { temperature: 1, top_p: 0.5, max_tokens: 9 },
    ignored: { chat: "seed,frequency_penalty", generate: "generationConfig.seed,generationConfig.frequencyPenalty" }
  },
  "the limit of the model's entry, with thinking beside it": {
    requests: {
      chat: { messages: [{ role: "user", content: "Hi" }], reasoning_effort: "low", temperature: 0.3 },
      responses: { input: "Hi", reasoning: { effort: "low" }, temperature: 0.3 },
      generate: {
        contents: [{ role: "user", parts: [{ text: "Hi" }] }],
        generationConfig: { thinkingConfig: { thinkingBudget: 2048 }, temperature: 0.3 }
      }
    },
    arrives: { max_tokens: 18_048, thinking: { type: "enabled", budget_tokens: 2048 } },
    ignored: { chat: "temperature", responses: "temperature", generate: "generationConfig.temperature" }
  },
  "a budget below the limit of the caller": {
    requests: {
      chat: { messages: [{ role: "user", content: "Hi" }], reasoning_effort: "high", max_completion_tokens: 3000 }
    },
    arrives: { max_tokens: 3000, thinking: { type: "enabled", budget_tokens: 2999 } }
  },
  "no budget where the limit leaves no room": {
    requests: {
      chat: { messages: [{ role: "user", content: "Hi" }], reasoning_effort: "high", max_completion_tokens: 1000 }
    },
    arrives: { max_tokens: 1000 },
    ignored: { chat: "reasoning_effort" }
  },
  "no budget with a forced tool": {
    requests: {
      chat: {
        messages: [{ role: "user", content: "Hi" }],
        reasoning_effort: "high",
        tools: [chatTool],
        tool_choice: "required"
      }
    },
    arrives: { max_tokens: 16_000, tool_choice: { type: "any" } },
    ignored: { chat: "reasoning_effort" }
  },
  "no budget in a tool loop that began without thinking": {
    requests: {
      chat: {
        messages: [
          { role: "user", content: "Hi" },
          { role: "assistant", tool_calls: [{ id: "t", type: "function", function: { name: "f", arguments: "{}" } }] },
          { role: "tool", tool_call_id: "t", content: "done" }
        ],
        reasoning_effort: "high",
        temperature: 0.5,
        tools: [chatTool]
      }
    },
    arrives: { max_tokens: 16_000, temperature: 0.5 },
    ignored: { chat: "reasoning_effort" }
  },
  "no temperature beside thinking": {
    requests: {
      chat: { messages: [{ role: "user", content: "Hi" }], reasoning_effort: "low", temperature: 0.5, top_p: 0.5 }
    },
    arrives: { thinking: { type: "enabled", budget_tokens: 2048 } },
    ignored: { chat: "temperature,top_p" }
  },
  "no thinking": {
    requests: {
      chat: { messages: [{ role: "user", content: "Hi" }], reasoning_effort: "none" },
      generate: {
        contents: [{ role: "user", parts: [{ text: "Hi" }] }],
        generationConfig: { thinkingConfig: { thinkingBudget: 0 } }
      }
    },
    arrives: { max_tokens: 16_000, thinking: { type: "disabled" } }
  }
}

const post = (path: string, body: object) =>
  fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })

describe("a request arrives in the vendor's words", () => {
  for (const [name, { arrives, ignored = {}, requests }] of Object.entries(sent)) {
    it.each(Object.keys(requests) as ReadonlyArray<keyof typeof paths>)(`${name} (%s)`, async (style) => {
      server.answer(({ body }) =>
        wholeMessage([
          body["tool_choice"] === undefined ? textBlock("Hello") : { type: "tool_use", id: "t", name: "f", input: {} }
        ])
      )
      const body = { ...(style === "generate" ? {} : { model: "upstream-reasoner" }), ...requests[style] }
      const response = await post(paths[style], body)
      assert.strictEqual(response.status, 200, await response.text())
      const arrived = server.requests[0]?.body
      assert.deepInclude(arrived, { model: "server-thinker", ...arrives } as never)
      assert.strictEqual(response.headers.get("x-gateway-ignored"), ignored[style] ?? null)
      if (!("thinking" in arrives)) assert.notProperty(arrived, "thinking")
      for (const field of ["seed", "frequency_penalty", "reasoning_effort"]) assert.notProperty(arrived, field)
      if ("thinking" in arrives && JSON.stringify(arrives).includes("enabled")) {
        assert.notProperty(arrived, "temperature")
      }
    })
  }
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

/** Failures of the server: the status in the styles, and the words in the message. */
const failures: ReadonlyArray<readonly [name: string, answer: Answer, status: number, words: RegExp]> = [
  ["a request that is wrong", failed(400, "invalid_request_error", "messages: too strange"), 400, /too strange/],
  [
    "a prompt that is too long",
    failed(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
    400,
    /too long/
  ],
  ["a request that is too large", failed(413, "request_too_large", "32 MB at most"), 413, /32 MB/],
  ["a model that it does not have", failed(404, "not_found_error", "model: server-chat"), 400, /server-chat/],
  ["a permission that is missing", failed(403, "permission_error", "not yours"), 503, /not yours/],
  ["an overload", failed(529, "overloaded_error", "Overloaded"), 429, /overloaded|limits/i],
  ["trouble", failed(500, "api_error", "oh no"), 503, /oh no/],
  [
    "an error in the stream",
    { pieces: [events({ type: "error", error: { type: "api_error", message: "oh no" } })] },
    503,
    /oh no/
  ],
  ["a stream that breaks off at once", { pieces: [], after: "reset" }, 503, /./],
  ["an empty stream", { pieces: [] }, 503, /./],
  ["a page", { headers: { "content-type": "text/html" }, pieces: ["<html>"] }, 503, /./]
]

describe("a failure of the server", () => {
  const single: Array<RunningGateway> = []
  afterAll(async () => {
    for (const each of single) await each.stop()
  })

  it.each(failures)("is reported in every style, streamed and not: %s", async (_, answer, status, words) => {
    const alone = await startGateway({
      accounts: [{ token: "sk-a" }, { token: "sk-b" }, { token: "sk-c" }],
      upstream: { driver: "messages", base_url: server.url, timeouts: { queue: 0 } }
    })
    single.push(alone)
    server.answer(() => answer)
    for (const style of styleNames) {
      const said = await askRaw(alone.url, style, style === "chat")
      const shown = JSON.stringify(said.error)
      assert.include([status, style === "messages" && status === 503 ? 529 : status], said.status, `${style}: ${shown}`)
      assert.match(shown, words, style)
    }
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
