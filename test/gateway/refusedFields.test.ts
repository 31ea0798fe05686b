/** A server refuses in plain words what the gateway has written: the request is made once more without it, and the words are remembered. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import type { RawConfig } from "../../src/config/json.ts"
import { formatTimestamp } from "../../src/domain/time.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { chunk as generated, streamed as generatedStream } from "../support/generateServer.ts"
import { streamedMessage, textBlock } from "../support/messagesServer.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import {
  type Answer,
  json,
  type OpenAiServer,
  type SeenRequest,
  startOpenAiServer,
  streamed
} from "../support/openaiServer.ts"
import { said } from "../support/responsesServer.ts"
import { type Ask, type Got, styleClients, type StyleName, styleNames } from "../support/styleClients.ts"

let server: OpenAiServer
let gateway: RunningGateway
const clock = makeMovedClock({ still: true })

afterEach(async () => {
  await gateway.stop()
  await server.stop()
})

const drivers = ["openai", "responses", "messages", "generate"] as const
type DriverName = typeof drivers[number]

const replies: Readonly<Record<DriverName, () => Answer>> = {
  openai: () => streamed({ content: "Hello" }),
  responses: () => said("Hello"),
  messages: () => streamedMessage([textBlock("Hello")]),
  generate: () => generatedStream(generated([{ text: "Hello" }], { finishReason: "STOP" }))
}

type Body = SeenRequest["body"]

/** Starts a gateway before a server that answers what `refuses` does not refuse. */
const start = async (
  driver: DriverName,
  refuses: (body: Body) => string | undefined,
  status = 400,
  upstream: RawConfig = {}
) => {
  server = await startOpenAiServer()
  server.answer(({ body }) => {
    const message = refuses(body)
    return message === undefined
      ? replies[driver]()
      : json(status, { error: { message, type: "invalid_request_error" } })
  })
  const base_url = driver === "messages" || driver === "generate" ? server.baseUrl.replace(/\/v1$/, "") : server.baseUrl
  gateway = await startGateway({ accounts: [{ token: "sk-a" }], upstream: { driver, base_url, ...upstream } }, {
    clock
  })
}

const question = "Go"
const bodies: Readonly<Record<StyleName, object>> = {
  chat: { messages: [{ role: "user", content: question }] },
  responses: { input: question },
  messages: { max_tokens: 64, messages: [{ role: "user", content: question }] },
  generate: { contents: [{ role: "user", parts: [{ text: question }] }] }
}
const paths: Readonly<Record<StyleName, (stream: boolean) => string>> = {
  chat: () => "/v1/chat/completions",
  responses: () => "/v1/responses",
  messages: () => "/v1/messages",
  generate: (stream) => `/v1beta/models/upstream-chat:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`
}

const ask = async (style: StyleName, fields: object, stream = false) => {
  const response = await fetch(gateway.url + paths[style](stream), {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify({
      ...(style === "generate" ? {} : { model: "upstream-chat", stream }),
      ...bodies[style],
      ...fields
    })
  })
  const text = await response.text()
  const record = await fetch(`${gateway.url}/admin/requests/${response.headers.get("x-request-id")}`, {
    headers: { authorization: `Bearer ${adminKey}` }
  })
  const { ignored } = await record.json() as { readonly ignored: ReadonlyArray<string> }
  return { status: response.status, ignored: response.headers.get("x-gateway-ignored"), record: ignored, text }
}

const askPlain = ask

const sent = () => server.requests.map(({ body }) => body)

/** A limit that is above the most of the model. */
const asked = { max_tokens: 32_000 }
const aboveMost = ({ max_tokens }: Body) =>
  Number(max_tokens) > 8_192 ? "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]" : undefined

describe("what the gateway wrote and a server refuses", () => {
  it("is named in the server's words where the client has not written it", async () => {
    await start("messages", ({ max_tokens }) =>
      Number(max_tokens) > 4_096
        ? "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for claude-3-haiku"
        : undefined)
    assert.deepInclude(await ask("chat", {}), { status: 200, ignored: "sent.max_tokens" })
    assert.deepStrictEqual(sent().map(({ max_tokens }) => max_tokens), [8_192, 4_096])
  })

  it("keeps values that the model takes, where one alone is refused", async () => {
    await start(
      "generate",
      ({ generationConfig }) =>
        JSON.stringify(generationConfig ?? {}).includes("\"thinkingBudget\":0")
          ? "Budget 0 is invalid. This model only works in thinking mode."
          : undefined
    )
    assert.strictEqual((await ask("chat", { reasoning_effort: "none" })).ignored, "reasoning_effort")
    assert.isNull(
      (await ask("messages", { max_tokens: 4_096, thinking: { type: "enabled", budget_tokens: 2_048 } })).ignored
    )
    assert.lengthOf(server.requests, 3)
    assert.include(JSON.stringify(sent().at(-1)), "\"thinkingBudget\":2048")
  })

  it("is put within the range that a server names", async () => {
    await start("generate", ({ generationConfig }) =>
      JSON.stringify(generationConfig ?? {}).includes("31999")
        ? "Unable to submit request because thinking_budget is out of range; supported values are integers from 1 to 24576."
        : undefined)
    const thinking = { type: "enabled", budget_tokens: 31_999 }
    assert.strictEqual((await ask("messages", { max_tokens: 32_000, thinking })).ignored, "thinking")
    assert.include(JSON.stringify(sent().at(-1)), "\"thinkingBudget\":24576")
  })

  it("is left out with 422 too, one field after the other", async () => {
    await start(
      "openai",
      ({ top_k, verbosity }) =>
        verbosity !== undefined
          ? "Unknown parameter: 'verbosity'."
          : top_k !== undefined
          ? "Unknown parameter: 'top_k'."
          : undefined,
      422
    )
    const { ignored, status } = await ask("responses", { text: { verbosity: "low" }, top_k: 3 })
    assert.strictEqual(status, 200)
    assert.strictEqual(ignored, "text.verbosity,top_k")
    assert.lengthOf(server.requests, 3)
  })

  it("is not remembered where the request stays refused: a server may repeat what a caller wrote", async () => {
    const message = "Invalid max_tokens value, the valid range of max_tokens is [1, 16]"
    await start("openai", ({ user }) => user === "mallory" ? message : undefined)
    assert.strictEqual((await ask("messages", { user: "mallory" })).status, 400)
    assert.strictEqual((await ask("messages", {})).status, 200)
    assert.deepStrictEqual(sent().map(({ max_tokens }) => max_tokens), [64, 16, 64])
  })

  it.each([
    ["a value", { flag: "Unsupported parameter: 'temperature'" }],
    ["a part of one", { flag: "b'. Unsupported parameter: 'temperature" }],
    ["a name", { "flag'. Unsupported parameter: 'temperature": 1 }]
  ])("is not remembered where its caller may have written the words, as %s", async (_, fields) => {
    await start("openai", (body) => {
      const name = Object.keys(body).find((each) => each.startsWith("flag"))
      return name === undefined ? undefined : `Unknown parameter: '${name}'. Its value was '${String(body[name])}'.`
    })
    await ask("messages", { temperature: 0.5, ...fields })
    await ask("messages", { temperature: 0.5 })
    assert.strictEqual(sent().at(-1)?.["temperature"], 0.5)
  })

  it("is shown at the upstream", async () => {
    await start("openai", aboveMost)
    await ask("messages", asked)
    const response = await fetch(`${gateway.url}/admin/upstreams`, { headers: { authorization: `Bearer ${adminKey}` } })
    const { upstreams: [shown] } = await response.json() as {
      readonly upstreams: ReadonlyArray<{ readonly refusals: unknown }>
    }
    assert.deepStrictEqual(shown?.refusals, [{
      model: "upstream-chat",
      effect: "the limit of output is 8192 at most",
      words: "valid range of max_tokens is [1, 8192]",
      until: formatTimestamp(clock.currentTimeMillisUnsafe() + 3_600_000)
    }])
  })

  it("is tried again after an hour, and at another model", async () => {
    await start("openai", aboveMost)
    await ask("messages", asked)
    await ask("messages", { ...asked, model: "upstream-reasoner" })
    assert.deepStrictEqual(sent().map(({ max_tokens }) => max_tokens), [32_000, 8_192, 32_000, 8_192])
    clock.move(3_600_000)
    await ask("messages", asked)
    assert.deepStrictEqual(sent().slice(4).map(({ max_tokens }) => max_tokens), [32_000, 8_192])
  })

  it("is forgotten after a success that contradicts it", async () => {
    let most = 8_192
    await start(
      "openai",
      ({ max_tokens }) =>
        Number(max_tokens) > most
          ? `Invalid max_tokens value, the valid range of max_tokens is [1, ${most}]`
          : undefined
    )
    await ask("messages", { max_tokens: 32_000 })
    most = 65_536
    assert.strictEqual((await ask("chat", { max_tokens: 32_000 })).status, 200)
    await ask("messages", { max_tokens: 32_000 })
    assert.deepStrictEqual(sent().map(({ max_tokens }) => max_tokens), [32_000, 8_192, 32_000, 32_000])
  })
})

describe("the meaning of a request", () => {
  it.each([
    [
      "tools",
      { tools: [{ name: "f", input_schema: { type: "object", properties: {} } }] },
      "Unsupported parameter: 'tools' is not supported with this model."
    ],
    ["stop sequences", { stop_sequences: ["END"] }, "Unsupported parameter: 'stop' is not supported with this model."],
    ["messages", {}, "Unknown parameter: 'messages'."]
  ])("is never changed: %s", async (_, asked, message) => {
    await start("openai", () => message)
    assert.strictEqual((await ask("messages", asked)).status, 400)
    assert.lengthOf(server.requests, 1)
  })

  it("is asked for in a sentence where a model that thinks takes no forced call", async () => {
    await start(
      "openai",
      ({ tool_choice }) =>
        tool_choice === undefined || tool_choice === "auto"
          ? undefined
          : "Thinking mode does not support this tool_choice"
    )
    const answer = { tool_calls: [{ index: 0, id: "c", type: "function", function: { name: "f", arguments: "{}" } }] }
    server.answer(({ body: { tool_choice } }) =>
      tool_choice === "required"
        ? json(400, { error: { message: "Thinking mode does not support this tool_choice" } })
        : streamed(answer)
    )
    const { ignored, status, text } = await ask("chat", {
      tools: [{ type: "function", function: { name: "f", parameters: { type: "object", properties: {} } } }],
      tool_choice: "required"
    })
    assert.strictEqual(status, 200, text)
    assert.strictEqual(ignored, "tool_choice")
    assert.lengthOf(server.requests, 2)
    const { messages } = sent()[1] as { readonly messages: ReadonlyArray<object> }
    assert.lengthOf(messages, 2)
  })
})

const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"] } as const
const weather = { name: "weather", description: "The weather", parameters: city }

/** A declared tool, by its name in both contracts. */
const declared = ({ tools }: Body): ReadonlyArray<{ readonly name: string; readonly parameters: unknown }> =>
  (tools as ReadonlyArray<Record<string, unknown>> ?? []).flatMap(({ function: one, functionDeclarations: all }) =>
    (all ?? [one]) as ReadonlyArray<{ readonly name: string; readonly parameters: unknown }>
  )

/** Servers that take tools or a schema, by their words. `calls` answers with calls of tools. */
const eitherServers = {
  openai: {
    message: "json mode cannot be combined with tool/function calling",
    hasSchema: ({ response_format }: Body) => response_format !== undefined,
    calls: (...names: ReadonlyArray<string>): Answer =>
      streamed(
        { content: "Let me see." },
        ...names.flatMap((name, index) => [
          { tool_calls: [{ index, id: `c${index}`, type: "function", function: { name, arguments: "{\"city\":" } }] },
          { tool_calls: [{ index, function: { arguments: "\"Paris\"}" } }] }
        ])
      )
  },
  generate: {
    message: "Function calling with a response mime type: 'application/json' is unsupported",
    hasSchema: ({ generationConfig }: Body) => JSON.stringify(generationConfig ?? {}).includes("application/json"),
    calls: (...names: ReadonlyArray<string>): Answer =>
      generatedStream(
        generated(names.map((name) => ({ functionCall: { name, args: { city: "Paris" } } })), { finishReason: "STOP" })
      )
  }
}

describe("a server that takes tools or a schema", () => {
  const startEither = async (driver: keyof typeof eitherServers, answers: (names: ReadonlyArray<string>) => Answer) => {
    const { hasSchema, message } = eitherServers[driver]
    await start(driver, () => undefined)
    server.answer(({ body }) =>
      hasSchema(body) && declared(body).length > 0
        ? json(400, { error: { message, type: "invalid_request_error" } })
        : answers(declared(body).map(({ name }) => name))
    )
  }
  const ways = (["openai", "generate"] as const).flatMap((driver) =>
    styleNames.flatMap((style) =>
      // A client of the server's own contract gets the refusal, except in the contract that servers know in part.
      driver === "generate" && style === "generate" ? [] : [{ driver, style }]
    )
  )
  const got = async (style: StyleName, ask: Ask, way: "whole" | "streamed") => {
    const reply = await styleClients(gateway.url)[style][way](ask)
    assert.strictEqual(reply._tag, "Got", JSON.stringify(reply))
    return (reply as Got).blocks
  }
  const text = { _tag: "Text", text: "{\"city\":\"Paris\"}" } as const
  const ask: Ask = { content: "Which city?", tools: [weather], schema: city }

  it.each(ways)("may call a tool of the client: $style to $driver", async ({ driver, style }) => {
    const { calls } = eitherServers[driver]
    await startEither(driver, ([name]) => calls(name!))
    for (const way of ["whole", "streamed"] as const) {
      assert.deepStrictEqual(await got(style, ask, way), [
        { _tag: "Call", name: "weather", arguments: { city: "Paris" } }
      ])
    }
  })

  it("gets a tool of another name where the client has one of that name, and one reply alone", async () => {
    await startEither("openai", (names) => eitherServers.openai.calls(names.at(-1)!, names.at(-1)!))
    assert.deepStrictEqual(await got("messages", { ...ask, tools: [{ ...weather, name: "reply" }] }, "streamed"), [
      text
    ])
    assert.deepStrictEqual(declared(sent()[1]!).map(({ name }) => name), ["reply", "reply_2"])
  })

  it("keeps the text of a model that calls nothing", async () => {
    await startEither("openai", () => streamed({ content: "No." }, { content: " Never." }))
    for (const way of ["whole", "streamed"] as const) {
      assert.deepStrictEqual(await got("messages", ask, way), [{ _tag: "Text", text: "No. Never." }])
    }
  })

  it("names the schema in the header and in the record", async () => {
    await startEither("openai", (names) => eitherServers.openai.calls(names.at(-1)!))
    const { ignored, record } = await askPlain("chat", {
      tools: [{ type: "function", function: weather }],
      response_format: { type: "json_schema", json_schema: { name: "reply", schema: city } }
    })
    assert.deepStrictEqual([ignored, record], ["response_format", ["response_format"]])
  })

  it("names a second reply, which is left out", async () => {
    await startEither("openai", (names) => eitherServers.openai.calls(names.at(-1)!, names.at(-1)!))
    const second = "reply.tool_calls[1]"
    for (const stream of [false, true]) {
      const { ignored, record } = await askPlain("chat", {
        tools: [{ type: "function", function: weather }],
        response_format: { type: "json_schema", json_schema: { name: "reply", schema: city } }
      }, stream)
      // The head of a stream leaves before the reply.
      assert.strictEqual(ignored, stream ? "response_format" : `response_format,${second}`)
      assert.deepStrictEqual(record, ["response_format", second])
    }
  })

  it("answers a client that asks for something else than an object in its words", async () => {
    await startEither("openai", () => streamed({ content: "[]" }))
    const reply = await styleClients(gateway.url).chat.whole({ ...ask, schema: { type: "array", items: city } })
    assert.strictEqual(reply._tag, "Failed")
    assert.include(JSON.stringify(reply), eitherServers.openai.message)
    assert.lengthOf(server.requests, 1)
  })
})

describe("names and ids that are longer than a server takes", () => {
  const name = `weather_${"of_the_place_".repeat(4)}`
  const id = "call_0fypS1hVXAbCdEf"
  const messages = [
    { role: "user", content: "Which city?" },
    { role: "assistant", content: null, tool_calls: [{ id, type: "function", function: { name, arguments: "{}" } }] },
    { role: "tool", tool_call_id: id, content: "Rain" }
  ]
  const turns = [
    { role: "user", content: "Which city?" },
    { role: "assistant", content: [{ type: "tool_use", id, name, input: {} }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "Rain" }] }
  ]
  type Sent = ReadonlyArray<{
    readonly tool_calls?: ReadonlyArray<{ readonly id: string; readonly function: { readonly name: string } }>
    readonly tool_call_id?: string
  }>

  it.each(
    [
      ["chat", { messages, tools: [{ type: "function", function: { ...weather, name } }] }],
      ["messages", { messages: turns, tools: [{ name, input_schema: city }] }]
    ] as const
  )("are shortened alike in every place, and come back in the reply: %s", async (style, fields) => {
    await start("openai", () => undefined)
    server.answer(({ body }) => {
      const sentName = declared(body)[0]!.name
      const sentId = (body["messages"] as Sent)[1]!.tool_calls![0]!.id
      return sentName.length > 40
        ? json(400, {
          error: {
            message:
              `Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 40, but got a string with length ${sentName.length} instead.`,
            param: "tools[0].function.name"
          }
        })
        : !/^[a-zA-Z0-9]{9}$/.test(sentId)
        ? json(400, {
          object: "error",
          message: `Tool call id was ${sentId} but must be a-z, A-Z, 0-9, with a length of 9.`
        })
        : streamed({
          tool_calls: [{ index: 0, id: "123456789", type: "function", function: { name: sentName, arguments: "{}" } }]
        })
    })
    for (const stream of [false, true]) {
      const { ignored, status, text } = await ask(style, fields, stream)
      assert.strictEqual(status, 200, text)
      assert.include(text, `"${name}"`)
      assert.isNull(ignored)
    }
    // Three times and once.
    assert.lengthOf(server.requests, 4)
    const [, call, result] = sent().at(-1)!["messages"] as Sent
    assert.strictEqual(result!.tool_call_id, call!.tool_calls![0]!.id)
    assert.strictEqual(call!.tool_calls![0]!.function.name, declared(sent().at(-1)!)[0]!.name)
  })
})

describe("tools with a promise of strict arguments", () => {
  const tools = [
    { type: "function", function: { ...weather, strict: true } },
    { type: "function", function: { ...weather, name: "rain", strict: undefined } }
  ]

  it("lose it before a server that has none, and are named", async () => {
    await start(
      "messages",
      ({ tools = [] }) =>
        JSON.stringify(tools).includes("strict")
          ? "The model returned the following errors: tools.0.custom.strict: Extra inputs are not permitted"
          : undefined
    )
    for (const stream of [false, true]) {
      assert.deepInclude(await ask("chat", { tools }, stream), { status: 200, ignored: "sent.tools.strict" })
    }
    assert.lengthOf(server.requests, 3)
  })

  it("have one answer for all tools before a server that takes no others", async () => {
    await start(
      "openai",
      (body) =>
        new Set(declared(body).map((tool) => Reflect.get(tool, "strict"))).size > 1
          ? "Tools with mixed values for 'strict' are not allowed. Please set all tools to 'strict: true' or 'strict: false'"
          : undefined,
      422
    )
    const own = tools.map(({ function: tool }) => ({ type: "function", ...tool }))
    assert.deepInclude(await ask("responses", { tools: own }), { status: 200, ignored: "sent.tools.strict" })
    assert.lengthOf(server.requests, 2)
  })
})

describe("a server without schemas", () => {
  it.each(
    [
      ["a schema", "openai", "This response_format type is unavailable now", "response_format"],
      ["a schema of messages", "messages", "output_config.format: Extra inputs are not permitted", "output_config"]
    ] as const
  )("gets a tool that the model has to call: %s", async (_, driver, message, field) => {
    await start(driver, () => undefined)
    const input = { city: "Paris" }
    server.answer(({ body }) =>
      body[field] !== undefined
        ? json(400, { error: { message, type: "invalid_request_error" } })
        : driver === "openai"
        ? eitherServers.openai.calls("reply")
        : streamedMessage([{ type: "tool_use", id: "toolu_1", name: "reply", input }])
    )
    for (const way of ["whole", "streamed"] as const) {
      const reply = await styleClients(gateway.url).responses[way]({ content: "Which city?", schema: city })
      assert.deepStrictEqual((reply as Got).blocks, [{ _tag: "Text", text: JSON.stringify(input) }])
    }
    assert.lengthOf(server.requests, 3)
    assert.include(JSON.stringify(sent().at(-1)?.["tool_choice"]), "reply")
  })
})

describe("what one request is refused", () => {
  it("leaves JSON without a schema as it is where a model takes no schema", async () => {
    await start(
      "openai",
      ({ response_format }) =>
        JSON.stringify(response_format ?? {}).includes("json_schema")
          ? "This response_format type is unavailable now"
          : undefined
    )
    await ask("responses", { text: { format: { type: "json_schema", name: "reply", schema: city } } })
    await ask("responses", { text: { format: { type: "json_object" } } })
    assert.deepStrictEqual(sent().at(-1)?.["response_format"], { type: "json_object" })
  })

  it("leaves a schema as it is where a model takes no JSON without one, which gets the schema of any object", async () => {
    await start(
      "openai",
      ({ response_format }) =>
        JSON.stringify(response_format ?? {}).includes("json_object")
          ? "'response_format.type' must be 'json_schema' or 'text'"
          : undefined
    )
    assert.strictEqual((await ask("responses", { text: { format: { type: "json_object" } } })).status, 200)
    await ask("responses", { text: { format: { type: "json_schema", name: "reply", schema: city } } })
    const formats = sent().slice(1).map(({ response_format }) => response_format)
    assert.include(JSON.stringify(formats[0]), `"schema":{"type":"object","properties":{},"additionalProperties":true}`)
    assert.include(JSON.stringify(formats[1]), JSON.stringify(city))
  })

  it("leaves strict tools as they are where a model takes no mixed ones", async () => {
    await start(
      "openai",
      (body) =>
        new Set(declared(body).map((tool) => Reflect.get(tool, "strict"))).size > 1
          ? "Tools with mixed values for 'strict' are not allowed."
          : undefined
    )
    const tool = (name: string, strict: boolean) => ({ type: "function", name, parameters: city, strict })
    await ask("responses", { tools: [tool("a", true), tool("b", false)] })
    await ask("responses", { tools: [tool("a", true), tool("b", true)] })
    assert.deepStrictEqual(declared(sent().at(-1)!).map((each) => Reflect.get(each, "strict")), [true, true])
  })
})

describe("a model whose prompt takes turns by a template", () => {
  type Turns = ReadonlyArray<{ readonly role: string; readonly content: string }>
  const hasTwo = (turns: Turns) => turns.some(({ role }, i) => role === turns[i - 1]?.role)

  it.each(
    [
      ["chat", {
        messages: [{ role: "system", content: "Rules" }, { role: "user", content: "a" }, { role: "user", content: "b" }]
      }],
      ["messages", { system: "Rules", messages: [{ role: "user", content: "a" }, { role: "user", content: "b" }] }],
      ["responses", {
        instructions: "Rules",
        input: [{ role: "user", content: "a" }, { role: "developer", content: "b" }]
      }]
    ] as const
  )("gets one turn for those in a row, and the system prompt in it: %s", async (style, fields) => {
    await start(
      "openai",
      ({ messages }) =>
        hasTwo((messages as Turns).map((turn) => turn.role === "system" ? { ...turn, role: "user" } : turn))
          ? (messages as Turns)[0]!.role === "system" && !hasTwo(messages as Turns)
            ? "System role not supported"
            : "Conversation roles must alternate user/assistant/user/assistant/..."
          : undefined
    )
    for (const stream of [false, true]) {
      const { ignored, status, text } = await ask(style, fields, stream)
      assert.strictEqual(status, 200, text)
      assert.strictEqual(ignored, "sent.system")
    }
    const [turn, ...others] = sent().at(-1)!["messages"] as Turns
    assert.deepStrictEqual(others, [])
    assert.match(JSON.stringify(turn), /"user".*Rules.*a.*b/)
    // Each refusal once, and the second request once.
    assert.lengthOf(server.requests, style === "responses" ? 3 : 4)
  })
})
