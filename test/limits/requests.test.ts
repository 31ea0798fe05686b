/**
 * Every limit of a request, at the limit and one above, in each style's error format and with its own field name.
 */
import { assert, describe, it } from "@effect/vitest"
import { base, useGateway } from "../styles/support.ts"
import { businessKey } from "../support/gateway.ts"

const limits = {
  body_bytes: 65_536,
  depth: 16,
  messages: 100,
  parts: 150,
  tools: 3,
  tool_bytes: 1024,
  tools_bytes: 2048,
  stop_sequences: 4,
  stop_chars: 16,
  model_chars: 64,
  embedding_inputs: 8,
  embedding_chars: 4096,
  embedding_numbers: 1024
}

const fetch = useGateway({
  limits,
  embeddings: { provider: "builtin" },
  model_aliases: { ["m".repeat(64)]: "upstream-chat" }
})

interface Told {
  readonly status: number
  readonly code: unknown
  readonly param: unknown
  readonly message: string
}

const ask = async (path: string, body: unknown): Promise<Told> => {
  const response = await fetch(`${base}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}` },
    body: typeof body === "string" ? body : JSON.stringify(body)
  })
  const { error } = await response.json() as { error?: { code?: unknown; param?: unknown; message?: string } }
  return { status: response.status, code: error?.code, param: error?.param, message: error?.message ?? "" }
}

type Body = Record<string, unknown>

/** The bodies with which a style reaches each limit. */
interface Style {
  readonly path: string
  readonly turns: string
  readonly body: (fields?: Body) => Body
  readonly messages: (count: number) => Body
  readonly parts: (count: number) => Body
  readonly tools: (sizes: ReadonlyArray<number>) => Body
  readonly stop: (sequences: ReadonlyArray<string>) => Body
  readonly stopField: string
}

/** Pads a tool to a size in JSON. */
const sized = (make: (description: string) => unknown, size: number) =>
  make("x".repeat(Math.max(0, size - JSON.stringify(make("")).length)))

const repeat = <A>(count: number, item: A): ReadonlyArray<A> => Array.from({ length: count }, () => item)

const styles: Readonly<Record<string, Style>> = {
  chat: {
    path: "/v1/chat/completions",
    turns: "messages",
    body: (fields) => ({ model: "gpt-5", messages: [{ role: "user", content: "Hi" }], ...fields }),
    messages: (count) => ({ messages: repeat(count, { role: "user", content: "Hi" }) }),
    parts: (count) => ({ messages: [{ role: "user", content: repeat(count, { type: "text", text: "a" }) }] }),
    tools: (sizes) => ({
      tools: sizes.map((size, i) =>
        sized((description) => ({ type: "function", function: { name: `f${i}`, description } }), size)
      )
    }),
    stop: (stop) => ({ stop }),
    stopField: "stop"
  },
  responses: {
    path: "/v1/responses",
    turns: "input",
    body: (fields) => ({ model: "gpt-5", input: "Hi", ...fields }),
    messages: (count) => ({ input: repeat(count, { role: "user", content: "Hi" }) }),
    parts: (count) => ({ input: [{ role: "user", content: repeat(count, { type: "input_text", text: "a" }) }] }),
    tools: (sizes) => ({
      tools: sizes.map((size, i) => sized((description) => ({ type: "function", name: `f${i}`, description }), size))
    }),
    stop: (stop) => ({ stop }),
    stopField: "stop"
  },
  messages: {
    path: "/v1/messages",
    turns: "messages",
    body: (fields) => ({ model: "claude-x", max_tokens: 9, messages: [{ role: "user", content: "Hi" }], ...fields }),
    messages: (count) => ({ messages: repeat(count, { role: "user", content: "Hi" }) }),
    parts: (count) => ({ messages: [{ role: "user", content: repeat(count, { type: "text", text: "a" }) }] }),
    tools: (sizes) => ({
      tools: sizes.map((size, i) =>
        sized((description) => ({ name: `f${i}`, description, input_schema: { type: "object" } }), size)
      )
    }),
    stop: (stop_sequences) => ({ stop_sequences }),
    stopField: "stop_sequences"
  },
  generation: {
    path: "/v1beta/models/gemini-x:generateContent",
    turns: "contents",
    body: (fields) => ({ contents: [{ role: "user", parts: [{ text: "Hi" }] }], ...fields }),
    messages: (count) => ({ contents: repeat(count, { role: "user", parts: [{ text: "Hi" }] }) }),
    parts: (count) => ({ contents: [{ role: "user", parts: repeat(count, { text: "a" }) }] }),
    tools: (sizes) => ({
      tools: [{
        functionDeclarations: sizes.map((size, i) => sized((description) => ({ name: `f${i}`, description }), size))
      }]
    }),
    stop: (stopSequences) => ({ generationConfig: { stopSequences } }),
    stopField: "generationConfig.stopSequences"
  }
}

/** The nesting of arrays and objects in a value. */
const depthOf = (value: unknown): number =>
  typeof value !== "object" || value === null ? 0 : 1 + Math.max(0, ...Object.values(value).map(depthOf))

const nested = (depth: number): unknown => depth === 0 ? 1 : [nested(depth - 1)]

for (const [name, style] of Object.entries(styles)) {
  const refused = (told: Told, status: number, code: string, param?: string) => {
    assert.strictEqual(told.status, status, told.message)
    if (name === "generation") {
      assert.strictEqual(told.code, status)
      if (param !== undefined) assert.include(told.message, param)
    } else {
      assert.strictEqual(told.code, code)
      if (param !== undefined) assert.match(String(told.param), new RegExp(`^${param.replaceAll(/[.[\]]/g, "\\$&")}`))
    }
  }
  const send = (fields: Body) => ask(style.path, style.body(fields))

  describe(`the limits of a ${name} request`, () => {
    const table: ReadonlyArray<readonly [string, Body, Body, string]> = [
      ["messages", style.messages(100), style.messages(101), style.turns],
      ["parts", style.parts(150), style.parts(151), style.turns],
      ["tools", style.tools([100, 100, 100]), style.tools([100, 100, 100, 100]), "tools"],
      ["tool_bytes", style.tools([1024]), style.tools([1025]), "tools"],
      ["tools_bytes", style.tools([1024, 1024]), style.tools([1024, 924, 101]), "tools"],
      ["stop_sequences", style.stop(["a1", "b1", "c1", "d1"]), style.stop(["a", "b", "c", "d", "e"]), style.stopField],
      ["stop_chars", style.stop(["§".repeat(16)]), style.stop(["§".repeat(17)]), style.stopField],
      ["depth", { x: nested(15) }, { x: nested(16) }, ""]
    ]
    it.each(table)("%s: the limit is accepted, one above is rejected", async (limit, at, above, param) => {
      if (limit === "depth") assert.strictEqual(depthOf(style.body(at)), 16)
      const served = await send(at)
      assert.strictEqual(served.status, 200, served.message)
      refused(await send(above), 400, "invalid_request", param)
    })

    it("body_bytes: the limit is accepted, one above is rejected with 413", async () => {
      const body = (bytes: number) => {
        const empty = JSON.stringify(style.body({ x: "" })).length
        return JSON.stringify(style.body({ x: "x".repeat(bytes - empty) }))
      }
      assert.strictEqual((await ask(style.path, body(65_536))).status, 200)
      refused(await ask(style.path, body(65_537)), 413, "request_too_large")
    })

    it("model_chars: the limit is accepted, one above is rejected", async () => {
      const path = (model: string) => style.path.replace("gemini-x", model)
      assert.strictEqual((await ask(path("m".repeat(64)), style.body({ model: "m".repeat(64) }))).status, 200)
      refused(await ask(path("m".repeat(65)), style.body({ model: "m".repeat(65) })), 400, "invalid_request", "model")
    })
  })
}

describe("a user message without content", () => {
  it.each<readonly [string, Body, string]>([
    ["/v1/chat/completions", { model: "gpt-5", messages: [{ role: "user" }] }, "messages[0].content"],
    ["/v1/chat/completions", { model: "gpt-5", messages: [{ role: "user", content: null }] }, "messages[0].content"],
    ["/v1/chat/completions", { model: "gpt-5", messages: [{ role: "user", content: [] }] }, "messages[0].content"],
    ["/v1/responses", { model: "gpt-5", input: [{ role: "user" }] }, "input[0].content"],
    ["/v1/messages", { model: "claude-x", max_tokens: 9, messages: [{ role: "user" }] }, "messages[0].content"],
    ["/v1beta/models/gemini-x:generateContent", { contents: [{ role: "user" }] }, "contents[0].parts"],
    ["/v1beta/models/gemini-x:generateContent", { contents: [{ parts: [] }] }, "contents[0].parts"],
    ["/v1beta/models/gemini-x:generateContent", { contents: [{ parts: [{}] }] }, "contents[0].parts"]
  ])("is a 400 that names the field: %s %j", async (path, body, field) => {
    const told = await ask(path, body)
    assert.strictEqual(told.status, 400)
    assert.include(told.message, `${field}: `)
  })
})

describe("the limits of an embeddings request", () => {
  it.each<readonly [string, Body, Body, string]>([
    ["embedding_inputs", { input: repeat(8, "a"), dimensions: 4 }, { input: repeat(9, "a"), dimensions: 4 }, "input"],
    ["embedding_chars", { input: "a".repeat(4096) }, { input: "a".repeat(4097) }, "input"],
    ["embedding_chars of tokens", { input: repeat(1024, 1) }, { input: repeat(1025, 1) }, "input"],
    ["embedding_numbers", { input: ["a"], dimensions: 1024 }, { input: ["a"], dimensions: 1025 }, "dimensions"]
  ])("%s: the limit is accepted, one above is rejected", async (_, at, above, param) => {
    const served = await ask("/v1/embeddings", { model: "gpt-5", ...at })
    assert.strictEqual(served.status, 200, served.message)
    const told = await ask("/v1/embeddings", { model: "gpt-5", ...above })
    assert.deepInclude(told, { status: 400, code: "invalid_request", param })
  })
})
