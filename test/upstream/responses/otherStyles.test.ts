/** Callers of other styles in front of a Responses server: loops of tools with sealed thinking, and what its replies become. */
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { makeMovedClock } from "../../support/movedClock.ts"
import type { OpenAiServer } from "../../support/openaiServer.ts"
import {
  type Answer,
  callItem,
  events,
  eventsOf,
  json,
  messageItem,
  reasoningItem,
  responseOf,
  said,
  startResponsesServer,
  streamed
} from "../../support/responsesServer.ts"

type Fields = { readonly [field: string]: unknown }

const clock = makeMovedClock({ still: true })

let server: OpenAiServer
let gateway: RunningGateway
beforeEach(async () => {
  server = await startResponsesServer()
})
afterEach(async () => {
  await gateway.stop()
  await server.stop()
})

const start = async (config: object = {}) => {
  gateway = await startGateway(
    JSON.parse(JSON.stringify({
      accounts: [{ token: "sk-1" }, { token: "sk-2" }],
      upstream: { driver: "responses", base_url: server.baseUrl, timeouts: { queue: 0 } },
      ...config
    })),
    { clock }
  )
}

const post = async (path: string, body: object) => {
  const response = await fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "upstream-reasoner", ...body })
  })
  return { response, body: await response.json() as Fields }
}

const chat = (messages: ReadonlyArray<object>, more: object = {}) => post("/v1/chat/completions", { messages, ...more })

const sent = (index = 0) => server.requests[index]?.body["input"] as ReadonlyArray<Fields>

describe("a loop of tools", () => {
  const tools = ["f", "g"].map((name) => ({ type: "function", function: { name, parameters: { type: "object" } } }))
  const first = reasoningItem("One.", { id: "rs_1" })
  const second = reasoningItem("Two.", { id: "rs_2" })
  const { status: _, ...firstBack } = first
  const { status: __, ...secondBack } = second
  const calls = [first, callItem("f", { a: 1 }), second, callItem("g", { b: 2 })]

  it("takes each item of reasoning back to the server before the call that it led to", async () => {
    await start()
    server.answer(() => streamed(responseOf(calls)))
    const { body } = await chat([{ role: "user", content: "Go" }], { tools })
    const [choice] = body["choices"] as ReadonlyArray<{ readonly message: Fields }>
    const message = choice!.message
    assert.notInclude(JSON.stringify(message), "c2VhbA")
    server.answer(() => said("Done"))
    const results = ["f", "g"].map((name) => ({ role: "tool", tool_call_id: `call_${name}`, content: `of ${name}` }))
    await chat([{ role: "user", content: "Go" }, message, ...results], { tools })
    const call = (name: string, args: string) => ({
      type: "function_call",
      call_id: `call_${name}`,
      name,
      arguments: args
    })
    const output = (name: string) => ({ type: "function_call_output", call_id: `call_${name}`, output: `of ${name}` })
    assert.deepStrictEqual(sent(), [
      { type: "message", role: "user", content: "Go" },
      firstBack,
      call("f", `{"a":1}`),
      secondBack,
      call("g", `{"b":2}`),
      output("f"),
      output("g")
    ])
  })

  it("takes it back for callers of messages and of content generation too", async () => {
    await start()
    server.answer(() => streamed(responseOf([first, callItem("f", {})])))
    await post("/v1/messages", {
      max_tokens: 99,
      messages: [{ role: "user", content: "Go" }],
      tools: [{ name: "f", input_schema: { type: "object" } }]
    })
    server.answer(() => said("Done"))
    await post("/v1/messages", {
      max_tokens: 99,
      messages: [
        { role: "user", content: "Go" },
        { role: "assistant", content: [{ type: "tool_use", id: "call_f", name: "f", input: {} }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "call_f", content: "of f" }] }
      ],
      tools: [{ name: "f", input_schema: { type: "object" } }]
    })
    assert.deepStrictEqual(sent()[1], firstBack)
  })
})

describe("thinking without a seal", () => {
  const history = [
    { role: "user", content: "A" },
    { role: "assistant", content: "B", reasoning_content: "Hm." },
    { role: "user", content: "C" }
  ]
  const types = () => sent().map(({ type }) => type)

  it("goes back only to a server that has sent thinking itself", async () => {
    await start()
    server.answer(() => said("Hello"))
    await chat(history)
    assert.deepStrictEqual(types(), ["message", "message", "message"])
    const thought = reasoningItem("", { summary: [], content: [{ type: "reasoning_text", text: "Hm." }] })
    server.answer(() => streamed(responseOf([thought, messageItem("Hello")])))
    await chat([{ role: "user", content: "A" }])
    server.answer(() => said("Hello"))
    await chat(history)
    assert.deepStrictEqual(sent()[1], {
      type: "reasoning",
      summary: [],
      content: [{ type: "reasoning_text", text: "Hm." }]
    })
  })
})

describe("thinking that a server refuses although it sends some", () => {
  const thought = reasoningItem("", { summary: [], content: [{ type: "reasoning_text", text: "Hm." }] })
  const hasThinking = (body: Fields) =>
    (body["input"] as ReadonlyArray<Fields>).some(({ type }) => type === "reasoning")
  const history = [
    { role: "user", content: "A" },
    { role: "assistant", content: "B", reasoning_content: "Hm." },
    { role: "user", content: "C" }
  ]
  const refusal = { error: { message: "Unsupported item type", param: "input[1]" } }
  const refusals: ReadonlyArray<readonly [how: string, answer: Answer]> = [
    ["before the stream", json(400, refusal)],
    ["within the reply", { pieces: [events({ type: "error", code: "invalid_request", message: "Unsupported item" })] }]
  ]
  const models = { one: "m-1", two: "m-2" }
  const learns = async (model: string) => {
    server.answer(() => streamed(responseOf([thought, messageItem("Hello")])))
    await chat([{ role: "user", content: "A" }], { model })
  }
  it.each(refusals)("is left out in the same try, and for an hour of that model: %s", async (_, refused) => {
    await start({ upstream: { driver: "responses", base_url: server.baseUrl, timeouts: { queue: 0 }, models } })
    for (const model of ["one", "two"]) await learns(model)
    const asked = async (model: string) => {
      server.answer(({ body }) => body["model"] === "m-1" && hasThinking(body) ? refused : said("Hello"))
      const { response } = await chat(history, { model })
      assert.strictEqual(response.status, 200)
      assert.strictEqual(new Set(server.requests.map(({ key }) => key)).size, 1)
      return server.requests.map(({ body }) => hasThinking(body))
    }
    assert.deepStrictEqual(await asked("one"), [true, false])
    await learns("one")
    assert.deepStrictEqual(await asked("one"), [false])
    assert.deepStrictEqual(await asked("two"), [true])
    clock.move(3_600_000)
    assert.deepStrictEqual(await asked("two"), [false])
    await learns("one")
    assert.deepStrictEqual(await asked("one"), [true, false])
  })

  it("is sent again where the rest is refused too, and the caller gets that refusal", async () => {
    await start()
    await learns("upstream-reasoner")
    server.answer(() => json(400, { error: { message: "No tools here", param: null } }))
    for (let i = 0; i < 2; i++) {
      const { body, response } = await chat(history)
      assert.strictEqual(response.status, 400)
      assert.include(JSON.stringify(body), "No tools here")
    }
    assert.deepStrictEqual(server.requests.map(({ body }) => hasThinking(body)), [true, false, true, false])
  })

  it.each([
    ["that the prompt is too long", { message: "The prompt is too long", code: "context_length_exceeded" }],
    ["of another field", { message: "Invalid schema", param: "tools[0].parameters" }]
  ])("is not asked without after a refusal %s", async (_, error) => {
    await start()
    await learns("upstream-reasoner")
    server.answer(() => json(400, { error }))
    await chat(history)
    assert.lengthOf(server.requests, 1)
  })

  it("is left out for callers of the server's own API too where the plain form is refused", async () => {
    await start()
    const unsealed: Fields = { id: "rs_1", type: "reasoning", summary: [], content: thought["content"] }
    server.answer(() => streamed(responseOf([unsealed, messageItem("Hello")])))
    await post("/v1/responses", { input: "A" })
    const input = [{ role: "user", content: "A" }, unsealed, messageItem("Hello"), { role: "user", content: "C" }]
    const forgotten = { message: "Item 'rs_1' not found. Items are not persisted when `store` is false.", code: null }
    for (const asked of [[true, true, false], [true, false]]) {
      server.answer(({ body }) => hasThinking(body) ? json(404, { error: forgotten }) : said("Hello"))
      const { body, response } = await post("/v1/responses", { input })
      assert.strictEqual(response.status, 200, JSON.stringify(body))
      assert.strictEqual(response.headers.get("x-gateway-ignored"), "input[1]")
      assert.deepStrictEqual(server.requests.map(({ body }) => hasThinking(body)), asked)
    }
    server.answer(({ body }) => hasThinking(body) ? json(400, refusal) : said("Hello"))
    assert.strictEqual((await post("/v1/responses", { input })).response.status, 400)
    assert.lengthOf(server.requests, 1)
  })
})

describe("a model that seals no thinking", () => {
  it("is asked again without, in the same try, and not for it again within an hour", async () => {
    await start()
    server.answer(({ body }) =>
      "include" in body
        ? json(400, { error: { message: "Encrypted content is not supported with this model.", param: "include" } })
        : said("Hello")
    )
    for (let i = 0; i < 2; i++) {
      const { response } = await chat([{ role: "user", content: "A" }])
      assert.strictEqual(response.status, 200)
    }
    assert.deepStrictEqual(server.requests.map(({ body }) => "include" in body), [true, false, false])
    assert.strictEqual(server.requests[0]?.key, server.requests[1]?.key)
    clock.move(3_600_000)
    await chat([{ role: "user", content: "A" }])
    assert.deepStrictEqual(server.requests.slice(3).map(({ body }) => "include" in body), [true, false])
  })
})

describe("thinking between tags at the start of a text", () => {
  it("is thinking for callers of other styles, and text for callers of the server's own", async () => {
    await start()
    for (const reply of [said, (text: string) => streamed(responseOf([messageItem(text)]))]) {
      server.answer(() => reply("<think>\nHm.\n</think>\n\nHello <think>"))
      const { body } = await chat([{ role: "user", content: "A" }])
      const [choice] = body["choices"] as ReadonlyArray<{ readonly message: Fields }>
      assert.deepInclude(choice?.message, { content: "Hello <think>", reasoning_content: "\nHm.\n" })
    }
    const native = await post("/v1/responses", { input: "A" })
    assert.nestedPropertyVal(native.body, "output[0].content[0].text", "<think>\nHm.\n</think>\n\nHello <think>")
  })

  it("is text where another message follows its first half", async () => {
    await start()
    server.answer(() =>
      streamed(responseOf([messageItem("<thi", { id: "msg_1" }), messageItem("nk>", { id: "msg_2" })]))
    )
    const { body } = await chat([{ role: "user", content: "A" }])
    const [choice] = body["choices"] as ReadonlyArray<{ readonly message: Fields }>
    assert.strictEqual(choice?.message["content"], "<thi\n\nnk>")
  })
})

describe("what a server says beyond text", () => {
  it("becomes the style's own: messages one after another, citations, pictures, refusals, log probabilities", async () => {
    await start()
    const cited = { type: "url_citation", start_index: 0, end_index: 2, title: "T", url: "https://a.test" }
    const logprobs = [{ token: "A", bytes: [65], logprob: -1, top_logprobs: [] }]
    const picture = {
      id: "ig_1",
      type: "image_generation_call",
      status: "completed",
      result: "aGk=",
      output_format: "png"
    }
    const parts = (text: string) => [{ type: "output_text", text, annotations: [cited], logprobs: [] }]
    const response = responseOf([
      messageItem("First.", { id: "msg_1" }),
      messageItem("Next", { id: "msg_2", content: parts("Next") }),
      picture
    ])
    server.answer(() => ({
      pieces: [
        events(
          ...eventsOf(response).map((event) =>
            event["type"] === "response.output_text.delta" && event["delta"] === "Firs" ? { ...event, logprobs } : event
          )
        )
      ]
    }))
    const { body } = await chat([{ role: "user", content: "A" }], { logprobs: true })
    const [choice] = body["choices"] as ReadonlyArray<{ readonly message: Fields; readonly logprobs: Fields }>
    const { type, ...page } = cited
    assert.deepInclude(choice?.message, {
      content: "First.\n\nNext",
      annotations: [{ type, url_citation: page }],
      images: [{ type: "image_url", image_url: { url: "data:image/png;base64,aGk=" } }]
    })
    assert.deepStrictEqual(choice?.logprobs, { content: logprobs })

    const refusal = messageItem("", { content: [{ type: "refusal", refusal: "No." }] })
    server.answer(() => streamed(responseOf([refusal])))
    const refused = await chat([{ role: "user", content: "A" }])
    assert.nestedPropertyVal(refused.body, "choices[0].message.refusal", "No.")
  })
})

describe("an account that is limited", () => {
  it("is left alone for as long as the message says", async () => {
    await start({ accounts: [{ token: "sk-1" }, { token: "sk-2" }] })
    const limited = {
      type: "response.failed",
      response: responseOf([], {
        status: "failed",
        error: { code: "rate_limit_exceeded", message: "Rate limit reached. Please try again in 20.5s." }
      })
    }
    server.answer(({ key }) => key === "sk-1" ? { pieces: [events(limited)] } : said("Hello"))
    for (let i = 0; i < 3; i++) {
      const { response } = await chat([{ role: "user", content: "A" }])
      assert.strictEqual(response.status, 200)
    }
    assert.deepStrictEqual(server.requests.map(({ key }) => key), ["sk-1", "sk-2", "sk-2", "sk-2"])
    server.answer(() => ({ pieces: [events(limited)] }))
    const { response } = await chat([{ role: "user", content: "A" }])
    assert.strictEqual(response.status, 429)
    assert.strictEqual(response.headers.get("retry-after"), "21")
  })
})
