import Anthropic, { APIError, APIUserAbortError } from "@anthropic-ai/sdk"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"

const tools: Array<Anthropic.Tool> = ["get_weather", "get_time"].map((name) => ({
  name,
  input_schema: { type: "object", properties: { city: { type: "string" } } }
}))

let gateway: RunningGateway
beforeAll(async () => {
  // One slot: whatever a request leaves behind would make the next one wait.
  gateway = await startGateway({ runtime: { account_max_inflight: 1 } })
})
afterAll(() => gateway.stop())

const clientOf = (path = "") =>
  new Anthropic({ baseURL: `${gateway.url}${path}`, apiKey: businessKey, maxRetries: 0, logLevel: "off" })

const asks = (content: string, model = "msgcompat-sonnet-4-5") => ({
  model,
  max_tokens: 100,
  messages: [{ role: "user" as const, content }]
})

/** Both ways to the same reply: whole, and accumulated from a stream by the SDK. */
const ways = {
  whole: (request: Anthropic.MessageCreateParamsNonStreaming) => clientOf().messages.create(request),
  streamed: (request: Anthropic.MessageCreateParamsNonStreaming) => clientOf().messages.stream(request).finalMessage()
}

describe.each(Object.entries(ways))("the messages SDK against the gateway, %s", (_, send) => {
  it("gets text and usage", async () => {
    const message = await send(asks("!say Hello there"))
    assert.deepStrictEqual(message.content.map((block) => block.type === "text" ? block.text : block), ["Hello there"])
    assert.strictEqual(message.stop_reason, "end_turn")
    assert.strictEqual(message.role, "assistant")
    assert.match(message.id, /^msg_/)
    assert.isAbove(message.usage.input_tokens, 0)
    assert.isAbove(message.usage.output_tokens, 0)
  })

  it("gets the thinking of the models that the spec names, and of no others", async () => {
    const script = "!think Let me see.\n!say 42"
    const slow = await send(asks(script, "msgcompat-opus-4-6"))
    assert.deepStrictEqual(slow.content.map((block) => block.type), ["thinking", "text"])
    assert.deepInclude(slow.content[0], { thinking: "Let me see.", signature: "" })
    const fast = await send(asks(script, "msgcompat-haiku-4-5"))
    assert.deepStrictEqual(fast.content.map((block) => block.type), ["text"])
  })

  it("stops before a stop sequence", async () => {
    const message = await send({ ...asks("!say one two three four"), stop_sequences: ["three"] })
    assert.deepInclude(message.content[0], { text: "one two " })
    assert.strictEqual(message.stop_reason, "stop_sequence")
    assert.strictEqual(message.stop_sequence, "three")
  })

  it("gets several calls around text", async () => {
    const script = `!say Looking.\n!call get_weather {"city":"Paris"}\n!call get_time {"city":"Rome"}`
    const message = await send({ ...asks(script), tools })
    assert.strictEqual(message.stop_reason, "tool_use")
    assert.deepStrictEqual(
      message.content.flatMap((block) => block.type === "tool_use" ? [[block.name, block.input]] : []),
      [["get_weather", { city: "Paris" }], ["get_time", { city: "Rome" }]]
    )
    assert.deepInclude(message.content[0], { type: "text" })
  })

  it("goes through a tool loop of three turns", async () => {
    const messages: Array<Anthropic.MessageParam> = [{
      role: "user",
      content: `!call get_weather {"city":"Paris"}\n!next\n!call get_time {}\n!next\n!say Sunny at noon`
    }]
    const called: Array<string> = []
    const answers: Record<string, string> = { get_weather: "sunny", get_time: "noon" }
    for (;;) {
      const message = await send({ model: "msgcompat-sonnet-4-5", max_tokens: 100, tools, messages })
      const calls = message.content.filter((block) => block.type === "tool_use")
      if (calls.length === 0) {
        assert.deepInclude(message.content[0], { text: "Sunny at noon" })
        break
      }
      called.push(...calls.map((call) => call.name))
      messages.push({ role: "assistant", content: message.content }, {
        role: "user",
        content: calls.map((call) => ({
          type: "tool_result" as const,
          tool_use_id: call.id,
          content: answers[call.name] ?? ""
        }))
      })
    }
    assert.deepStrictEqual(called, ["get_weather", "get_time"])
  })

  it("makes the model call the required tool, or no tool", async () => {
    const forced = { ...asks("!call get_time {}"), tools, tool_choice: { type: "tool" as const, name: "get_time" } }
    assert.strictEqual((await send(forced)).stop_reason, "tool_use")
    const none = await send({ ...asks("!say plain"), tools, tool_choice: { type: "none" } })
    assert.strictEqual(none.stop_reason, "end_turn")
    const violated: unknown = await send({ ...asks("!say no"), tools, tool_choice: { type: "any" } })
      .catch((error: unknown) => error)
    assert.instanceOf(violated, APIError)
    assert.include(JSON.stringify(violated.error), "tool_choice_violation")
  })

  it("receives the error of a reply that the upstream withdrew", async () => {
    const shown = await send(asks("!say Well, \n!fault content-filter"))
    assert.strictEqual(shown.stop_reason, "refusal")
    assert.strictEqual(shown.stop_details?.type, "refusal")
    const nothing: unknown = await send(asks("!fault content-filter")).catch((error: unknown) => error)
    assert.instanceOf(nothing, APIError)
    assert.strictEqual(nothing.status, 400)
  })

  it("receives the error of a request that the upstream refused", async () => {
    const failure: unknown = await send(asks("!fault too-long")).catch((error: unknown) => error)
    assert.instanceOf(failure, APIError)
    assert.strictEqual(failure.status, 400)
    assert.include(JSON.stringify(failure.error), "context_length_exceeded")
    assert.isString(failure.requestID)
  })
})

describe("the messages SDK against the gateway", () => {
  it("receives in the stream the error of a failure after its first frame", async () => {
    const texts: Array<string> = []
    const stream = clientOf().messages.stream(asks("!pace 0\n!say [\"a\",\"b\"]\n!fault error-status"))
      .on("text", (text) => texts.push(text))
    const failure: unknown = await stream.finalMessage().catch((error: unknown) => error)
    assert.deepStrictEqual(texts.join(""), "ab")
    assert.instanceOf(failure, APIError)
    assert.strictEqual(failure.type, "service_unavailable_error")
  })

  it("frees the account when it leaves", async () => {
    const stream = clientOf().messages.stream(asks("!say a\n!wait 60s\n!say b"))
    stream.on("text", () => stream.abort())
    const failure: unknown = await stream.finalMessage().catch((error: unknown) => error)
    assert.instanceOf(failure, APIUserAbortError)
    const next = await clientOf().messages.create(asks("!say Next"))
    assert.deepInclude(next.content[0], { text: "Next" })
  })

  it("counts tokens and lists models under the style's own prefix", async () => {
    const client = clientOf("/msgcompat")
    const { max_tokens: _, ...question } = asks("How many tokens are these?")
    const counted = await client.messages.countTokens(question)
    assert.isAbove(counted.input_tokens, 4)
    const ids: Array<string> = []
    for await (const model of client.models.list()) ids.push(model.id)
    assert.include(ids, "msgcompat-opus-4-6")
    assert.strictEqual(
      (await client.models.retrieve("msgcompat-3-5-haiku-latest")).display_name,
      "Msgcompat 3.5 Haiku Latest"
    )
  })
})
