/** The official client at a server that none of us wrote, directly and through the gateway: the replies are the same. */
import { LLMock } from "@copilotkit/aimock"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import OpenAI from "openai"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"

let mock: LLMock
let gateway: RunningGateway
let clients: ReadonlyArray<OpenAI>

beforeAll(async () => {
  mock = await LLMock.create({ port: 0, auth: { apiKeys: ["sk-right"] }, chunkSize: 4 })
  gateway = await startGateway({
    accounts: [{ token: "sk-right" }],
    upstream: { driver: "responses", base_url: `${mock.url}/v1`, models: { mine: { model: "gpt-5", reasoning: true } } }
  })
  clients = [
    new OpenAI({ baseURL: `${mock.url}/v1`, apiKey: "sk-right", maxRetries: 0 }),
    new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: businessKey, maxRetries: 0 })
  ]
})
afterAll(async () => {
  await gateway.stop()
  await mock.stop()
})

const tools: Array<OpenAI.Responses.FunctionTool> = [{
  type: "function",
  name: "get_weather",
  parameters: { type: "object", properties: { city: { type: "string" } } },
  strict: false
}]

const eachTimeAnother = new Set([
  "id",
  "item_id",
  "call_id",
  "response_id",
  "created_at",
  "completed_at",
  "output_text",
  "sequence_number"
])

/** Without what differs between two replies, the numbers of events, which this server leaves out, and the names of the models. */
const comparable = (value: object): unknown =>
  JSON.parse(
    JSON.stringify(value, (key, field: unknown) =>
      eachTimeAnother.has(key) ? undefined : key === "model" ? "model" : field)
  )

/** An event without the fields of the gateway's contract that this server leaves out. */
const withoutAdded = (event: object): object =>
  Object.fromEntries(Object.entries(event).filter(([name]) => name !== "status" && name !== "name"))

const asked = () => {
  const { body } = mock.getLastRequest() ?? {}
  return comparable(body as unknown as object)
}

describe("the official client", () => {
  const models = ["gpt-5", "mine"]
  const requests = [
    { input: "Say hello", instructions: "Be brief." },
    { input: [{ role: "user" as const, content: "Weather?" }], tools, store: false }
  ]
  beforeAll(() => {
    mock.onMessage("Say hello", { content: "Hello there, friend" })
    mock.onMessage("Weather?", { toolCalls: [{ name: "get_weather", arguments: `{"city":"Oslo"}` }] })
  })

  it.each(requests)("gets the same events and the same response: $input", async (request) => {
    const seen = await Promise.all(clients.map(async (client, i) => {
      const events: Array<unknown> = []
      const stream = client.responses.stream({ ...request, model: models[i]! })
      for await (const event of stream) events.push(comparable(withoutAdded(event)))
      return { events, final: comparable(await stream.finalResponse()) }
    }))
    assert.isNotEmpty(seen[0]?.events)
    assert.deepStrictEqual(seen[1], seen[0])
  })

  it.each(requests)("sends the same request, whatever way it goes: $input", async (request) => {
    const bodies: Array<unknown> = []
    for (const [i, client] of clients.entries()) {
      for await (const _ of await client.responses.create({ ...request, model: models[i]!, stream: true })) {
        /* read */
      }
      bodies.push(asked())
    }
    assert.deepStrictEqual(bodies[1], bodies[0])
  })

  it("gets the whole response that it would get", async () => {
    for (const request of requests) {
      const [direct, through] = await Promise.all(
        clients.map((client, i) => client.responses.create({ ...request, model: models[i]! }))
      )
      assert.deepStrictEqual(comparable(through!), comparable(direct!))
    }
  })
})
