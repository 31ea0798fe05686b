/** Fields by which a server makes more than a strict limit has reserved, and servers that make more. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { type RawConfig, sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { chunk, frames, json, type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"
import { plainRequests } from "../support/plainRequests.ts"
import { styleNames } from "../support/styleClients.ts"

let server: OpenAiServer
let gateway: RunningGateway
beforeAll(async () => {
  server = await startOpenAiServer()
})
afterAll(() => server.stop())
afterEach(() => gateway.stop())

const strictKey = businessKey
const freeKey = "sk-free"

const start = async (config: RawConfig = {}) => {
  gateway = await startGateway({
    keys: [strictKey, freeKey],
    key_records: { [keyId(strictKey, sha256Hex)]: { limits: [{ window: "month", tokens: 10_000, strict: true }] } },
    accounts: [{ token: "sk-a" }],
    upstream: { driver: "openai", base_url: server.baseUrl, models: { big: "big" } },
    ...config
  })
}

const post = (path: string, body: object, key = strictKey) =>
  fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify(body)
  })

const limit = 50

/** A plain request of a style with a limit of output, and the given fields. */
const asked = (style: (typeof styleNames)[number], fields: object, stream = false) => {
  const { body, path } = plainRequests[style]
  const own = style === "generate"
    ? { generationConfig: { maxOutputTokens: limit } }
    : { model: "big", [style === "responses" ? "max_output_tokens" : "max_tokens"]: limit }
  return [path(stream).replace("upstream-chat", "big"), { ...body(stream), ...own, ...fields }] as const
}

/** Fields with the path that a refusal names. */
const refused: ReadonlyArray<readonly [path: string, fields: object]> = [
  ["n_predict", { n_predict: 5000 }],
  ["n_predict", { n_predict: -1 }],
  ["n_predict", { n_predict: "20" }],
  ["max_new_tokens", { max_new_tokens: 51 }],
  ["maxTokens", { maxTokens: 5000 }],
  ["MAX_TOKENS", { MAX_TOKENS: 5000 }],
  ["max-tokens", { "max-tokens": 5000 }],
  ["max_to\u212aens", { "max_to\u212aens": 5000 }],
  ["max_length", { max_length: 5000 }],
  ["min_tokens", { min_tokens: 5000, ignore_eos: true }],
  ["options.num_predict", { options: { num_predict: 5000 } }],
  ["parameters.max_new_tokens", { parameters: { max_new_tokens: 5000 } }],
  ["extra_body.options.num_predict", { extra_body: { options: { num_predict: 5000 } } }],
  ["reasoning_budget", { reasoning_budget: 5000 }],
  ["best_of", { best_of: 20 }],
  ["num_beams", { num_beams: 4 }],
  ["use_beam_search", { use_beam_search: true }],
  ["documents", { documents: [{ text: "long" }] }],
  ["chat_template", { chat_template: "{{ range(9) }}" }],
  ["prompt_embeds", { prompt_embeds: "AAAA" }],
  ["chat_template_kwargs.documents", { chat_template_kwargs: { documents: [] } }],
  ["chat_template_kwargs.rules", { chat_template_kwargs: { rules: "x".repeat(100) } }]
]

/** Fields that say no more than the limit, or nothing. */
const allowed: ReadonlyArray<object> = [
  { n_predict: limit, max_new_tokens: 1, best_of: 1, use_beam_search: false },
  { n_predict: null, documents: null },
  { chat_template_kwargs: { enable_thinking: false, effort: "low" } },
  { ignore_eos: true, min_tokens: 3 },
  { metadata: { max_tokens: "5000" } }
]

describe("a key with a strict limit", () => {
  it.each(styleNames)("is refused a field that makes more than it reserves, and told its name: %s", async (style) => {
    await start()
    server.answer(() => json(500, {}))
    for (const [name, fields] of refused) {
      const answer = await post(...asked(style, fields))
      const text = await answer.text()
      assert.strictEqual(answer.status, 400, `${name} ${text}`)
      assert.include(text, `${name}: `)
    }
    assert.lengthOf(server.requests, 0)
    server.answer(({ body }) => body["stream"] === true ? streamed({ content: "Yes" }) : json(200, reply("Yes")))
    for (const fields of allowed) {
      const answer = await post(...asked(style, fields))
      assert.strictEqual(answer.status, 200, `${JSON.stringify(fields)} ${await answer.text()}`)
    }
    for (const [name, fields] of refused) {
      if (name === "documents" || name === "min_tokens") {
        assert.strictEqual((await post(...asked(style, fields), freeKey)).status, 200, name)
      }
    }
  })

  it("is refused a budget of thinking beyond the limit, by the words of each contract", async () => {
    await start()
    server.answer(({ body }) => body["stream"] === true ? streamed({ content: "Yes" }) : json(200, reply("Yes")))
    for (
      const [style, path, of] of [
        ["messages", "thinking.budget_tokens", (n: number) => ({ thinking: { type: "enabled", budget_tokens: n } })],
        ["chat", "thinking.budget_tokens", (n: number) => ({ thinking: { type: "enabled", budget_tokens: n } })],
        ["chat", "reasoning.max_tokens", (n: number) => ({ reasoning: { max_tokens: n } })],
        ["chat", "thinking_budget", (n: number) => ({ thinking_budget: n })],
        [
          "generate",
          "generationConfig.thinkingConfig.thinkingBudget",
          (n: number) => ({ generationConfig: { maxOutputTokens: limit, thinkingConfig: { thinkingBudget: n } } })
        ]
      ] as const
    ) {
      const answer = await post(...asked(style, of(5000)))
      assert.strictEqual(answer.status, 400, path)
      assert.include(await answer.text(), `${path}: `)
      assert.strictEqual((await post(...asked(style, of(limit - 1)))).status, 200, path)
    }
  })

  it("is refused such fields at a relayed endpoint, whose choices count", async () => {
    await start()
    server.answer(() => json(200, { choices: [{ text: "Yes" }] }))
    const complete = (fields: object) =>
      post("/v1/completions", { model: "big", prompt: "Hi", max_tokens: 5, ...fields })
    for (
      const [name, fields] of [
        ["n_predict", { n_predict: 5000 }],
        ["min_tokens", { min_tokens: 5000 }],
        ["options.num_predict", { options: { num_predict: 5000 } }],
        ["max_tokens", { max_tokens: -1 }],
        ["n", { n: "50" }],
        ["best_of", { best_of: "50" }],
        ["num_beams", { num_beams: 50 }]
      ] as const
    ) {
      const answer = await complete(fields)
      assert.strictEqual(answer.status, 400, name)
      assert.include(await answer.text(), `${name}: `)
    }
    assert.strictEqual((await complete({ best_of: 2_000_000 })).status, 429)
    assert.strictEqual((await complete({ best_of: 2, n: 1, n_predict: 5 })).status, 200)
    server.answer(() => json(200, { results: [] }))
    const ranked = await post("/v1/rerank", { model: "big", query: "q", documents: ["a"], max_length: 5000 })
    assert.strictEqual(ranked.status, 200)
  })

  it("is refused them for a strict budget of the upstream too", async () => {
    await start({
      upstream: {
        driver: "openai",
        base_url: server.baseUrl,
        models: { big: "big" },
        budgets: [{ window: "month", tokens: 10_000, strict: true }]
      }
    })
    const answer = await post(...asked("chat", { n_predict: 5000 }), freeKey)
    assert.strictEqual(answer.status, 400)
    assert.include(await answer.text(), "n_predict: ")
  })
})

const reply = (content: string) => ({
  ...chunk({}),
  object: "chat.completion",
  choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }]
})

/** A reply of four hundred events, whatever the request says. */
const long = (event: object) => ({
  pieces: [frames(...Array.from({ length: 400 }, () => event))]
})

describe("a stream of a server that heeds no limit", () => {
  it.each(styleNames)("ends as cut by the limit once it has more than was reserved: %s", async (style) => {
    await start()
    server.answer(() => long(chunk({ content: " one more word" })))
    const answer = await post(...asked(style, {}, true))
    const text = await answer.text()
    assert.strictEqual(answer.status, 200)
    assert.match(text, /"length"|max_output_tokens|max_tokens|MAX_TOKENS/)
    // The last events of the Responses API repeat the whole text.
    const [deltas = ""] = text.split("response.output_text.done")
    const words = deltas.split("one more word").length - 1
    assert.isAtLeast(words, limit / 3 - 1)
    assert.isBelow(words, 60)
  })

  it("goes on for a key without strict limits", async () => {
    await start()
    server.answer(() => streamed({ content: " one more word".repeat(100) }))
    const text = await (await post(...asked("chat", {}, true), freeKey)).text()
    assert.strictEqual(text.split("one more word").length - 1, 100)
  })

  it("ends with an error at a relayed endpoint", async () => {
    await start()
    server.answer(() => long({ choices: [{ index: 0, text: " one more word" }] }))
    const answer = await post("/v1/completions", { model: "big", prompt: "Hi", max_tokens: limit, stream: true })
    const text = await answer.text()
    assert.include(text, "max_tokens")
    assert.include(text, "upstream_error")
    assert.isBelow(text.split("one more word").length - 1, 60)
  })
})
