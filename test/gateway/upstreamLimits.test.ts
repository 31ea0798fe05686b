/** Limits of upstream replies, at the limit and one above, as callers of each style see them. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import {
  type Answer,
  chunk,
  frames,
  json,
  type OpenAiServer,
  startOpenAiServer,
  usage
} from "../support/openaiServer.ts"
import { type Failed, type Got, styleClients, type StyleName, styleNames } from "../support/styleClients.ts"
import { admin } from "./support.ts"

const mostChars = 64 * 1024
const mostCalls = 3
const mostBytes = 1024 * 1024

let server: OpenAiServer
let gateway: RunningGateway

beforeAll(async () => {
  server = await startOpenAiServer()
  gateway = await startGateway({
    accounts: [{ token: "sk-a" }],
    upstream: {
      driver: "openai",
      base_url: server.baseUrl,
      models: { "upstream-reasoner": { model: "r", reasoning: true } }
    },
    limits: { reply_chars: mostChars, reply_calls: mostCalls, reply_bytes: mostBytes }
  })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

const tools = [{ name: "free", description: "", parameters: { type: "object", properties: {} } }]

/** Sends a request in each style, whole and streamed. */
const inEachStyle = async (
  answer: Answer,
  check: (reply: Got | Failed, style: StyleName, stream: boolean) => void,
  reasoner = false
) => {
  const clients = styleClients(gateway.url)
  for (const style of styleNames) {
    for (const stream of [false, true]) {
      server.answer(() => answer)
      const asked = { content: "Hi", tools, reasoner }
      const reply = stream ? await clients[style].streamed(asked) : await clients[style].whole(asked)
      try {
        check(reply, style, stream)
      } catch (error) {
        throw new Error(`${style}${stream ? ", streamed" : ""}: ${String(error)}`, { cause: error })
      }
    }
  }
}

const cutOff = { chat: "length", responses: "max_output_tokens", messages: "max_tokens", generate: "MAX_TOKENS" }

const textOf = (reply: Got | Failed) => {
  assert(reply._tag === "Got", JSON.stringify(reply))
  return reply.blocks.map((block) => block._tag === "Text" ? block.text : "").join("")
}
const said = (...deltas: ReadonlyArray<object>): Answer => ({
  pieces: [
    frames(...deltas.map((delta) => chunk(delta)), chunk({}, "stop"), { ...chunk({}), choices: [], usage }, "[DONE]")
  ]
})
const half = "x".repeat(mostChars / 2)
const call = (index: number, args = "{}") => ({
  tool_calls: [{ index, id: `call_${index}`, type: "function", function: { name: "free", arguments: args } }]
})

describe("an upstream reply", () => {
  it("with the maximum number of characters is complete", () =>
    inEachStyle(said({ content: half }, { content: half }), (reply, style) => {
      assert.lengthOf(textOf(reply), mostChars)
      assert.notInclude(JSON.stringify(reply._tag === "Got" && reply.finish), cutOff[style])
    }))

  it("above the maximum of characters is cut with finish reason length, and the upstream request is aborted", () =>
    inEachStyle({ pieces: [frames(...[half, half, "y"].map((content) => chunk({ content })))], after: "hang" }, (
      reply,
      style
    ) => {
      assert.strictEqual(textOf(reply), half + half)
      assert.include(JSON.stringify(reply._tag === "Got" && reply.finish), cutOff[style])
    }).then(() => server.until((requests) => requests.every(({ outcome }) => outcome === "aborted"))))

  it("with the maximum number of tool calls is complete; another call is dropped, with finish reason length", async () => {
    for (const more of [0, 1]) {
      const calls = Array.from({ length: mostCalls + more }, (_, i) => call(i))
      await inEachStyle(said(...calls), (reply, style) => {
        assert(reply._tag === "Got", JSON.stringify(reply))
        assert.lengthOf(reply.blocks.filter(({ _tag }) => _tag === "Call"), mostCalls)
        if (more === 1) assert.include(JSON.stringify(reply.finish), cutOff[style])
        else assert.notInclude(JSON.stringify(reply.finish), cutOff[style])
      })
    }
  })

  it("with tool calls in its text has the same maximum", async () => {
    const written = `<tool_calls><invoke name="free"><parameter name="a">1</parameter></invoke></tool_calls> `
    for (const more of [0, 1]) {
      await inEachStyle(said({ content: written.repeat(mostCalls + more) }), (reply, style) => {
        assert(reply._tag === "Got", JSON.stringify(reply))
        assert.lengthOf(reply.blocks.filter(({ _tag }) => _tag === "Call"), mostCalls)
        assert.strictEqual(JSON.stringify(reply.finish).includes(cutOff[style]), more === 1)
      })
    }
  })

  it("with a cut tool call omits the call", () =>
    inEachStyle(said(call(0, `{"a":"${half}${half}"}`)), (reply, style) => {
      assert(reply._tag === "Got", JSON.stringify(reply))
      assert.lengthOf(reply.blocks.filter(({ _tag }) => _tag === "Call"), 0)
      assert.include(JSON.stringify(reply.finish), cutOff[style])
    }))

  it("above the maximum of bytes fails", () =>
    inEachStyle({ pieces: [`: ${"x".repeat(mostBytes)}\n\n`, frames(chunk({ content: "a" }))] }, (reply, style) => {
      assert(reply._tag === "Failed", JSON.stringify(reply))
      assert.strictEqual(reply.code, style === "generate" ? "UNAVAILABLE" : reply.code)
      assert.match(reply.message, /more than 1048576 bytes/)
    }))

  it("without output fails", async () => {
    const ends: ReadonlyArray<Answer> = [
      { pieces: [frames(chunk({}, "stop"), "[DONE]")] },
      { pieces: [frames("[DONE]")] }
    ]
    for (const end of ends) {
      await inEachStyle(end, (reply) => {
        assert(reply._tag === "Failed", JSON.stringify(reply))
        assert.match(reply.message, /empty/)
      })
    }
  })

  it("with reasoning in any form shows it for models with reasoning only", async () => {
    const forms = [
      said({ reasoning_content: "Hm." }, { content: "Yes" }),
      said({ reasoning: "Hm." }, { content: "Yes" }),
      said({ content: "<think>Hm.</think>Yes" })
    ]
    for (const form of forms) {
      for (const reasoner of [true, false]) {
        await inEachStyle(form, (reply) => {
          assert.strictEqual(textOf(reply), "Yes")
          const shown = reply._tag === "Got" && reply.blocks.some(({ _tag }) => _tag === "Reasoning")
          assert.strictEqual(shown, reasoner)
          assert.notInclude(reasoner ? "" : JSON.stringify(reply), "Hm.")
        }, reasoner)
      }
    }
  })

  it("shows no text after a content filter", () =>
    inEachStyle(
      { pieces: [frames(chunk({ content: "He" }, "content_filter"), chunk({ content: "llo" }))], after: "hang" },
      (reply) => assert.strictEqual(textOf(reply), "He")
    ))

  it("has estimated token counts if the server's are not valid", () =>
    inEachStyle(
      {
        pieces: [
          frames(chunk({ content: "Yes" }), chunk({}, "stop"), {
            ...chunk({}),
            choices: [],
            usage: { prompt_tokens: 1.7e308, completion_tokens: -1, total_tokens: 1e13 }
          }, "[DONE]")
        ]
      },
      (reply) => {
        assert(reply._tag === "Got")
        for (const count of [reply.usage.prompt, reply.usage.completion]) {
          assert.isTrue(Number.isInteger(count) && count > 0 && count < 1000, String(count))
        }
      }
    ))

  it("that is not a stream is accepted up to 1 MiB", async () => {
    const whole = (length: number) => ({
      choices: [{ index: 0, message: { role: "assistant", content: "x" }, finish_reason: "stop" }],
      pad: "x".repeat(length)
    })
    const overhead = JSON.stringify(whole(0)).length
    await assertAnswered(json(200, whole(1024 * 1024 - overhead)), "x")
    await assertAnswered(json(200, whole(1024 * 1024 - overhead + 1)), undefined)
  })
})

/** Sends one request, in one style. */
const assertAnswered = async (answer: Answer, text: string | undefined) => {
  server.answer(() => answer)
  const reply = await styleClients(gateway.url).chat.whole({ content: "Hi" })
  if (text === undefined) assert.deepInclude(reply, { _tag: "Failed", status: 503, code: "upstream_error" })
  else assert.strictEqual(textOf(reply), text)
}

describe("an account behind an OpenAI-compatible server", () => {
  it("stays in rotation when a client error repeats words of the caller about keys and quotas", async () => {
    const words = [
      "Incorrect API key provided: invalid_api_key, insufficient_quota, rate_limit_exceeded, account_deactivated",
      "API key not valid. Please pass a valid API key."
    ]
    for (const message of words) {
      for (const status of [400, 404, 422]) {
        for (
          const body of [{ error: { message, type: "invalid_request_error" } }, { error: message }, { detail: message }]
        ) {
          server.answer(() => json(status, body))
          const reply = await styleClients(gateway.url).chat.whole({ content: message })
          assert.strictEqual(reply._tag, "Failed")
          assert.lengthOf(server.requests, 1)
          const queue = await admin(gateway.url, "GET", "/admin/queue/status")
          assert.deepInclude(queue, { total: 1, in_use: 0, available: 1 })
        }
      }
    }
  })

  it("cools down for at most 600 seconds if Retry-After has 400 digits", async () => {
    server.answer(() => json(429, {}, { "retry-after": "9".repeat(400) }))
    const ask = () =>
      fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: "Bearer test-key", "content-type": "application/json" },
        body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "Hi" }] })
      })
    const after = Number((await ask()).headers.get("retry-after"))
    assert.isTrue(Number.isInteger(after) && after >= 1 && after <= 600, String(after))
  })
})
