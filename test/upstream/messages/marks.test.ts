/** The marks that a messages server gets for callers that set none, and the names of caches. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { type Farm, startFarm } from "../../several/support.ts"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"

const otherKey = "sk-of-another-team"

let farm: Farm
let gateway: RunningGateway
beforeAll(async () => {
  farm = await startFarm()
  gateway = await startGateway({
    keys: [businessKey, otherKey],
    upstream: { driver: "embedded" },
    upstreams: {
      own: farm.upstream("own", { driver: "messages" }),
      hour: farm.upstream("hour", { driver: "messages", prompt_cache: { mark_ttl: "1h", min_tokens: 100 } }),
      off: farm.upstream("off", { driver: "messages", prompt_cache: { breakpoints: "off" } }),
      field: farm.upstream("field", { prompt_cache: { key: "prompt_cache_key" } }),
      native: farm.upstream("native", { driver: "responses", prompt_cache: { key: "prompt_cache_key" } }),
      header: farm.upstream("header", { prompt_cache: { key: "header X-Session-Affinity" } }),
      plain: farm.upstream("plain")
    },
    accounts: ["own", "hour", "off", "field", "native", "header", "plain"].map((upstream) => ({ upstream, token: "k" }))
  })
})
afterAll(async () => {
  await gateway.stop()
  await farm.stop()
})

type Fields = { readonly [name: string]: unknown }

const post = async (path: string, body: Fields, headers: Readonly<Record<string, string>> = {}) => {
  const response = await fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(body)
  })
  assert.strictEqual(response.status, 200, await response.text())
}

const sentTo = (name: string): Fields => farm.seen(name).at(-1)?.body ?? {}

/** The paths of the marks of a body. */
const marksIn = (value: unknown, path = ""): ReadonlyArray<string> =>
  typeof value !== "object" || value === null
    ? []
    : Object.entries(value).flatMap(([name, inner]) =>
      name === "cache_control" ? [path] : marksIn(inner, Array.isArray(value) ? `${path}[${name}]` : `${path}.${name}`)
    )

const without = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (name, inner: unknown) => name === "cache_control" ? undefined : inner))

const long = "Some words of a long prompt. ".repeat(400)
const call = { id: "c1", type: "function", function: { name: "look", arguments: "{\"z\":1,\"a\":2}" } }
const turns: ReadonlyArray<Fields> = [
  { role: "system", content: long },
  { role: "user", content: "First" },
  { role: "assistant", content: null, tool_calls: [call] },
  { role: "tool", tool_call_id: "c1", content: "Found" },
  { role: "assistant", content: "It is there." },
  { role: "user", content: "And now?" }
]
const tools = [{ type: "function", function: { name: "look", parameters: { type: "object", properties: {} } } }]

describe("a request to a messages server", () => {
  it("has the end of the system prompt and the last two user turns marked, and keeps the bytes of earlier turns", async () => {
    const bodies: Array<Fields> = []
    for (const count of [2, 4, 6]) {
      await post("/v1/chat/completions", { model: "own/m", messages: turns.slice(0, count), tools })
      bodies.push(sentTo("own"))
    }
    assert.deepStrictEqual(bodies.map((body) => marksIn(body)), [
      [".messages[0].content[0]", ".system[0]"],
      [".messages[0].content[0]", ".messages[2].content[0]", ".system[0]"],
      [".messages[2].content[0]", ".messages[4].content[0]", ".system[0]"]
    ])
    assert.include(JSON.stringify(bodies[0]), `"cache_control":{"type":"ephemeral"}`)
    for (const [i, body] of bodies.slice(1).entries()) {
      const before = without(bodies[i]) as { readonly messages: ReadonlyArray<unknown> }
      const after = without(body) as { readonly messages: ReadonlyArray<unknown> }
      const { length } = before.messages
      assert.strictEqual(
        JSON.stringify({ ...after, messages: after.messages.slice(0, length) }),
        JSON.stringify(before)
      )
    }
  })

  it("has none for a single question, for a small prompt, with marks of its caller, and where they are off", async () => {
    const single = turns.slice(0, 2)
    await post("/v1/chat/completions", { model: "own/m", messages: single })
    assert.isEmpty(marksIn(sentTo("own")))
    await post("/v1/chat/completions", { model: "own/m", messages: turns.slice(1, 2), tools })
    assert.isEmpty(marksIn(sentTo("own")))
    await post("/v1/chat/completions", { model: "off/m", messages: turns, tools })
    assert.isEmpty(marksIn(sentTo("off")))
    const block = { type: "text", text: long, cache_control: { type: "ephemeral" } }
    const messages = [{ role: "user", content: "Hi" }, { role: "assistant", content: "Yes?" }, {
      role: "user",
      content: "Go"
    }]
    await post("/v1/messages", { model: "own/m", max_tokens: 9, system: [block], messages })
    assert.deepStrictEqual(marksIn(sentTo("own")), [".system[0]"])
    const whole = { model: "own/m", max_tokens: 9, system: long, messages, cache_control: { type: "ephemeral" } }
    await post("/v1/messages", whole)
    assert.deepStrictEqual(marksIn(sentTo("own")), [""])
  })

  it("has them for a session's first turn, for an hour where that is asked for, and at the tools without a system prompt", async () => {
    const question = { role: "user", content: "word ".repeat(300) }
    await post("/v1/chat/completions", { model: "hour/m", messages: [question], tools })
    assert.deepStrictEqual(marksIn(sentTo("hour")), [".messages[0].content[0]", ".tools[0]"])
    assert.include(JSON.stringify(sentTo("hour")), `"cache_control":{"type":"ephemeral","ttl":"1h"}`)
    await post("/v1/messages", { model: "hour/m", max_tokens: 9, messages: [question] }, { "x-gateway-session": "s" })
    assert.deepStrictEqual(marksIn(sentTo("hour")), [".messages[0].content[0]"])
  })

  it("of another driver has none", async () => {
    await post("/v1/chat/completions", { model: "plain/m", messages: turns, tools })
    assert.isEmpty(marksIn(sentTo("plain")))
    assert.doesNotHaveAnyKeys(sentTo("plain"), ["prompt_cache_key"])
  })
})

describe("the marks of a client of chat completions", () => {
  const mark = { cache_control: { type: "ephemeral" } }
  const hour = { cache_control: { type: "ephemeral", ttl: "1h" } }
  const marked = [
    { role: "system", content: [{ type: "text", text: "Rules", ...hour }] },
    { role: "user", content: "First", ...mark },
    { role: "assistant", content: "Yes" },
    { role: "user", content: [{ type: "text", text: "And" }, { type: "text", text: "now?", ...mark }] }
  ]

  it.each([false, true])("reach a messages server, and no others are set, streamed: %s", async (stream) => {
    await post("/v1/chat/completions", {
      model: "own/m",
      stream,
      messages: marked,
      tools: tools.map((tool) => ({ ...tool, ...mark }))
    })
    const body = sentTo("own")
    assert.deepStrictEqual(marksIn(body), [
      ".messages[0].content[0]",
      ".messages[2].content[1]",
      ".system[0]",
      ".tools[0]"
    ])
    assert.deepStrictEqual(body["system"], [{ type: "text", text: "Rules", ...hour }])
  })

  it("are the last four of more, which the vendor accepts", async () => {
    const user = (text: string) => [{ role: "user", content: text, ...mark }, { role: "assistant", content: "Yes" }]
    await post("/v1/chat/completions", {
      model: "own/m",
      messages: [...marked.slice(0, 1), ...["a", "b", "c", "d"].flatMap(user), { role: "user", content: "e" }]
    })
    assert.deepStrictEqual(marksIn(sentTo("own")), [0, 2, 4, 6].map((i) => `.messages[${i}].content[0]`))
  })

  it("reach a server of their contract as they stand", async () => {
    await post("/v1/chat/completions", { model: "plain/m", messages: marked })
    assert.deepStrictEqual(sentTo("plain")["messages"], marked)
  })
})

describe("the name of a conversation's cache", () => {
  const names = async (path: string, name: string, body: Fields, headers?: Readonly<Record<string, string>>) => {
    await post(path, { model: `${name}/m`, ...body }, headers)
    return name === "header"
      ? farm.seen(name).at(-1)?.headers["x-session-affinity"]
      : sentTo(name)["prompt_cache_key"]
  }
  const chat = "/v1/chat/completions"

  it("is the same for its turns, and apart for each key and session", async () => {
    const ask = (count: number, headers?: Readonly<Record<string, string>>) =>
      names(chat, "field", { messages: turns.slice(0, count), tools }, headers)
    const first = await ask(2)
    assert.match(String(first), /^[\da-f]{32}$/)
    assert.strictEqual(await ask(6), first)
    const others = [
      await ask(2, { authorization: `Bearer ${otherKey}` }),
      await ask(2, { "x-gateway-session": "one" }),
      await ask(2, { "x-gateway-session": "two" }),
      await ask(2, { "x-gateway-session": "two", authorization: `Bearer ${otherKey}` }),
      await ask(2, { "x-gateway-session": "two", "x-gateway-agent": "a" })
    ]
    assert.strictEqual(new Set([first, ...others]).size, 6)
    assert.strictEqual(await ask(6, { "x-gateway-session": "one" }), others[1])
    assert.match(String(await names(chat, "header", { messages: turns })), /^[\da-f]{32}$/)
  })

  it("is a field of the Responses API too, and the caller's own name stays", async () => {
    assert.match(String(await names("/v1/responses", "native", { input: "Hi" })), /^[\da-f]{32}$/)
    assert.match(String(await names(chat, "native", { messages: turns })), /^[\da-f]{32}$/)
    for (const name of ["native", "field"]) {
      assert.strictEqual(await names("/v1/responses", name, { input: "Hi", prompt_cache_key: "mine" }), "mine")
      assert.strictEqual(await names(chat, name, { messages: turns, prompt_cache_key: "mine" }), "mine")
    }
  })
})
