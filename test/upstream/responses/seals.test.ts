/** Seals and ids that a server cannot read or find, in front of a server that refuses them. */
import { assert, describe, it } from "@effect/vitest"
import { businessKey } from "../../support/gateway.ts"
import { streamed as chatStreamed } from "../../support/openaiServer.ts"
import { json, said } from "../../support/responsesServer.ts"
import { strictResponses, valuesOf } from "../../support/strictResponses.ts"
import { type Fields, question, useStrictServer } from "./sealSupport.ts"

const bench = useStrictServer()
const { ask, holding, post, start } = bench

const sealedThinking = { include: ["reasoning.encrypted_content"], store: false }
const seal = `${"z".repeat(100)}elsewhere-1`
/** A turn that was answered elsewhere. */
const foreignTurn = [
  question,
  { type: "reasoning", id: "rs_far", summary: [], encrypted_content: seal },
  { type: "function_call", id: "fc_far", call_id: "call_far", name: "look", arguments: "{}" },
  { type: "function_call_output", call_id: "call_far", output: "there" }
]

describe("a seal that the server refuses", () => {
  for (const stream of [false, true]) {
    for (const refusesWithin of [undefined, "failed", "error"] as const) {
      const how = `${stream ? "a stream" : "a whole reply"}, refused: ${refusesWithin ?? "at once"}`
      it(`costs one more call to the same account and no error: ${how}`, async () => {
        await start({ refusesWithin }, { accounts: [{ token: "sk-1" }, { token: "sk-2" }] })
        const { body, ignored } = await ask({ ...sealedThinking, stream, input: foreignTurn })
        assert.strictEqual(body["output_text"], "It is there")
        assert.strictEqual(ignored, "input[1].encrypted_content")
        const [first, second, ...others] = bench.server.requests
        assert.deepStrictEqual(others, [])
        assert.strictEqual(first!.key, second!.key)
        assert.deepStrictEqual(first!.body["input"], foreignTurn)
        const { id: _, ...call } = foreignTurn[2]! as Fields & { readonly id: string }
        const plain = [question, call, foreignTurn[3]]
        assert.deepStrictEqual(second!.body, { ...first!.body, input: plain })
      })
    }
  }

  it.each([
    "Item with id 'rs_far' not found.",
    "Item 'rs_far' of type 'reasoning' was provided without its required following item."
  ])("is left out by the words of a server that knows no such item: %s", async (message) => {
    await start()
    for (const stream of [false, true]) {
      bench.server.answer(({ body }) =>
        JSON.stringify(body["input"]).includes("rs_far")
          ? json(400, { error: { message, type: "invalid_request_error", param: "input", code: null } })
          : said("It is there")
      )
      const { body } = await ask({ ...sealedThinking, stream, input: foreignTurn })
      assert.strictEqual(body["output_text"], "It is there")
      assert.lengthOf(bench.server.requests, 2)
    }
  })

  it("is left alone where the refusal is about something else", async () => {
    await start()
    bench.server.answer(() => json(400, { error: { code: "unsupported_value", message: "input: no", param: "input" } }))
    const response = await post({ ...sealedThinking, input: foreignTurn })
    assert.strictEqual(response.status, 400)
    assert.strictEqual(bench.server.requests.length, 1)
  })

  it("is not asked a third time, nor again where the request has none", async () => {
    await start()
    bench.server.answer(() => json(400, { error: { code: "invalid_encrypted_content", message: "no" } }))
    assert.strictEqual((await post({ ...sealedThinking, input: foreignTurn })).status, 400)
    assert.strictEqual(bench.server.requests.length, 2)
    bench.server.answer(() => json(400, { error: { code: "invalid_encrypted_content", message: "no" } }))
    assert.strictEqual((await post({ ...sealedThinking, input: "Hi" })).status, 400)
    assert.strictEqual(bench.server.requests.length, 1)
  })

  it("is a sentence to the model where it was the whole item", async () => {
    await start({ output: (_, made) => [made.text("Hello")] })
    const compaction = { type: "compaction", id: "cmp_1", encrypted_content: seal }
    const { ignored } = await ask({ ...sealedThinking, input: [compaction, question] })
    assert.strictEqual(ignored, "input[0].encrypted_content")
    const input = bench.server.requests[1]!.body["input"] as ReadonlyArray<Fields>
    assert.deepInclude(input[0], { type: "message", role: "developer" })
    assert.deepStrictEqual(input.slice(1), [question])
    assert.deepStrictEqual(valuesOf("encrypted_content", input), [])
  })
})

describe("a count of tokens with a seal that the server refuses", () => {
  it("is one of the request without it", async () => {
    const strict = await start()
    bench.server.answer((request) => {
      const answer = strict.answer(request)
      return answer.status !== undefined && answer.status >= 400
        ? answer
        : json(200, { object: "response.input_tokens", input_tokens: 7 })
    })
    const response = await post({ input: foreignTurn }, "/v1/responses/input_tokens")
    assert.deepStrictEqual(await response.json(), { object: "response.input_tokens", input_tokens: 7 })
    assert.strictEqual(bench.server.requests.length, 2)
    assert.deepStrictEqual(valuesOf("encrypted_content", bench.server.requests[1]!.body["input"]), [])
  })
})

describe("an id that the server does not know", () => {
  it("is left out, with the thinking that it stood for", async () => {
    await start()
    const input = [
      question,
      { type: "reasoning", id: "rs_far", summary: [] },
      { type: "function_call", id: "fc_far", call_id: "call_far", name: "look", arguments: "{}" },
      { type: "function_call_output", call_id: "call_far", output: "there" }
    ]
    const { body, ignored } = await ask({ store: false, input })
    assert.strictEqual(body["output_text"], "It is there")
    assert.strictEqual(ignored, "input[1]")
    assert.deepStrictEqual(valuesOf("id", bench.server.requests[1]!.body["input"]), [])
  })

  it("is left out where the thinking before it is missing", async () => {
    await start()
    const { output } = await ask({ ...sealedThinking, input: [question] })
    const [, call] = output
    const result = { type: "function_call_output", call_id: call!["call_id"], output: "there" }
    const { body } = await ask({ ...sealedThinking, input: [question, call, result] })
    assert.strictEqual(body["output_text"], "It is there")
    assert.strictEqual(bench.server.requests.length, 3)
    assert.deepStrictEqual(valuesOf("id", bench.server.requests[2]!.body["input"]), [])
  })

  it("does not say that the server has no such endpoint", async () => {
    await start({}, {
      upstream: { driver: "openai", api: "auto", base_url: bench.server.baseUrl, timeouts: { queue: 0 } }
    })
    const input = [question, { type: "reasoning", id: "rs_far", summary: [] }]
    await ask({ store: false, input: [...input, { role: "user", content: "And now?" }] })
    await ask({ store: false, input: "Hi" })
    assert.deepStrictEqual(bench.server.requests.map(({ path }) => path), Array(3).fill("/v1/responses"))
  })
})

describe("thinking that was kept for callers of another style", () => {
  it("is left out once the server refuses it, and the call is answered", async () => {
    await start({ organizationOf: () => "first" })
    const tools = [{ type: "function", function: { name: "look", parameters: { type: "object", properties: {} } } }]
    const chat = async (messages: ReadonlyArray<object>) => {
      const response = await post({ messages, tools }, "/v1/chat/completions")
      const body = await response.json() as { readonly choices: ReadonlyArray<{ readonly message: Fields }> }
      assert.strictEqual(response.status, 200, JSON.stringify(body))
      return { message: body.choices[0]!.message, ignored: response.headers.get("x-gateway-ignored") }
    }
    const { message } = await chat([question])
    const [call] = message["tool_calls"] as ReadonlyArray<Fields>
    assert.isString(call!["id"])
    bench.server.answer(strictResponses({ organizationOf: () => "second" }).answer)
    const result = { role: "tool", tool_call_id: call!["id"], content: "there" }
    const { ignored, message: last } = await chat([question, message, result])
    assert.strictEqual(last["content"], "It is there")
    assert.isNull(ignored)
    assert.strictEqual(bench.server.requests.length, 2)
    assert.strictEqual(valuesOf("encrypted_content", bench.server.requests[0]!.body["input"]).length, 1)
    assert.deepStrictEqual(valuesOf("encrypted_content", bench.server.requests[1]!.body["input"]), [])
  })
})

describe("a conversation with seals", () => {
  const accounts = [{ token: "sk-1" }, { token: "sk-2" }, { token: "sk-3" }]
  /** Two accounts of one organisation, and a third one. */
  const teams = [{ token: "sk-1", organization: "a" }, { token: "sk-2", organization: "b" }, {
    token: "sk-3",
    organization: "a"
  }]
  const organizationOf = (key: string) => key === "sk-2" ? "b" : "a"
  const oneSlot = { runtime: { account_max_inflight: 1 } }

  /** The first turn: its items, and the key that served it. */
  const first = async (more: object = {}) => {
    const { output } = await ask({ ...sealedThinking, input: [question], ...more })
    const call = output.find(({ type }) => type === "function_call")!
    const result = { type: "function_call_output", call_id: call["call_id"], output: "there" }
    return { key: bench.server.requests.at(-1)!.key!, input: [question, ...output, result], output, call, result }
  }

  it("stays with the account that sealed it, although others are free and were used less", async () => {
    await start({}, { accounts, runtime: { sticky: false } })
    const { input, key } = await first()
    for (let i = 0; i < 4; i++) {
      const { body, ignored } = await ask({ ...sealedThinking, input })
      assert.strictEqual(body["output_text"], "It is there")
      assert.isNull(ignored)
    }
    assert.deepStrictEqual(bench.server.requests.map((request) => request.key), Array(5).fill(key))
  })

  it("goes with its seals to another account of the organisation while its own is busy", async () => {
    const strict = await start({ organizationOf }, { accounts: teams, ...oneSlot })
    const { input, key } = await first()
    assert.strictEqual(key, "sk-1")
    const release = await holding([key], strict.answer)
    const { ignored } = await ask({ ...sealedThinking, input })
    assert.isNull(ignored)
    assert.deepStrictEqual(bench.server.requests.map((request) => request.key), ["sk-1", "sk-3"])
    assert.deepStrictEqual(bench.server.requests.at(-1)!.body["input"], input)
    await release()
  })

  it("takes the organisation from the server where none is configured", async () => {
    const strict = await start({ organizationOf, saysOrganization: true }, { accounts, ...oneSlot })
    // Each account has answered once.
    for (let i = 0; i < 3; i++) await ask({ store: false, input: `Hi ${i}` })
    const { input, key } = await first()
    const release = await holding([key], strict.answer)
    const { ignored } = await ask({ ...sealedThinking, input })
    assert.isNull(ignored)
    assert.strictEqual(organizationOf(bench.server.requests.at(-1)!.key!), organizationOf(key))
    assert.deepStrictEqual(bench.server.requests.at(-1)!.body["input"], input)
    await release()
  })

  it("moves without its seals, thinking and ids where no account of the organisation is free, and does not wait", async () => {
    const strict = await start({ organizationOf }, { accounts: teams, ...oneSlot })
    const { call, input, key, result } = await first()
    assert.strictEqual(key, "sk-1")
    const release = await holding(["sk-1", "sk-3"], strict.answer)
    const { body, ignored } = await ask({ ...sealedThinking, input })
    assert.strictEqual(body["output_text"], "It is there")
    assert.strictEqual(ignored, "input[1].encrypted_content")
    const [, , moved, ...others] = bench.server.requests
    assert.deepStrictEqual(others, [])
    assert.strictEqual(moved!.key, "sk-2")
    const { id: _, ...plainCall } = call as Fields & { readonly id: unknown }
    assert.deepStrictEqual(moved!.body["input"], [question, plainCall, result])
    await release()
  })

  it("keeps the seals of the organisation that it has moved to", async () => {
    const strict = await start({ organizationOf }, { accounts: teams, ...oneSlot })
    const { input } = await first()
    const release = await holding(["sk-1", "sk-3"], strict.answer)
    const moved = await ask({ ...sealedThinking, input })
    await release()
    const more = [...input, ...moved.output, question]
    const { ignored } = await ask({ ...sealedThinking, input: more })
    const last = bench.server.requests.at(-1)!
    assert.strictEqual(last.key, "sk-2")
    assert.strictEqual(ignored, "input[1].encrypted_content")
    const own = moved.output.find(({ type }) => type === "reasoning")!
    assert.deepStrictEqual(valuesOf("encrypted_content", last.body["input"]), [own["encrypted_content"]])
    assert.includeDeepMembers(last.body["input"] as Array<Fields>, moved.output as Array<Fields>)
  })

  it("names what was left out only where the account that answered did not get it", async () => {
    const strict = await start({ organizationOf }, { accounts: teams.slice(0, 2), ...oneSlot })
    const { input } = await first()
    const release = await holding(
      ["sk-1"],
      (request) => request.key === "sk-2" ? { status: 500, pieces: [release(), "{}"] } : strict.answer(request)
    )
    const { ignored } = await ask({ ...sealedThinking, input })
    assert.deepStrictEqual(bench.server.requests.map(({ key }) => key), ["sk-1", "sk-2", "sk-1"])
    assert.isNull(ignored)
  })

  it("prefers the target of the organisation, unless the route says no", async () => {
    const upstream = { driver: "responses", base_url: bench.server.baseUrl, models: { m: "m" } }
    const config = {
      accounts: [{ upstream: "one", token: "sk-1" }, { upstream: "two", token: "sk-2" }],
      upstream: undefined,
      upstreams: { one: upstream, two: upstream },
      routes: { any: ["one/m", "two/m"], still: { targets: ["one/m", "two/m"], sticky: false } }
    }
    await start({}, config)
    const { input } = await first({ model: "two/m" })
    const { ignored } = await ask({ ...sealedThinking, model: "any", input })
    assert.isNull(ignored)
    const moved = await ask({ ...sealedThinking, model: "still", input })
    assert.strictEqual(moved.ignored, "input[1].encrypted_content")
    assert.deepStrictEqual(bench.server.requests.map(({ key }) => key), ["sk-2", "sk-2", "sk-1"])
  })

  it("is named once, whether another target gets it or not", async () => {
    const upstream = { base_url: bench.server.baseUrl, models: { m: "m" } }
    const config = {
      accounts: [{ upstream: "one", token: "sk-1" }, { upstream: "two", token: "sk-2" }, {
        upstream: "chat",
        token: "sk-3"
      }],
      upstream: undefined,
      upstreams: {
        one: { ...upstream, driver: "responses" },
        two: { ...upstream, driver: "responses" },
        chat: { ...upstream, driver: "openai" }
      },
      routes: {
        back: { targets: ["one/m", "two/m"], sticky: false },
        other: { targets: ["one/m", "chat/m"], sticky: false }
      }
    }
    const strict = await start({}, config)
    const { input } = await first({ model: "two/m" })
    bench.server.answer((request) =>
      request.key === "sk-1"
        ? json(500, {})
        : request.key === "sk-3"
        ? chatStreamed({ content: "It is there" })
        : strict.answer(request)
    )
    assert.isNull((await ask({ ...sealedThinking, model: "back", input })).ignored)
    const { ignored } = await ask({ store: false, model: "other", input })
    assert.strictEqual(ignored, "input[1].encrypted_content")
    assert.deepStrictEqual(bench.server.requests.map(({ key }) => key), ["sk-1", "sk-2", "sk-1", "sk-3"])
  })

  it("is known for each caller alone, so that the seal of another one is tried first", async () => {
    await start({}, { accounts, keys: [businessKey, "other-key"] })
    const { input, key } = await first()
    const { ignored } = await ask({ ...sealedThinking, input }, { authorization: "Bearer other-key" })
    assert.strictEqual(ignored, "input[1].encrypted_content")
    const [, tried, plain] = bench.server.requests
    assert.strictEqual(tried!.key, plain!.key)
    assert.notStrictEqual(tried!.key, key)
  })

  it("of another style stays with the account that sealed its thinking", async () => {
    await start({}, { accounts, runtime: { sticky: false } })
    const tools = [{ type: "function", function: { name: "look", parameters: { type: "object", properties: {} } } }]
    const chat = async (messages: ReadonlyArray<object>) => {
      const response = await post({ messages, tools }, "/v1/chat/completions")
      return (await response.json() as { readonly choices: ReadonlyArray<{ readonly message: Fields }> }).choices[0]!
        .message
    }
    const message = await chat([question])
    const [call] = message["tool_calls"] as ReadonlyArray<Fields>
    for (let i = 0; i < 3; i++) {
      const last = await chat([question, message, { role: "tool", tool_call_id: call!["id"], content: "there" }])
      assert.strictEqual(last["content"], "It is there")
    }
    assert.deepStrictEqual(bench.server.requests.map(({ key }) => key), Array(4).fill(bench.server.requests[0]!.key))
    assert.strictEqual(valuesOf("encrypted_content", bench.server.requests[3]!.body["input"]).length, 1)
  })
})

describe("a request without seals", () => {
  it("is one call", async () => {
    await start()
    bench.server.answer(() => said("Hello"))
    const { ignored } = await ask({ input: "Hi" })
    assert.isNull(ignored)
    assert.strictEqual(bench.server.requests.length, 1)
  })
})
