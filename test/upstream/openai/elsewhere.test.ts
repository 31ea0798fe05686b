/** What an OpenAI-compatible server says beyond text and calls, in the places that the other styles have for it: whole and streamed. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { type RunningGateway, startGateway } from "../../support/gateway.ts"
import { chunk, frames, type OpenAiServer, startOpenAiServer } from "../../support/openaiServer.ts"
import { plainRequests } from "../../support/plainRequests.ts"
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

const answer = (...chunks: ReadonlyArray<unknown>) => server.answer(() => ({ pieces: [frames(...chunks, "[DONE]")] }))

type StyleName = keyof typeof plainRequests

const ask = (style: StyleName, stream: boolean, fields: object) => {
  const { body, path } = plainRequests[style]
  return post(gateway.url, path(stream), { ...body(stream), ...fields })
}
const whole = (style: StyleName, fields: object = {}) => ask(style, false, fields)
const streamed = async (style: StyleName, fields: object = {}) => values(await ask(style, true, fields))

const choice = (delta: object, rest: object) => ({
  ...chunk({}),
  choices: [{ index: 0, delta, finish_reason: null, ...rest }]
})

describe("log probabilities in content generation", () => {
  const token = (token: string, logprob: number, ...top: ReadonlyArray<readonly [string, number]>) => ({
    token,
    logprob,
    bytes: null,
    top_logprobs: top.map(([token, logprob]) => ({ token, logprob, bytes: null }))
  })
  const said = (...tokens: ReadonlyArray<ReturnType<typeof token>>) =>
    choice({ content: tokens.map(({ token }) => token).join("") }, { logprobs: { content: tokens } })
  const chosen = [
    { token: "Hel", logProbability: -0.5 },
    { token: "lo", logProbability: -1 },
    { token: "!", logProbability: -2 }
  ]
  const results = (reply: unknown) => at(reply, "candidates", 0, "logprobsResult")

  it("are the candidate's logprobsResult", async () => {
    answer(said(token("Hel", -0.5)), said(token("lo", -1), token("!", -2)), chunk({}, "stop"))
    assert.deepStrictEqual(results(await whole("generate")), { chosenCandidates: chosen })
    const chunks = await streamed("generate")
    assert.deepStrictEqual(
      chunks.map((value) => [at(value, "candidates", 0, "content", "parts", 0, "text"), results(value)]),
      [
        ["Hel", { chosenCandidates: chosen.slice(0, 1) }],
        ["lo!", { chosenCandidates: chosen.slice(1) }],
        ["", undefined]
      ]
    )
  })

  it("have the other candidates of each step", async () => {
    answer(said(token("Hel", -0.5, ["Hel", -0.5], ["Hi", -1.5])), said(token("lo", -1)), chunk({}, "stop"))
    assert.deepStrictEqual(at(results(await whole("generate")), "topCandidates"), [
      { candidates: [{ token: "Hel", logProbability: -0.5 }, { token: "Hi", logProbability: -1.5 }] },
      { candidates: [] }
    ])
    assert.deepStrictEqual(at(results((await streamed("generate"))[0]), "topCandidates"), [
      { candidates: [{ token: "Hel", logProbability: -0.5 }, { token: "Hi", logProbability: -1.5 }] }
    ])
  })

  it("wait for the text that they belong to, all of them", async () => {
    const silent = (logprob: ReturnType<typeof token>) => choice({}, { logprobs: { content: [logprob] } })
    answer(silent(token("Hel", -0.5)), silent(token("lo", -1)), said(token("!", -2)), chunk({}, "stop"))
    assert.deepStrictEqual(results(await whole("generate")), { chosenCandidates: chosen })
    assert.deepStrictEqual(results((await streamed("generate"))[0]), { chosenCandidates: chosen })
  })

  it("are left out where a call was found in the text", async () => {
    const tools = [{ functionDeclarations: [{ name: "get_time" }] }]
    answer(said(token("<tool_call>\n{\"name\":\"get_time\",\"arguments\":{}}\n</tool_call>", -1)), chunk({}, "stop"))
    const reply = await whole("generate", { tools })
    assert.strictEqual(at(reply, "candidates", 0, "content", "parts", 0, "functionCall", "name"), "get_time")
    assert.isUndefined(results(reply))
    assert.isTrue((await streamed("generate", { tools })).every((value) => results(value) === undefined))
  })

  it("are asked of the server by its own fields", async () => {
    const generationConfig = { responseLogprobs: true, logprobs: 2 }
    for (const stream of [false, true]) {
      answer(chunk({ content: "Hi" }), chunk({}, "stop"))
      await ask("generate", stream, { generationConfig })
      assert.deepInclude(server.requests.at(-1)?.body, { logprobs: true, top_logprobs: 2 })
    }
  })
})

const cited = (url: string, start_index: number, end_index: number, more: object = {}) => ({
  type: "url_citation",
  url_citation: { start_index, end_index, title: `About ${url}`, url, ...more }
})

describe("citations of pages in content generation", () => {
  const metadata = {
    groundingChunks: [
      { web: { uri: "http://a.example", title: "About http://a.example" } },
      { web: { uri: "http://b.example", title: "About http://b.example" } }
    ],
    groundingSupports: [
      { segment: { startIndex: 0, endIndex: 3 }, groundingChunkIndices: [0] },
      { segment: { startIndex: 1, endIndex: 5 }, groundingChunkIndices: [1] },
      { segment: { startIndex: 3, endIndex: 5 }, groundingChunkIndices: [0] }
    ]
  }
  const results = (reply: unknown) => at(reply, "candidates", 0, "groundingMetadata")

  it("are the candidate's groundingMetadata, at the end of a stream", async () => {
    answer(
      chunk({ content: "Hello" }),
      chunk({ annotations: [cited("http://a.example", 0, 3), cited("http://b.example", 1, 5)] }),
      chunk({ annotations: [cited("http://a.example", 3, 5)] }),
      chunk({}, "stop")
    )
    assert.deepStrictEqual(results(await whole("generate")), metadata)
    const chunks = await streamed("generate")
    assert.deepStrictEqual(chunks.map(results), [undefined, metadata])
    assert.strictEqual(at(chunks.at(-1), "candidates", 0, "finishReason"), "STOP")
  })

  it("support nothing without a place in the text", async () => {
    answer(chunk({ content: "Hi" }), chunk({ annotations: [cited("http://a.example", 0, 0)] }), chunk({}, "stop"))
    assert.deepStrictEqual(results(await whole("generate")), { groundingChunks: metadata.groundingChunks.slice(0, 1) })
  })

  it("are read where the server leaves out the inner object", async () => {
    const { url_citation: facts } = cited("http://a.example", 0, 2)
    answer(chunk({ content: "Hi" }), chunk({ annotations: [{ type: "url_citation", ...facts }] }), chunk({}, "stop"))
    assert.deepStrictEqual(at(results(await whole("generate")), "groundingChunks"), [metadata.groundingChunks[0]])
  })
})

describe("citations of pages in messages", () => {
  const location = (url: string, cited_text = "") => ({
    type: "web_search_result_location",
    cited_text,
    encrypted_index: "",
    title: `About ${url}`,
    url
  })
  const [a, b] = ["http://a.example", "http://b.example"] as const
  const tools = [{ name: "get_time", input_schema: { type: "object" } }]
  const call = chunk({ tool_calls: [{ index: 0, id: "c1", function: { name: "get_time", arguments: "{}" } }] })

  /** The blocks of a stream: their kind, and their citations in order. */
  const blocksOf = (events: ReadonlyArray<unknown>) => {
    const blocks: Array<{ readonly type: unknown; readonly citations: Array<unknown> }> = []
    for (const event of events) {
      if (at(event, "type") === "content_block_start") {
        blocks.push({ type: at(event, "content_block", "type"), citations: [] })
      }
      if (at(event, "delta", "type") === "citations_delta") {
        blocks.at(-1)?.citations.push(at(event, "delta", "citation"))
      }
    }
    return blocks
  }
  const content = (reply: unknown) =>
    (at(reply, "content") as ReadonlyArray<unknown>).map((block) => ({
      type: at(block, "type"),
      citations: at(block, "citations") ?? []
    }))

  const both = async (expected: ReadonlyArray<object>) => {
    assert.deepStrictEqual(content(await whole("messages", { tools })), expected)
    assert.deepStrictEqual(blocksOf(await streamed("messages", { tools })), expected)
  }

  it("come from the text", async () => {
    answer(
      chunk({ content: "Hello" }),
      chunk({ annotations: [cited(a, 0, 3, { content: "All of it" }), cited(b, 1, 5)] }),
      chunk({ annotations: [cited(a, 3, 5)] }),
      chunk({}, "stop")
    )
    await both([{ type: "text", citations: [location(a, "All of it"), location(b), location(a)] }])
  })

  it("wait for the text that they come before", async () => {
    answer(chunk({ annotations: [cited(a, 0, 3)] }), chunk({ content: "Hello" }), chunk({}, "stop"))
    await both([{ type: "text", citations: [location(a)] }])
  })

  it("come from the last text where a call follows", async () => {
    answer(chunk({ content: "Hello" }), chunk({ annotations: [cited(a, 0, 3)] }), call, chunk({}, "tool_calls"))
    await both([{ type: "text", citations: [location(a)] }, { type: "tool_use", citations: [] }])
  })

  it("have a text of their own where no text is left to come", async () => {
    answer(call, chunk({ annotations: [cited(a, 0, 3)] }), chunk({}, "tool_calls"))
    await both([{ type: "tool_use", citations: [] }, { type: "text", citations: [location(a)] }])
  })

  it("are null without any", async () => {
    answer(chunk({ content: "Hello" }), chunk({}, "stop"))
    assert.isNull(at(await whole("messages"), "content", 0, "citations"))
  })
})

describe("citations of pages in Responses", () => {
  it("have a message of their own where no text is left to come", async () => {
    const call = chunk({ tool_calls: [{ index: 0, id: "c1", function: { name: "get_time", arguments: "{}" } }] })
    answer(call, chunk({ annotations: [cited("http://a.example", 0, 3)] }), chunk({}, "tool_calls"))
    const tools = [{ type: "function", name: "get_time" }]
    const reply = await whole("responses", { tools })
    const last = (await streamed("responses", { tools })).at(-1)
    for (const output of [at(reply, "output"), at(last, "response", "output")]) {
      assert.deepStrictEqual(at(output, 0, "type"), "function_call")
      assert.deepStrictEqual(at(output, 1, "content", 0, "annotations", 0, "url"), "http://a.example")
    }
  })
})

describe("a picture in Responses", () => {
  const image = (url: string) => ({ type: "image_url", image_url: { url } })
  const images = [image("data:image/jpeg;base64,AAAA"), image("http://a.example/b.png")]
  const made = { type: "image_generation_call", status: "completed", result: "AAAA", output_format: "jpeg" }
  const without = (item: unknown): object => ({ ...item as object, id: undefined })

  it("is an item of its own; one at an address is text", async () => {
    answer(chunk({ content: "Look: " }), chunk({ images }), chunk({ content: " Nice." }), chunk({}, "stop"))
    const [text, picture, after, ...more] = at(await whole("responses"), "output") as ReadonlyArray<unknown>
    assert.deepStrictEqual(more, [])
    assert.strictEqual(at(text, "content", 0, "text"), "Look: [image: http://a.example/b.png]")
    assert.deepStrictEqual(without(picture), { ...made, id: undefined })
    assert.strictEqual(at(after, "content", 0, "text"), " Nice.")
  })

  it("comes with the events of a picture that is made", async () => {
    answer(chunk({ images: images.slice(0, 1) }), chunk({}, "stop"))
    const events = await streamed("responses")
    const ofPicture = events.filter((event) => at(event, "output_index") === 0)
    const id = at(ofPicture[0], "item", "id")
    assert.deepStrictEqual(
      ofPicture.map((event) => [at(event, "type"), at(event, "item_id") ?? at(event, "item", "id")]),
      [
        "response.output_item.added",
        "response.image_generation_call.in_progress",
        "response.image_generation_call.generating",
        "response.image_generation_call.completed",
        "response.output_item.done"
      ].map((type) => [type, id])
    )
    assert.deepStrictEqual(without(at(ofPicture[0], "item")), {
      type: "image_generation_call",
      status: "in_progress",
      result: null,
      id: undefined
    })
    assert.deepStrictEqual(without(at(ofPicture.at(-1), "item")), { ...made, id: undefined })
    assert.deepStrictEqual(at(events.at(-1), "response", "output"), [at(ofPicture.at(-1), "item")])
  })

  it("goes back to the server with the response that it belongs to", async () => {
    answer(chunk({ images: images.slice(0, 1) }), chunk({}, "stop"))
    const id = at(await whole("responses", { store: true }), "id")
    await whole("responses", { previous_response_id: id, input: "Again" })
    assert.include(JSON.stringify(server.requests.at(-1)?.body), "data:image/jpeg;base64,AAAA")
  })
})

describe("audio in content generation", () => {
  const part = (data: string, mimeType = "audio/wav") => ({ inlineData: { mimeType, data } })
  const parts = (reply: unknown) => at(reply, "candidates", 0, "content", "parts") as ReadonlyArray<unknown>
  const streamedParts = async (fields: object = {}) => (await streamed("generate", fields)).flatMap(parts)

  it("is a part beside its text", async () => {
    answer(chunk({ audio: { id: "a", transcript: "Hi", data: "AAAA", expires_at: 9 } }), chunk({}, "stop"))
    assert.deepStrictEqual(parts(await whole("generate")), [{ text: "Hi" }, part("AAAA")])
    assert.deepStrictEqual(await streamedParts(), [{ text: "Hi" }, part("AAAA"), { text: "" }])
  })

  it("comes in pieces that can each be decoded", async () => {
    answer(
      chunk({ audio: { id: "a", transcript: "Hi" } }),
      chunk({ audio: { data: "AAAABB" } }),
      chunk({ audio: { data: "B" } }),
      chunk({ audio: { data: "BCC==" } }),
      chunk({}, "stop")
    )
    assert.deepStrictEqual(parts(await whole("generate")), [{ text: "Hi" }, part("AAAABBBBCC==")])
    assert.deepStrictEqual(await streamedParts(), [
      { text: "Hi" },
      part("AAAA"),
      part("BBBBCC=="),
      { text: "" }
    ])
  })

  it.each([
    ["mp3", "audio/mpeg"],
    ["pcm16", "audio/L16;rate=24000"],
    ["flac", "audio/flac"]
  ])("has the media type of the format that was asked for: %s", async (format, mimeType) => {
    answer(chunk({ audio: { transcript: "", data: "AAAA" } }), chunk({}, "stop"))
    const fields = { modalities: ["text", "audio"], audio: { voice: "alloy", format } }
    assert.deepStrictEqual(parts(await whole("generate", fields)), [part("AAAA", mimeType)])
    assert.deepStrictEqual((await streamedParts(fields))[0], part("AAAA", mimeType))
  })
})

describe("the service tier in messages", () => {
  const tierOf = async (tier: string) => {
    answer(chunk({ content: "Hi" }, null, { service_tier: tier }), chunk({}, "stop", { service_tier: tier }))
    const events = await streamed("messages")
    return [
      at(await whole("messages"), "usage", "service_tier"),
      at(events[0], "message", "usage", "service_tier"),
      at(events.at(-2), "usage", "service_tier")
    ]
  }

  it.each([["default", "standard"], ["priority", "priority"], ["batch", "batch"], ["flex", "flex"]])(
    "comes from the usage: %s",
    async (tier, expected) => {
      assert.deepStrictEqual(await tierOf(tier), [expected, expected, undefined])
    }
  )

  it("comes from the last usage where the server says it late", async () => {
    answer(chunk({ content: "Hi" }), chunk({}, "stop", { service_tier: "priority" }))
    const events = await streamed("messages")
    assert.isNull(at(events[0], "message", "usage", "service_tier"))
    assert.strictEqual(at(events.at(-2), "usage", "service_tier"), "priority")
    assert.strictEqual(at(await whole("messages"), "usage", "service_tier"), "priority")
  })
})

describe("tokens of other kinds than text in content generation", () => {
  const usage = (prompt: object, completion: object) => ({
    prompt_tokens: 100,
    completion_tokens: 50,
    total_tokens: 150,
    prompt_tokens_details: prompt,
    completion_tokens_details: completion
  })
  const details = async (usage: object) => {
    answer(chunk({ content: "Hi" }), { ...chunk({}, "stop"), usage })
    const reply = at(await whole("generate"), "usageMetadata")
    assert.deepStrictEqual(at((await streamed("generate")).at(-1), "usageMetadata"), reply)
    return [at(reply, "promptTokensDetails"), at(reply, "candidatesTokensDetails")]
  }
  const count = (modality: string, tokenCount: number) => ({ modality, tokenCount })

  it("are the details of the counts", async () => {
    assert.deepStrictEqual(
      await details(usage({ audio_tokens: 30, cached_tokens: 5 }, { audio_tokens: 20, reasoning_tokens: 8 })),
      [[count("TEXT", 70), count("AUDIO", 30)], [count("TEXT", 22), count("AUDIO", 20)]]
    )
    assert.deepStrictEqual(
      await details(usage({ image_tokens: 60, video_tokens: 10, text_tokens: 29 }, { image_tokens: 50 })),
      [[count("TEXT", 29), count("IMAGE", 60), count("VIDEO", 10)], [count("IMAGE", 50)]]
    )
  })

  it("are no details where all tokens are text", async () => {
    assert.deepStrictEqual(await details(usage({ audio_tokens: 0, text_tokens: 100 }, {})), [undefined, undefined])
  })
})

describe("log probabilities in Responses", () => {
  it("are not those of a later text where a call was found in the text", async () => {
    const call = "<tool_call>\n{\"name\":\"get_time\",\"arguments\":{}}\n</tool_call>"
    const tokens = (token: string) => ({
      logprobs: { content: [{ token, logprob: -1, bytes: null, top_logprobs: [] }] }
    })
    answer(choice({ content: call }, tokens(call)), choice({ content: "Done." }, tokens("Done.")), chunk({}, "stop"))
    const tools = [{ type: "function", name: "get_time" }]
    for (
      const output of [
        at(await whole("responses", { tools }), "output"),
        at((await streamed("responses", { tools })).at(-1), "response", "output")
      ]
    ) {
      assert.strictEqual(at(output, 1, "content", 0, "text"), "Done.")
      assert.deepStrictEqual(at(output, 1, "content", 0, "logprobs"), [])
    }
  })
})
