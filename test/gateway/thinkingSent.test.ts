/** Thinking in requests to a server: whether and how much to think, and the thinking of earlier turns. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { json, type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"
import { type StyleName, styleNames } from "../support/styleClients.ts"
import { ask } from "./thinkingCalls.ts"

let server: OpenAiServer
beforeAll(async () => {
  server = await startOpenAiServer()
})
afterAll(() => server.stop())

const running: Array<RunningGateway> = []
afterEach(async () => {
  for (const gateway of running.splice(0)) await gateway.stop()
})

const start = async (upstream: object = {}) => {
  const models = {
    plain: "m",
    effort: { model: "m", thinking: "effort" },
    template: { model: "m", thinking: "template" },
    budget: { model: "m", thinking: "budget" },
    none: { model: "m", thinking: "none" }
  }
  const raw = { upstream: { driver: "openai", base_url: server.baseUrl, models, ...upstream } }
  const gateway = await startGateway(JSON.parse(JSON.stringify(raw)))
  running.push(gateway)
  return gateway
}

type Body = { readonly [name: string]: unknown }

/** The body that the server gets of a request; the same whole and streamed. */
const sent = async ({ url }: RunningGateway, style: StyleName, model: string, extra: object): Promise<Body> => {
  server.answer(() => streamed({ content: "Yes" }))
  for (const stream of [false, true]) {
    const asked = await ask(url, style, stream, model, extra)
    assert.deepInclude(asked, { status: 200, text: "Yes" }, `${style} ${JSON.stringify(asked)}`)
  }
  assert.lengthOf(server.requests, 2)
  const [whole = {}, other] = server.requests.map(({ body: { stream: _, stream_options: __, ...body } }) => body)
  assert.deepStrictEqual(whole, other)
  return whole
}

const words = [
  "reasoning_effort",
  "reasoning",
  "thinking",
  "enable_thinking",
  "thinking_budget",
  "think",
  "chat_template_kwargs"
]

/** What a body says of thinking. */
const saidIn = (body: Body): Body =>
  Object.fromEntries(words.flatMap((word) => word in body ? [[word, body[word]]] : []))

const budgeted = (budget: number) => ({
  messages: { thinking: { type: "enabled", budget_tokens: budget } },
  generate: { generationConfig: { thinkingConfig: { thinkingBudget: budget } } }
})

/** The same wish in each style, in the words of its vendor. */
const wishes: Record<string, Record<StyleName, object>> = {
  high: {
    chat: { reasoning_effort: "high" },
    responses: { reasoning: { effort: "high" } },
    messages: { output_config: { effort: "high" } },
    generate: { generationConfig: { thinkingConfig: { thinkingLevel: "HIGH" } } }
  },
  off: {
    chat: { reasoning_effort: "none" },
    responses: { reasoning: { effort: "none" } },
    messages: { thinking: { type: "disabled" } },
    generate: { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } }
  },
  nothing: {
    chat: {},
    responses: { reasoning: { summary: "auto" } },
    messages: { thinking: { type: "adaptive" } },
    generate: { generationConfig: { thinkingConfig: { thinkingBudget: -1, includeThoughts: true } } }
  }
}

const template = (enable_thinking: boolean) => ({ chat_template_kwargs: { enable_thinking } })

/** What each wish becomes for each kind of entry. */
const expected: Record<string, Record<string, Body>> = {
  plain: { high: { reasoning_effort: "high" }, off: { reasoning_effort: "none" } },
  effort: { high: { reasoning_effort: "high" }, off: { reasoning_effort: "none" } },
  template: { high: template(true), off: template(false) },
  budget: { high: { thinking: { type: "enabled", budget_tokens: 16_384 } }, off: { thinking: { type: "disabled" } } },
  none: { high: {}, off: {} }
}

describe("what a caller wants of thinking", () => {
  it.each(Object.keys(expected))("reaches the server in the format of its entry: %s", async (model) => {
    const gateway = await start()
    for (const style of styleNames) {
      for (const [wish, extra] of Object.entries(wishes)) {
        const said = saidIn(await sent(gateway, style, model, extra[style]))
        assert.deepStrictEqual(said, expected[model]?.[wish] ?? {}, `${style}, ${wish}`)
      }
    }
  })

  it("is an effort by the size of a budget, and a budget as it is", async () => {
    const gateway = await start()
    for (const [budget, effort] of [[2_048, "low"], [2_049, "medium"], [8_192, "medium"], [8_193, "high"]] as const) {
      for (const style of ["messages", "generate"] as const) {
        const extra = budgeted(budget)[style]
        assert.deepStrictEqual(saidIn(await sent(gateway, style, "plain", extra)), { reasoning_effort: effort })
        assert.deepStrictEqual(saidIn(await sent(gateway, style, "budget", extra)), {
          thinking: { type: "enabled", budget_tokens: budget }
        })
        assert.deepStrictEqual(saidIn(await sent(gateway, style, "template", extra)), template(true))
      }
    }
  })

  it("is on or off for a model that refuses an amount, from its first refusal on", async () => {
    const gateway = await start()
    server.answer(({ body: { reasoning_effort: effort } }) =>
      effort === undefined || effort === "none"
        ? streamed({ content: "Yes" })
        : json(400, {
          error: { message: `think value "${String(effort)}" is not supported for this model`, type: "api_error" }
        })
    )
    const said = () => server.requests.map(({ body }) => saidIn(body))
    for (const style of styleNames) {
      assert.deepInclude(await ask(gateway.url, style, true, "plain", wishes["high"]![style]), { status: 200 }, style)
    }
    assert.deepStrictEqual(said(), [{ reasoning_effort: "high" }, {}, {}, {}, {}])
    await ask(gateway.url, "chat", true, "plain", wishes["off"]!["chat"])
    await ask(gateway.url, "chat", true, "effort", wishes["high"]!["chat"])
    assert.deepStrictEqual(said().slice(5), [{ reasoning_effort: "none" }, { reasoning_effort: "high" }, {}])
  })

  it("in the server's own fields goes as it stands, and not a second time in others", async () => {
    const gateway = await start()
    const own: ReadonlyArray<Body> = [
      { enable_thinking: false },
      { enable_thinking: true, thinking_budget: 100 },
      { think: "low" },
      { thinking: { type: "enabled", budget_tokens: 5, more: 1 } },
      { reasoning: { effort: "low", exclude: true } },
      { chat_template_kwargs: { enable_thinking: false, custom: 1 } }
    ]
    for (const extra of own) {
      assert.deepStrictEqual(saidIn(await sent(gateway, "chat", "plain", extra)), extra)
    }
    const ofNoVendor = [own[0]!, own[1]!, own[2]!, own[5]!, { reasoning_effort: "low" }]
    for (const style of ["responses", "messages"] as const) {
      for (const extra of ofNoVendor) {
        assert.deepStrictEqual(saidIn(await sent(gateway, style, "plain", extra)), extra, style)
      }
    }
    const both = { reasoning_effort: "low", chat_template_kwargs: { custom: 1 } }
    assert.deepStrictEqual(saidIn(await sent(gateway, "chat", "plain", both)), both)
  })

  it("has the format of an entry too, beside the caller's own fields for it", async () => {
    const gateway = await start()
    assert.deepStrictEqual(saidIn(await sent(gateway, "chat", "template", { enable_thinking: false })), {
      enable_thinking: false,
      ...template(false)
    })
    const own = { chat_template_kwargs: { enable_thinking: true, custom: 1 }, reasoning_effort: "none" }
    assert.deepStrictEqual(saidIn(await sent(gateway, "chat", "template", own)), {
      chat_template_kwargs: { enable_thinking: true, custom: 1 }
    })
    const thinking = { type: "enabled", budget_tokens: 7 }
    assert.deepStrictEqual(saidIn(await sent(gateway, "chat", "budget", { thinking, reasoning_effort: "high" })), {
      thinking
    })
  })

  it("is refused by name where a vendor's field has the wrong type", async () => {
    const gateway = await start()
    const wrong: ReadonlyArray<readonly [StyleName, object, string]> = [
      ["chat", { reasoning_effort: 5 }, "reasoning_effort"],
      ["responses", { reasoning: { effort: {} } }, "reasoning.effort"],
      ["messages", { thinking: { type: "enabled", budget_tokens: "many" } }, "thinking.budget_tokens"],
      [
        "generate",
        { generationConfig: { thinkingConfig: { thinkingBudget: "x" } } },
        "generationConfig.thinkingConfig.thinkingBudget"
      ]
    ]
    for (const [style, extra, field] of wrong) {
      const { error, status } = await ask(gateway.url, style, false, "plain", extra)
      assert.strictEqual(status, 400)
      assert.include(String(error), field)
    }
  })
})

const tool = { name: "free", description: "", parameters: { type: "object", properties: {} } }

/** A conversation with thinking in an earlier turn and in the turn of the last call, in each style. */
const histories: Record<StyleName, object> = {
  chat: {
    tools: [{ type: "function", function: tool }],
    messages: [
      { role: "user", content: "One" },
      { role: "assistant", content: "Two", reasoning: "Early." },
      { role: "user", content: "Three" },
      {
        role: "assistant",
        content: null,
        reasoning_content: "Late.",
        tool_calls: [{ id: "a", type: "function", function: { name: "free", arguments: "{}" } }]
      },
      { role: "tool", tool_call_id: "a", content: "done" }
    ]
  },
  responses: {
    tools: [{ type: "function", ...tool }],
    input: [
      { role: "user", content: "One" },
      { type: "reasoning", summary: [{ type: "summary_text", text: "Early." }] },
      { role: "assistant", content: "Two" },
      { role: "user", content: "Three" },
      { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "Late." }] },
      { type: "function_call", call_id: "a", name: "free", arguments: "{}" },
      { type: "function_call_output", call_id: "a", output: "done" }
    ]
  },
  messages: {
    tools: [{ name: "free", input_schema: tool.parameters }],
    messages: [
      { role: "user", content: "One" },
      {
        role: "assistant",
        content: [{ type: "thinking", thinking: "Early.", signature: "" }, { type: "text", text: "Two" }]
      },
      { role: "user", content: "Three" },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Late.", signature: "" },
          { type: "tool_use", id: "a", name: "free", input: {} }
        ]
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: "done" }] }
    ]
  },
  generate: {
    tools: [{ functionDeclarations: [tool] }],
    contents: [
      { role: "user", parts: [{ text: "One" }] },
      { role: "model", parts: [{ text: "Early.", thought: true }, { text: "Two" }] },
      { role: "user", parts: [{ text: "Three" }] },
      {
        role: "model",
        parts: [{ text: "Late.", thought: true }, { functionCall: { id: "a", name: "free", args: {} } }]
      },
      { role: "user", parts: [{ functionResponse: { id: "a", name: "free", response: { output: "done" } } }] }
    ]
  }
}

const names = ["reasoning_content", "reasoning", "reasoning_details"]

/** The thinking of the assistant's messages, by its names. */
const thinkingIn = ({ messages }: Body): ReadonlyArray<Body> =>
  (messages as ReadonlyArray<Body>).filter(({ role }) => role === "assistant").map((message) =>
    Object.fromEntries(names.flatMap((name) => name in message ? [[name, message[name]]] : []))
  )

const both = (text: string) => ({ reasoning_content: text, reasoning: text })

describe("the thinking of earlier turns", () => {
  it("goes back to a server by the two usual names while its own is unknown", async () => {
    for (const tools of ["native", "prompt"]) {
      const gateway = await start({ tools })
      for (const style of styleNames) {
        const body = await sent(gateway, style, "plain", histories[style])
        assert.deepStrictEqual(thinkingIn(body), [both("Early."), both("Late.")], `${style}, ${tools}`)
      }
    }
  })

  it("goes back as far as `history_reasoning` says", async () => {
    for (const [history_reasoning, expected] of [["current", [{}, both("Late.")]], ["none", [{}, {}]]] as const) {
      for (const tools of ["native", "prompt"]) {
        const gateway = await start({ history_reasoning, tools })
        for (const style of styleNames) {
          const body = await sent(gateway, style, "plain", histories[style])
          assert.deepStrictEqual(thinkingIn(body), expected, `${style}, ${history_reasoning}, ${tools}`)
        }
      }
    }
  })

  const details = (text: string) => [{ type: "reasoning.text", text }]
  const spoken: ReadonlyArray<readonly [about: string, (text: string) => Body]> = [
    ["reasoning_content", (text) => ({ reasoning_content: text })],
    ["reasoning", (text) => ({ reasoning: text })],
    ["reasoning_details", (text) => ({ reasoning_details: details(text) })],
    ["reasoning and its details", (text) => ({ reasoning: text, reasoning_details: details(text) })]
  ]

  it.each(spoken)("goes back by the server's own names: %s", async (_, said) => {
    for (const stream of [true, false]) {
      const gateway = await start()
      const message = { role: "assistant", content: "Yes", ...said("Hm.") }
      server.answer(() =>
        stream
          ? streamed(said("Hm."), { content: "Yes" })
          : json(200, { choices: [{ index: 0, message, finish_reason: "stop" }] })
      )
      assert.strictEqual((await ask(gateway.url, "chat", true, "plain")).thinking, "Hm.")
      for (const style of styleNames) {
        const body = await sent(gateway, style, "plain", histories[style])
        assert.deepStrictEqual(thinkingIn(body), [said("Early."), said("Late.")], style)
      }
    }
  })
})
