/** The thinking of a server's models: when callers see it, and that a reply of nothing else is a reply. */
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
import { type StyleName, styleNames } from "../support/styleClients.ts"
import { ask, type Asked, thinkingWords } from "./thinkingCalls.ts"

let server: OpenAiServer
let gateway: RunningGateway

beforeAll(async () => {
  server = await startOpenAiServer()
  gateway = await startGateway({
    upstream: {
      driver: "openai",
      base_url: server.baseUrl,
      models: {
        open: "auto-model",
        shown: { model: "true-model", reasoning: true },
        hidden: { model: "false-model", reasoning: false }
      }
    }
  })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

const stops = { chat: "stop", responses: "completed", messages: "end_turn", generate: "STOP" }
const lengths = { chat: "length", responses: "max_output_tokens", messages: "max_tokens", generate: "MAX_TOKENS" }

const said = (deltas: ReadonlyArray<object>, reason = "stop"): Answer => ({
  pieces: [
    frames(...deltas.map((delta) => chunk(delta)), chunk({}, reason), { ...chunk({}), choices: [], usage }, "[DONE]")
  ]
})

/** Asks in each style, whole and streamed; each request is answered once. */
const inEachStyle = async (
  model: string,
  answer: Answer,
  check: (asked: Asked, style: StyleName) => void,
  extra: (style: StyleName) => object = () => ({})
) => {
  for (const style of styleNames) {
    for (const stream of [false, true]) {
      server.answer(() => answer)
      const asked = await ask(gateway.url, style, stream, model, extra(style))
      try {
        assert.lengthOf(server.requests, 1)
        check(asked, style)
      } catch (error) {
        throw new Error(`${style}${stream ? ", streamed" : ""}: ${JSON.stringify(asked)}`, { cause: error })
      }
    }
  }
}

const forms: Record<string, ReadonlyArray<object>> = {
  reasoning_content: [{ reasoning_content: "H" }, { reasoning_content: "m." }, { content: "Yes" }],
  reasoning: [{ reasoning: "Hm." }, { content: "Yes" }],
  reasoning_details: [{ reasoning_details: [{ type: "reasoning.text", text: "Hm." }] }, { content: "Yes" }],
  "reasoning and its details": [
    { reasoning: "Hm.", reasoning_details: [{ type: "reasoning.text", text: "Hm." }] },
    { content: "Yes" }
  ],
  "a summary in its details": [
    { reasoning_details: [{ type: "reasoning.summary", summary: "Hm." }, { type: "reasoning.encrypted", data: "x" }] },
    { content: "Yes" }
  ],
  "details beside an empty text": [
    { reasoning: "", reasoning_details: [{ type: "reasoning.text", text: "Hm." }] },
    { content: "Yes" }
  ],
  "parts of the content": [
    { content: [{ type: "thinking", thinking: [{ type: "text", text: "Hm." }] }] },
    { content: "Yes" }
  ],
  inline: [{ content: "<think>Hm.</think>Yes" }]
}

describe("thinking that the server sends", () => {
  it.each(Object.entries(forms))(
    "as %s is shown for a model without `reasoning`",
    (_, deltas) =>
      inEachStyle("open", said(deltas), ({ text, thinking }, style) => {
        assert.deepStrictEqual({ text, thinking }, { text: "Yes", thinking: style === "messages" ? "" : "Hm." })
      })
  )

  it("is shown in the messages style where the caller asks for it, unless it is to be omitted", async () => {
    for (const [type, thinking] of [["enabled", "Hm."], ["adaptive", "Hm."], ["disabled", ""]] as const) {
      for (const stream of [false, true]) {
        server.answer(() => said(forms["reasoning"]!))
        const asked = await ask(gateway.url, "messages", stream, "open", { thinking: { type, budget_tokens: 1024 } })
        assert.deepInclude(asked, { text: "Yes", thinking }, type)
      }
    }
    const omitted = { thinking: { type: "adaptive", display: "omitted" } }
    assert.strictEqual((await ask(gateway.url, "messages", true, "open", omitted)).thinking, "")
  })

  it("is shown in every style for a model with `reasoning: true`, and in none with `false`", async () => {
    for (const [model, thinking] of [["shown", "Hm."], ["hidden", ""]] as const) {
      await inEachStyle(model, said(forms["reasoning_content"]!), (asked) => {
        assert.deepInclude(asked, { text: "Yes", thinking })
      }, thinkingWords)
    }
  })

  it("is shown for the native models that have it, and for no others", async () => {
    for (const [model, thinking] of [["upstream-reasoner", "Hm."], ["upstream-chat", ""]] as const) {
      await inEachStyle(model, said(forms["reasoning_content"]!), (asked) => {
        assert.deepInclude(asked, { text: "Yes", thinking })
      }, thinkingWords)
    }
  })
})

describe("a reply without text is a reply, once,", () => {
  const models = ["open", "shown", "hidden", "upstream-chat", "upstream-reasoner"]

  it.each(models)(
    "when it is all thinking: %s",
    (model) =>
      inEachStyle(model, said([{ reasoning_content: "Hm." }]), ({ finish, status, text, thinking }, style) => {
        assert.deepStrictEqual({ status, text, finish }, { status: 200, text: "", finish: stops[style] })
        assert.strictEqual(thinking, model === "hidden" || model === "upstream-chat" ? "" : "Hm.")
      }, thinkingWords)
  )

  it.each(models)("when its length ends within the thinking, or before it: %s", async (model) => {
    for (const deltas of [[{ reasoning: "Hm." }], []]) {
      await inEachStyle(model, said(deltas, "length"), ({ finish, status, text }, style) => {
        assert.deepStrictEqual({ status, text, finish }, { status: 200, text: "", finish: lengths[style] })
      })
    }
  })

  it("when it is only pictures", async () => {
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }
    for (const delta of [{ images: [image] }, { content: [image] }]) {
      await inEachStyle("open", said([delta]), ({ finish, status }, style) => {
        assert.deepStrictEqual({ status, finish }, { status: 200, finish: stops[style] })
      })
    }
  })

  it("also from a server that does not stream", async () => {
    const message = { role: "assistant", content: null, reasoning_content: "Hm." }
    await inEachStyle(
      "open",
      json(200, { choices: [{ index: 0, message, finish_reason: "stop" }], usage }),
      (asked) => {
        assert.deepInclude(asked, { status: 200, text: "", thinking: "Hm." })
      },
      thinkingWords
    )
  })
})

describe("a reply that brought nothing", () => {
  it("is asked for again, and then a failure", async () => {
    for (const style of styleNames) {
      for (const stream of [false, true]) {
        server.answer(() => said([{ role: "assistant", content: "" }, { reasoning_content: "" }]))
        const { error } = await ask(gateway.url, style, stream, "open")
        assert.match(String(error), /empty/)
        assert.lengthOf(server.requests, 3)
      }
    }
  })
})
