/** Servers that name costs and counts that no reply has. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { textBlock, wholeMessage } from "../support/messagesServer.ts"
import { chunk, json, type OpenAiServer, startOpenAiServer } from "../support/openaiServer.ts"
import { untilHolds } from "../support/until.ts"
import { admin } from "./support.ts"

let server: OpenAiServer
let gateway: RunningGateway
beforeAll(async () => {
  server = await startOpenAiServer()
})
afterAll(() => server.stop())
afterEach(() => gateway.stop())

type Row = Readonly<Record<string, unknown>>

const openai = (usage: Row) =>
  json(200, {
    ...chunk({}),
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", content: "Yes" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 2, completion_tokens: 3, total_tokens: 5, ...usage }
  })

const messages = (usage: Row) =>
  wholeMessage([textBlock("Yes")], { usage: { input_tokens: 2, output_tokens: 3, ...usage } })

const generate = (usage: Row) =>
  json(200, {
    candidates: [{ content: { role: "model", parts: [{ text: "Yes" }] }, index: 0, finishReason: "STOP" }],
    usageMetadata: { promptTokenCount: 2, candidatesTokenCount: 3, totalTokenCount: 5, ...usage }
  })

const servers = { openai, messages, generate }

const start = async () => {
  const origin = server.baseUrl.replace(/\/v1$/, "")
  gateway = await startGateway({
    keys: [businessKey],
    accounts: Object.keys(servers).map((name) => ({ upstream: name, token: `sk-${name}` })),
    upstream: { driver: "embedded" },
    upstreams: Object.fromEntries(
      Object.keys(servers).map((name) => [name, {
        driver: name,
        base_url: name === "openai" ? server.baseUrl : origin,
        models: { m: "m" }
      }])
    ),
    prices: { "*": { input: 1_000_000, output: 1_000_000 } }
  })
}

const chat = async (upstream: string) => {
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}` },
    body: JSON.stringify({ model: `${upstream}/m`, messages: [{ role: "user", content: "Hi" }] })
  })
  assert.strictEqual(answer.status, 200, await answer.text())
}

/** The sums of usage, once so many requests are counted. */
const totals = async (requests: number) => {
  let found: Row = {}
  await untilHolds(async () => {
    found = (await admin(gateway.url, "GET", "/admin/usage"))["totals"] as Row
    return found["requests"] === requests
  })
  return found
}

describe("a cost of a server that no reply has", () => {
  it("is ignored: the prices count, a metric counts it, and the usage of all goes on", async () => {
    await start()
    let requests = 0
    for (const [name, answer] of Object.entries(servers)) {
      for (const usage of [{ cost: 1e308 }, { cost: 10_000.1 }, { cost_in_usd_ticks: 1e300 }]) {
        server.answer(() => answer(usage))
        await chat(name)
        assert.strictEqual((await totals(++requests))["cost"], String(5 * requests), `${name} ${JSON.stringify(usage)}`)
      }
    }
    server.answer(() => openai({ cost: 10_000 }))
    await chat("openai")
    assert.strictEqual((await totals(++requests))["cost"], String(5 * (requests - 1) + 10_000))
    const page = await fetch(`${gateway.url}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } })
    assert.match(await page.text(), /^gateway_server_costs_refused_total 9$/m)
  })
})

describe("a count of a server that no reply has", () => {
  it("is ignored: the estimate counts", async () => {
    await start()
    const counts = {
      openai: { prompt_tokens: 1e12, completion_tokens: 1e12, total_tokens: 2e12 },
      messages: { input_tokens: 1e12, output_tokens: 1e12 },
      generate: { promptTokenCount: 1e12, candidatesTokenCount: 1e12, totalTokenCount: 2e12 }
    }
    let requests = 0
    for (const [name, answer] of Object.entries(servers)) {
      server.answer(() => answer(counts[name as keyof typeof counts]))
      await chat(name)
      assert.isBelow(Number((await totals(++requests))["total_tokens"]), 100 * requests, name)
    }
  })
})
