/** The limits of keys as callers see them: in every style, streamed and whole, through the vendors' SDKs. */
import Anthropic from "@anthropic-ai/sdk"
import { afterEach, assert, describe, it } from "@effect/vitest"
import OpenAI from "openai"
import { type RawConfig, sha256Hex } from "../../src/config/json.ts"
import { formatDecimal } from "../../src/domain/decimal.ts"
import { keyId } from "../../src/domain/identity.ts"
import { percentileNames } from "../../src/usage/Times.ts"
import { adminKey } from "../support/gateway.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import { ways } from "../support/sameReply.ts"
import { type Failed, styleClients, type StyleName, styleNames } from "../support/styleClients.ts"
import { makeWallClock, type WallClock } from "../support/wallClock.ts"
import { accounts, admin, chat, hold, send, type Site, startSite, textOf } from "./support.ts"

let site: Site
let clock: WallClock
afterEach(() => site.stop())

const key = "sk-limited"
const id = keyId(key, sha256Hex)

/** A Saturday afternoon. */
const afternoon = Date.parse("2026-11-21T15:00:17Z")

const start = async (record: RawConfig, config: RawConfig = {}) => {
  // The clock stands still until a test moves it, so that a minute does not end unexpectedly.
  clock = makeWallClock(makeMovedClock({ still: true, wall: afternoon }))
  site = await startSite({
    keys: [key, "free"],
    key_records: { [id]: record },
    accounts: accounts("a", "b"),
    embeddings: { provider: "builtin" },
    ...config
  }, { clock })
}

const asKey = (key: string) => styleClients(site.url, { apiKey: key })

const usedBy = async (of = id) => {
  const { items } = await admin(site.url, "GET", `/admin/keys?q=${of}`)
  const [item] = items as ReadonlyArray<
    {
      usage: {
        in_flight: number
        windows: ReadonlyArray<{ requests: { used: number } | null; tokens: { used: number } | null }>
      }
    }
  >
  return item!.usage
}

/** The usage once no request of the key runs: a caller has its reply before the request has ended. */
const settled = async (): ReturnType<typeof usedBy> => {
  for (;;) {
    const usage = await usedBy()
    if (usage.in_flight === 0) return usage
    await new Promise(setImmediate)
  }
}

/** The path and body of a request in every style, for tests that read headers. */
const raw: Readonly<Record<StyleName, (model: string, stream: boolean) => readonly [path: string, body: unknown]>> = {
  chat: (
    model,
    stream
  ) => ["/v1/chat/completions", { model, stream, messages: [{ role: "user", content: "!say hi" }] }],
  responses: (model, stream) => ["/v1/responses", { model, stream, input: "!say hi" }],
  messages: (
    model,
    stream
  ) => ["/v1/messages", { model, stream, max_tokens: 9, messages: [{ role: "user", content: "!say hi" }] }],
  generate: (model, stream) => [
    `/v1beta/models/${model}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    { contents: [{ role: "user", parts: [{ text: "!say hi" }] }] }
  ]
}

const post = (path: string, body: unknown, bearer = key) =>
  fetch(`${site.url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })

const ask = (style: StyleName, stream: boolean, { bearer = key, model = "upstream-chat" } = {}) =>
  post(...raw[style](model, stream), bearer)

const headersOf = (response: Response) =>
  Object.fromEntries([...response.headers].filter(([name]) => name.startsWith("x-ratelimit-")))

/** The error that each SDK makes of a refusal. */
const refusalOf = (
  style: StyleName,
  type: string,
  status: number,
  code: string,
  rpc: string
): Omit<Failed, "message"> =>
  style === "generate"
    ? { _tag: "Failed", type: "ApiError", status, code: rpc, shown: "" }
    : { _tag: "Failed", type, status, code, shown: "" }

const everywhere = async (expected: (style: StyleName) => Omit<Failed, "message">, message: string) => {
  const clients = asKey(key)
  for (const style of styleNames) {
    for (const way of ways) {
      const failed = await clients[style][way]({ content: "!say hi" })
      assert.strictEqual(failed._tag, "Failed", `${style} ${way}`)
      const { message: said, ...rest } = failed as Failed
      assert.deepStrictEqual(rest, expected(style), `${style} ${way}`)
      assert.include(said, message, `${style} ${way}`)
    }
  }
}

describe("a disabled or expired key", () => {
  it("every style rejects it as the SDK's authentication error, without a call to the upstream", async () => {
    for (
      const [record, message] of [
        [{ disabled: true }, "This API key is disabled"],
        [{ expires_at: "2026-11-21T15:00:00Z" }, "This API key expired at 2026-11-21T15:00:00Z"]
      ] as const
    ) {
      await start(record)
      await everywhere(
        (style) => refusalOf(style, "AuthenticationError", 401, "authentication_failed", "UNAUTHENTICATED"),
        message
      )
      for (const path of ["/v1/embeddings", "/v1/messages/count_tokens", "/v1beta/models/upstream-chat:countTokens"]) {
        assert.strictEqual((await post(path, {})).status, 401, path)
      }
      assert.deepInclude((await site.report()).calls, { login: 0, create: 0, completion: 0 })
      await site.stop()
    }
    await start({})
  })

  it("a key works until its expiry", async () => {
    await start({ expires_at: "2026-11-21T15:30:00Z" })
    assert.strictEqual(textOf(await chat(site.url, "!say yes", { key })), "yes")
    clock.offset += 30 * 60_000
    assert.deepInclude(await chat(site.url, "!say no", { key }), { status: 401 })
  })
})

describe("a key with a list of models", () => {
  it("every style rejects another model as the SDK's permission error, also under its alias", async () => {
    await start({ models: ["upstream-reasoner", "claude-opus-4"] })
    await everywhere(
      (style) => refusalOf(style, "PermissionDeniedError", 403, "model_not_allowed", "PERMISSION_DENIED"),
      `may not use the model "upstream-chat"; GET /v1/models lists the models of the key`
    )
    for (const style of styleNames) {
      const refused = await ask(style, true, { model: "gpt-4o" })
      assert.strictEqual(refused.status, 403)
      assert.strictEqual(refused.headers.get("x-should-retry"), "false")
      assert.strictEqual((await ask(style, false, { model: "o3-mini" })).status, 200, style)
      assert.strictEqual((await ask(style, false, { bearer: "free" })).status, 200, style)
    }
    const { error } = await (await ask("chat", false)).json() as { error: { param: string } }
    assert.strictEqual(error.param, "model")
    const counted = { model: "upstream-chat", messages: [{ role: "user", content: "hi" }] }
    assert.strictEqual((await post("/v1/messages/count_tokens", counted)).status, 403)
    assert.strictEqual(
      (await post("/v1/messages/count_tokens", { ...counted, model: "upstream-reasoner" })).status,
      200
    )
    const contents = [{ role: "user", parts: [{ text: "hi" }] }]
    assert.strictEqual((await post("/v1beta/models/upstream-chat:countTokens", { contents })).status, 403)
    assert.strictEqual((await post("/v1/embeddings", { model: "upstream-chat", input: "hi" })).status, 403)
    assert.strictEqual((await settled()).in_flight, 0)
  })

  it("the lists of models contain only the key's models; other callers see all", async () => {
    await start({ models: ["upstream-reasoner"] })
    const listed = async (path: string, bearer?: string) => {
      const response = await fetch(`${site.url}${path}`, {
        headers: bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }
      })
      assert.strictEqual(response.status, 200)
      const body = await response.json() as {
        data?: ReadonlyArray<{ id: string }>
        models?: ReadonlyArray<{ name: string }>
      }
      return (body.data ?? []).map(({ id }) => id).concat((body.models ?? []).map(({ name }) => name))
    }
    for (
      const [path, names, all] of [
        ["/v1/models", ["upstream-reasoner"], 4],
        ["/v1beta/models", ["models/upstream-reasoner"], 4],
        ["/msgcompat/v1/models", undefined, 22]
      ] as const
    ) {
      const shown = await listed(path, key)
      if (names !== undefined) assert.deepStrictEqual(shown, [...names])
      else assert.isTrue(shown.length > 0 && shown.every((name) => name.includes("opus")), shown.join())
      for (const bearer of [undefined, "free", "a-token-of-its-own"]) assert.lengthOf(await listed(path, bearer), all)
    }
    const get = async (path: string) =>
      (await fetch(`${site.url}${path}`, { headers: { authorization: `Bearer ${key}` } })).status
    assert.strictEqual(await get("/v1/models/upstream-reasoner"), 200)
    assert.strictEqual(await get("/v1/models/o3-mini"), 200)
    assert.strictEqual(await get("/v1/models/upstream-chat"), 404)
    assert.strictEqual(await get("/v1beta/models/upstream-chat"), 404)
  })
})

describe("a key with a limit per window", () => {
  it("every style rejects a request above the limit as the SDK's rate limit error, until the window ends", async () => {
    await start({ limits: [{ window: "day", requests: 8 }] })
    for (const style of styleNames) {
      for (const stream of [false, true]) {
        const response = await ask(style, stream)
        assert.strictEqual(response.status, 200, style)
        await response.text()
      }
    }
    await everywhere(
      (style) => refusalOf(style, "RateLimitError", 429, "rate_limit_exceeded", "RESOURCE_EXHAUSTED"),
      "8 requests a day is used up until 2026-11-22T00:00:00Z"
    )
    assert.deepInclude((await site.report()).calls, { completion: 8 })
    clock.offset = Date.parse("2026-11-22T00:00:00Z") - afternoon
    assert.strictEqual(textOf(await chat(site.url, "!say again", { key })), "again")
  })

  it("x-ratelimit headers report the rest on replies and refusals, streamed and whole", async () => {
    await start({ limits: [{ window: "day", requests: 10 }, { window: "minute", requests: 3, tokens: 100_000 }] })
    const left: Array<string> = []
    for (
      const [style, stream] of [["chat", false], ["messages", true], ["generate", true], ["responses", false]] as const
    ) {
      const response = await ask(style, stream)
      const headers = headersOf(response)
      assert.deepInclude(headers, {
        "x-ratelimit-limit-requests": "3",
        "x-ratelimit-limit-tokens": "100000"
      })
      assert.strictEqual(headers["x-ratelimit-reset-requests"], "43s")
      left.push(`${response.status} ${headers["x-ratelimit-remaining-requests"]}`)
      await response.text()
    }
    assert.deepStrictEqual(left, ["200 2", "200 1", "200 0", "429 0"])
    const refused = await ask("chat", true)
    assert.strictEqual(refused.headers.get("retry-after"), "43")
    assert.isNull(refused.headers.get("x-should-retry"))
    const cors = await fetch(`${site.url}/v1/models`, { headers: { origin: "https://app.example" } })
    for (const name of Object.keys(headersOf(refused))) {
      assert.include(cors.headers.get("access-control-expose-headers")?.toLowerCase(), name)
    }
    assert.deepStrictEqual(headersOf(await ask("chat", false, { bearer: "free" })), {})
    const missing = await post("/v1/chat/completions", { model: "nobody", messages: [] })
    assert.strictEqual(missing.status, 400)
    assert.deepStrictEqual(headersOf(missing), {})
  })

  it("SDKs do not retry when the window ends much later", async () => {
    await start({ limits: [{ window: "day", requests: 1 }] })
    await chat(site.url, "!say one", { key })
    let calls = 0
    const counting: typeof fetch = (input, init) => {
      calls++
      return fetch(input, init)
    }
    const openai = new OpenAI({ baseURL: `${site.url}/v1`, apiKey: key, fetch: counting })
    const error: unknown = await openai.chat.completions.create({
      model: "upstream-chat",
      messages: [{ role: "user", content: "hi" }]
    })
      .catch((thrown: unknown) => thrown)
    assert.instanceOf(error, OpenAI.RateLimitError)
    assert.strictEqual(calls, 1)
    const anthropic = new Anthropic({ baseURL: site.url, apiKey: key, logLevel: "off", fetch: counting })
    const thrown: unknown = await anthropic.messages.create({
      model: "upstream-chat",
      max_tokens: 9,
      messages: [{ role: "user", content: "hi" }]
    })
      .catch((thrown: unknown) => thrown)
    assert.instanceOf(thrown, Anthropic.RateLimitError)
    assert.strictEqual(calls, 2)
  })

  it("a token limit counts the real usage, and checks the estimate of a prompt first", async () => {
    await start({ limits: [{ window: "hour", tokens: 400 }] })
    const first = await (await ask("chat", false)).json() as { usage: { total_tokens: number } }
    const [window] = (await settled()).windows
    assert.deepStrictEqual(window?.tokens?.used, first.usage.total_tokens)
    const large = await send(site.url, "word ".repeat(2000), { key })
    assert.strictEqual(large.status, 429)
    assert.isNull(large.headers.get("retry-after"))
    assert.strictEqual(large.headers.get("x-should-retry"), "false")
    const embedded = await post("/v1/embeddings", { model: "upstream-chat", input: "some words ".repeat(100) })
    assert.strictEqual(embedded.status, 200)
    const { usage } = await embedded.json() as { usage: { total_tokens: number } }
    assert.deepStrictEqual((await settled()).windows[0]?.tokens?.used, first.usage.total_tokens + usage.total_tokens)
  })
})

describe("a key with a cost limit", () => {
  /** Amounts of 10^-9. The prices make the cost of each token exact. */
  const amountOf = (of: Record<string, unknown>): number => {
    const tokens = (name: string) => Number(of[`${name}_tokens`])
    return (tokens("prompt") - tokens("cached")) * 1500 + tokens("cached") * 500 + tokens("completion") * 3100 +
      Number(of["counted_requests"]) * 1_000_000
  }
  const priced: RawConfig = {
    currency: "eur",
    prices: { "upstream-chat": { input: 1.5, cached_input: "0.5", output: 3.1, per_request: 0.001 } }
  }
  const own = (credential: Record<string, string>) => fetch(`${site.url}/v1/usage`, { headers: credential })

  it("every style counts the cost of its requests, in usage, metrics and what the key's holder reads", async () => {
    await start({ name: "team a", limits: [{ window: "month", cost: 5, requests: 100 }] }, priced)
    for (const style of styleNames) {
      for (const stream of [false, true]) await (await ask(style, stream)).text()
    }
    await (await ask("chat", false, { bearer: "free", model: "upstream-reasoner" })).text()
    await settled()
    const { currency, rows, totals } = await admin(site.url, "GET", "/admin/usage?by=style,model") as {
      currency: string
      rows: ReadonlyArray<Record<string, unknown>>
      totals: Record<string, unknown>
    }
    assert.strictEqual(currency, "EUR")
    assert.deepStrictEqual(rows.map((row) => [row["unpriced_requests"], row["model"]]).sort(), [
      ...styleNames.map(() => [0, "upstream-chat"]),
      [1, "upstream-reasoner"]
    ])
    const chatRows = rows.filter((row) => row["model"] === "upstream-chat")
    for (const row of chatRows) assert.strictEqual(row["cost"], formatDecimal(BigInt(amountOf(row))))
    const total = chatRows.reduce((sum, row) => sum + amountOf(row), 0)
    const cost = formatDecimal(BigInt(total))
    assert.deepInclude(totals, { cost, unpriced_requests: 1 })
    const csv = await (await fetch(`${site.url}/admin/usage.csv?by=model&model=upstream-chat`, {
      headers: { authorization: `Bearer ${adminKey}` }
    })).text()
    const last = ["cache_write_tokens", "predicted_tokens", "prompt_cache_misses", "wasted_cost", ...percentileNames]
    assert.include(csv, `,duration_ms,cost,currency,unpriced_requests,errors,${last.join(",")}\r\n`)
    assert.match(csv, new RegExp(`,${cost},EUR,0,,0,0,0,0(?:,\\d*){${percentileNames.length}}\r\n`))
    const metrics = await (await fetch(`${site.url}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } }))
      .text()
    const [, counted] = /^gateway_cost_total\{model="upstream-chat",upstream="default"\} (.*)$/m.exec(metrics) ?? []
    assert.closeTo(Number(counted), total / 1e9, 1e-9)
    assert.strictEqual(metrics.match(/^gateway_cost_total\{/gm)?.length, 1)

    const used = { requests: 8, tokens: chatRows.reduce((sum, row) => sum + Number(row["total_tokens"]), 0), cost }
    const answer = await own({ "x-api-key": key })
    assert.strictEqual(answer.status, 200)
    assert.strictEqual(answer.headers.get("cache-control"), "no-store")
    assert.deepStrictEqual(await answer.json(), {
      key: { name: "team a" },
      currency: "EUR",
      today: used,
      month: used,
      limits: [{
        window: "month",
        requests: { limit: 100, used: 8, remaining: 92 },
        tokens: null,
        cost: { limit: "5", used: cost, remaining: formatDecimal(5_000_000_000n - BigInt(total)) },
        strict: false,
        fallback: null,
        resets_at: "2026-12-01T00:00:00Z"
      }]
    })
    for (const bearer of [adminKey, "a-token-of-its-own", "free "]) {
      assert.strictEqual(
        (await own({ authorization: `Bearer ${bearer}` })).status,
        bearer === "free " ? 200 : 401,
        bearer
      )
    }
    assert.strictEqual((await own({})).status, 401)
    assert.deepInclude((await admin(site.url, "GET", "/admin/usage"))["totals"], { requests: 9 })
  })

  it("every style rejects a request above the amount, and a model without a price", async () => {
    await start({ limits: [{ window: "day", cost: "0.002" }] }, priced)
    for (const style of styleNames) {
      const unpriced = await ask(style, false, { model: "upstream-reasoner" })
      assert.strictEqual(unpriced.status, 403, style)
      assert.strictEqual(unpriced.headers.get("x-should-retry"), "false")
      assert.include(await unpriced.text(), `the model \\"upstream-reasoner\\" has no price`)
    }
    const { error } = await (await ask("chat", false, { model: "upstream-reasoner" })).json() as {
      error: { code: string; param: string }
    }
    assert.deepInclude(error, { code: "model_not_priced", param: "model" })
    await (await ask("chat", false)).text()
    await settled()
    await everywhere(
      (style) => refusalOf(style, "RateLimitError", 429, "rate_limit_exceeded", "RESOURCE_EXHAUSTED"),
      "limit of 0.002 EUR a day is used up until 2026-11-22T00:00:00Z"
    )
  })
})

describe("a key with max_inflight", () => {
  it("a request above the limit is rejected immediately, and the end of another frees its place", async () => {
    await start({ max_inflight: 1 })
    const held = await hold(site, { key })
    const refused = await send(site.url, "!say two", { key })
    assert.strictEqual(refused.status, 429)
    assert.strictEqual(refused.headers.get("retry-after"), "1")
    assert.strictEqual((await usedBy()).in_flight, 1)
    assert.strictEqual(textOf(await chat(site.url, "!say free", { key: "free" })), "free")
    held.end()
    await held.response.text().catch(() => "left")
    await settled()
    assert.strictEqual(textOf(await chat(site.url, "!say three", { key })), "three")
  })

  it("concurrent requests never exceed the windows and max_inflight", async () => {
    await start({ max_inflight: 6, limits: [{ window: "day", requests: 10 }] })
    const statuses: Array<number> = []
    for (let round = 0; round < 3; round++) {
      const said = await Promise.all(Array.from({ length: 20 }, () => chat(site.url, "!say one", { key })))
      statuses.push(...said.map(({ status }) => status))
      await settled()
    }
    assert.strictEqual(statuses.filter((status) => status === 200).length, 10)
    assert.strictEqual(statuses.filter((status) => status === 429).length, 50)
    assert.strictEqual((await settled()).windows[0]?.requests?.used, 10)
  })

  it("runtime.key_max_inflight applies to a key without its own limit", async () => {
    await start({}, { runtime: { key_max_inflight: 1 } })
    const held = await hold(site, { key })
    assert.strictEqual((await send(site.url, "!say two", { key })).status, 429)
    await admin(site.url, "PUT", "/admin/settings", { runtime: { key_max_inflight: null } })
    assert.strictEqual(textOf(await chat(site.url, "!say two", { key })), "two")
    held.end()
    await held.response.text().catch(() => "left")
  })
})

describe("a key's counted requests", () => {
  it("a request counts if it was answered or sent upstream, a count of tokens too, and not if it was rejected before", async () => {
    await start({ limits: [{ window: "month", requests: 100, tokens: 100_000 }] }, {
      accounts: accounts("a"),
      runtime: { account_max_inflight: 1, account_max_queue: 0 }
    })
    const counted = async () => (await settled()).windows[0]?.requests?.used
    assert.deepInclude(await chat(site.url, "!say one\n!fault too-long", { key }), { status: 400 })
    assert.strictEqual(await counted(), 1)
    const held = await hold(site, { key: "free" })
    assert.strictEqual((await send(site.url, "!say no place", { key })).status, 429)
    assert.strictEqual(await counted(), 1)
    held.end()
    await held.response.text().catch(() => "left")
    for (const body of [{}, { model: "nobody", messages: [{ role: "user", content: "hi" }] }]) {
      assert.strictEqual((await post("/v1/chat/completions", body)).status, 400)
    }
    assert.strictEqual(
      (await post("/v1/messages/count_tokens", { model: "upstream-chat", messages: [{ role: "user", content: "hi" }] }))
        .status,
      200
    )
    assert.strictEqual(await counted(), 2)
  })
})

describe("/metrics", () => {
  const ratios = async () => {
    const response = await fetch(`${site.url}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } })
    return [...(await response.text()).matchAll(/^gateway_key_limit_used_ratio\{(.*)\} (\S+)$/gm)]
      .map(([, labels = "", value]) => [labels, Number(value)] as const)
  }

  it("shows how much of each limit of a key is used in the current window", async () => {
    await start(
      {
        limits: [{ window: "minute", requests: 4 }, { window: "day", requests: 8, tokens: 1_000, cost: "0.5" }]
      },
      { prices: { "*": { per_request: "0.125" } } }
    )
    assert.deepStrictEqual((await ratios()).map(([, ratio]) => ratio), [0, 0, 0, 0])
    assert.strictEqual((await ask("chat", false)).status, 200)
    const { windows } = await settled()
    assert.deepStrictEqual(await ratios(), [
      [`key="${id}",window="minute",unit="requests"`, 0.25],
      [`key="${id}",window="day",unit="requests"`, 0.125],
      [`key="${id}",window="day",unit="tokens"`, windows[1]!.tokens!.used / 1_000],
      [`key="${id}",window="day",unit="cost"`, 0.25]
    ])
    clock.offset += 60_000
    assert.strictEqual((await ratios())[0]![1], 0)
  })

  it("has the first 1,000 keys with limits", async () => {
    const keys = Array.from({ length: 1_002 }, (_, i) => `sk-${i}`)
    const ids = keys.map((each) => keyId(each, sha256Hex))
    // The first one has no limit.
    const records = ids.map((
      each,
      i
    ) => [each, i === 0 ? { name: "free" } : { limits: [{ window: "day", requests: 1 }] }])
    await start({}, { keys, key_records: Object.fromEntries(records) })
    const shown = (await ratios()).map(([labels]) => /key="(.*?)"/.exec(labels)?.[1])
    assert.deepStrictEqual(shown, ids.slice(1, 1_001))
  })
})
