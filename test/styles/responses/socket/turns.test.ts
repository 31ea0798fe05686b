/** Turns over a WebSocket connection: their events, what they continue, and their errors. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import type { JsonRecord } from "../../../../src/domain/json.ts"
import { businessKey, type RunningGateway, startGateway } from "../../../support/gateway.ts"
import { parseFrames } from "../../../support/sse.ts"
import { untilHolds } from "../../../support/until.ts"
import { Client, type Event, model } from "./client.ts"

let gateway: RunningGateway
const clients: Array<Client> = []

beforeAll(async () => {
  gateway = await startGateway({ runtime: { account_max_inflight: 8 } })
})
afterAll(() => gateway.stop())
afterEach(() => {
  for (const client of clients.splice(0)) client.socket.terminate()
})

const open = async () => {
  const client = await Client.open(gateway.url)
  clients.push(client)
  return client
}

const post = (body: JsonRecord) =>
  fetch(`${gateway.url}/v1/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}` },
    body: JSON.stringify({ model, ...body })
  })

const tools = [{ type: "function", name: "get_weather", parameters: { type: "object" } }]

/** What is another one each time: ids and times. */
const plain = (events: ReadonlyArray<JsonRecord>): unknown =>
  JSON.parse(
    JSON.stringify(events)
      .replaceAll(/(resp|msg|rs|fc|ctc|call)_[0-9a-zA-Z]{8,}/g, "$1_id")
      .replaceAll(/"(created_at|completed_at)":\d+/g, `"$1":0`)
  )

const isAbsent = (value: unknown) => assert.isUndefined(value)

describe("the events of a turn", () => {
  const scripts: ReadonlyArray<readonly [what: string, body: JsonRecord]> = [
    ["text with thinking", { input: "!think Let me see.\n!say It is sunny.", reasoning: { effort: "high" } }],
    ["a call", { input: `!say Wait.\n!call get_weather {"city":"Oslo"}`, tools }],
    ["a reply that breaks off", { input: "!say one two three\n!fault reset after=1" }],
    ["a violated tool_choice", { input: "!say no", tools, tool_choice: "required" }]
  ]
  it.each(scripts)("come from HTTP for %s, with the headers in the first one", async (_, body) => {
    const response = await post({ ...body, stream: true })
    const expected = parseFrames(await response.text()).map(({ data }) => data).filter((data) => data !== "[DONE]")
    const client = await open()
    client.create(body)
    const [created, ...events] = await client.reply()
    const { headers, ...first } = created!
    assert.deepStrictEqual(plain([first, ...events]), plain(expected.map((data) => JSON.parse(data) as JsonRecord)))
    assert.match(headers!["x-request-id"]!, /^req_/)
    assert.strictEqual(headers!["x-gateway-upstream"], response.headers.get("x-gateway-upstream"))
    for (const event of events) isAbsent(event.headers)
    for (const event of [created!, ...events]) isAbsent(event.stream_id)
  })

  it("name the lane of the turn, each of them", async () => {
    const client = await open()
    client.create({ input: "!say one", stream_id: "lane_1.a-b" })
    const events = await client.reply("lane_1.a-b")
    assert.isAbove(events.length, 5)
    assert.deepStrictEqual(events, client.events)
  })

  it("tell which fields have no effect", async () => {
    const client = await open()
    client.create({ input: "!say one", stream: false, prompt_cache_key: "x", made_up: 1 })
    const [created] = await client.reply()
    assert.strictEqual(
      created!.headers!["x-gateway-ignored"],
      (await post({ input: "!say one", prompt_cache_key: "x", made_up: 1 })).headers.get("x-gateway-ignored")
    )
    assert.notInclude(created!.headers!["x-gateway-ignored"], "type")
  })
})

describe("a turn that continues", () => {
  it("takes the latest response of the connection without a store, and sends new items only", async () => {
    const client = await open()
    const steps = 20
    const script = Array.from({ length: steps }, (_, i) => `!call get_weather {"step":${i}}\n!next`).join("\n")
    client.create({ input: `${script}\n!say It is sunny.`, tools, store: false })
    let response = await client.response()
    for (let i = 0; i < steps; i++) {
      const [call] = response.output
      assert.strictEqual(call!["type"], "function_call")
      const input = [{ type: "function_call_output", call_id: call!["call_id"], output: `sunny ${i}` }]
      client.create({ input, tools, store: false, previous_response_id: response.id })
      response = await client.response()
    }
    assert.strictEqual(response.output_text, "It is sunny.")
    client.create({ input: "!echo-prompt", store: false, previous_response_id: response.id })
    const { output_text } = await client.response()
    for (let i = 0; i < steps; i++) assert.lengthOf(output_text.match(new RegExp(`sunny ${i}(?!\\d)`, "g"))!, 1)
  })

  it("may fork a response of any lane", async () => {
    const client = await open()
    client.create({ input: "!say The word is plover.", store: false, stream_id: "a" })
    const { id } = await client.response("a")
    for (const lane of ["b", "c", undefined]) {
      client.create({ input: "!echo-prompt", store: false, previous_response_id: id, stream_id: lane })
      assert.include((await client.response(lane)).output_text, "The word is plover.")
    }
    client.create({ input: "!say next", store: false, previous_response_id: id, stream_id: "a" })
    await client.response("a")
    client.create({ input: "hi", store: false, previous_response_id: id, stream_id: "b" })
    const { error, status } = await client.error("b")
    assert.deepInclude(error, { code: "previous_response_not_found", param: "previous_response_id" })
    assert.strictEqual(status, 400)
  })

  it("keeps its parent when it fails", async () => {
    const client = await open()
    client.create({ input: "!say The word is plover.", store: false })
    const { id } = await client.response()
    const failing = [{ input: "!fault too-long" }, { input: "!say no", tools, tool_choice: "required" }]
    for (const body of failing) {
      client.create({ ...body, store: false, previous_response_id: id })
      assert.include(["error", "response.failed"], (await client.reply()).at(-1)!.type)
    }
    client.create({ input: "!echo-prompt", store: false, previous_response_id: id })
    assert.include((await client.response()).output_text, "The word is plover.")
  })

  it("finds stored responses on another connection, and no others", async () => {
    const first = await open()
    const ids: Array<string> = []
    for (const store of [true, false]) {
      first.create({ input: "!say The word is plover.", store })
      ids.push((await first.response()).id)
    }
    first.close()
    await first.end()
    const second = await open()
    second.create({ input: "!echo-prompt", previous_response_id: ids[0] })
    assert.include((await second.response()).output_text, "The word is plover.")
    second.create({ input: "!echo-prompt", previous_response_id: ids[1] })
    assert.strictEqual((await second.error()).error.code, "previous_response_not_found")
  })

  it("may refer to an item of a response that only the connection has", async () => {
    const client = await open()
    client.create({ input: "!say The word is plover.", store: false })
    const { output } = await client.response()
    const reference = { type: "item_reference", id: output[0]!["id"] }
    client.create({ input: [reference, { role: "user", content: "!echo-prompt" }], store: false })
    assert.include((await client.response()).output_text, "The word is plover.")
  })
})

describe("a warm-up", () => {
  it("is a response without output, which can be continued more than once", async () => {
    const client = await open()
    client.create({ input: "The word is plover.", instructions: "Be brief.", store: false, generate: false })
    const events = await client.reply()
    assert.deepStrictEqual(events.map(({ type }) => type), ["response.created", "response.completed"])
    const { id, output, usage } = events[1]!.response!
    assert.deepStrictEqual([output, usage], [[], null])
    assert.match(events[0]!.headers!["x-request-id"]!, /^req_/)
    client.create({ input: "!fault too-long", store: false, previous_response_id: id })
    await client.error()
    for (let i = 0; i < 3; i++) {
      client.create({ input: "!echo-prompt", store: false, previous_response_id: id })
      assert.include((await client.response()).output_text, "The word is plover.")
    }
  })

  it("may be continued by a turn that adds nothing, and over HTTP", async () => {
    const client = await open()
    client.create({ input: "!echo-prompt The word is plover.", generate: false })
    const { id } = await client.response()
    for (const own of [{ input: [] }, {}]) {
      client.create({ ...own, previous_response_id: id })
      assert.include((await client.response()).output_text, "The word is plover.")
      const response = await post({ ...own, previous_response_id: id })
      assert.include(((await response.json()) as { readonly output_text: string }).output_text, "The word is plover.")
    }
  })

  it("may have no items, which a turn that continues it brings", async () => {
    const client = await open()
    client.create({ input: [], instructions: "The word is plover.", generate: false })
    const { id } = await client.response()
    client.create({ input: [], previous_response_id: id })
    assert.strictEqual((await client.error()).error.param, "input")
    client.create({ input: "!echo-prompt", previous_response_id: id })
    assert.include((await client.response()).output_text, "!echo-prompt")
  })

  it("is refused as a turn is", async () => {
    const client = await open()
    client.create({ input: "hi", model: "no-such-model", generate: false })
    assert.strictEqual((await client.error()).error.code, "model_not_found")
  })
})

describe("an error", () => {
  it("before a turn's first event names the status, the request and the lane, and leaves the connection open", async () => {
    const client = await open()
    const wrong: ReadonlyArray<readonly [JsonRecord, string, string | null]> = [
      [{ input: "hi", model: "no-such-model" }, "model_not_found", null],
      [{ input: 1 }, "invalid_request", "input"],
      [{ input: "hi", background: true }, "invalid_request", "background"],
      [{ input: "!fault too-long" }, "context_length_exceeded", null],
      [{ input: "hi", previous_response_id: "resp_none" }, "previous_response_not_found", "previous_response_id"]
    ]
    for (const [body, code, param] of wrong) {
      client.create({ ...body, stream_id: "a" })
      const events = await client.reply("a")
      assert.deepStrictEqual(events.map(({ type }) => type), ["error"])
      const { error, headers, status } = events[0]!
      const { status: expected, headers: other } = await post(body)
      assert.strictEqual(status, expected)
      assert.strictEqual(error!.code, code)
      if (param !== null) assert.strictEqual(error!.param, param)
      assert.match(headers!["x-request-id"]!, /^req_/)
      assert.strictEqual(headers!["x-should-retry"] ?? null, other.get("x-should-retry"))
    }
    client.create({ input: "!say fine", stream_id: "a" })
    assert.strictEqual((await client.response("a")).output_text, "fine")
  })

  const messages: ReadonlyArray<readonly [what: string, message: unknown, code: string, param: string | null]> = [
    ["text that is no JSON", "{\"type\":", "invalid_request", null],
    ["another value than an object", "[1]", "invalid_request", null],
    ["an unknown type", { type: "session.update" }, "invalid_request", "type"],
    ["no type", { input: "hi" }, "invalid_request", "type"],
    [
      "a warm-up that is no flag",
      { type: "response.create", model, input: "hi", generate: 1 },
      "invalid_request",
      "generate"
    ],
    [
      "a lane that is no text",
      { type: "response.create", model, input: "hi", stream_id: 1 },
      "invalid_stream_id",
      "stream_id"
    ],
    ["an empty lane", { type: "response.create", model, input: "hi", stream_id: "" }, "invalid_stream_id", "stream_id"],
    ["a lane with other characters", { type: "response.create", stream_id: "a b" }, "invalid_stream_id", "stream_id"],
    ["too long a lane", { type: "response.create", stream_id: "a".repeat(257) }, "invalid_stream_id", "stream_id"],
    [
      "too deep a message",
      `{"type":"response.create","input":${"[".repeat(300)}${"]".repeat(300)}}`,
      "invalid_request",
      null
    ]
  ]
  it.each(messages)("answers %s immediately, and leaves the connection open", async (_, message, code, param) => {
    const client = await open()
    client.send(message)
    const { error, headers, status } = await client.error()
    assert.strictEqual(status, 400)
    assert.deepInclude(error, { code, param, type: "invalid_request_error" })
    assert.match(headers!["x-request-id"]!, /^req_/)
    client.create({ input: "!say fine" })
    assert.strictEqual((await client.response()).output_text, "fine")
  })

  it("after the first event is a failed response", async () => {
    const client = await open()
    client.create({ input: "!say no", tools, tool_choice: "required" })
    const { response, type } = (await client.reply()).at(-1)!
    assert.strictEqual(type, "response.failed")
    assert.strictEqual(response!.error!.code, "tool_choice_violation")
  })

  it("of steering returns the input", async () => {
    const client = await open()
    const steer = { previous_response_id: "resp_1", input: "go on" }
    client.send({ type: "response.steer", ...steer })
    client.create({ input: "!say fine" })
    await client.response()
    const [failed] = client.events as ReadonlyArray<Event & JsonRecord>
    assert.strictEqual(failed!.type, "response.steer.failed")
    assert.strictEqual(failed!.error!.code, "steering_not_supported")
    assert.deepStrictEqual(failed!["steer"], steer)
  })
})

describe("an event", () => {
  it("of any length arrives whole", async () => {
    const client = await open()
    const ask = (input: string) => client.send({ type: "response.steer", previous_response_id: "resp_1", input })
    const returned = async (count: number) => {
      await untilHolds(() => client.events.length === count)
      return client.events.at(-1) as Event & { readonly steer: { readonly input: string } }
    }
    ask("")
    const rest = JSON.stringify(await returned(1)).length
    // The frames of a server have lengths of three sizes.
    const lengths = [65_534, 65_535, 65_536, 65_537, 200_000].map((length) => length - rest)
    for (const [i, length] of lengths.entries()) {
      for (const [j, input] of ["x".repeat(length), "ü".repeat(length / 2)].entries()) {
        ask(input)
        assert.strictEqual((await returned(2 + 2 * i + j)).steer.input, input)
      }
    }
  })
})

describe("a message", () => {
  it("may come in fragments", async () => {
    const client = await open()
    const text = JSON.stringify({ type: "response.create", model, input: "!say grün" })
    for (const [i, letter] of [...text].entries()) client.socket.send(letter, { fin: i === text.length - 1 })
    assert.strictEqual((await client.response()).output_text, "grün")
  })

  it("that is binary closes the connection with 1003", async () => {
    const client = await open()
    client.socket.send(Buffer.from("{}"))
    assert.strictEqual((await client.end()).code, 1003)
  })

  it("with digits beyond double precision arrives with them", async () => {
    const client = await open()
    const call =
      `{"type":"function_call","call_id":"c1","name":"get_weather","arguments":"{\\"id\\":12345678901234567890}"}`
    client.send(
      `{"type":"response.create","model":"${model}","input":["hi",${call},{"type":"function_call_output","call_id":"c1","output":"ok"},"!echo-prompt"]}`
    )
    assert.include((await client.response()).output_text, "12345678901234567890")
  })
})
