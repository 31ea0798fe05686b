import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import OpenAI from "openai"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"

let gateway: RunningGateway
let client: OpenAI

beforeAll(async () => {
  gateway = await startGateway()
  client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: businessKey, maxRetries: 0 })
})
afterAll(() => gateway.stop())

const ask = (content: string, model = "upstream-chat") => ({
  model,
  messages: [{ role: "user" as const, content }]
})

describe("the official client", () => {
  it("gets a whole reply", async () => {
    const reply = await client.chat.completions.create(ask("!say Hello there"))
    assert.strictEqual(reply.object, "chat.completion")
    assert.strictEqual(reply.choices[0]?.message.content, "Hello there")
    assert.strictEqual(reply.choices[0]?.finish_reason, "stop")
    assert.isAbove(reply.usage!.prompt_tokens, 0)
    assert.strictEqual(reply.usage!.total_tokens, reply.usage!.prompt_tokens + reply.usage!.completion_tokens)
  })

  it("streams a reply that accumulates to the whole one", async () => {
    const script = "!think Two and two.\n!say It makes four.\n!count 50"
    const whole = await client.chat.completions.create(ask(script, "upstream-reasoner"))
    const stream = client.chat.completions.stream({ ...ask(script, "upstream-reasoner") })
    let deltas = 0
    stream.on("content", () => deltas++)
    const streamed = await stream.finalChatCompletion()
    assert.isAbove(deltas, 50)
    const content = { content: whole.choices[0]?.message.content, reason: whole.choices[0]?.finish_reason }
    assert.deepStrictEqual(
      { content: streamed.choices[0]?.message.content, reason: streamed.choices[0]?.finish_reason },
      content
    )
    assert.deepStrictEqual(streamed.usage, whole.usage)
    assert.strictEqual(streamed.model, "upstream-reasoner")
  })

  it("gets the reasoning beside the answer", async () => {
    const reply = await client.chat.completions.create(ask("!think Two and two.\n!say Four.", "o3"))
    const message = reply.choices[0]?.message
    assert.strictEqual(message?.content, "Four.")
    assert.strictEqual(
      message !== undefined && "reasoning_content" in message && message.reasoning_content,
      "Two and two."
    )
    assert.isAbove(reply.usage!.completion_tokens_details!.reasoning_tokens!, 0)
    assert.strictEqual(reply.model, "o3")
  })

  it("gets its usage chunk when it asks for it", async () => {
    const stream = await client.chat.completions.create({
      ...ask("!say Hi"),
      stream: true,
      stream_options: { include_usage: true }
    })
    const chunks = []
    for await (const chunk of stream) chunks.push(chunk)
    assert.deepStrictEqual(chunks.at(-1)?.choices, [])
    assert.isAbove(chunks.at(-1)!.usage!.total_tokens, 0)
    assert.deepStrictEqual(chunks[0]?.choices[0]?.delta, { role: "assistant" })
    assert.isTrue(chunks.slice(0, -1).every((chunk) => chunk.choices.length === 1))
  })

  it("sees stop sequences end the reply, however they are split", async () => {
    const script = "!say [\"one E\",\"N\",\"D two\"]"
    const whole = await client.chat.completions.create({ ...ask(script), stop: ["END"] })
    assert.strictEqual(whole.choices[0]?.message.content, "one ")
    const streamed = await client.chat.completions.stream({ ...ask(script), stop: "END" }).finalChatCompletion()
    assert.strictEqual(streamed.choices[0]?.message.content, "one ")
    assert.strictEqual(streamed.choices[0]?.finish_reason, "stop")
  })

  it("sees no reference markers of search models", async () => {
    const script = "!search 2\n!say [\"A fact[cita\",\"tion:1] and [reference:0]another.\"]"
    const reply = await client.chat.completions.create(ask(script, "upstream-chat-search"))
    assert.strictEqual(reply.choices[0]?.message.content, "A fact and another.")
  })

  it("has structured output asked for in the prompt", async () => {
    const reply = await client.chat.completions.create({
      ...ask("!echo-prompt"),
      response_format: {
        type: "json_schema",
        json_schema: { name: "city", schema: { type: "object", properties: { city: { type: "string" } } } }
      }
    })
    assert.include(reply.choices[0]?.message.content ?? "", "\"city\"")
  })

  it("continues a reply that the upstream cuts, without a seam", async () => {
    for (const kind of ["snapshot", "empty", "none"]) {
      const reply = await client.chat.completions.create(ask(`!cut 3 ${kind}\n!count 8`))
      assert.strictEqual(reply.choices[0]?.message.content, "1 2 3 4 5 6 7 8", kind)
    }
  })

  it("gets typed errors", async () => {
    const error = async (attempt: Promise<unknown>) => {
      const caught: unknown = await attempt.then(() => undefined, (reason: unknown) => reason)
      assert(caught instanceof OpenAI.APIError)
      return caught
    }
    const wrongKey = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: " ", maxRetries: 0 })
    assert.instanceOf(await error(wrongKey.chat.completions.create(ask("hi"))), OpenAI.AuthenticationError)
    const unknown = await error(client.chat.completions.create(ask("hi", "no-such-model")))
    assert.instanceOf(unknown, OpenAI.BadRequestError)
    assert.strictEqual(unknown.code, "model_not_found")
    assert.strictEqual(unknown.param, "model")
    const missing = await error(client.models.retrieve("no-such-model"))
    assert.instanceOf(missing, OpenAI.NotFoundError)
    assert.strictEqual(missing.code, "model_not_found")
    const filtered = await error(client.chat.completions.create(ask("!fault content-filter")))
    assert.strictEqual(filtered.code, "content_filter")
    const tooLong = await error(client.chat.completions.create({ ...ask("!fault too-long"), stream: true }))
    assert.strictEqual(tooLong.status, 400)
    assert.strictEqual(tooLong.code, "context_length_exceeded")
    assert.match(tooLong.requestID ?? "", /^req_/)
  })

  it("receives in the stream a failure that occurs in the stream", async () => {
    const stream = await client.chat.completions.create({
      ...ask("!count 5\n!fault error-status after=3"),
      stream: true
    })
    let text = ""
    const failure: unknown = await (async () => {
      for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ""
    })().catch((reason: unknown) => reason)
    assert.strictEqual(text, "1 2 3")
    assert.instanceOf(failure, OpenAI.APIError)
  })

  it("may leave a stream at any time", async () => {
    const stream = await client.chat.completions.create({ ...ask("!pace 5ms\n!count 10000"), stream: true })
    let seen = 0
    for await (const _ of stream) if (++seen === 5) break
    const after = await client.chat.completions.create(ask("!say still here"))
    assert.strictEqual(after.choices[0]?.message.content, "still here")
  })

  it("lists the models, and finds one by an alias", async () => {
    const ids = []
    for await (const model of client.models.list()) ids.push(model.id)
    assert.deepStrictEqual(ids, [
      "upstream-chat",
      "upstream-reasoner",
      "upstream-chat-search",
      "upstream-reasoner-search"
    ])
    assert.strictEqual((await client.models.retrieve("gpt-4o")).id, "upstream-chat")
  })

  it("runs a tool loop", async () => {
    const tools = [{
      type: "function" as const,
      function: {
        name: "get_weather",
        description: "The weather of a city",
        parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
      }
    }]
    const messages: Array<OpenAI.ChatCompletionMessageParam> = [
      {
        role: "user",
        content: "!say Let me look.\n!call get_weather {\"city\":\"Oslo\"}\n!call get_weather {\"city\":\"Rome\"}"
      }
    ]
    const first = await client.chat.completions.create({ model: "upstream-chat", messages, tools })
    const calls = first.choices[0]?.message.tool_calls ?? []
    assert.strictEqual(first.choices[0]?.finish_reason, "tool_calls")
    assert.isNull(first.choices[0]?.message.content)
    assert.deepStrictEqual(
      calls.map((call) => call.type === "function" ? [call.function.name, JSON.parse(call.function.arguments)] : []),
      [["get_weather", { city: "Oslo" }], ["get_weather", { city: "Rome" }]]
    )
    messages.push(first.choices[0]!.message)
    for (const call of calls) messages.push({ role: "tool", tool_call_id: call.id, content: "sunny" })
    messages.push({ role: "user", content: "!echo-prompt" })
    const second = await client.chat.completions.create({ model: "upstream-chat", messages })
    const prompt = second.choices[0]?.message.content ?? ""
    for (const call of calls) assert.include(prompt, call.id)
    assert.include(prompt, "sunny")
  })

  it.each(["whole", "streamed"])("runs a tool loop of three turns, %s", async (way) => {
    const tools = ["get_weather", "get_time"].map((name) => ({
      type: "function" as const,
      function: { name, parameters: { type: "object" } }
    }))
    const messages: Array<OpenAI.ChatCompletionMessageParam> = [{
      role: "user",
      content: "!call get_weather {\"city\":\"Oslo\"}\n!next\n!call get_time {}\n!next\n!say Sunny at noon"
    }]
    const called: Array<string> = []
    for (;;) {
      const request = { model: "upstream-chat", messages, tools }
      const completion = way === "whole"
        ? await client.chat.completions.create(request)
        : await client.chat.completions.stream(request).finalChatCompletion()
      const { finish_reason, message } = completion.choices[0]!
      const calls = message.tool_calls ?? []
      if (calls.length === 0) {
        assert.strictEqual(message.content, "Sunny at noon")
        break
      }
      assert.strictEqual(finish_reason, "tool_calls")
      messages.push(message)
      for (const call of calls) {
        if (call.type === "function") called.push(call.function.name)
        messages.push({ role: "tool", tool_call_id: call.id, content: "fine" })
      }
    }
    assert.deepStrictEqual(called, ["get_weather", "get_time"])
  })

  it("streams calls that accumulate to the same ones", async () => {
    const request = {
      ...ask("!say Looking.\n!call f {\"a\":[1,2,{\"b\":\"<x> \\\"q\\\"\"}]}\n!say Done."),
      tools: [{ type: "function" as const, function: { name: "f", parameters: { type: "object" } } }]
    }
    const streamed = await client.chat.completions.stream(request).finalChatCompletion()
    const [call] = streamed.choices[0]?.message.tool_calls ?? []
    assert(call !== undefined && call.type === "function")
    assert.deepStrictEqual(JSON.parse(call.function.arguments), { a: [1, 2, { b: "<x> \"q\"" }] })
    assert.include(streamed.choices[0]?.message.content ?? "", "Looking.")
    assert.include(streamed.choices[0]?.message.content ?? "", "Done.")
    assert.strictEqual(streamed.choices[0]?.finish_reason, "tool_calls")
  })

  it("gets the call that it requires, or an error", async () => {
    const tools = [{ type: "function" as const, function: { name: "f", parameters: { type: "object" } } }]
    const missing: unknown = await client.chat.completions
      .create({ ...ask("!say no calls here"), tools, tool_choice: "required" })
      .then(() => undefined, (reason: unknown) => reason)
    assert(missing instanceof OpenAI.APIError)
    assert.strictEqual(missing.status, 422)
    assert.strictEqual(missing.code, "tool_choice_violation")
    const none = await client.chat.completions.create({
      ...ask("!call f {}"),
      tools,
      tool_choice: "none"
    })
    assert.include(none.choices[0]?.message.content ?? "", "<tool_call>")
    const one = await client.chat.completions.create({
      ...ask("!call f {\"n\":1}\n!call f {\"n\":2}"),
      tools,
      parallel_tool_calls: false
    })
    assert.strictEqual(one.choices[0]?.message.tool_calls?.length, 1)
    const undeclared: unknown = await client.chat.completions
      .create({ ...ask("hi"), tools, tool_choice: { type: "function", function: { name: "g" } } })
      .then(() => undefined, (reason: unknown) => reason)
    assert(undeclared instanceof OpenAI.BadRequestError)
    assert.strictEqual(undeclared.param, "tool_choice")
  })
})
