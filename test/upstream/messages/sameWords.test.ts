/**
 * A client and a server of the same contract, with the gateway between them: requests arrive as they were written, and replies return
 * as the server sent them, but for the model's name. Captured at the server with the official client, directly and through the gateway.
 */
import Anthropic from "@anthropic-ai/sdk"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import {
  type MessageOptions,
  type MessagesServer,
  startMessagesServer,
  streamedMessage,
  textBlock,
  usage,
  wholeMessage
} from "../../support/messagesServer.ts"

let server: MessagesServer
let gateway: RunningGateway
beforeAll(async () => {
  server = await startMessagesServer()
  gateway = await startGateway({
    accounts: [{ token: "sk-server" }],
    upstream: { driver: "messages", base_url: `${server.url}/v1`, models: { mine: "server-model" } }
  })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

const through = () => new Anthropic({ baseURL: gateway.url, apiKey: businessKey, maxRetries: 0 })
const directly = () => new Anthropic({ baseURL: server.url, apiKey: "sk-server", maxRetries: 0 })

type BetaRequest = Anthropic.Beta.MessageCreateParamsNonStreaming

const ephemeral = { type: "ephemeral" } as const

const question: BetaRequest["messages"] = [{ role: "user", content: "Hi" }]

/** Requests with what the contract has, each with the fields that differ from a plain one. */
const requests: { readonly [name: string]: Partial<BetaRequest> } = {
  "a plain question": {},
  "strings and lists of one text": {
    system: [{ type: "text", text: "Be brief." }],
    messages: [
      { role: "user", content: [{ type: "text", text: "Hi" }] },
      { role: "assistant", content: "Hello" },
      { role: "user", content: "Again" },
      { role: "user", content: "And again" }
    ]
  },
  "marks of the cache, and fields of the whole request": {
    system: [{ type: "text", text: "One." }, { type: "text", text: "Two.", cache_control: ephemeral }],
    messages: [{
      role: "user",
      content: [{ type: "text", text: "Hi", cache_control: { type: "ephemeral", ttl: "1h" } }, {
        type: "text",
        text: "there"
      }]
    }],
    cache_control: ephemeral,
    metadata: { user_id: "u" },
    service_tier: "standard_only",
    stop_sequences: ["END", "\n\nHuman:"],
    context_management: { edits: [{ type: "clear_tool_uses_20250919" }] },
    container: "container_1",
    mcp_servers: [{ type: "url", name: "files", url: "https://example.com/mcp" }],
    speed: "fast",
    betas: ["context-management-2025-06-27", "mcp-client-2025-11-20"]
  },
  "what the client tells its vendor of payments": {
    system: [
      { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.37.0d9; cc_entrypoint=cli; cch=fa690;" },
      { type: "text", text: "x-anthropic-billing-header: again\nBe brief.", cache_control: ephemeral }
    ],
    messages: [{ role: "user", content: "Hi" }]
  },
  "nothing but what the client tells its vendor of payments": {
    system: [{ type: "text", text: "x-anthropic-billing-header: cc_version=2.1.37.0d9; cch=fa690;" }],
    messages: [{ role: "user", content: "Hi" }]
  },
  "pictures and documents": {
    messages: [{
      role: "user",
      content: [
        { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" }, cache_control: ephemeral },
        { type: "image", source: { type: "url", url: "https://example.com/a.png" } },
        { type: "image", source: { type: "file", file_id: "file_1" } },
        { type: "document", source: { type: "base64", media_type: "application/pdf", data: "cGRm" }, title: "Paper" },
        {
          type: "document",
          source: { type: "text", media_type: "text/plain", data: "words" },
          title: "Notes",
          context: "from the web",
          citations: { enabled: true }
        },
        { type: "document", source: { type: "content", content: [{ type: "text", text: "inner" }] } },
        { type: "document", source: { type: "file", file_id: "file_2" }, cache_control: ephemeral },
        {
          type: "search_result",
          source: "https://example.com",
          title: "Found",
          content: [{ type: "text", text: "a result" }],
          citations: { enabled: true }
        },
        { type: "container_upload", file_id: "file_3" },
        { type: "text", text: "What is all this?" }
      ]
    }]
  },
  "tools, of the caller's and of the vendor's": {
    tools: [
      {
        name: "get_weather",
        description: "Weather",
        input_schema: { type: "object", properties: { zebra: { type: "string" }, apple: { type: "number" } } },
        strict: true,
        cache_control: ephemeral,
        input_examples: [{ zebra: "z" }],
        allowed_callers: ["direct"]
      },
      { type: "web_search_20250305", name: "web_search", max_uses: 3 },
      { type: "bash_20250124", name: "bash", cache_control: ephemeral },
      { type: "mcp_toolset", mcp_server_name: "files" },
      { name: "later", input_schema: { type: "object" }, defer_loading: true }
    ],
    tool_choice: { type: "auto", disable_parallel_tool_use: true }
  },
  "a tool of the vendor's that is forced": {
    tools: [{ type: "web_search_20250305", name: "web_search" }],
    tool_choice: { type: "tool", name: "web_search" }
  },
  "a forced tool": {
    tools: [{ name: "get_weather", input_schema: { type: "object" } }],
    tool_choice: { type: "tool", name: "get_weather" }
  },
  "tools that must not be called": {
    tools: [{ name: "get_weather", input_schema: { type: "object" } }],
    tool_choice: { type: "none" }
  },
  "a tool loop with sealed thinking": {
    max_tokens: 4000,
    thinking: { type: "enabled", budget_tokens: 2000 },
    tools: [{ name: "get_weather", input_schema: { type: "object" } }],
    messages: [
      { role: "user", content: "Weather?" },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "I should ask.", signature: "c2lnbmVk" },
          { type: "redacted_thinking", data: "c2VjcmV0" },
          { type: "text", text: "Asking." },
          { type: "tool_use", id: "toolu_1", name: "get_weather", input: { zebra: 1, apple: 12345678901234 } },
          { type: "tool_use", id: "toolu_2", name: "get_weather", input: {}, cache_control: ephemeral }
        ]
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "toolu_1", content: "sunny", cache_control: ephemeral },
          {
            type: "tool_result",
            tool_use_id: "toolu_2",
            is_error: true,
            content: [
              { type: "text", text: "no city" },
              { type: "image", source: { type: "url", url: "https://example.com/b.png" } }
            ]
          },
          { type: "text", text: "Go on.", cache_control: ephemeral }
        ]
      }
    ]
  },
  "thinking as the model likes, and its effort": {
    thinking: { type: "adaptive", display: "omitted" },
    output_config: { effort: "xhigh", task_budget: { type: "tokens", total: 20000 } }
  },
  "output by a schema": {
    output_config: {
      format: { type: "json_schema", schema: { type: "object", required: ["b", "a"], properties: { b: {}, a: {} } } }
    }
  },
  "output by a schema, by its older name": {
    output_format: { type: "json_schema", schema: { type: "object" } }
  },
  "a history with tools that the vendor ran": {
    tools: [{ type: "web_search_20250305", name: "web_search" }],
    messages: [
      { role: "user", content: "News?" },
      {
        role: "assistant",
        content: [
          { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "news" } },
          {
            type: "web_search_tool_result",
            tool_use_id: "srvtoolu_1",
            content: [{
              type: "web_search_result",
              url: "https://example.com",
              title: "News",
              encrypted_content: "sealed",
              page_age: null
            }]
          },
          {
            type: "text",
            text: "There is news.",
            citations: [{
              type: "web_search_result_location",
              url: "https://example.com",
              title: "News",
              cited_text: "news",
              encrypted_index: "sealed"
            }]
          }
        ]
      },
      { role: "user", content: "More?" },
      { role: "system", content: "Be brief now." }
    ]
  }
}

const bodyOf = (body: object | undefined) => {
  const { model, stream, ...rest } = body as { readonly [field: string]: unknown }
  return { model, rest }
}

/** The arguments and schemas of a body, whose keys have an order, and all of the lists. */
const ordered = (body: object): ReadonlyArray<string> => {
  const found: Array<string> = []
  JSON.stringify(body, (key: string, value: unknown) => {
    if (key === "input" || key === "schema" || key === "input_schema") found.push(JSON.stringify(value))
    return value
  })
  return found
}

describe("a request of the official client arrives at a server of its contract as it was written", () => {
  it.each(Object.entries(requests))("%s", async (_, fields) => {
    server.answer(() => wholeMessage([{ type: "tool_use", id: "toolu_9", name: "get_weather", input: {} }]))
    const request: BetaRequest = { model: "mine", max_tokens: 99, messages: question, ...fields }
    await directly().beta.messages.create(request)
    await through().beta.messages.create(request)
    const [before, after] = server.requests
    const [written, arrived] = [bodyOf(before?.body), bodyOf(after?.body)]
    assert.deepStrictEqual(arrived.rest, written.rest)
    assert.strictEqual(arrived.model, "server-model")
    assert.deepStrictEqual(ordered(arrived.rest).toSorted(), ordered(written.rest).toSorted())
    assert.strictEqual(after?.headers["anthropic-beta"], before?.headers["anthropic-beta"])
  })

  it("with the limit of output that the vendor requires, if the client sends none", async () => {
    server.answer(() => wholeMessage([textBlock("Hello")]))
    await through().post("/v1/messages", { body: { model: "mine", messages: question } })
    assert.strictEqual(server.requests[0]?.body["max_tokens"], 8192)
  })

  it("with fields that neither the gateway nor the client knows", async () => {
    server.answer(() => wholeMessage([textBlock("Hello")]))
    const body = {
      model: "mine",
      max_tokens: 9,
      future: { a: [1] },
      messages: [{ role: "user", mood: "calm", content: [{ type: "hologram", rays: 3 }, { type: "text", text: "Hi" }] }]
    }
    const { response } = await through().post("/v1/messages", { body }).withResponse()
    assert.deepInclude(server.requests[0]?.body, { future: body.future, messages: body.messages })
    assert.isNull(response.headers.get("x-gateway-ignored"))
  })
})

describe("a field that neither the gateway nor the vendor has", () => {
  it("is left out and reported if upstream.fields drops such fields; the vendor's own fields pass", async () => {
    const strict = await startGateway({
      accounts: [{ token: "sk-server" }],
      upstream: { driver: "messages", base_url: server.url, fields: "drop" }
    })
    try {
      server.answer(() => wholeMessage([textBlock("Hello")]))
      const { response } = await new Anthropic({ baseURL: strict.url, apiKey: businessKey, maxRetries: 0 })
        .post("/v1/messages", {
          body: { model: "upstream-chat", max_tokens: 9, messages: question, future: 1, metadata: { user_id: "u" } }
        })
        .withResponse()
      assert.strictEqual(response.headers.get("x-gateway-ignored"), "future")
      assert.notProperty(server.requests[0]?.body, "future")
      assert.deepInclude(server.requests[0]?.body, { metadata: { user_id: "u" } })
    } finally {
      await strict.stop()
    }
  })
})

/** Replies with what the contract has. */
const replies: {
  readonly [name: string]: readonly [content: ReadonlyArray<Anthropic.Beta.BetaContentBlock>, MessageOptions]
} = {
  "text": [[{ type: "text", text: "Hello there", citations: null }], {}],
  "several texts, with citations": [
    [
      { type: "text", text: "One. ", citations: null },
      {
        type: "text",
        text: "Two.",
        citations: [{
          type: "char_location",
          cited_text: "two",
          document_index: 0,
          document_title: null,
          start_char_index: 0,
          end_char_index: 3,
          file_id: null
        }]
      },
      { type: "text", text: " Three.", citations: null }
    ],
    {}
  ],
  "thinking with signatures, and a call": [
    [
      { type: "thinking", thinking: "I should ask.", signature: "c2lnbmVk" },
      { type: "redacted_thinking", data: "c2VjcmV0" },
      { type: "text", text: "Asking.", citations: null },
      {
        type: "tool_use",
        id: "toolu_1",
        name: "get_weather",
        input: { zebra: 1, apple: "a" },
        caller: { type: "direct" }
      },
      {
        type: "tool_use",
        id: "toolu_2",
        name: "get_weather",
        input: {},
        caller: { type: "code_execution_20250825", tool_id: "srvtoolu_9" }
      }
    ],
    { stop: { stop_reason: "tool_use" } }
  ],
  "thinking that is not shown": [
    [{ type: "thinking", thinking: "", signature: "c2lnbmVk" }, { type: "text", text: "Hi", citations: null }],
    {}
  ],
  "tools of the server": [
    [
      { type: "text", text: "Searching. ", citations: null },
      {
        type: "server_tool_use",
        id: "srvtoolu_1",
        name: "web_search",
        input: { query: "news" },
        caller: { type: "direct" }
      },
      {
        type: "web_search_tool_result",
        tool_use_id: "srvtoolu_1",
        caller: { type: "direct" },
        content: [{
          type: "web_search_result",
          url: "https://example.com",
          title: "News",
          encrypted_content: "sealed",
          page_age: null
        }]
      },
      { type: "text", text: "Found.", citations: null }
    ],
    {
      usage: {
        input_tokens: 1,
        output_tokens: 2,
        cache_read_input_tokens: 0,
        cache_creation_input_tokens: 0,
        server_tool_use: { web_search_requests: 1, web_fetch_requests: 0 }
      }
    }
  ],
  "a pause": [[{ type: "text", text: "Wait", citations: null }], { stop: { stop_reason: "pause_turn" } }],
  "the end of the context": [
    [{ type: "text", text: "Too long", citations: null }],
    { stop: { stop_reason: "model_context_window_exceeded" } }
  ],
  "a limit": [[{ type: "text", text: "Cut", citations: null }], { stop: { stop_reason: "max_tokens" } }],
  "a stop sequence": [
    [{ type: "text", text: "So far", citations: null }],
    { stop: { stop_reason: "stop_sequence", stop_sequence: "END" } }
  ],
  "a refusal": [
    [{ type: "text", text: "I", citations: null }],
    { stop: { stop_reason: "refusal", stop_details: { type: "refusal", category: "cyber", explanation: "No." } } }
  ],
  "a refusal without a word": [
    [],
    { stop: { stop_reason: "refusal", stop_details: { type: "refusal", category: null, explanation: null } } }
  ],
  "a container, and what was done with the context": [
    [{ type: "text", text: "Done", citations: null }],
    {
      stop: { container: { id: "container_1", expires_at: "2026-01-01T00:00:00Z", skills: null } },
      end: { context_management: { applied_edits: [] } }
    }
  ]
}

/** A message as the client has it, without what belongs to the request. */
const contentOf = ({ _request_id: _, model: __, ...message }: Anthropic.Beta.BetaMessage & { _request_id?: unknown }) =>
  message

describe("a reply of a server returns to the official client as it was sent", () => {
  describe.each([["whole", wholeMessage], ["streamed", streamedMessage]] as const)("%s by the server", (_, answer) => {
    it.each(Object.entries(replies))("%s", async (_, [content, options]) => {
      server.answer(() => answer(content as never, options))
      const request = {
        model: "mine",
        max_tokens: 99,
        messages: question,
        tools: [{ name: "get_weather", input_schema: { type: "object" as const } }]
      }
      const sent = await directly().beta.messages.stream(request).finalMessage().catch(() => undefined)
      const whole = await through().beta.messages.create(request)
      const streamed = await through().beta.messages.stream(request).finalMessage()
      assert.strictEqual(whole.model, "mine")
      assert.strictEqual(whole.id, "msg_server_1")
      assert.deepStrictEqual(contentOf(whole).content, content as never)
      assert.deepStrictEqual(contentOf(streamed).content, content as never)
      for (const reply of [whole, streamed]) {
        assert.deepInclude(reply, { stop_reason: "end_turn", stop_sequence: null, ...options.stop } as never)
        assert.deepInclude(reply.usage, (options.usage ?? usage) as never)
        if (options.end !== undefined) assert.deepInclude(reply, options.end as never)
      }
      // The client can read a stream of the server itself only if the server streams.
      if (answer === streamedMessage) assert.deepInclude(contentOf(streamed), contentOf(sent!) as never)
    })
  })
})
