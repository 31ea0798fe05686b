/** What only the server reads of a call comes back to it with the call, in every style and from clients that drop it. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { type RunningGateway, startGateway } from "../../support/gateway.ts"
import { chunk, frames, type OpenAiServer, startOpenAiServer } from "../../support/openaiServer.ts"
import { at, post, values } from "./extraReplies.ts"

let server: OpenAiServer
let gateway: RunningGateway
beforeAll(async () => {
  server = await startOpenAiServer()
  gateway = await startGateway({ upstream: { driver: "openai", base_url: server.baseUrl } })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

const model = "upstream-chat"
const extra = { extra_content: { google: { thought_signature: "c2lnbmVk" } } }
const piece = (text: string) => ({ type: "reasoning.text", text, index: 0 })
const details = [{ type: "reasoning.text", text: "Hmm", index: 0 }, {
  type: "reasoning.encrypted",
  data: "x",
  index: 1
}]

let made = 0
/** Answers the first request with a call, and the second one with text. Returns the call's id. */
const callThenText = (sealed: object = extra): string => {
  const id = `call_${made++}`
  const call = { index: 0, id, type: "function", function: { name: "get_time", arguments: "{}" }, ...sealed }
  server.answer((_, index) => ({
    pieces: [
      index === 0
        ? frames(
          chunk({ reasoning_details: [piece("H")] }),
          chunk({ reasoning_details: [piece("mm")] }),
          chunk({ reasoning_details: [{ type: "reasoning.encrypted", data: "x", index: 1 }] }),
          chunk({ tool_calls: [call] }),
          chunk({}, "tool_calls"),
          "[DONE]"
        )
        : frames(chunk({ content: "Noon" }), chunk({}, "stop"), "[DONE]")
    ]
  }))
  return id
}

/** The assistant message with the call in the second request. */
const sentBack = () => {
  const messages = server.requests[1]?.body["messages"]
  return Array.isArray(messages) ? messages.find((message: unknown) => at(message, "role") === "assistant") : undefined
}

const assertSentBack = (id: string) => {
  const message = sentBack()
  assert.deepInclude(at(message, "tool_calls", 0), { id, ...extra })
  assert.deepStrictEqual(at(message, "reasoning_details"), details)
}

const parameters = { type: "object", properties: {} }

describe.each([false, true])("what only the server reads of a call, streamed: %s", (stream) => {
  const url = () => gateway.url

  it("is in the chat style, and comes back from a client that drops it", async () => {
    const ask = {
      model,
      stream,
      messages: [{ role: "user", content: "Time?" }],
      tools: [{ type: "function", function: { name: "get_time", parameters } }]
    }
    const id = callThenText()
    const reply = await post(url(), "/v1/chat/completions", ask)
    const call = stream
      ? values(reply).map((value) => at(value, "choices", 0, "delta", "tool_calls", 0)).find((call) =>
        call !== undefined
      )
      : at(reply, "choices", 0, "message", "tool_calls", 0)
    assert.deepInclude(call, extra)
    const plain = { id, type: "function", function: { name: "get_time", arguments: "{}" } }
    const result = { role: "tool", tool_call_id: id, content: "12:00" }
    await post(url(), "/v1/chat/completions", {
      ...ask,
      messages: [...ask.messages, { role: "assistant", content: null, tool_calls: [plain] }, result]
    })
    assertSentBack(id)
  })

  it("comes back in the Responses style", async () => {
    const ask = { model, stream, input: "Time?", tools: [{ type: "function", name: "get_time", parameters }] }
    const id = callThenText()
    await post(url(), "/v1/responses", ask)
    await post(url(), "/v1/responses", {
      ...ask,
      input: [
        { role: "user", content: "Time?" },
        { type: "function_call", call_id: id, name: "get_time", arguments: "{}" },
        { type: "function_call_output", call_id: id, output: "12:00" }
      ]
    })
    assertSentBack(id)
  })

  it("comes back in the messages style", async () => {
    const question = { role: "user", content: "Time?" }
    const ask = { model, stream, max_tokens: 9, tools: [{ name: "get_time", input_schema: parameters }] }
    const id = callThenText()
    await post(url(), "/v1/messages", { ...ask, messages: [question] })
    await post(url(), "/v1/messages", {
      ...ask,
      messages: [
        question,
        { role: "assistant", content: [{ type: "tool_use", id, name: "get_time", input: {} }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "12:00" }] }
      ]
    })
    assertSentBack(id)
  })

  it("is the signature of the content-generation style, and comes back from there", async () => {
    const path = `/v1beta/models/${model}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`
    const question = { role: "user", parts: [{ text: "Time?" }] }
    const ask = { tools: [{ functionDeclarations: [{ name: "get_time" }] }] }
    const id = callThenText()
    const reply = await post(url(), path, { ...ask, contents: [question] })
    const first = stream ? values(reply)[0] : reply
    const part = at(first, "candidates", 0, "content", "parts", 0)
    assert.deepStrictEqual(part, {
      functionCall: { id, name: "get_time", args: {} },
      thoughtSignature: "c2lnbmVk"
    })
    // Without the id nothing can be looked up: the signature is the client's own.
    const call = { functionCall: { name: "get_time", args: {} }, thoughtSignature: "c2lnbmVk" }
    const result = { functionResponse: { name: "get_time", response: { output: "12:00" } } }
    const contents = [question, { role: "model", parts: [call] }, { role: "user", parts: [result] }]
    await post(url(), path, { ...ask, contents })
    assert.deepInclude(at(sentBack(), "tool_calls", 0), extra)
  })
})

describe("what a caller sends of a call", () => {
  it.each(["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"])(
    "stays out of the request if it only stands for a missing signature: %s",
    async (thoughtSignature) => {
      callThenText()
      const parts = [{ functionCall: { name: "get_time", args: {} }, thoughtSignature }]
      const result = { functionResponse: { name: "get_time", response: { output: "12:00" } } }
      const contents = [
        { role: "user", parts: [{ text: "Time?" }] },
        { role: "model", parts },
        { role: "user", parts: [result] }
      ]
      await post(gateway.url, `/v1beta/models/${model}:generateContent`, { contents })
      const messages = server.requests[0]?.body["messages"]
      assert.hasAllKeys(at(messages, 1, "tool_calls", 0), ["id", "type", "function"])
    }
  )

  it("goes to the server before what is kept", async () => {
    const id = callThenText()
    const messages = [
      { role: "user", content: "Time?" },
      {
        role: "assistant",
        content: null,
        reasoning_details: details,
        tool_calls: [{ id, type: "function", function: { name: "get_time", arguments: "{}" }, extra_content: { a: 1 } }]
      },
      { role: "tool", tool_call_id: id, content: "12:00" }
    ]
    await post(gateway.url, "/v1/chat/completions", { model, messages })
    const message = server.requests[0]?.body["messages"]
    assert.deepStrictEqual(at(message, 1, "tool_calls", 0, "extra_content"), { a: 1 })
    assert.deepStrictEqual(at(message, 1, "reasoning_details"), details)
  })
})
