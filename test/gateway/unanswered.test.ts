/** Requests that end before their reply begins: what the upstream got and did not refuse counts, in limits and in the history. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import { type AddressInfo, createServer, type Socket } from "node:net"
import { type RawConfig, sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { costsOf } from "../../src/usage/UsageEntry.ts"
import { UsageStore } from "../../src/usage/UsageStore.ts"
import { closedPort } from "../several/support.ts"
import { type GatewayOptions, type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock, type MovedClock } from "../support/movedClock.ts"
import { type Answer, chunk, frames, json, type OpenAiServer, startOpenAiServer } from "../support/openaiServer.ts"
import { plainRequests } from "../support/plainRequests.ts"
import { styleNames } from "../support/styleClients.ts"
import { untilHolds } from "../support/until.ts"
import { accounts, admin, startSite } from "./support.ts"

const key = "sk-limited"
const id = keyId(key, sha256Hex)

let server: OpenAiServer
let gateway: RunningGateway
beforeAll(async () => {
  server = await startOpenAiServer()
})
afterAll(() => server.stop())
afterEach(() => gateway.stop())

const manyOfEach = [{ window: "month", requests: 1_000_000, tokens: 1_000_000_000, cost: 1_000_000 }]
/** Whole units, so that costs are exact in floating point. */
const price = { input: 1_000_000, output: 2_000_000, per_request: 1_000 }

const upstreamAt = (baseUrl: string): RawConfig => ({ driver: "openai", base_url: baseUrl, models: { m: "m" } })

const limited = ({ upstream = upstreamAt(server.baseUrl), ...config }: RawConfig = {}): RawConfig => ({
  keys: [key, "free"],
  key_records: { [id]: { limits: manyOfEach } },
  accounts: [{ token: "sk-one" }],
  ...(upstream === null ? {} : { upstream }),
  embeddings: { provider: "upstream" },
  prices: { m: price },
  ...config
})

/** Seconds of the time limits, by a clock that a test moves. */
const timeouts = { first_byte: 10, attempts: 100, drain: 7 }

const start = async (config: RawConfig = {}, options: GatewayOptions = {}) => {
  gateway = await startGateway(limited(config), options)
}

const post = (
  path: string,
  body: object | FormData,
  { bearer = key, signal }: { readonly bearer?: string; readonly signal?: AbortSignal } = {}
) =>
  fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${bearer}` },
    body: body instanceof FormData ? body : JSON.stringify(body),
    signal: signal ?? null
  })

const question = (content: string, rest: object = {}) => ({
  model: "m",
  messages: [{ role: "user", content }],
  ...rest
})

const measures = ["counted_requests", "left", "prompt_tokens", "completion_tokens", "cost"] as const
type Totals = Readonly<Record<typeof measures[number], number>>

/** What the history has, once so many requests are over. It equals what the limits of the key have. */
const totals = async (requests: number): Promise<Totals> => {
  const history = async () =>
    (await admin(gateway.url, "GET", `/admin/usage?key=${id}`) as { totals: Record<string, unknown> }).totals
  await untilHolds(async () => (await history())["requests"] === requests)
  const sums = await history()
  const found = Object.fromEntries(measures.map((measure) => [measure, Number(sums[measure])])) as Totals
  const { items: [item] } = await admin(gateway.url, "GET", `/admin/keys?q=${id}`) as unknown as {
    items: ReadonlyArray<
      { usage: { windows: ReadonlyArray<Record<"requests" | "tokens" | "cost", { used: unknown }>> } }
    >
  }
  const { cost, requests: counted, tokens } = item!.usage.windows[0]!
  assert.deepStrictEqual(
    [Number(counted.used), Number(tokens.used), Number(cost.used)],
    [found.counted_requests, found.prompt_tokens + found.completion_tokens, found.cost]
  )
  return found
}

/** Waits until the queue has this number. */
const queued = (field: "in_use" | "waiting", count: number) =>
  untilHolds(async () => (await admin(gateway.url, "GET", "/admin/queue/status"))[field] === count)

const nothing: Totals = { counted_requests: 0, left: 0, prompt_tokens: 0, completion_tokens: 0, cost: 0 }

/** Sends a request, and leaves once the server has it. */
const leaveOnceSent = async (path: string, body: object | FormData) => {
  const abort = new AbortController()
  const answer = post(path, body, { signal: abort.signal })
  const before = server.requests.length
  await server.until((requests) => requests.length > before)
  abort.abort()
  await answer.then((response) => response.text(), () => "left")
}

const hanging: Answer = { headless: true, after: "hang" }

const form = () => {
  const data = new FormData()
  data.append("model", "m")
  data.append("file", new Blob(["RIFF"]), "a.wav")
  return data
}

interface Kind {
  readonly path: string
  readonly body: () => object | FormData
  /** A reply without counts. */
  readonly reply: Answer
}

const text = { pieces: [frames(chunk({ content: "Yes" }), chunk({}, "stop"), "[DONE]")] }
const vectors = json(200, { object: "list", data: [{ object: "embedding", index: 0, embedding: [1] }] })

const kinds: ReadonlyArray<readonly [name: string, kind: Kind]> = [
  ...styleNames.flatMap((style) =>
    [false, true].map((stream) => {
      const { body, path } = plainRequests[style]
      const kind: Kind = {
        path: path(stream).replace("upstream-chat", "m"),
        body: () => style === "generate" ? body(stream) : { ...body(stream), model: "m" },
        reply: text
      }
      return [`a ${stream ? "streamed" : "whole"} ${style} request`, kind] as const
    })
  ),
  ["an embeddings request", {
    path: "/v1/embeddings",
    body: () => ({ model: "m", input: "some words" }),
    reply: vectors
  }],
  ["an embedContent request", {
    path: "/v1beta/models/m:embedContent",
    body: () => ({ content: { parts: [{ text: "some words" }] } }),
    reply: vectors
  }],
  ["a request for pictures", {
    path: "/v1/images/generations",
    body: () => ({ model: "m", prompt: "a gate", n: 10 }),
    reply: json(200, { data: [] })
  }],
  ["a form with a file", { path: "/v1/audio/transcriptions", body: form, reply: json(200, { text: "hello" }) }]
]

describe("a caller that leaves before the reply begins", () => {
  it.each(kinds)("%s costs its prompt and the price of a request", async (_, { body, path, reply }) => {
    await start()
    server.answer(() => reply)
    assert.strictEqual((await post(path, body())).status, 200)
    const answered = await totals(1)
    server.answer(() => hanging)
    await leaveOnceSent(path, body())
    const both = await totals(2)
    assert.deepStrictEqual(both, {
      counted_requests: 2,
      left: 1,
      prompt_tokens: 2 * answered.prompt_tokens,
      completion_tokens: answered.completion_tokens,
      cost: answered.cost + answered.prompt_tokens + 1_000
    })
  })

  it("gets no more prompts to the server than its limit of tokens allows", async () => {
    server.answer(() => hanging)
    const prompt = "The quick brown fox jumps over the lazy dog. ".repeat(10_500)
    await start()
    await leaveOnceSent("/v1/chat/completions", question(prompt))
    const { prompt_tokens } = await totals(1)
    assert.isAbove(prompt_tokens, 100_000)
    await gateway.stop()
    server.answer(() => hanging)
    await start({ key_records: { [id]: { limits: [{ window: "month", tokens: Math.round(3.5 * prompt_tokens) }] } } })
    for (let sent = 0; sent < 3; sent++) await leaveOnceSent("/v1/chat/completions", question(prompt))
    for (let refused = 0; refused < 6; refused++) {
      assert.strictEqual((await post("/v1/chat/completions", question(prompt))).status, 429)
    }
    assert.lengthOf(server.requests, 3)
  })

  it("gets no more requests to the server than its cost limit allows", async () => {
    server.answer(() => hanging)
    await start({
      key_records: { [id]: { limits: [{ window: "month", cost: 3_500 }] } },
      prices: { m: { per_request: 1_000 } }
    })
    for (let sent = 0; sent < 3; sent++) {
      await leaveOnceSent("/v1/images/generations", { model: "m", prompt: "a gate", n: 10 })
    }
    assert.strictEqual((await post("/v1/images/generations", { model: "m", prompt: "a gate", n: 10 })).status, 429)
    assert.lengthOf(server.requests, 3)
  })

  it("has a long prompt estimated in slices", async () => {
    let slices = 0
    await start({}, { watchSlices: () => slices++ })
    server.answer(() => hanging)
    const abort = new AbortController()
    const answer = post("/v1/chat/completions", question("many words ".repeat(100_000)), {
      bearer: "free",
      signal: abort.signal
    }).catch(() => "left")
    await server.until((requests) => requests.length === 1)
    const sent = slices
    abort.abort()
    await answer
    await untilHolds(() => slices > sent)
  })

  it("costs nothing while it waits in the queue", async () => {
    await start({ runtime: { account_max_inflight: 1 } })
    server.answer(() => hanging)
    const running = new AbortController()
    const first = post("/v1/chat/completions", question("Hi"), { bearer: "free", signal: running.signal })
    await server.until((requests) => requests.length === 1)
    const abort = new AbortController()
    const second = post("/v1/chat/completions", question("Hi"), { signal: abort.signal })
    await queued("waiting", 1)
    abort.abort()
    await second.catch(() => "left")
    assert.deepStrictEqual(await totals(1), { ...nothing, left: 1 })
    running.abort()
    await first.catch(() => "left")
  })

  it("costs nothing while the connection is made", async () => {
    // It accepts connections, and never answers a TLS handshake.
    const sockets: Array<Socket> = []
    const mute = createServer((socket) => {
      socket.on("error", () => undefined)
      sockets.push(socket)
    })
    await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve))
    const { port } = mute.address() as AddressInfo
    await start({ upstream: upstreamAt(`https://127.0.0.1:${port}/v1`) })
    const abort = new AbortController()
    const answer = post("/v1/chat/completions", question("Hi"), { signal: abort.signal })
    await queued("in_use", 1)
    abort.abort()
    await answer.catch(() => "left")
    assert.deepStrictEqual(await totals(1), { ...nothing, counted_requests: 1, left: 1 })
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => mute.close(resolve))
  })

  it("costs nothing while the session is created, and its prompt afterwards", async () => {
    const site = await startSite(limited({
      accounts: accounts("a"),
      upstream: null,
      prices: { "*": price }
    }))
    gateway = site.gateway
    const ask = (signal: AbortSignal) =>
      post("/v1/chat/completions", { ...question("!say one"), model: "upstream-chat" }, { signal })
        .catch(() => "left")
    for (const call of ["create", "completion"] as const) {
      await Effect.runPromise(site.reference.fail({ name: "hang-before-headers", call }))
      const abort = new AbortController()
      const answer = ask(abort.signal)
      await site.until(({ calls }) => calls[call] === 1)
      abort.abort()
      await answer
      const found = await totals(call === "create" ? 1 : 2)
      if (call === "create") assert.deepStrictEqual(found, { ...nothing, counted_requests: 1, left: 1 })
      else assert.strictEqual(found.cost, found.prompt_tokens + 1_000)
      await Effect.runPromise(site.reference.forget)
    }
    await site.stop()
    await start()
  })
})

describe("a request that fails before its reply begins", () => {
  let clock: MovedClock
  const startStill = async (config: RawConfig = {}) => {
    clock = makeMovedClock({ still: true })
    await start({ upstream: { ...upstreamAt(server.baseUrl), timeouts }, ...config }, { clock })
  }
  /** The tokens of the question's prompt, by a request that is answered without counts. */
  const answered = async () => {
    server.answer(() => text)
    assert.strictEqual((await post("/v1/chat/completions", question("Hi"))).status, 200)
    return totals(1)
  }
  const asked = (rest: object = {}) => post("/v1/chat/completions", question("Hi", rest))

  const failures: ReadonlyArray<readonly [about: string, answer: Answer, status: number]> = [
    ["breaks the connection", { headless: true, after: "reset" }, 503],
    ["breaks the stream before its first event", { after: "reset" }, 503],
    ["sends an empty reply", { pieces: [frames(chunk({}, "stop"), "[DONE]")] }, 503],
    ["withdraws the reply", { pieces: [frames(chunk({}, "content_filter"), "[DONE]")] }, 400]
  ]
  it.each(failures)("costs its prompt at each try if the upstream %s", async (_, answer, status) => {
    await start({ accounts: [{ token: "sk-one" }, { token: "sk-two" }] })
    const { completion_tokens, cost, prompt_tokens } = await answered()
    server.answer(() => answer)
    assert.strictEqual((await asked()).status, status)
    assert.isAtLeast(server.requests.length, 1)
    assert.deepStrictEqual(await totals(2), {
      counted_requests: 2,
      left: 0,
      prompt_tokens: 2 * prompt_tokens,
      completion_tokens,
      cost: cost + server.requests.length * (prompt_tokens + 1_000)
    })
  })

  it("costs its prompt at each try that exceeds a time limit", async () => {
    await startStill({ accounts: [{ token: "sk-one" }, { token: "sk-two" }] })
    const { cost, prompt_tokens } = await answered()
    server.answer(() => hanging)
    const answer = asked()
    for (let tries = 1; tries <= 3; tries++) {
      await server.until((requests) => requests.length === tries)
      clock.move((timeouts.first_byte + 1) * 1_000)
    }
    assert.strictEqual((await answer).status, 503)
    assert.strictEqual((await totals(2)).cost, cost + 3 * (prompt_tokens + 1_000))
  })

  it("costs what both replies report if tool_choice is not obeyed", async () => {
    await start()
    server.answer(() => ({
      pieces: [frames(
        chunk({ content: "No" }),
        chunk({}, "stop"),
        { ...chunk({}), choices: [], usage: { prompt_tokens: 40, completion_tokens: 5 } },
        "[DONE]"
      )]
    }))
    const tools = [{ type: "function", function: { name: "look", parameters: { type: "object", properties: {} } } }]
    assert.strictEqual((await asked({ tools, tool_choice: "required" })).status, 422)
    assert.deepInclude(await totals(1), { prompt_tokens: 40, completion_tokens: 5, cost: 2 * 1_050 })
  })

  const refusals: ReadonlyArray<readonly [about: string, answer: Answer]> = [
    ["refuses it with 400", json(400, { error: { message: "no" } })],
    ["refuses the rate with 429", json(429, { error: { message: "slow down" } }, { "retry-after": "600" })],
    ["fails with 500", json(500, { error: { message: "trouble" } })],
    ["answers with a page", { headers: { "content-type": "text/html" }, pieces: ["<html></html>"] }],
    ["sends an error as the first event", { pieces: [frames({ error: { message: "no" } })] }]
  ]
  it.each(refusals)("costs nothing if the upstream %s", async (_, answer) => {
    await start()
    server.answer(() => answer)
    assert.isAtLeast((await asked()).status, 400)
    assert.deepStrictEqual(await totals(1), { ...nothing, counted_requests: 1 })
  })

  it("costs nothing if there is no connection", async () => {
    await start({ upstream: upstreamAt(`http://127.0.0.1:${closedPort}/v1`) })
    assert.strictEqual((await asked()).status, 503)
    assert.deepStrictEqual(await totals(1), { ...nothing, counted_requests: 1 })
  })

  it("costs its prompt and what the answer costs if another account answers", async () => {
    await start({ accounts: [{ token: "sk-one" }, { token: "sk-two" }] })
    const { completion_tokens, cost, prompt_tokens } = await answered()
    server.answer((_, index) => index === 0 ? { headless: true, after: "reset" } : text)
    assert.strictEqual((await asked()).status, 200)
    assert.lengthOf(server.requests, 2)
    assert.deepStrictEqual(await totals(2), {
      counted_requests: 2,
      left: 0,
      prompt_tokens: 2 * prompt_tokens,
      completion_tokens: 2 * completion_tokens,
      cost: 2 * cost + prompt_tokens + 1_000
    })
  })

  it("costs the price of the target that got it, also if the next target refuses it", async () => {
    const hosted = await startOpenAiServer()
    await start({
      upstream: null,
      upstreams: { first: upstreamAt(server.baseUrl), second: upstreamAt(hosted.baseUrl) },
      accounts: [{ upstream: "first", token: "one" }, { upstream: "second", token: "two" }],
      prices: { "first/m": { per_request: 7 }, "second/m": { per_request: 3 } }
    })
    server.answer(() => ({ headless: true, after: "reset" }))
    hosted.answer(() => json(400, { error: { message: "no" } }))
    assert.strictEqual((await asked()).status, 400)
    assert.lengthOf(hosted.requests, 1)
    assert.deepInclude(await totals(1), { counted_requests: 1, cost: 7 })
    await hosted.stop()
  })

  it("costs its prompt if the gateway ends it at a shutdown", async () => {
    await startStill()
    const { cost, prompt_tokens } = await answered()
    const store = Context.get(gateway.services, UsageStore)
    server.answer(() => hanging)
    const answer = asked().catch(() => "left")
    await server.until((requests) => requests.length === 1)
    const stopped = gateway.stop()
    await untilHolds(() => clock.sleeping().includes(timeouts.drain * 1_000))
    clock.move(timeouts.drain * 1_000)
    await stopped
    await answer
    const everything = { from: 0, to: Number.MAX_SAFE_INTEGER, by: [], only: {}, limit: 1 }
    const history = await Effect.runPromise(store.query(everything))
    assert.strictEqual(Number(costsOf(history.totals).cost), cost + prompt_tokens + 1_000)
    await start()
  })
})
