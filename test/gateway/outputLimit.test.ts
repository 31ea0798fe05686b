/** The limit of output in requests to a server: by the caller's field, until the server shows that it reads the other one. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { noSampling } from "../../src/domain/Conversation.ts"
import { OutputLimit } from "../../src/upstream/openai/outputLimit.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { json, type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"
import { type StyleName, styleNames } from "../support/styleClients.ts"
import { ask } from "./thinkingCalls.ts"

let server: OpenAiServer
let gateway: RunningGateway
beforeAll(async () => {
  server = await startOpenAiServer()
})
afterAll(() => server.stop())
afterEach(() => gateway.stop())

const start = async () => {
  gateway = await startGateway({
    upstream: { driver: "openai", base_url: server.baseUrl, models: { plain: "m", other: "n" } }
  })
}

/** The limit of 50 tokens in each style. */
const limited: Readonly<Record<StyleName, object>> = {
  chat: { max_tokens: 50 },
  responses: { max_output_tokens: 50 },
  messages: { max_tokens: 50 },
  generate: { generationConfig: { maxOutputTokens: 50 } }
}

const limitsSent = () =>
  server.requests.map(({ body: { max_completion_tokens, max_tokens } }) => ({ max_completion_tokens, max_tokens }))
const byCompletion = { max_completion_tokens: 50, max_tokens: undefined }
const byTokens = { max_completion_tokens: undefined, max_tokens: 50 }

/** The refusal of the vendor's newer models. */
const refusal = (field: string, other: string) =>
  json(400, {
    error: {
      message: `Unsupported parameter: '${field}' is not supported with this model. Use '${other}' instead.`,
      type: "invalid_request_error",
      param: field,
      code: "unsupported_parameter"
    }
  })

const counted = (tokens: number) =>
  json(200, {
    object: "chat.completion",
    model: "m",
    choices: [{ index: 0, message: { role: "assistant", content: "Yes" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 5, completion_tokens: tokens, total_tokens: 5 + tokens }
  })

describe("the limit of output", () => {
  it("goes in the other field to a model that refuses the caller's, from its first refusal on", async () => {
    await start()
    server.answer(({ body: { max_tokens } }) =>
      max_tokens === undefined ? streamed({ content: "Yes" }) : refusal("max_tokens", "max_completion_tokens")
    )
    for (const style of styleNames) {
      for (const stream of [true, false]) {
        assert.deepInclude(await ask(gateway.url, style, stream, "plain", limited[style]), { status: 200, text: "Yes" })
      }
    }
    const [first, ...others] = limitsSent()
    assert.deepStrictEqual(first, byTokens)
    assert.deepStrictEqual(others, Array.from({ length: 8 }, () => byCompletion))
    // Another model of the server is asked by itself.
    await ask(gateway.url, "chat", true, "other", limited.chat)
    assert.deepStrictEqual(limitsSent().slice(9), [byTokens, byCompletion])
  })

  it("goes in the older field to a server that has passed over the newer one", async () => {
    await start()
    server.answer(() => counted(60))
    const asked = () => ask(gateway.url, "chat", false, "plain", { max_completion_tokens: 50 })
    await asked()
    await asked()
    // A few tokens more may be the end of the reply.
    assert.deepStrictEqual(limitsSent(), [byCompletion, byCompletion])
    server.answer(() => counted(422))
    await asked()
    await asked()
    assert.deepStrictEqual(limitsSent(), [byCompletion, byTokens])
  })

  it("is refused by a server that reads neither field, with its words, after one call for each", async () => {
    await start()
    server.answer(({ body: { max_tokens } }) =>
      max_tokens === undefined
        ? refusal("max_completion_tokens", "max_tokens")
        : refusal("max_tokens", "max_completion_tokens")
    )
    for (let i = 0; i < 2; i++) {
      assert.deepInclude(await ask(gateway.url, "chat", true, "plain", limited.chat), { status: 400 })
    }
    assert.deepStrictEqual(limitsSent(), [byTokens, byCompletion, byTokens, byCompletion])
  })

  it("says both fields as they stand while nothing is known", async () => {
    await start()
    server.answer(() => streamed({ content: "Yes" }))
    await ask(gateway.url, "chat", true, "plain", { max_tokens: 50, max_completion_tokens: 60 })
    assert.deepStrictEqual(limitsSent(), [{ max_completion_tokens: 60, max_tokens: 50 }])
  })

  it("has one field at the vendor", () => {
    const vendor = new OutputLimit("https://api.openai.com/v1")
    assert.deepStrictEqual(vendor.said("m", { ...noSampling, maxTokens: 50, topP: 1 }), {
      ...noSampling,
      maxCompletionTokens: 50,
      topP: 1
    })
    assert.deepStrictEqual(vendor.said("m", { ...noSampling, topP: 1 }), { ...noSampling, topP: 1 })
  })
})
