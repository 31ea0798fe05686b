/** Several choices of one reply (`n`), over sockets: each has its own text, calls, stop and end; the usage is that of all. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import OpenAI from "openai"
import type { RawConfig } from "../../src/config/json.ts"
import { sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { type Answer, frames, json, type OpenAiServer, startOpenAiServer, usage } from "../support/openaiServer.ts"
import { admin } from "./support.ts"

let server: OpenAiServer
let gateway: RunningGateway
let client: OpenAI
beforeAll(async () => {
  server = await startOpenAiServer()
})
afterAll(() => server.stop())
afterEach(() => gateway.stop())

const start = async (rest: RawConfig = {}, upstream: RawConfig = {}) => {
  gateway = await startGateway({
    upstream: { driver: "openai", base_url: server.baseUrl, models: { m: "m" }, ...upstream },
    upstreams: {
      chat: { driver: "openai", base_url: server.baseUrl, models: { m: "m" } },
      messages: { driver: "messages", base_url: server.baseUrl, models: { c: "c" } },
      responses: { driver: "responses", base_url: server.baseUrl, models: { r: "r" } },
      generate: { driver: "generate", base_url: server.baseUrl, models: { g: "g" } }
    },
    accounts: ["chat", "messages", "responses", "generate"].map((upstream) => ({ upstream, token: "t" })),
    requests: { keep: 10 },
    ...rest
  })
  client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: businessKey, maxRetries: 0 })
}

const asking = (n: number, rest: object = {}) => ({
  model: "m",
  messages: [{ role: "user" as const, content: "Hi" }],
  n,
  ...rest
})

const choice = (index: number, delta: object, finish_reason: string | null = null) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1,
  model: "m",
  choices: [{ index, delta, finish_reason }]
})

const call = (index: number, id: string | undefined, args: string) => ({
  tool_calls: [{
    index,
    ...(id === undefined ? {} : { id }),
    type: "function",
    function: { name: id && "weather", arguments: args }
  }]
})

const counted = { ...choice(0, {}), choices: [], usage }

/** A stream of the chunks with the usage at its end. */
const stream = (...chunks: ReadonlyArray<object>): Answer => ({ pieces: [frames(...chunks, counted, "[DONE]")] })

const tools = [{ type: "function" as const, function: { name: "weather", parameters: { type: "object" } } }]

/** The whole of a streamed reply, put together by the vendor's client, and the chunks with usage. */
const streamed = async (body: ReturnType<typeof asking>) => {
  const reply = client.chat.completions.stream({ ...body, stream_options: { include_usage: true } })
  let usages = 0
  for await (const chunk of reply) if (chunk.choices.length === 0 && chunk.usage) usages++
  return { ...await reply.finalChatCompletion(), usages }
}

const partsOf = ({ choices }: OpenAI.ChatCompletion) =>
  choices.map(({ finish_reason, index, message }) => ({
    index,
    text: message.content,
    calls: message.tool_calls?.map((each) =>
      each.type === "function" ? `${each.id} ${each.function.name} ${each.function.arguments}` : ""
    ) ?? [],
    end: finish_reason
  }))

describe("a reply of several choices", () => {
  const answer = stream(
    choice(0, { role: "assistant", content: "" }),
    choice(1, { role: "assistant", content: "" }),
    choice(1, { content: "Two " }),
    choice(0, { content: "One" }),
    choice(1, { content: "words" }),
    choice(2, call(0, "call_a", "{\"city\":")),
    choice(1, {}, "length"),
    choice(2, call(0, undefined, "\"Oslo\"}")),
    choice(0, {}, "stop"),
    choice(2, {}, "tool_calls")
  )
  const expected: ReturnType<typeof partsOf> = [
    { index: 0, text: "One", calls: [], end: "stop" },
    { index: 1, text: "Two words", calls: [], end: "length" },
    { index: 2, text: null, calls: ["call_a weather {\"city\":\"Oslo\"}"], end: "tool_calls" }
  ]

  it("is streamed by choice, with the usage once", async () => {
    await start()
    server.answer(() => answer)
    const reply = await streamed(asking(3, { tools }))
    assert.deepStrictEqual(partsOf(reply), expected)
    assert.strictEqual(reply.usages, 1)
    assert.deepInclude(reply.usage, usage)
    assert.deepInclude(server.requests[0]!.body, { n: 3, stream: true })
  })

  it("is whole, with the usage once", async () => {
    await start()
    server.answer(() =>
      json(200, {
        id: "chatcmpl-1",
        object: "chat.completion",
        created: 1,
        model: "m",
        choices: [
          { index: 0, message: { role: "assistant", content: "One" }, finish_reason: "stop" },
          { index: 1, message: { role: "assistant", content: "Two words" }, finish_reason: "length" },
          {
            index: 2,
            message: { role: "assistant", content: null, ...call(0, "call_a", "{\"city\":\"Oslo\"}") },
            finish_reason: "tool_calls"
          }
        ],
        usage
      })
    )
    const reply = await client.chat.completions.create(asking(3, { tools }))
    assert.deepStrictEqual(partsOf(reply), expected)
    assert.deepInclude(reply.usage, usage)
    assert.strictEqual(server.requests[0]!.body["n"], 3)
  })

  it("keeps the indices of a server that leaves one out", async () => {
    await start()
    const left = (index: number) => ({ index, message: { role: "assistant", content: "One" }, finish_reason: "stop" })
    server.answer(() => json(200, { object: "chat.completion", model: "m", choices: [left(0), left(2)], usage }))
    const whole = await client.chat.completions.create(asking(3))
    assert.deepStrictEqual(whole.choices.map(({ index, message }) => [index, message.content]), [[0, "One"], [
      2,
      "One"
    ]])
  })

  it("is one reply in its record, its usage and its recording", async () => {
    await start()
    server.answer(() => answer)
    await streamed(asking(3, { tools }))
    const { items } = await admin(gateway.url, "GET", "/admin/requests") as unknown as {
      items: ReadonlyArray<{ id: string; calls: number; usage: { completion_tokens: number } }>
    }
    assert.lengthOf(items, 1)
    assert.deepStrictEqual([items[0]!.calls, items[0]!.usage.completion_tokens], [1, usage.completion_tokens])
    const record = await admin(gateway.url, "GET", `/admin/requests/${items[0]!.id}`) as unknown as {
      reply: { text: string }
      tool_calls: ReadonlyArray<{ name: string; arguments: string }>
    }
    assert.strictEqual(record.reply.text, "[choice 0]\nOne\n\n[choice 1]\nTwo words")
    assert.deepInclude(record.tool_calls[0], { name: "weather", arguments: "{\"city\":\"Oslo\"}" })
  })

  it("turns the calls that a model writes as text into calls of their choice", async () => {
    await start({}, { tools: "prompt" })
    server.answer(() =>
      stream(
        choice(0, { content: "<tool_call>{\"name\":\"weather\"," }),
        choice(1, { content: "No call <tool" }),
        choice(0, { content: "\"arguments\":{\"city\":\"Oslo\"}}</tool_call>" }),
        choice(1, { content: "s> here" }),
        choice(0, {}, "stop"),
        choice(1, {}, "stop")
      )
    )
    const [first, second] = partsOf(await streamed(asking(2, { tools })))
    assert.deepInclude(first, { text: null, end: "tool_calls" })
    assert.match(first!.calls.join(), /^call_\w+ weather \{"city":"Oslo"\}$/)
    assert.deepInclude(second, { text: "No call <tools> here", calls: [], end: "stop" })
  })

  it("is the schema's in each choice where the server gets the schema as a tool", async () => {
    await start({}, { models: { m: { model: "m", schemas: "none" } } })
    const reply = (index: number, args: string) => ({
      tool_calls: [{ index: 0, id: `call_${index}`, type: "function", function: { name: "reply", arguments: args } }]
    })
    server.answer(() =>
      stream(
        choice(0, reply(0, "{\"a\":")),
        choice(1, reply(1, "{\"a\":2}")),
        choice(0, { tool_calls: [{ index: 0, function: { arguments: "1}" } }] }),
        choice(0, {}, "tool_calls"),
        choice(1, {}, "tool_calls")
      )
    )
    const schema = {
      type: "object",
      properties: { a: { type: "number" } },
      required: ["a"],
      additionalProperties: false
    }
    const response_format = { type: "json_schema" as const, json_schema: { name: "a", schema, strict: true } }
    const parts = partsOf(await streamed(asking(2, { response_format })))
    assert.deepStrictEqual(parts.map(({ calls, text }) => [text, calls]), [["{\"a\":1}", []], ["{\"a\":2}", []]])
    assert.deepInclude(server.requests[0]!.body, {
      n: 2,
      tool_choice: { type: "function", function: { name: "reply" } }
    })
  })

  it("ends one choice at a stop sequence while the others go on", async () => {
    await start({}, { tools: "prompt" })
    server.answer(() =>
      stream(
        choice(0, { content: "One END more" }),
        choice(1, { content: "Two" }),
        choice(0, { content: " and more" }),
        choice(1, { content: " words" }),
        choice(0, {}, "stop"),
        choice(1, {}, "stop")
      )
    )
    const parts = partsOf(await streamed(asking(2, { tools, stop: ["END"] })))
    assert.deepStrictEqual(parts.map(({ text }) => text), ["One ", "Two words"])
  })

  it("leaves the server once every choice has reached a stop sequence", async () => {
    await start({}, { tools: "prompt" })
    server.answer(() => ({
      pieces: [frames(choice(0, { content: "One END" }), choice(1, { content: "Two END" }))],
      after: "hang"
    }))
    const parts = partsOf(await streamed(asking(2, { tools, stop: ["END"] })))
    assert.deepStrictEqual(parts.map(({ text }) => text), ["One ", "Two "])
    await server.until(([request]) => request?.outcome === "aborted")
  })

  it("has as many choices as the server makes", async () => {
    await start()
    server.answer(() => stream(choice(0, { content: "One" }), choice(0, {}, "stop")))
    const reply = await streamed(asking(3))
    assert.deepStrictEqual(partsOf(reply), [{ index: 0, text: "One", calls: [], end: "stop" }])
    assert.deepInclude(reply.usage, usage)
  })

  it("fails if one of its choices is cut off", async () => {
    await start()
    server.answer(() => ({
      pieces: [frames(choice(0, { content: "One" }), choice(1, { content: "Two" }), choice(0, {}, "stop"))]
    }))
    let error: unknown
    await streamed(asking(2)).catch((thrown: unknown) => {
      error = thrown
    })
    assert.include(String(error), "cut off")
  })

  it("violates a choice of tools if one of its choices has no call", async () => {
    await start()
    server.answer(() =>
      stream(
        choice(0, call(0, "call_a", "{}")),
        choice(1, { content: "No" }),
        choice(0, {}, "tool_calls"),
        choice(1, {}, "stop")
      )
    )
    const refused = await client.chat.completions.create(asking(2, { tools, tool_choice: "required" }))
      .catch((error: unknown) => error)
    assert.instanceOf(refused, OpenAI.APIError)
    assert.include(refused.message, "made no tool call")
    assert.lengthOf(server.requests, 1)
  })
})

describe("the number of choices", () => {
  const refusedBy = async (model: string, n: number) => {
    const error = await client.chat.completions.create({ ...asking(n), model }).catch((error: unknown) => error)
    assert.instanceOf(error, OpenAI.APIError)
    return [error.status, error.param, error.message]
  }

  it("is from 1 to 128", async () => {
    await start()
    for (const n of [0, -1, 129]) {
      assert.deepStrictEqual(await refusedBy("m", n), [400, "n", "400 n: must be from 1 to 128"])
    }
  })

  it("is 1 for models of upstreams with another contract", async () => {
    await start()
    const sentence = "400 n: a reply of this model's upstream has 1 choice; send n: 1"
    for (const model of ["messages/c", "responses/r", "generate/g"]) {
      assert.deepStrictEqual(await refusedBy(model, 2), [400, "n", sentence])
    }
  })

  it("chooses the target that can make them", async () => {
    await start({ routes: { either: ["messages/c", "chat/m"] } })
    server.answer(() =>
      stream(choice(0, { content: "One" }), choice(1, { content: "Two" }), choice(0, {}, "stop"), choice(1, {}, "stop"))
    )
    assert.lengthOf((await streamed(asking(2, { model: "either" }))).choices, 2)
  })

  it("multiplies what strict limits reserve", async () => {
    await start({
      keys: ["sk-limited"],
      key_records: {
        [keyId("sk-limited", sha256Hex)]: { limits: [{ window: "hour", tokens: 1_000, strict: true }] }
      }
    })
    client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: "sk-limited", maxRetries: 0 })
    server.answer(() => stream(choice(0, { content: "One" }), choice(0, {}, "stop")))
    const error = await streamed(asking(3, { max_tokens: 400 })).catch((error: unknown) => error)
    assert.instanceOf(error, OpenAI.APIError)
    assert.lengthOf(server.requests, 0)
    assert.lengthOf((await streamed(asking(2, { max_tokens: 400 }))).choices, 1)
  })
})
