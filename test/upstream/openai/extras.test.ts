/** What a server says beyond the modelled fields arrives in the chat style, whole and streamed. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { type RunningGateway, startGateway } from "../../support/gateway.ts"
import { type Answer, chunk, frames, json, type OpenAiServer, startOpenAiServer } from "../../support/openaiServer.ts"
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

const ask = { model: "upstream-chat", messages: [{ role: "user", content: "Hi" }] }
const tools = [{ type: "function", function: { name: "get_time", parameters: { type: "object" } } }]

const whole = (body: object = ask) => post(gateway.url, "/v1/chat/completions", body)
const streamed = async (body: object = ask) =>
  values(await post(gateway.url, "/v1/chat/completions", { ...body, stream: true }))
const answer = (...chunks: ReadonlyArray<unknown>) => server.answer(() => ({ pieces: [frames(...chunks, "[DONE]")] }))

const tokens = (...words: ReadonlyArray<string>) => ({
  content: words.map((token) => ({ token, logprob: -1, bytes: null, top_logprobs: [] }))
})
const withLogprobs = (content: string) => ({
  ...chunk({}),
  choices: [{ index: 0, delta: { content }, logprobs: tokens(content), finish_reason: null }]
})

describe("extra fields of a reply", () => {
  const annotations = [{
    type: "url_citation",
    url_citation: { start_index: 0, end_index: 2, title: "A", url: "http://a.example" }
  }]
  const images = [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }]
  const rest = { system_fingerprint: "fp_1", service_tier: "flex", provider: "Acme" }
  const citations = ["http://a.example"]

  it("arrive whole and streamed", async () => {
    answer(
      chunk({ role: "assistant" }, null, rest),
      chunk({ content: "Hel" }, null, { ...rest, citations }),
      chunk({ content: "lo" }, null, { ...rest, citations }),
      chunk({ annotations, images, audio: { id: "a", transcript: "Hel" } }, null, rest),
      chunk({ audio: { transcript: "lo", data: "AAAA" } }, null, rest),
      {
        ...chunk({}, "stop", rest),
        usage: {
          prompt_tokens: 11,
          completion_tokens: 7,
          total_tokens: 18,
          cost: 0.5,
          prompt_tokens_details: { audio_tokens: 3 }
        },
        timings: { predicted_ms: 5 }
      }
    )
    const reply = await whole()
    assert.deepInclude(reply, { ...rest, citations, timings: { predicted_ms: 5 } })
    const message = at(reply, "choices", 0, "message")
    assert.deepInclude(message, {
      content: "Hello",
      annotations,
      images,
      audio: { id: "a", transcript: "Hello", data: "AAAA" }
    })
    const usage = { cost: 0.5, prompt_tokens: 11, completion_tokens: 7 }
    assert.deepInclude(at(reply, "usage"), { ...usage, prompt_tokens_details: { audio_tokens: 3, cached_tokens: 0 } })

    const chunks = await streamed()
    assert.isTrue(chunks.every((value) => at(value, "system_fingerprint") === "fp_1"))
    assert.deepInclude(merged(chunks), { content: "Hello" })
    const deltas = chunks.map((value) => at(value, "choices", 0, "delta"))
    assert.deepStrictEqual(deltas.find((delta) => at(delta, "annotations") !== undefined), {
      annotations,
      images,
      audio: { id: "a", transcript: "Hel" }
    })
    assert.strictEqual(chunks.filter((value) => at(value, "citations") !== undefined).length, 1)
    assert.deepInclude(at(chunks.at(-1), "usage"), usage)
    assert.deepStrictEqual(at(chunks.at(-1), "timings"), { predicted_ms: 5 })
  })

  it("arrive from a server that does not stream", async () => {
    const message = { role: "assistant", content: "Hello", annotations, images }
    server.answer(() => json(200, { ...rest, choices: [{ index: 0, message, finish_reason: "stop" }] }))
    assert.deepInclude(at(await whole(), "choices", 0, "message"), { annotations, images })
    assert.deepInclude(merged(await streamed()), { content: "Hello", annotations, images })
  })

  it("make a reply of pictures alone, and no reply by themselves", async () => {
    answer(chunk({ images }), chunk({}, "stop"))
    assert.deepStrictEqual(at(await whole(), "choices", 0, "message", "images"), images)
    assert.strictEqual(server.requests.length, 1)
    answer(chunk({ role: "assistant" }, null, rest), chunk({}, "stop"))
    assert.strictEqual(at(await whole(), "error", "code"), "upstream_empty_output")
  })

  it("end the reply by length where they exceed its limit", async () => {
    const small = await startGateway({
      upstream: { driver: "openai", base_url: server.baseUrl },
      limits: { reply_chars: 65536 }
    })
    answer(chunk({ content: "A" }), chunk({ images: [{ image_url: { url: "A".repeat(70_000) } }] }), chunk({}, "stop"))
    const reply = await post(small.url, "/v1/chat/completions", ask)
    assert.strictEqual(at(reply, "choices", 0, "finish_reason"), "length")
    assert.strictEqual(at(reply, "choices", 0, "message", "images"), undefined)
    await small.stop()
  })
})

describe("logprobs", () => {
  it("arrive with their text", async () => {
    answer(withLogprobs("Hel"), withLogprobs("lo"), chunk({}, "stop"))
    assert.deepStrictEqual(at(await whole(), "choices", 0, "logprobs"), tokens("Hel", "lo"))
    const chunks = await streamed({ ...ask, tools })
    const told = chunks.map((
      value
    ) => [at(value, "choices", 0, "delta", "content"), at(value, "choices", 0, "logprobs")])
    assert.deepStrictEqual(told.filter(([content]) => content !== undefined), [
      ["Hel", tokens("Hel")],
      ["lo", tokens("lo")]
    ])
  })

  it("are left out where a call was found in the text", async () => {
    const call = "<tool_call>\n{\"name\":\"get_time\",\"arguments\":{}}\n</tool_call>"
    answer(withLogprobs(call), chunk({}, "stop"))
    const reply = await whole({ ...ask, tools })
    assert.strictEqual(at(reply, "choices", 0, "finish_reason"), "tool_calls")
    assert.isNull(at(reply, "choices", 0, "logprobs"))
    const chunks = await streamed({ ...ask, tools })
    assert.isTrue(chunks.every((value) => at(value, "choices", 0, "logprobs") === null))
  })
})

describe("usage", () => {
  const replies: ReadonlyArray<readonly [name: string, last: object, expected: object]> = [
    ["DeepSeek's cache hits", {
      usage: { prompt_tokens: 10, completion_tokens: 5, prompt_cache_hit_tokens: 4 }
    }, { prompt_tokens: 10, prompt_tokens_details: { cached_tokens: 4 } }],
    ["Moonshot's usage in the choice", {
      choices: [{
        index: 0,
        delta: {},
        finish_reason: "stop",
        usage: { prompt_tokens: 10, completion_tokens: 5, cached_tokens: 3 }
      }]
    }, { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 3 } }],
    ["Groq's", { x_groq: { usage: { prompt_tokens: 10, completion_tokens: 5 } } }, {
      prompt_tokens: 10,
      completion_tokens: 5
    }],
    ["the messages API's names", {
      usage: { input_tokens: 10, output_tokens: 5, cache_read_input_tokens: 2 }
    }, { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 2 } }],
    ["reasoning beside the completion", {
      usage: {
        prompt_tokens: 10,
        completion_tokens: 5,
        total_tokens: 35,
        completion_tokens_details: { reasoning_tokens: 20 }
      }
    }, { completion_tokens: 25, completion_tokens_details: { reasoning_tokens: 20 } }],
    ["a total alone beside the prompt", { usage: { prompt_tokens: 10, total_tokens: 15 } }, { completion_tokens: 5 }],
    ["llama.cpp's timings", { timings: { prompt_n: 6, cache_n: 4, predicted_n: 5 } }, {
      prompt_tokens: 10,
      completion_tokens: 5,
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 0 }
    }]
  ]
  it.each(replies)("is read: %s", async (_, last, expected) => {
    answer(chunk({ content: "Hello" }), { ...chunk({}, "stop"), ...last })
    assert.deepInclude(at(await whole(), "usage"), expected)
    assert.deepInclude(at((await streamed()).at(-1), "usage"), expected)
  })

  it("has cache writes in the styles that count them", async () => {
    const usage = {
      prompt_tokens: 10,
      completion_tokens: 5,
      prompt_tokens_details: { cached_tokens: 2, cache_write_tokens: 3 }
    }
    const reply: Answer = { pieces: [frames(chunk({ content: "Hello" }), { ...chunk({}, "stop"), usage }, "[DONE]")] }
    server.answer(() => reply)
    assert.deepInclude(at(await post(gateway.url, "/v1/messages", { ...ask, max_tokens: 9 }), "usage"), {
      input_tokens: 5,
      cache_read_input_tokens: 2,
      cache_creation_input_tokens: 3
    })
    assert.deepStrictEqual(
      at(await post(gateway.url, "/v1/responses", { model: ask.model, input: "Hi" }), "usage", "input_tokens_details"),
      { cached_tokens: 2, cache_write_tokens: 3 }
    )
    assert.deepInclude(at(await whole(), "usage", "prompt_tokens_details"), { cached_tokens: 2, cache_write_tokens: 3 })
  })
})
