/** A `tool_choice` that demands a call, of a caller of the Responses API whose server speaks it too. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Client } from "../../styles/responses/socket/client.ts"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import type { OpenAiServer } from "../../support/openaiServer.ts"
import {
  type Answer,
  callItem,
  eventsOf,
  json,
  messageItem,
  reasoningItem,
  responseOf,
  said,
  startResponsesServer,
  streamed,
  whole
} from "../../support/responsesServer.ts"
import { parseFrames } from "../../support/sse.ts"

type Fields = { readonly [field: string]: unknown }

let server: OpenAiServer
let gateway: RunningGateway

beforeAll(async () => {
  server = await startResponsesServer()
  gateway = await startGateway({
    accounts: ["sk-1", "sk-2"].map((token) => ({ token, organization: "team" })),
    upstream: { driver: "responses", base_url: server.baseUrl, timeouts: { queue: 0 } }
  })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

const post = (body: object) =>
  fetch(`${gateway.url}/v1/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "upstream-chat", input: "Hi", ...body })
  })

const stream = async (body: object): Promise<ReadonlyArray<Fields>> => {
  const response = await post({ ...body, stream: true })
  assert.strictEqual(response.status, 200)
  return parseFrames(await response.text()).map(({ data }) => data).filter((data) => data !== "[DONE]")
    .map((data) => JSON.parse(data) as Fields)
}

const typesOf = (events: ReadonlyArray<Fields>) => events.map(({ type }) => type)

const fn = (name: string) => ({ type: "function", name, parameters: { type: "object" } })
const custom = { type: "custom", name: "grep" }
const customCall = { type: "custom_tool_call", id: "ctc_1", call_id: "call_ctc", name: "grep", input: "a" }
const forced = { type: "function", name: "f" }
const choices = [
  { tools: [fn("f")], tool_choice: "required" },
  { tools: [fn("f"), fn("g")], tool_choice: forced },
  { tools: [fn("f"), custom], tool_choice: { type: "custom", name: "grep" } },
  { tools: [fn("f")], tool_choice: { type: "allowed_tools", mode: "required", tools: [forced] } }
]
const words = responseOf([reasoningItem("Hm."), messageItem("I would rather not.")])

describe("a demanded call that the server does not make", () => {
  it.each(choices)("is 422, from one request: $tool_choice", async (body) => {
    for (const answer of [streamed(words), whole(words)]) {
      server.answer(() => answer)
      const response = await post(body)
      const { error } = await response.json() as { readonly error: Fields }
      assert.strictEqual(response.status, 422)
      assert.deepInclude(error, { code: "tool_choice_violation", param: "tool_choice" })
      assert.lengthOf(server.requests, 1)
    }
  })

  it.each(choices)("is a failed response in a stream, and no word of the reply is sent: $tool_choice", async (body) => {
    server.answer(() => streamed(words))
    const events = await stream(body)
    assert.deepStrictEqual(typesOf(events), ["response.created", "response.in_progress", "response.failed"])
    assert.notInclude(JSON.stringify(events), "rather not")
    assert.nestedPropertyVal(events.at(-1), "response.error.code", "tool_choice_violation")
    assert.lengthOf(server.requests, 1)
  })

  it("is a failed response over a WebSocket connection", async () => {
    server.answer(() => streamed(words))
    const client = await Client.open(gateway.url)
    client.create({ input: "Hi", ...choices[0] })
    assert.strictEqual((await client.response()).error?.code, "tool_choice_violation")
    client.socket.terminate()
  })

  it("is a call of another function than the forced one too", async () => {
    server.answer(() => streamed(responseOf([callItem("g", {})])))
    assert.strictEqual((await post(choices[1]!)).status, 422)
  })

  it("has its usage counted", async () => {
    const usageOf = async () => {
      const response = await fetch(`${gateway.url}/v1/usage`, { headers: { authorization: `Bearer ${businessKey}` } })
      return JSON.stringify(await response.json())
    }
    const before = await usageOf()
    server.answer(() => streamed(words))
    await (await post(choices[0]!)).text()
    assert.notStrictEqual(await usageOf(), before)
  })
})

describe("a demanded call that the server makes", () => {
  const output = [reasoningItem("Hm."), messageItem("Let me see."), callItem("f", { a: 1 }), messageItem("Done.")]

  it.each([choices[0]!, choices[1]!, choices[3]!])(
    "is sent with all that the server says: $tool_choice",
    async (body) => {
      const response = responseOf(output)
      for (const answer of [streamed(response), whole(response)]) {
        server.answer(() => answer)
        assert.deepInclude(await (await post(body)).json() as Fields, { status: "completed", output })
      }
      server.answer(() => streamed(response))
      assert.deepStrictEqual(typesOf(await stream(body)), typesOf(eventsOf(response)))
    }
  )

  it("may be one of a custom tool, or one that the model writes into its text", async () => {
    server.answer(() => streamed(responseOf([customCall])))
    assert.deepInclude(await (await post(choices[2]!)).json() as Fields, { output: [customCall] })
    server.answer(() => said(`<tool_call>{"name":"f","arguments":{"a":1}}</tool_call>`))
    const { output } = await (await post(choices[0]!)).json() as { readonly output: ReadonlyArray<Fields> }
    assert.deepStrictEqual(output.map(({ name, type }) => [type, name]), [["function_call", "f"]])
  })
})

describe("a choice that the server judges", () => {
  const rows: ReadonlyArray<readonly [among: string, body: object]> = [
    ["a tool that the server runs", { tools: [fn("f"), { type: "web_search" }], tool_choice: "required" }],
    ["a tool of the vendor's that the caller runs", { tools: [fn("f"), { type: "shell" }], tool_choice: "required" }],
    ["the tools of a prompt", { tools: [fn("f")], tool_choice: "required", prompt: { id: "pmpt_1" } }]
  ]
  it.each(rows)("among %s is kept as the server keeps it", async (_, body) => {
    server.answer(() => streamed(words))
    const response = await post(body)
    assert.strictEqual(response.status, 200, await response.clone().text())
    assert.deepInclude(await response.json() as Fields, { status: "completed" })
  })

  it("is not kept by a compaction, which has no calls", async () => {
    const compaction = { type: "compaction", id: "cmp_1", encrypted_content: "c2VhbA==" }
    const answer: Answer = streamed(responseOf([compaction]))
    server.answer(() => answer)
    const input = [{ role: "user", content: "Hi" }, { type: "compaction_trigger" }]
    assert.strictEqual((await post({ input, ...choices[0] })).status, 200)
  })

  it("of a function that is not declared is refused before a server is asked", async () => {
    server.answer(() => json(500, {}))
    const response = await post({ tools: [fn("g")], tool_choice: forced })
    assert.strictEqual(response.status, 400)
    assert.lengthOf(server.requests, 0)
  })
})
