/** Every style in front of a generate server: replies, requests and failures of each kind, whole and streamed, over sockets. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { cutOff, oslo, reasoning, rome, text } from "../../styles/replies.ts"
import { citySchema, tools } from "../../styles/support.ts"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import {
  type Answer,
  chunk,
  frames,
  type GenerateServer,
  json,
  refused,
  said,
  startGenerateServer,
  streamed
} from "../../support/generateServer.ts"
import { makeMovedClock } from "../../support/movedClock.ts"
import { assertSame, type Clients, type Written } from "../../support/sameReply.ts"
import { styleClients, type StyleName, styleNames } from "../../support/styleClients.ts"
import { ask } from "../openai/callStyles.ts"

let server: GenerateServer
let gateway: RunningGateway
let clients: Clients

beforeAll(async () => {
  server = await startGenerateServer()
  gateway = await startGateway({
    // So many keys that no fault leaves a request without one.
    accounts: Array.from({ length: 900 }, (_, i) => ({ token: `key-${i}` })),
    captures: { enabled: false },
    upstream: {
      driver: "generate",
      base_url: server.baseUrl,
      timeouts: { queue: 0 },
      models: { "upstream-reasoner": "gemini-3-pro", mine: "gemini-2.5-flash" }
    }
  })
  clients = styleClients(gateway.url)
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

const thought = (text: string, more: object = {}) => ({ text, thought: true, ...more })
const called = (name: string, city: string, more: object = {}) => ({ functionCall: { name, args: { city } }, ...more })
const stop = (parts: ReadonlyArray<object> = [], more: object = {}) => chunk(parts, { finishReason: "STOP" }, more)

type Case = Written & { readonly name: string; readonly chunks: ReadonlyArray<object> }

const replies: ReadonlyArray<Case> = [
  { name: "text", chunks: [chunk([{ text: "Hel" }]), stop([{ text: "lo" }])], pieces: [text("Hello")], finish: "stop" },
  {
    name: "a character that is cut",
    chunks: [chunk([{ text: "a\ud83c" }]), stop([{ text: "\udf0d" }])],
    pieces: [text("a🌍")],
    finish: "stop"
  },
  {
    name: "thoughts and text",
    chunks: [chunk([thought("H")]), chunk([thought("m.", { thoughtSignature: "c2ln" })]), stop([{ text: "Four." }])],
    pieces: [reasoning("Hm."), text("Four.")],
    finish: "stop"
  },
  {
    name: "calls with signatures and without ids",
    chunks: [
      chunk([thought("Hm."), called("get_weather", "Oslo", { thoughtSignature: "c2ln" })]),
      stop([called("get_time", "Rome")])
    ],
    pieces: [reasoning("Hm."), oslo, rome],
    finish: "tool_calls"
  },
  {
    name: "a call between text",
    chunks: [chunk([{ text: "See. " }, called("get_weather", "Oslo")]), stop([{ text: "Done." }])],
    pieces: [text("See. "), oslo, text("Done.")],
    finish: "tool_calls"
  },
  {
    name: "a call that leaked into the text",
    chunks: [stop([{ text: `<tool_call>{"name":"get_weather","arguments":{"city":"Oslo"}}</tool_call>` }])],
    pieces: [oslo],
    finish: "tool_calls"
  },
  {
    name: "a leaked call that is cut off",
    chunks: [stop([{ text: `So. <tool_call>{"name":"get_weather","arguments":{"city":"Os` }])],
    pieces: [text("So. "), cutOff("get_weather", `{"city":"Os`)],
    finish: "length"
  },
  {
    name: "text that ends by length",
    chunks: [chunk([{ text: "Hel" }]), chunk([{ text: "lo" }], { finishReason: "MAX_TOKENS" })],
    pieces: [text("Hello")],
    finish: "length"
  },
  {
    name: "text that a filter ends",
    chunks: [chunk([{ text: "Hello" }]), chunk([], { finishReason: "SAFETY" })],
    pieces: [text("Hello")],
    finish: "content_filter"
  },
  {
    name: "reasons to stop in every chunk",
    chunks: [stop([{ text: "Hel" }]), stop([{ text: "lo" }])],
    pieces: [text("Hello")],
    finish: "stop"
  }
]

describe("a reply is the same in every style:", () => {
  it.each(replies)("$name", async ({ chunks, finish, pieces }) => {
    server.answer(() => streamed(...chunks))
    await assertSame(clients, { content: "Go", tools, reasoner: true }, { pieces, finish })
  })

  it("one JSON text, or a list of chunks, is a reply as well", async () => {
    for (const body of [stop([{ text: "Hello" }]), [chunk([{ text: "Hel" }]), stop([{ text: "lo" }])]]) {
      server.answer(() => json(200, body))
      await assertSame(clients, { content: "Go" }, { pieces: [text("Hello")], finish: "stop" })
    }
  })

  it("stop sequences beyond the server's five are applied by the gateway", async () => {
    server.answer(() => said("Hello END more"))
    const stop = ["1", "2", "3", "4", "5", "END"]
    await assertSame(clients, { content: "Go", stop }, { pieces: [text("Hello ")], finish: "stop_sequence" })
    for (const { body } of server.requests) {
      assert.deepInclude(body["generationConfig"], { stopSequences: stop.slice(0, 5) })
    }
  })

  it("token counts of the prompt include those of tools, and those of the reply the thoughts", async () => {
    const usageMetadata = {
      promptTokenCount: 50,
      toolUsePromptTokenCount: 4,
      cachedContentTokenCount: 20,
      candidatesTokenCount: 6,
      thoughtsTokenCount: 7,
      totalTokenCount: 67
    }
    server.answer(() => streamed(chunk([thought("Hm.")]), stop([{ text: "Hi" }], { usageMetadata })))
    const usage = await assertSame(
      clients,
      { content: "Go", reasoner: true },
      { pieces: [reasoning("Hm."), text("Hi")], finish: "stop" },
      ["chat", "responses"]
    )
    assert.deepStrictEqual(usage, { prompt: 54, completion: 13, reasoning: 7, cached: 20 })
  })

  it("pictures, code and citations come in the style's own place", async () => {
    server.answer(() =>
      streamed(
        chunk([{ executableCode: { language: "PYTHON", code: "print(1)" } }]),
        chunk([{ codeExecutionResult: { outcome: "OUTCOME_OK", output: "1" } }]),
        chunk([{ inlineData: { mimeType: "image/png", data: "aGk=" } }]),
        chunk([{ text: "Paris." }]),
        chunk([], {
          finishReason: "STOP",
          groundingMetadata: {
            groundingChunks: [{ web: { uri: "https://x.test", title: "X" } }],
            groundingSupports: [{ segment: { startIndex: 0, endIndex: 5 }, groundingChunkIndices: [0] }]
          }
        })
      )
    )
    const { body } = await post("chat", { messages: [{ role: "user", content: "Go" }] })
    const { message } = body.choices[0]
    assert.strictEqual(message.content, "\n```python\nprint(1)\n```\n\n```\n1\n```\nParis.")
    assert.deepStrictEqual(message.images, [{
      type: "image_url",
      image_url: { url: "data:image/png;base64,aGk=" }
    }])
    assert.strictEqual(message.annotations[0].url_citation.url, "https://x.test")
  })
})

const paths: Record<StyleName, string> = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
  generate: "/v1beta/models/mine:generateContent"
}

const post = async (style: StyleName, fields: object) => {
  const response = await fetch(gateway.url + paths[style], {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify({ ...(style === "messages" ? { max_tokens: 64 } : {}), ...fields, model: "mine" })
  })
  const text = await response.text()
  assert.strictEqual(response.status, 200, text)
  return { body: JSON.parse(text), ignored: response.headers.get("x-gateway-ignored") }
}

/** What the server is sent for a request. */
const sent = async (style: StyleName, fields: object) => {
  server.answer(() => said("Hello"))
  const { ignored } = await post(style, fields)
  const [request] = server.requests
  const { generationConfig, ...body } = request!.body
  return { body, generationConfig, ignored }
}

const picture = "data:image/png;base64,aGk="
const pdf = "data:application/pdf;base64,aGk="
const user = (...parts: ReadonlyArray<object>) => ({ role: "user", parts })
const model = (...parts: ReadonlyArray<object>) => ({ role: "model", parts })
const weather = { functionCall: { id: "c1", name: "get_weather", args: { city: "Oslo" } } }
const answered = { functionResponse: { id: "c1", name: "get_weather", response: { output: "Rain" } } }
const image = { inlineData: { mimeType: "image/png", data: "aGk=" } }
const file = { inlineData: { mimeType: "application/pdf", data: "aGk=" } }
const args = `{"city":"Oslo"}`
const declared = [{ name: "get_weather", description: "W", parametersJsonSchema: citySchema }]

type Foreign = Exclude<StyleName, "generate">

interface Asked {
  readonly name: string
  readonly in: Readonly<Record<Foreign, object>>
  readonly expected: object
}

const requests: ReadonlyArray<Asked> = [
  {
    name: "instructions and a conversation",
    in: {
      chat: {
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "A" },
          { role: "user", content: "B" },
          { role: "assistant", content: "C" },
          { role: "user", content: "D" }
        ]
      },
      responses: {
        instructions: "Be brief.",
        input: [
          { role: "user", content: "A" },
          { role: "user", content: "B" },
          { role: "assistant", content: "C" },
          { role: "user", content: "D" }
        ]
      },
      messages: {
        system: "Be brief.",
        messages: [
          { role: "user", content: "A" },
          { role: "user", content: "B" },
          { role: "assistant", content: "C" },
          { role: "user", content: "D" }
        ]
      }
    },
    expected: {
      systemInstruction: { parts: [{ text: "Be brief." }] },
      contents: [user({ text: "A" }, { text: "B" }), model({ text: "C" }), user({ text: "D" })]
    }
  },
  {
    name: "a loop of tools",
    in: {
      chat: {
        tools: [{ type: "function", function: { name: "get_weather", description: "W", parameters: citySchema } }],
        messages: [
          { role: "user", content: "Go" },
          {
            role: "assistant",
            content: null,
            tool_calls: [{ id: "c1", type: "function", function: { name: "get_weather", arguments: args } }]
          },
          { role: "tool", tool_call_id: "c1", content: "Rain" }
        ]
      },
      responses: {
        tools: [{ type: "function", name: "get_weather", description: "W", parameters: citySchema, strict: null }],
        input: [
          { role: "user", content: "Go" },
          { type: "function_call", call_id: "c1", name: "get_weather", arguments: args },
          { type: "function_call_output", call_id: "c1", output: "Rain" }
        ]
      },
      messages: {
        tools: [{ name: "get_weather", description: "W", input_schema: citySchema }],
        messages: [
          { role: "user", content: "Go" },
          {
            role: "assistant",
            content: [{ type: "tool_use", id: "c1", name: "get_weather", input: { city: "Oslo" } }]
          },
          { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "Rain" }] }
        ]
      }
    },
    expected: {
      contents: [user({ text: "Go" }), model(weather), user(answered)],
      tools: [{ functionDeclarations: declared }]
    }
  },
  {
    name: "a choice of one tool",
    in: {
      chat: {
        tools: [{ type: "function", function: { name: "get_weather", description: "W", parameters: citySchema } }],
        tool_choice: "none",
        messages: [{ role: "user", content: "Go" }]
      },
      responses: {
        tools: [{ type: "function", name: "get_weather", description: "W", parameters: citySchema, strict: null }],
        tool_choice: "none",
        input: "Go"
      },
      messages: {
        tools: [{ name: "get_weather", description: "W", input_schema: citySchema }],
        tool_choice: { type: "none" },
        messages: [{ role: "user", content: "Go" }]
      }
    },
    expected: {
      contents: [user({ text: "Go" })],
      tools: [{ functionDeclarations: declared }],
      toolConfig: { functionCallingConfig: { mode: "NONE" } }
    }
  },
  {
    name: "a picture and a document",
    in: {
      chat: {
        messages: [{
          role: "user",
          content: [
            { type: "image_url", image_url: { url: picture } },
            { type: "file", file: { file_data: pdf, filename: "a.pdf" } },
            { type: "image_url", image_url: { url: "https://x.test/a.png" } }
          ]
        }]
      },
      responses: {
        input: [{
          role: "user",
          content: [
            { type: "input_image", image_url: picture, detail: "auto" },
            { type: "input_file", file_data: pdf, filename: "a.pdf" },
            { type: "input_image", image_url: "https://x.test/a.png", detail: "auto" }
          ]
        }]
      },
      messages: {
        messages: [{
          role: "user",
          content: [
            { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } },
            { type: "document", source: { type: "base64", media_type: "application/pdf", data: "aGk=" } },
            { type: "image", source: { type: "url", url: "https://x.test/a.png" } }
          ]
        }]
      }
    },
    expected: { contents: [user(image, file, { fileData: { fileUri: "https://x.test/a.png" } })] }
  },
  {
    name: "a failed call",
    in: {
      chat: {
        messages: [
          {
            role: "assistant",
            content: null,
            tool_calls: [{ id: "c1", type: "function", function: { name: "get_weather", arguments: "Oslo" } }]
          },
          { role: "tool", tool_call_id: "c1", content: "Rain" },
          { role: "user", content: "So?" }
        ]
      },
      responses: {
        input: [
          { type: "function_call", call_id: "c1", name: "get_weather", arguments: "Oslo" },
          { type: "function_call_output", call_id: "c1", output: "Rain" },
          { role: "user", content: "So?" }
        ]
      },
      messages: {
        messages: [
          {
            role: "assistant",
            content: [{ type: "tool_use", id: "c1", name: "get_weather", input: { arguments: "Oslo" } }]
          },
          {
            role: "user",
            content: [{ type: "tool_result", tool_use_id: "c1", content: "Rain" }, { type: "text", text: "So?" }]
          }
        ]
      }
    },
    expected: {
      contents: [
        model({ functionCall: { id: "c1", name: "get_weather", args: { arguments: "Oslo" } } }),
        user(answered, { text: "So?" })
      ]
    }
  }
]

const foreign = styleNames.filter((style): style is Foreign => style !== "generate")

describe("a request of another style arrives as contents:", () => {
  it.each(requests.flatMap(({ name, ...rest }) => foreign.map((style) => ({ name, style, ...rest }))))(
    "$name ($style)",
    async ({ expected, in: fields, style }) => {
      const { body, ignored } = await sent(style, fields[style])
      assert.isNull(ignored)
      assert.deepStrictEqual(body, expected)
    }
  )

  const ofChat = async (fields: object) => {
    const { generationConfig, ignored } = await sent("chat", { messages: [{ role: "user", content: "Hi" }], ...fields })
    return { ignored, config: generationConfig }
  }

  it("sampling, limits and the form of the reply are its generationConfig", async () => {
    const schema = { type: "object", properties: { a: { type: "integer" } } }
    const { config, ignored } = await ofChat({
      temperature: 0.5,
      top_p: 0.9,
      seed: 7,
      presence_penalty: 0.1,
      frequency_penalty: 0.2,
      max_completion_tokens: 100,
      logit_bias: { 1: 2 },
      stop: ["END"],
      response_format: { type: "json_schema", json_schema: { name: "a", schema } }
    })
    assert.deepStrictEqual(config, {
      temperature: 0.5,
      topP: 0.9,
      seed: 7,
      presencePenalty: 0.1,
      frequencyPenalty: 0.2,
      maxOutputTokens: 100,
      stopSequences: ["END"],
      responseMimeType: "application/json",
      responseJsonSchema: schema
    })
    assert.strictEqual(ignored, "logit_bias")
  })

  it.each(
    [
      ["an effort", "mine", { reasoning_effort: "low" }, { includeThoughts: true, thinkingBudget: 2048 }],
      ["an effort", "gemini-3-pro", { reasoning_effort: "xhigh" }, { includeThoughts: true, thinkingLevel: "HIGH" }],
      ["a budget", "mine", { thinking: { type: "enabled", budget_tokens: 512 } }, {
        includeThoughts: true,
        thinkingBudget: 512
      }],
      ["thinking", "mine", { enable_thinking: true }, { includeThoughts: true, thinkingBudget: -1 }],
      ["no thinking", "mine", { reasoning_effort: "none" }, { thinkingBudget: 0 }]
    ] as const
  )("%s is its thinkingConfig (%s)", async (_, name, fields, expected) => {
    const alone = await startGateway({
      accounts: [{ token: "key" }],
      upstream: { driver: "generate", base_url: server.baseUrl, models: { mine: "gemini-2.5-flash", [name]: name } }
    })
    try {
      server.answer(() => said("Hello"))
      const response = await fetch(`${alone.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
        body: JSON.stringify({ model: name, messages: [{ role: "user", content: "Hi" }], ...fields })
      })
      assert.strictEqual(response.status, 200)
      assert.isNull(response.headers.get("x-gateway-ignored"))
      assert.deepStrictEqual(server.requests[0]?.body["generationConfig"], { thinkingConfig: expected })
    } finally {
      await alone.stop()
    }
  })

  it("signatures of calls go back with them, in every style", async () => {
    for (const style of foreign) {
      server.answer(() => streamed(stop([{ ...weather, thoughtSignature: "c2ln" }])))
      const tool = requests[1]!.in[style]
      await post(style, tool)
      const { contents } = (await sent(style, tool)).body as { readonly contents?: ReadonlyArray<object> }
      assert.deepStrictEqual(contents?.[1], model({ ...weather, thoughtSignature: "c2ln" }), style)
    }
  })
})

interface Told {
  readonly status: number
  readonly code: string
  readonly message: RegExp
  readonly asked: 1 | 3
}

const told = (status: number, code: string, message: RegExp, asked: 1 | 3 = 1): Told => ({
  status,
  code,
  message,
  asked
})

const reason = (reason: string) => ({ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason })
const perDay = { "@type": "type.googleapis.com/google.rpc.QuotaFailure", violations: [{ quotaId: "RequestsPerDay" }] }
const retry = { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "17.2s" }
const word = "word of the server"

const refusals: ReadonlyArray<readonly [about: string, Answer, Told]> = [
  ["an invalid argument", refused(400, "INVALID_ARGUMENT", word), told(400, "invalid_request", /word of the server/)],
  [
    "a refused key",
    refused(400, "INVALID_ARGUMENT", word, [reason("API_KEY_INVALID")]),
    told(503, "no_account_available", /refused/, 3)
  ],
  ["a missing right", refused(403, "PERMISSION_DENIED", word), told(503, "upstream_error", /not permit/, 3)],
  ["an unknown model", refused(404, "NOT_FOUND", word), told(400, "model_not_found", /have the model/)],
  [
    "a rate limit",
    refused(429, "RESOURCE_EXHAUSTED", word, [retry]),
    told(429, "upstream_rate_limited", /limits the rate/, 3)
  ],
  [
    "a quota of the day",
    refused(429, "RESOURCE_EXHAUSTED", word, [perDay, retry]),
    told(429, "upstream_rate_limited", /quota/, 3)
  ],
  ["an overload", refused(503, "UNAVAILABLE", word), told(503, "upstream_error", /word of the server/, 3)],
  ["trouble", refused(500, "INTERNAL", word), told(503, "upstream_error", /word of the server/, 3)],
  ["its own time-out", refused(504, "DEADLINE_EXCEEDED", word), told(503, "upstream_timeout", /in time/, 3)],
  [
    "a list with an error",
    json(400, [{ error: { code: 400, message: word, status: "INVALID_ARGUMENT" } }]),
    told(400, "invalid_request", /word of the server/)
  ],
  [
    "a page",
    { status: 502, headers: { "content-type": "text/html" }, pieces: ["<html>Bad gateway</html>"] },
    told(503, "upstream_error", /not a model server/, 3)
  ],
  [
    "a prompt that is too long",
    refused(400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens allowed (8)."),
    told(400, "context_length_exceeded", /too long/)
  ],
  ["a connection that breaks", { headless: true, after: "reset" }, told(503, "upstream_error", /connection/, 3)],
  ["an empty reply", streamed(chunk([], { finishReason: "STOP" })), told(503, "upstream_empty_output", /empty/, 3)],
  ["a broken whole reply", json(200, "{\"candidates\":[{"), told(503, "upstream_error", /failed/, 3)]
]

const hello = frames(chunk([{ text: "Hello" }]))

const streamFaults: ReadonlyArray<readonly [about: string, Answer, before: Told, after: Told]> = [
  [
    "an error object",
    streamed({ error: { code: 500, message: word, status: "INTERNAL" } }),
    told(503, "upstream_error", /word of the server/, 3),
    told(503, "upstream_error", /word of the server/)
  ],
  [
    "a rate limit in a list",
    { pieces: [frames([{ error: { code: 429, message: word, status: "RESOURCE_EXHAUSTED" } }])] },
    told(429, "upstream_rate_limited", /limits the rate/, 3),
    told(429, "upstream_rate_limited", /limits the rate/)
  ],
  [
    "an early end",
    { pieces: [] },
    told(503, "upstream_empty_output", /empty/, 3),
    told(503, "upstream_error", /cut off/)
  ],
  [
    "a broken connection",
    { after: "reset" },
    told(503, "upstream_error", /connection/, 3),
    told(503, "upstream_error", /connection/)
  ],
  [
    "broken JSON",
    { pieces: [frames("{oops")] },
    told(503, "upstream_error", /failed/, 3),
    told(503, "upstream_error", /failed/)
  ]
]

/** Asks in every style, streamed and not; the server is asked `expected.asked` times for each stream. */
const inEveryStyle = async (
  expected: Told,
  askedForWhole: number,
  look: (stream: boolean, answered: Awaited<ReturnType<typeof ask>>) => void
) => {
  const asked = await Promise.all(styleNames.flatMap((style) =>
    [false, true].map(async (stream) => {
      const answered = await ask(gateway.url, style, stream)
      assert.match(answered.error?.message ?? "", expected.message, style)
      assert.isTrue(answered.ended, style)
      if (style === "chat") assert.strictEqual(answered.error?.code, expected.code)
      look(stream, answered)
    })
  ))
  assert.strictEqual(server.requests.length, asked.length / 2 * (expected.asked + askedForWhole))
}

describe("a failure is a plain error in every style, streamed and not:", () => {
  it.each(refusals)("%s", async (_, answer, expected) => {
    server.answer(() => answer)
    await inEveryStyle(expected, expected.asked, (_, { status, text }) => {
      assert.deepStrictEqual({ status, text }, { status: expected.status, text: "" })
    })
  })

  it.each(streamFaults)("%s before the first content", async (_, fault, before) => {
    server.answer(() => fault)
    await inEveryStyle(before, before.asked, (_, { status, text }) => {
      assert.deepStrictEqual({ status, text }, { status: before.status, text: "" })
    })
  })

  it.each(streamFaults)("%s after the first content, where it ends a stream", async (_, fault, before, after) => {
    server.answer(() => ({ ...fault, pieces: [hello, ...fault.pieces ?? []] }))
    await inEveryStyle(after, before.asked, (stream, { status, text }) => {
      assert.deepStrictEqual({ status, text }, { status: stream ? 200 : after.status, text: stream ? "Hello" : "" })
    })
  })

  it("the time to wait is the server's", async () => {
    server.answer(() => refused(429, "RESOURCE_EXHAUSTED", word, [retry]))
    assert.strictEqual((await ask(gateway.url, "chat", false)).retryAfter, "18")
  })

  it("a prompt that the server blocks, in the styles of other vendors", async () => {
    server.answer(() => streamed({ promptFeedback: { blockReason: "SAFETY" } }))
    for (const style of foreign) {
      const { error, status } = await ask(gateway.url, style, false)
      assert.strictEqual(status, 400)
      assert.match(error?.message ?? "", /filter/)
    }
  })

  it("silence, of which the server's time runs out", async () => {
    const clock = makeMovedClock({ still: true })
    const impatient = await startGateway({
      accounts: [{ token: "key" }],
      upstream: { driver: "generate", base_url: server.baseUrl, timeouts: { first_byte: 2, silence: 2 } }
    }, { clock })
    try {
      server.answer(() => ({ headless: true, after: "hang" }))
      const asking = ask(impatient.url, "generate", true)
      await server.until((requests) => requests.length === 1)
      clock.move(2_000)
      assert.match((await asking).error?.message ?? "", /in time/)
    } finally {
      await impatient.stop()
    }
  })
})
