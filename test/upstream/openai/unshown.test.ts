/**
 * All that an OpenAI-compatible server may say, in every style: it is in the reply, or the request's record names it. The header of a
 * whole reply names it too.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { chunk, frames, type OpenAiServer, startOpenAiServer } from "../../support/openaiServer.ts"
import { plainRequests } from "../../support/plainRequests.ts"

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

/** A model whose reasoning is shown. */
const model = "upstream-reasoner"

type StyleName = keyof typeof plainRequests
const styleNames = Object.keys(plainRequests) as ReadonlyArray<StyleName>

/** Asks for a reply. Returns its text, and what the header and the record name. */
const ask = async (style: StyleName, stream: boolean, fields: object = {}) => {
  const { body, path } = plainRequests[style]
  const response = await fetch(gateway.url + path(stream).replace("upstream-chat", model), {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify({ ...body(stream), model, ...fields })
  })
  const text = await response.text()
  assert.strictEqual(response.status, 200, text)
  const id = response.headers.get("x-request-id")
  const record = await fetch(`${gateway.url}/admin/requests/${id}`, {
    headers: { authorization: `Bearer ${adminKey}` }
  })
  const { ignored } = await record.json() as { readonly ignored: ReadonlyArray<string> }
  return { text, header: response.headers.get("x-gateway-ignored")?.split(",") ?? [], record: ignored }
}

const message = "reply.choices[0].message"
const others: ReadonlyArray<StyleName> = ["responses", "messages", "generate"]

/** What a server says: how its value looks in a reply, its path, and the styles that have no place for it. */
const facts: ReadonlyArray<{
  readonly value: string
  readonly path: string
  readonly unshownIn: ReadonlyArray<StyleName>
}> = [
  { value: "I refuse", path: `${message}.refusal`, unshownIn: [] },
  { value: "http://a.example/cited", path: `${message}.annotations`, unshownIn: [] },
  { value: "http://a.example/picture", path: `${message}.images`, unshownIn: [] },
  { value: "spoken words", path: `${message}.audio.transcript`, unshownIn: [] },
  { value: "U09VTkQ=", path: `${message}.audio.data`, unshownIn: ["responses", "messages"] },
  { value: "sealed thoughts", path: `${message}.reasoning_details`, unshownIn: others },
  { value: "hologram", path: `${message}.hologram`, unshownIn: others },
  { value: "-0.125", path: "reply.choices[0].logprobs", unshownIn: ["messages"] },
  { value: "filtered words", path: "reply.choices[0].content_filter_results", unshownIn: others },
  { value: "tier of its own", path: "reply.service_tier", unshownIn: ["generate"] },
  { value: "Acme hosting", path: "reply.provider", unshownIn: others },
  { value: "4711", path: "reply.usage.completion_tokens_details.audio_tokens", unshownIn: ["responses", "messages"] },
  { value: "4712", path: "reply.usage.prompt_tokens_details.audio_tokens", unshownIn: ["responses", "messages"] },
  { value: "0.0625", path: "reply.usage.cost", unshownIn: others }
]

const all = [
  chunk({ role: "assistant" }, null, {
    service_tier: "tier of its own",
    provider: "Acme hosting",
    system_fingerprint: "fp"
  }),
  chunk({
    reasoning_content: "Hm.",
    reasoning_details: [{ type: "reasoning.text", text: "Hm.", signature: "sealed thoughts" }]
  }),
  {
    ...chunk({}),
    choices: [{
      index: 0,
      delta: { content: "Hello" },
      logprobs: { content: [{ token: "Hello", logprob: -0.125, bytes: null, top_logprobs: [] }], refusal: null },
      content_filter_results: { hate: "filtered words" },
      finish_reason: null
    }]
  },
  chunk({
    annotations: [{ type: "url_citation", url_citation: { url: "http://a.example/cited", title: "" } }],
    images: [{ type: "image_url", image_url: { url: "http://a.example/picture" } }],
    audio: { id: "a", data: "U09VTkQ=", transcript: "spoken words", expires_at: 9 },
    hologram: { data: "hologram" }
  }),
  chunk({ refusal: "I refuse" }),
  {
    ...chunk({}, "stop"),
    usage: {
      prompt_tokens: 9_000,
      completion_tokens: 9_000,
      total_tokens: 18_000,
      cost: 0.0625,
      is_byok: false,
      queue_time: 0.5,
      prompt_tokens_details: { audio_tokens: 4712, cached_tokens: 3 },
      completion_tokens_details: { audio_tokens: 4711, reasoning_tokens: 3, accepted_prediction_tokens: 0 }
    }
  }
]

describe.each(styleNames)("what a server says, in the %s style", (style) => {
  it.each([false, true])("is in the reply, or is named (streamed: %s)", async (stream) => {
    server.answer(() => ({ pieces: [frames(...all, "[DONE]")] }))
    const { header, record, text } = await ask(
      style,
      stream,
      style === "chat" ? { stream_options: { include_usage: true } } : {}
    )
    const named = facts.filter(({ unshownIn }) => unshownIn.includes(style)).map(({ path }) => path)
    assert.sameMembers([...record], named)
    assert.deepStrictEqual(header, stream ? [] : record)
    for (const { path, unshownIn, value } of facts) {
      if (unshownIn.includes(style)) assert.notInclude(text, value, path)
      else assert.include(text, value, path)
    }
  })

  it.each([false, true])(
    "has its sealed reasoning named where only the server reads it (streamed: %s)",
    async (stream) => {
      const sealed = [{ type: "reasoning.encrypted", data: "sealed thoughts", index: 0 }]
      server.answer(() => ({
        pieces: [frames(chunk({ reasoning_details: sealed }), chunk({ content: "Hello" }), chunk({}, "stop"), "[DONE]")]
      }))
      const { record, text } = await ask(style, stream)
      assert.deepStrictEqual(record, style === "chat" ? [] : [`${message}.reasoning_details`])
      assert.strictEqual(text.includes("sealed thoughts"), style === "chat")
    }
  )

  it.each([false, true])("is not named where the style shows all of it (streamed: %s)", async (stream) => {
    server.answer(() => ({
      pieces: [
        frames(
          chunk({ role: "assistant", refusal: null, annotations: [], audio: null }, null, { system_fingerprint: "fp" }),
          chunk({ reasoning: "Hm.", reasoning_details: [{ type: "reasoning.text", text: "Hm.", index: 0 }] }),
          chunk({ content: "Hello" }),
          {
            ...chunk({}, "stop"),
            usage: {
              prompt_tokens: 9,
              completion_tokens: 9,
              total_tokens: 18,
              prompt_tokens_details: { audio_tokens: 0, cached_tokens: 3 },
              completion_tokens_details: { reasoning_tokens: 3 },
              prompt_cache_hit_tokens: 3,
              prompt_cache_miss_tokens: 6
            }
          },
          "[DONE]"
        )
      ]
    }))
    const { header, record } = await ask(style, stream)
    assert.deepStrictEqual([header, record], [[], []])
  })
})

describe("what a server says in every chunk", () => {
  it("is named once, beside the fields of the request", async () => {
    const said = Array.from({ length: 300 }, (_, i) => chunk({ content: "a", [`field_${i % 150}`]: "x", hologram: 1 }))
    server.answer(() => ({ pieces: [frames(...said, chunk({}, "stop"), "[DONE]")] }))
    const { record } = await ask("messages", false, { container: "c" })
    assert.deepStrictEqual(record.slice(0, 3), ["container", `${message}.field_0`, `${message}.hologram`])
    assert.lengthOf(record, 100)
    assert.lengthOf(new Set(record), 100)
  })
})

describe("the server's word for the end of a reply", () => {
  it.each([false, true])("is named if no table has it (streamed: %s)", async (stream) => {
    server.answer(() => ({ pieces: [frames(chunk({ content: "Hello" }), chunk({}, "word of the future"), "[DONE]")] }))
    const named = "reply.finish:word of the future"
    const { header, record, text } = await ask("chat", stream)
    assert.deepStrictEqual([header, record], [stream ? [] : [named], [named]])
    assert.include(text, `"finish_reason":"length"`)
  })
})
