/** Counts of tokens are requests of their key: in flight, and in its windows of requests, with no tokens and no cost. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { type RawConfig, sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import type { RunningGateway } from "../support/gateway.ts"
import { startGateway } from "../support/gateway.ts"
import {
  type Answer,
  failed,
  json,
  type MessagesServer,
  type SeenRequest,
  startMessagesServer,
  streamedMessage,
  textBlock
} from "../support/messagesServer.ts"
import { untilHolds } from "../support/until.ts"
import { admin } from "./support.ts"

const key = "sk-limited"
const id = keyId(key, sha256Hex)

let server: MessagesServer
let gateway: RunningGateway
beforeAll(async () => {
  server = await startMessagesServer()
})
afterAll(() => server.stop())
afterEach(() => gateway.stop())

const start = async (record: RawConfig, config: RawConfig = {}) => {
  gateway = await startGateway({
    keys: [key, "free"],
    key_records: { [id]: record },
    accounts: [{ token: "sk-server" }],
    upstream: { driver: "messages", base_url: server.url, models: { m: "m" } },
    prices: { m: { input: 1, output: 1, per_request: 1 } },
    ...config
  })
}

const counted = 4321
const isCount = ({ path }: SeenRequest) => path.endsWith("/count_tokens")
const counts = () => server.requests.filter(isCount).length
const hanging: Answer = { headless: true, after: "hang" }

/** What the server answers to counts, and to everything else. */
const answer = (count: Answer, other: Answer) => server.answer((request) => isCount(request) ? count : other)
const served = () => answer(json(200, { input_tokens: counted }), streamedMessage([textBlock("Yes")]))

const question = [{ role: "user", content: "Hi" }]

const styles = {
  messages: ["/v1/messages/count_tokens", { model: "m", messages: question }, "input_tokens"],
  responses: ["/v1/responses/input_tokens", { model: "m", input: "Hi" }, "input_tokens"],
  generate: ["/v1beta/models/m:countTokens", { contents: [{ role: "user", parts: [{ text: "Hi" }] }] }, "totalTokens"]
} as const
type Style = keyof typeof styles
const names = Object.keys(styles) as ReadonlyArray<Style>

const post = (path: string, body: object, bearer: string, signal?: AbortSignal) =>
  fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${bearer}` },
    body: JSON.stringify(body),
    signal: signal ?? null
  })

const count = async (style: Style, bearer = key) => {
  const [path, body, field] = styles[style]
  const response = await post(path, body, bearer)
  const reply = await response.json() as Readonly<Record<string, unknown>>
  return { status: response.status, headers: response.headers, tokens: reply[field] }
}

const chat = (bearer = key, signal?: AbortSignal) =>
  post("/v1/chat/completions", { model: "m", messages: question }, bearer, signal)

/** A request that runs until `end`. */
const running = async (send: (signal: AbortSignal) => Promise<Response>) => {
  const abort = new AbortController()
  const before = server.requests.length
  const reply = send(abort.signal).catch(() => "left")
  await server.until((requests) => requests.length > before)
  return async () => {
    abort.abort()
    await reply
  }
}

const usage = async () => {
  const { items } = await admin(gateway.url, "GET", `/admin/keys?q=${id}`)
  const [item] = items as ReadonlyArray<{
    usage: { in_flight: number; windows: ReadonlyArray<Record<string, { used: number | string } | null>> }
  }>
  return item!.usage
}

const queue = () => admin(gateway.url, "GET", "/admin/queue/status")

const estimate = (tokens: unknown) => {
  assert.isAbove(Number(tokens), 0)
  assert.isBelow(Number(tokens), counted)
}

describe.each(names)("a count of tokens (%s)", (style) => {
  it("is refused while its key runs as many requests as it may", async () => {
    await start({ max_inflight: 1 })
    answer(json(200, { input_tokens: counted }), hanging)
    const end = await running((signal) => chat(key, signal))
    const { headers, status } = await count(style)
    assert.deepStrictEqual([status, headers.get("retry-after")], [429, "1"])
    assert.strictEqual(counts(), 0)
    await end()
    await untilHolds(async () => (await usage()).in_flight === 0)
    assert.deepInclude(await count(style), { status: 200, tokens: counted })
  })

  it("takes a place of its key alone", async () => {
    await start({ max_inflight: 1 }, { runtime: { account_max_inflight: 4 } })
    answer(hanging, streamedMessage([textBlock("Yes")]))
    const [path, body] = styles[style]
    const end = await running((signal) => post(path, body, key, signal))
    assert.strictEqual((await usage()).in_flight, 1)
    for (const other of names) assert.strictEqual((await count(other)).status, 429)
    assert.strictEqual((await chat()).status, 429)
    assert.strictEqual((await chat("free")).status, 200)
    await end()
    await untilHolds(async () => (await usage()).in_flight === 0)
  })

  it("is a request without tokens and cost in the windows of its key and in the history", async () => {
    await start({ limits: [{ window: "month", requests: 2, tokens: 100_000, cost: 100 }] })
    served()
    const first = await count(style)
    assert.deepInclude(first, { status: 200, tokens: counted })
    assert.strictEqual(first.headers.get("x-ratelimit-remaining-requests"), "1")
    assert.strictEqual((await count(style)).status, 200)
    await untilHolds(async () => (await usage()).in_flight === 0)
    const [window] = (await usage()).windows
    assert.deepStrictEqual(
      [window!["requests"]?.used, window!["tokens"]?.used, Number(window!["cost"]?.used)],
      [2, 0, 0]
    )
    for (const other of names) assert.strictEqual((await count(other)).status, 429)
    assert.strictEqual((await chat()).status, 429)
    assert.strictEqual(counts(), 2)
    assert.strictEqual((await count(style, "free")).status, 200)
    const { totals } = await admin(gateway.url, "GET", `/admin/usage?key=${id}`) as {
      totals: Readonly<Record<string, unknown>>
    }
    assert.deepInclude(totals, { counted_requests: 2, total_tokens: 0, cost: "0", unpriced_requests: 0 })
  })

  it("is refused while a limit of tokens or of cost is exceeded", async () => {
    for (const limit of [{ tokens: 20 }, { cost: "1.00001" }]) {
      await start({ limits: [{ window: "month", ...limit }] })
      served()
      assert.strictEqual((await chat()).status, 200)
      await untilHolds(async () => (await usage()).in_flight === 0)
      assert.strictEqual((await count(style)).status, 429)
      assert.strictEqual(counts(), 0)
      await gateway.stop()
    }
    await start({})
  })

  it("is the gateway's estimate, without a place in the queue, if no slot is free", async () => {
    await start({}, { runtime: { account_max_inflight: 1, account_max_queue: 1 } })
    answer(json(200, { input_tokens: counted }), hanging)
    const end = await running((signal) => chat("free", signal))
    const before = await count(style)
    assert.strictEqual(before.status, 200)
    estimate(before.tokens)
    assert.deepInclude(await queue(), { waiting: 0, in_use: 1 })
    const abort = new AbortController()
    const waiting = chat("free", abort.signal).catch(() => "left")
    await untilHolds(async () => (await queue())["waiting"] === 1)
    estimate((await count(style)).tokens)
    assert.strictEqual(counts(), 0)
    abort.abort()
    await waiting
    await end()
  })

  it("is the gateway's estimate while the upstream limits the rate", async () => {
    await start({})
    answer(failed(429, "rate_limit_error", "slow down"), streamedMessage([textBlock("Yes")]))
    const { status, tokens } = await count(style)
    assert.strictEqual(status, 200)
    estimate(tokens)
    assert.strictEqual(counts(), 1)
  })

  it("goes to a target with a free slot immediately, even if the route waits for the first one", async () => {
    const other = await startMessagesServer()
    const target = (url: string) => ({ driver: "messages", base_url: url, models: { m: "m" }, max_inflight: 1 })
    await start({}, {
      upstream: { driver: "embedded" },
      upstreams: { first: target(server.url), second: target(other.url) },
      accounts: [{ upstream: "first", token: "one" }, { upstream: "second", token: "two" }],
      routes: { m: { targets: ["first", "second"], wait: 60 } }
    })
    answer(json(200, { input_tokens: 1 }), hanging)
    other.answer(() => json(200, { input_tokens: counted }))
    const end = await running((signal) => chat("free", signal))
    assert.deepInclude(await count(style), { status: 200, tokens: counted })
    await end()
    await other.stop()
  })
})
