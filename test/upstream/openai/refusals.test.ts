/** Refusals, pictures and errors of a server in every style; requests that no server can serve. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { type RunningGateway, startGateway } from "../../support/gateway.ts"
import { chunk, frames, json, type OpenAiServer, startOpenAiServer } from "../../support/openaiServer.ts"
import { at, merged, post, values } from "./extraReplies.ts"

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
const chat = { model, messages: [{ role: "user", content: "Hi" }] }
const contents = [{ role: "user", parts: [{ text: "Hi" }] }]
const send = (path: string, body: object) => post(gateway.url, path, body)
const generatePath = `/v1beta/models/${model}:generateContent`

describe("a refusal", () => {
  beforeAll(() => {
    server.answer(() => ({
      pieces: [frames(chunk({ refusal: "I can" }), chunk({ refusal: "not." }), chunk({}, "stop"), "[DONE]")]
    }))
  })

  it("is one in the chat style", async () => {
    const message = at(await send("/v1/chat/completions", chat), "choices", 0, "message")
    assert.deepInclude(message, { content: null, refusal: "I cannot." })
    const streamed = merged(values(await send("/v1/chat/completions", { ...chat, stream: true })))
    assert.deepStrictEqual(streamed, { role: "assistant", refusal: "I cannot." })
  })

  it("is one in the Responses style", async () => {
    const ask = { model, input: "Hi" }
    const part = { type: "refusal", refusal: "I cannot." }
    const reply = await send("/v1/responses", ask)
    assert.deepStrictEqual(at(reply, "output", 0, "content"), [part])
    assert.strictEqual(at(reply, "output_text"), "")
    const events = values(await send("/v1/responses", { ...ask, stream: true }))
    const of = (type: string) => events.filter((event) => at(event, "type") === type)
    assert.deepStrictEqual(of("response.refusal.delta").map((event) => at(event, "delta")), ["I can", "not."])
    assert.strictEqual(at(of("response.refusal.done")[0], "refusal"), "I cannot.")
    assert.deepStrictEqual(at(of("response.completed")[0], "response", "output", 0, "content"), [part])
    assert.isNull(at(of("response.created")[0], "response", "usage"))
  })

  it("is one in the messages style", async () => {
    const ask = { ...chat, max_tokens: 9 }
    const stop = {
      stop_reason: "refusal",
      stop_details: { type: "refusal", category: null, explanation: "I cannot." }
    }
    const reply = await send("/v1/messages", ask)
    assert.deepInclude(reply, stop)
    assert.strictEqual(at(reply, "content", 0, "text"), "I cannot.")
    const events = values(await send("/v1/messages", { ...ask, stream: true }))
    assert.strictEqual(events.map((event) => at(event, "delta", "text") ?? "").join(""), "I cannot.")
    assert.deepInclude(at(events.at(-2), "delta"), stop)
  })

  it("is one in the content-generation style", async () => {
    const end = { finishReason: "SAFETY", finishMessage: "I cannot." }
    const reply = await send(generatePath, { contents })
    assert.deepInclude(at(reply, "candidates", 0), end)
    assert.strictEqual(at(reply, "candidates", 0, "content", "parts", 0, "text"), "I cannot.")
    const chunks = values(await send(`/v1beta/models/${model}:streamGenerateContent?alt=sse`, { contents }))
    assert.deepInclude(at(chunks.at(-1), "candidates", 0), end)
    const texts = chunks.map((value) => at(value, "candidates", 0, "content", "parts", 0, "text"))
    assert.strictEqual(texts.join(""), "I cannot.")
  })
})

describe("a refusal in the midst of a call", () => {
  const text = "<tool_call>\n{\"name\":\"get_time\",\"arguments\":{\"a\":"
  const call = (fields: object) => chunk({ tool_calls: [{ index: 0, ...fields }] })
  it.each(
    [
      [
        "native",
        call({ id: "c", function: { name: "get_time", arguments: "{\"a\":" } }),
        call({
          function: { arguments: "1}" }
        })
      ],
      ["as text", chunk({ content: text }), chunk({ content: "1}}\n</tool_call>" })]
    ] as const
  )("follows the call: %s", async (_, begin, end) => {
    server.answer(() => ({
      pieces: [frames(begin, chunk({ refusal: "I cannot." }), end, chunk({}, "stop"), "[DONE]")]
    }))
    const tools = [{ name: "get_time", input_schema: { type: "object" } }]
    const ask = { ...chat, max_tokens: 9, tools, stream: true }
    const events = values(await send("/v1/messages", ask))
    const kinds = events.filter((event) => at(event, "type") === "content_block_start")
      .map((event) => at(event, "content_block", "type"))
    assert.deepStrictEqual(kinds, ["tool_use", "text"])
    assert.strictEqual(events.map((event) => at(event, "delta", "partial_json") ?? "").join(""), "{\"a\":1}")
  })
})

describe("the service tier of the server", () => {
  it("comes from a response", async () => {
    const rest = { service_tier: "flex" }
    server.answer(() => ({
      pieces: [frames(chunk({ content: "Hello" }, null, rest), chunk({}, "stop", rest), "[DONE]")]
    }))
    const ask = { model, input: "Hi", service_tier: "priority" }
    assert.strictEqual(at(await send("/v1/responses", ask), "service_tier"), "flex")
    const events = values(await send("/v1/responses", { ...ask, stream: true }))
    assert.strictEqual(at(events.at(-1), "response", "service_tier"), "flex")
  })
})

describe("a citation", () => {
  it("is an annotation in the Responses style", async () => {
    const facts = { start_index: 0, end_index: 5, title: "A", url: "http://a.example" }
    const annotations = [{ type: "url_citation", url_citation: facts }]
    server.answer(() => ({
      pieces: [frames(chunk({ content: "Hello" }), chunk({ annotations }), chunk({}, "stop"), "[DONE]")]
    }))
    const cited = [{ type: "url_citation", ...facts }]
    const reply = await send("/v1/responses", { model, input: "Hi" })
    assert.deepStrictEqual(at(reply, "output", 0, "content", 0, "annotations"), cited)
    const events = values(await send("/v1/responses", { model, input: "Hi", stream: true }))
    const added = events.filter((event) => at(event, "type") === "response.output_text.annotation.added")
    assert.deepStrictEqual(added.map((event) => [at(event, "annotation_index"), at(event, "annotation")]), [[
      0,
      cited[0]
    ]])
    assert.deepStrictEqual(at(events.at(-1), "response", "output", 0, "content", 0, "annotations"), cited)
  })
})

describe("a picture", () => {
  beforeAll(() => {
    const images = [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }]
    server.answer(() => ({ pieces: [frames(chunk({ images }), chunk({}, "stop"), "[DONE]")] }))
  })

  it("is a part in the content-generation style", async () => {
    const part = { inlineData: { mimeType: "image/png", data: "AAAA" } }
    assert.deepStrictEqual(at(await send(generatePath, { contents }), "candidates", 0, "content", "parts"), [part])
    const chunks = values(await send(`/v1beta/models/${model}:streamGenerateContent?alt=sse`, { contents }))
    assert.deepStrictEqual(at(chunks[0], "candidates", 0, "content", "parts"), [part])
  })

  it("is named in the messages style, which has none", async () => {
    const reply = await send("/v1/messages", { ...chat, max_tokens: 9 })
    assert.strictEqual(at(reply, "content", 0, "text"), "[image omitted]")
  })
})

describe("an error of the server", () => {
  it.each([
    [{ error: { message: "too hot", type: "invalid_request_error", param: "temperature", code: null } }, "temperature"],
    [{ detail: [{ loc: ["body", "messages", 0, "content"], msg: "Field required" }] }, "messages[0].content"]
  ])("keeps the field that it names: %j", async (body, param) => {
    server.answer(() => json(400, body))
    assert.strictEqual(at(await send("/v1/chat/completions", chat), "error", "param"), param)
  })
})

describe("a request that no server can serve", () => {
  it.each(
    [
      ["/v1/responses", { model, input: "Hi", background: true }, "background"],
      [
        "/v1/responses",
        { model, input: [{ role: "user", content: [{ type: "input_image", file_id: "file_1" }] }] },
        "input[0].content[0].file_id"
      ],
      [generatePath, { contents, cachedContent: "cachedContents/1" }, "cachedContent"],
      [
        generatePath,
        { contents, generationConfig: { responseModalities: ["TEXT", "AUDIO"] } },
        "generationConfig.responseModalities[1]"
      ]
    ] as const
  )("is refused by the field's name: %s %j", async (path, body, field) => {
    server.answer(() => ({ pieces: [frames(chunk({ content: "Hello" }), chunk({}, "stop"), "[DONE]")] }))
    const error = at(await send(path, body), "error")
    assert.include(String(at(error, "message")), field)
    assert.strictEqual(server.requests.length, 0)
  })
})
