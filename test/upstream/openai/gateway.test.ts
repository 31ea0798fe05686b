import Anthropic from "@anthropic-ai/sdk"
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { GoogleGenAI } from "@google/genai"
import OpenAI from "openai"
import { adminKey, businessKey, type GatewayOptions, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { makeMovedClock } from "../../support/movedClock.ts"
import {
  chunk,
  frames,
  json,
  type OpenAiServer,
  type SeenRequest,
  startOpenAiServer,
  streamed,
  usage
} from "../../support/openaiServer.ts"
import { ask as askRaw } from "./callStyles.ts"

let server: OpenAiServer
beforeAll(async () => {
  server = await startOpenAiServer()
})
afterAll(() => server.stop())

const running: Array<RunningGateway> = []
const stopAll = async () => {
  for (const gateway of running.splice(0)) await gateway.stop()
}

/** A gateway in front of the stand-in. */
const start = async (
  config: { readonly upstream?: object; readonly [group: string]: unknown } = {},
  options: GatewayOptions = {}
) => {
  const { upstream, ...rest } = config
  const raw = { ...rest, upstream: { driver: "openai", base_url: server.baseUrl, ...upstream } }
  const gateway = await startGateway(JSON.parse(JSON.stringify(raw)), options)
  running.push(gateway)
  return gateway
}

const clientOf = ({ url }: RunningGateway, apiKey = businessKey) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 })

const ask = (content: string, model = "upstream-chat") => ({ model, messages: [{ role: "user" as const, content }] })

const failure = async (attempt: PromiseLike<unknown>) => {
  const caught: unknown = await attempt.then(() => undefined, (reason: unknown) => reason)
  assert(caught instanceof OpenAI.APIError, `expected an API error, got ${String(caught)}`)
  return caught
}

const keysOf = (requests: ReadonlyArray<SeenRequest>) => requests.map(({ key }) => key)

describe("a model of one's own", () => {
  afterAll(stopAll)
  let gateway: RunningGateway
  const model = "qwen3"
  beforeAll(async () => {
    gateway = await start({
      upstream: { models: { "upstream-chat": "llama-3", qwen3: { model: "Qwen/Qwen3-8B", reasoning: true } } }
    })
    server.answer(() => streamed({ content: "<thi" }, { content: "nk>Hm.</think>\n\nHel" }, { content: "lo" }))
  })

  it("is listed beside the bodyVendorFields", async () => {
    const ids: Array<string> = []
    for await (const listed of clientOf(gateway).models.list()) ids.push(listed.id)
    assert.deepStrictEqual(ids, [
      "upstream-chat",
      "upstream-reasoner",
      "upstream-chat-search",
      "upstream-reasoner-search",
      model
    ])
  })

  it("is served in every style by the server's own name, with reasoning and usage", async () => {
    const openai = clientOf(gateway)
    const chat = await openai.chat.completions.create(ask("Hi", model))
    const message = chat.choices[0]?.message
    assert.strictEqual(message?.content, "Hello")
    assert.include(JSON.stringify(message), "\"reasoning_content\":\"Hm.\"")
    assert.strictEqual(chat.model, model)
    assert.deepInclude(chat.usage, usage)

    const response = await openai.responses.create({ model, input: "Hi" })
    assert.strictEqual(response.output_text, "Hello")
    assert.include(response.output.map(({ type }) => type), "reasoning")
    assert.deepInclude(response.usage, { input_tokens: 11, output_tokens: 7 })

    const anthropic = new Anthropic({ baseURL: gateway.url, apiKey: businessKey, maxRetries: 0 })
    const reply = await anthropic.messages.stream({ model, max_tokens: 99, messages: ask("Hi").messages })
      .finalMessage()
    assert.deepStrictEqual(reply.content.flatMap((block) => block.type === "text" ? [block.text] : []), ["Hello"])
    assert.deepInclude(reply.usage, { input_tokens: 11, output_tokens: 7 })

    const google = new GoogleGenAI({ apiKey: businessKey, httpOptions: { baseUrl: gateway.url } })
    const generated = await google.models.generateContent({ model, contents: "Hi" })
    assert.strictEqual(generated.text, "Hello")
    assert.deepInclude(generated.usageMetadata, { promptTokenCount: 11 })

    assert.deepStrictEqual(server.requests.map(({ body }) => body["model"]), Array(4).fill("Qwen/Qwen3-8B"))
  })

  it("may stand behind a native name; one that is not configured uses its own", async () => {
    server.answer(() => streamed({ content: "Hello" }))
    for (const name of ["gpt-4o", "upstream-reasoner"]) await askRaw(gateway.url, "chat", true, name)
    assert.deepStrictEqual(server.requests.map(({ body }) => body["model"]), ["llama-3", "upstream-reasoner"])
  })
})

describe("what goes through", () => {
  afterAll(stopAll)
  let gateway: RunningGateway
  let client: OpenAI
  beforeAll(async () => {
    gateway = await start()
    client = clientOf(gateway)
  })

  it("is what the caller gave, and nothing that the gateway filled in", async () => {
    server.answer(() => streamed({ content: "Hello" }))
    const given = {
      temperature: 0,
      top_p: 0.5,
      stop: ["END"],
      max_tokens: 9,
      seed: 3,
      presence_penalty: 0.1,
      frequency_penalty: 0.2,
      response_format: { type: "json_object" as const }
    }
    await client.chat.completions.create({ ...ask("Hi"), ...given })
    assert.deepInclude(server.requests[0]?.body, { ...given, stream: false })
    await askRaw(gateway.url, "messages", false)
    assert.deepStrictEqual(Object.keys(server.requests[1]?.body ?? {}).toSorted(), [
      "messages",
      "model",
      "stream"
    ])
  })

  it("are images and files", async () => {
    server.answer(() => streamed({ content: "A cat" }))
    const content = [
      { type: "text" as const, text: "What is it?" },
      { type: "image_url" as const, image_url: { url: "data:image/png;base64,AAAA", detail: "low" as const } },
      { type: "input_audio" as const, input_audio: { data: "AAAA", format: "mp3" as const } },
      { type: "file" as const, file: { file_data: "data:application/pdf;base64,AAAA", filename: "a.pdf" } }
    ]
    await client.chat.completions.create({ model: "upstream-chat", messages: [{ role: "user", content }] })
    assert.deepStrictEqual(server.requests[0]?.body["messages"], [{ role: "user", content }])
  })

  it("is the stop sequence at which the server ended the reply", async () => {
    server.answer(() => ({
      pieces: [
        frames({ choices: [{ index: 0, delta: { content: "one " }, finish_reason: "stop", stop_reason: "END" }] })
      ]
    }))
    const anthropic = new Anthropic({ baseURL: gateway.url, apiKey: businessKey, maxRetries: 0 })
    const message = await anthropic.messages.create({
      model: "upstream-chat",
      max_tokens: 9,
      messages: ask("Hi").messages,
      stop_sequences: ["END"]
    })
    assert.deepInclude(message, { stop_reason: "stop_sequence", stop_sequence: "END" })
  })

  it("ends at a stop sequence where the server does not look for it, and the server hears of it", async () => {
    server.answer(() => ({
      pieces: [frames(chunk({ content: "one E" }), chunk({ content: "ND two" }))],
      after: "hang"
    }))
    const reply = await client.chat.completions.create({ ...ask("Hi"), stop: "END" })
    assert.strictEqual(reply.choices[0]?.message.content, "one ")
    await server.until(([first]) => first?.outcome === "aborted")
  })
})

describe("tools", () => {
  afterAll(stopAll)
  const tools = ["get_weather", "get_time"].map((name) => ({
    type: "function" as const,
    function: {
      name,
      description: `Does ${name}`,
      parameters: { type: "object", properties: { city: { type: "string" } } }
    }
  }))
  const called = (calls: ReadonlyArray<OpenAI.ChatCompletionMessageToolCall> | undefined) =>
    calls?.map((call) => call.type === "function" ? [call.function.name, JSON.parse(call.function.arguments)] : [])
  const both = [["get_weather", { city: "Oslo" }], ["get_time", { city: "Rome" }]]
  const piece = (index: number, id: string | undefined, name: string | undefined, args: string) =>
    chunk({ tool_calls: [{ index, id, function: { name, arguments: args } }] })
  const vendorFields = [
    piece(0, "a", "get_weather", ""),
    piece(0, undefined, undefined, "{\"city\":"),
    piece(1, "b", "get_time", "{\"city\":"),
    piece(0, undefined, undefined, "\"Oslo\"}"),
    piece(1, undefined, undefined, "\"Rome\"}"),
    chunk({}, "tool_calls"),
    "[DONE]"
  ]
  const leaked = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>\n" +
    "<tool_call>\n{\"name\": \"get_time\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>"
  const asText = [...leaked.match(/.{1,7}/gs) ?? []].map((content) => chunk({ content }))

  const gateways: Array<readonly ["native" | "prompt", RunningGateway]> = []
  beforeAll(async () => {
    for (const mode of ["native", "prompt"] as const) gateways.push([mode, await start({ upstream: { tools: mode } })])
  })

  it("are the server's own or in the prompt, and calls come out of either form in both", async () => {
    for (const [mode, gateway] of gateways) {
      const client = clientOf(gateway)
      for (const stream of [vendorFields, [...asText, chunk({}, "stop")]]) {
        server.answer(() => ({ pieces: [frames(...stream)] }))
        const whole = await client.chat.completions.create({ ...ask("Go"), tools })
        assert.deepStrictEqual(called(whole.choices[0]?.message.tool_calls), both)
        assert.strictEqual(whole.choices[0]?.finish_reason, "tool_calls")
        const accumulated = await client.chat.completions.stream({ ...ask("Go"), tools }).finalChatCompletion()
        assert.deepStrictEqual(called(accumulated.choices[0]?.message.tool_calls), both)
        const { messages, tools: declared } = server.requests[0]!.body
        assert.strictEqual(declared !== undefined, mode === "native")
        assert.strictEqual(JSON.stringify(messages).includes("Does get_time"), mode === "prompt")
      }
    }
  })

  it("are found in special tokens behind thinking, and no token is left in the text", async () => {
    const calls = both.map(([name, parameters], i) =>
      JSON.stringify({ tool_call_id: String(i), tool_name: name, parameters })
    )
    const reply = "<|START_THINKING|>I look it up.<|END_THINKING|>" +
      `<|START_ACTION|>[\n    ${calls.join(",\n    ")}\n]<|END_ACTION|>`
    const pieces = (reply.match(/.{1,7}/gs) ?? []).map((content) => chunk({ content }))
    server.answer(() => ({ pieces: [frames(...pieces, chunk({}, "stop"))] }))
    const { choices: [choice] } = await clientOf(gateways[0]![1]).chat.completions.create({ ...ask("Go"), tools })
    assert.deepStrictEqual(called(choice?.message.tool_calls), both)
    assert.strictEqual(choice?.message.content, null)
    assert.notInclude(JSON.stringify(choice), "|>")
  })

  it("keep the server's ids, so that results find their calls", async () => {
    const client = clientOf(gateways[0]![1])
    server.answer(() => ({ pieces: [frames(...vendorFields)] }))
    const { choices: [choice] } = await client.chat.completions.create({ ...ask("Go"), tools })
    const calls = choice?.message.tool_calls ?? []
    assert.deepStrictEqual(calls.map(({ id }) => id), ["a", "b"])
    const messages: Array<OpenAI.ChatCompletionMessageParam> = [
      ...ask("Go").messages,
      choice!.message,
      ...calls.map(({ id }) => ({ role: "tool" as const, tool_call_id: id, content: `sunny ${id}` }))
    ]
    server.answer(() => streamed({ content: "Sunny" }))
    await client.chat.completions.create({ model: "upstream-chat", messages, tools })
    assert.deepStrictEqual(server.requests[0]?.body["messages"], [
      { role: "user", content: "Go" },
      {
        role: "assistant",
        content: null,
        tool_calls: calls.map((call) => ({
          id: call.id,
          type: "function",
          function: call.type === "function" ? call.function : undefined
        }))
      },
      { role: "tool", tool_call_id: "a", content: "sunny a" },
      { role: "tool", tool_call_id: "b", content: "sunny b" }
    ])
  })

  it("end after one call where that is asked for, and the server hears of it", async () => {
    const first = piece(0, "a", "get_weather", "{\"city\":\"Oslo\"}")
    server.answer(() => ({ pieces: [frames(first, piece(1, "b", "get_time", "{"))], after: "hang" }))
    const reply = await clientOf(gateways[0]![1]).chat.completions.create({
      ...ask("Go"),
      tools,
      parallel_tool_calls: false
    })
    assert.deepStrictEqual(called(reply.choices[0]?.message.tool_calls), both.slice(0, 1))
    await server.until(([first]) => first?.outcome === "aborted")
    assert.strictEqual(server.requests[0]?.body["parallel_tool_calls"], false)
  })

  it("that a call is cut off in end by length", async () => {
    server.answer(() => ({
      pieces: [frames(piece(0, "a", "get_weather", "{\"city\":\"Os"), chunk({}, "length"), "[DONE]")]
    }))
    const reply = await clientOf(gateways[0]![1]).chat.completions.create({ ...ask("Go"), tools })
    assert.strictEqual(reply.choices[0]?.finish_reason, "length")
  })

  it("that must be called are asked for twice where the server takes no notice", async () => {
    for (const [mode, gateway] of gateways) {
      server.answer((_, i) => i === 0 ? streamed({ content: "No." }) : { pieces: [frames(...vendorFields)] })
      const reply = await clientOf(gateway).chat.completions.create({ ...ask("Go"), tools, tool_choice: "required" })
      assert.deepStrictEqual(called(reply.choices[0]?.message.tool_calls), both)
      assert.strictEqual(server.requests.length, 2)
      assert.strictEqual(server.requests[0]?.body["tool_choice"], mode === "native" ? "required" : undefined)
    }
  })
})

describe("keys", () => {
  afterEach(stopAll)
  const keys = ["sk-a", "sk-b", "sk-c"]
  const accounts = keys.map((token) => ({ token }))
  const hello = () => streamed({ content: "Hello" })

  it("take turns, request by request", async () => {
    const gateway = await start({ accounts })
    server.answer(hello)
    for (let i = 0; i < 6; i++) await askRaw(gateway.url, "chat", i % 2 === 0)
    assert.deepStrictEqual(keysOf(server.requests), [...keys, ...keys])
  })

  it("that are refused leave the rotation, each after one try", async () => {
    const gateway = await start({ accounts })
    server.answer(({ key }) =>
      key === "sk-c" ? hello() : json(401, { error: { message: "no", code: "invalid_api_key" } })
    )
    for (let i = 0; i < 3; i++) {
      assert.strictEqual((await askRaw(gateway.url, "chat", false)).text, "Hello")
    }
    assert.deepStrictEqual(keysOf(server.requests), ["sk-a", "sk-b", "sk-c", "sk-c", "sk-c"])
  })

  it("that are limited cool down for as long as the server says", async () => {
    const clock = makeMovedClock({ still: true })
    const gateway = await start({ accounts, upstream: { timeouts: { queue: 0 } } }, { clock })
    const client = clientOf(gateway)
    server.answer(({ key }) => key === "sk-b" ? hello() : json(429, {}, { "retry-after": "40" }))
    for (let i = 0; i < 3; i++) await client.chat.completions.create(ask("Hi"))
    assert.deepStrictEqual(keysOf(server.requests), ["sk-a", "sk-b", "sk-c", "sk-b", "sk-b"])
    server.answer(() => json(429, {}, { "retry-after": "30" }))
    const limited = await failure(client.chat.completions.create(ask("Hi")))
    assert.instanceOf(limited, OpenAI.RateLimitError)
    assert.strictEqual(limited.code, "upstream_rate_limited")
    assert.strictEqual(limited.headers?.get("retry-after"), "30")
    assert.deepStrictEqual(keysOf(server.requests), ["sk-b"])
  })

  it("are never what a caller sends", async () => {
    const gateway = await start({ accounts })
    server.answer(hello)
    const refused = await failure(clientOf(gateway, "sk-mine").chat.completions.create(ask("Hi")))
    assert.instanceOf(refused, OpenAI.AuthenticationError)
    assert.lengthOf(server.requests, 0)
    const direct = await start({ accounts, auth: { direct_tokens: true } })
    await clientOf(direct, "sk-mine").chat.completions.create(ask("Hi"))
    assert.deepStrictEqual(keysOf(server.requests), ["sk-mine"])
  })

  it("are not needed in front of a server without authentication", async () => {
    for (const given of [[], [{ token: "none" }]]) {
      const gateway = await start({ accounts: given })
      let open = () => {}
      const opened = new Promise<void>((resolve) => {
        open = resolve
      })
      server.answer(() => ({ pieces: [frames(chunk({ content: "Hello" })), opened, frames(chunk({}, "stop"))] }))
      const asked = Array.from({ length: 8 }, () => askRaw(gateway.url, "chat", false))
      await server.until((requests) => requests.length === 8)
      open()
      for (const { status, text } of await Promise.all(asked)) {
        assert.deepStrictEqual({ status, text }, { status: 200, text: "Hello" })
      }
      assert.deepStrictEqual(keysOf(server.requests), Array(8).fill(undefined))
    }
  })

  it("are what an account has to have: one with a login alone is refused by its place", async () => {
    const started = await start({ accounts: [{ email: "a@example.org", password: "x" }] }).then(
      () => "started",
      (error: unknown) => String(error)
    )
    assert.include(started, "accounts[0].password must be unset: the upstream default has the driver openai")
  })

  it("that are missing are asked for by name", async () => {
    const gateway = await start()
    server.answer(() => json(401, { error: { message: "You didn't provide an API key" } }))
    const { error, status } = await askRaw(gateway.url, "chat", false)
    assert.strictEqual(status, 503)
    assert.match(error?.message ?? "", /asks for an API key/)
  })

  it("are tested by the list of models; there are no sessions to care for", async () => {
    server.list(() => json(404, {}))
    const gateway = await start({ accounts })
    const admin = async (path: string, body?: object): Promise<unknown> => {
      const response = await fetch(`${gateway.url}/admin/${path}`, {
        method: body === undefined ? "GET" : "POST",
        headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      })
      return response.json()
    }
    // The gateway reads the list at its start.
    await server.until(() => server.lists.length === keys.length)
    server.list(({ key }) => key === "sk-b" ? json(401, {}) : json(200, { object: "list", data: [] }))
    assert.deepInclude(await admin("accounts/test-all", {}), { total: 3, success: 2, failed: 1 })
    assert.sameMembers(keysOf(server.lists), keys)
    const { items } = await admin("accounts") as { items: ReadonlyArray<{ identifier: string; test_status: string }> }
    const { identifier } = items.find(({ test_status }) => test_status === "ok")!
    const deleted = await admin("accounts/sessions/delete-all", { identifier }) as { success: boolean; note: string }
    assert.isTrue(deleted.success)
    assert.match(deleted.note, /no sessions/)
  })
})

describe("a caller that goes away", () => {
  afterAll(stopAll)
  const text = frames(chunk({ content: "Hello" }))
  const open = (gateway: RunningGateway, signal: AbortSignal, stream: boolean) =>
    fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      signal,
      headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
      body: JSON.stringify({ ...ask("Hi"), stream })
    })

  it("leaves nothing open upstream, and its slot is free again", async () => {
    const gateway = await start({ runtime: { account_max_inflight: 1 } })
    const windows = [
      { headless: true, after: "hang" },
      { after: "hang" },
      { pieces: [text], after: "hang" }
    ] as const
    for (const answer of windows) {
      for (const stream of [false, true]) {
        server.answer(() => answer)
        const controller = new AbortController()
        const reply = open(gateway, controller.signal, stream)
        await server.until((requests) => requests.length === 1)
        if ("pieces" in answer && stream) await (await reply).body?.getReader().read()
        controller.abort()
        await reply.then(() => {}, () => {})
        await server.until(([first]) => first?.outcome === "aborted")
        server.answer(() => streamed({ content: "next" }))
        assert.strictEqual((await askRaw(gateway.url, "chat", false)).text, "next")
      }
    }
  })

  it("while it waits in the queue is never heard of upstream", async () => {
    const gateway = await start({ runtime: { account_max_inflight: 1 } })
    let end = () => {}
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    server.answer(() => ({ pieces: [text, ended, frames(chunk({}, "stop"))] }))
    const first = askRaw(gateway.url, "chat", true)
    await server.until((requests) => requests.length === 1)
    const controller = new AbortController()
    const waiting = open(gateway, controller.signal, false)
    const status = async (): Promise<number> => {
      const response = await fetch(`${gateway.url}/admin/queue/status`, {
        headers: { authorization: `Bearer ${adminKey}` }
      })
      const { waiting } = await response.json() as { waiting: number }
      return waiting
    }
    while (await status() !== 1);
    controller.abort()
    await waiting.then(() => {}, () => {})
    while (await status() !== 0);
    end()
    assert.strictEqual((await first).text, "Hello")
    assert.strictEqual((await askRaw(gateway.url, "chat", false)).text, "Hello")
    assert.lengthOf(server.requests, 2)
  })
})
