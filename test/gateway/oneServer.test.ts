/** One server behind the gateway, with one account or without accounts: there is no failover. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Logger, References } from "effect"
import { type AddressInfo, createServer, type Socket } from "node:net"
import type { RawConfig } from "../../src/config/json.ts"
import { closedPort } from "../several/support.ts"
import { adminKey, businessKey, type GatewayOptions, type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import { type Answer, json, type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"

const open: Array<{ readonly stop: () => Promise<void> }> = []
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.stop()
})

interface Stand {
  readonly gateway: RunningGateway
  readonly server: OpenAiServer
  readonly logged: ReadonlyArray<Record<string, unknown>>
}

const start = async (
  answer: Answer,
  config: RawConfig = {},
  upstream: RawConfig = {},
  clock: Pick<GatewayOptions, "clock"> = {}
): Promise<Stand> => {
  const server = await startOpenAiServer()
  open.push(server)
  server.answer(() => answer)
  const logged: Array<Record<string, unknown>> = []
  const logger = Logger.make(({ fiber, message }) => {
    if (String(message) === "request") logged.push({ ...fiber.getRef(References.CurrentLogAnnotations) })
  })
  const gateway = await startGateway(
    { ...config, upstream: { driver: "openai", base_url: server.baseUrl, ...upstream } },
    { logger, ...clock }
  )
  open.push(gateway)
  return { gateway, server, logged }
}

const ask = async ({ gateway }: Stand) => {
  const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}` },
    body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "Hello" }] })
  })
  const { error } = await reply.json() as { readonly error?: { readonly message: string; readonly code: string } }
  return { status: reply.status, retryAfter: reply.headers.get("retry-after"), ...error }
}

const trouble = json(500, { error: { message: "down" } })

describe("a failing upstream server", () => {
  it.each([["no account", []], ["one account", [{ token: "sk-one" }]]])(
    "with %s, a request has three attempts, logged as retries",
    async (_, accounts) => {
      const stand = await start(trouble, { accounts })
      assert.strictEqual((await ask(stand)).status, 503)
      assert.lengthOf(stand.server.requests, 3)
      assert.deepInclude(stand.logged[0], { attempts: 3, retries: 2 })
      assert.notProperty(stand.logged[0], "failovers")
    }
  )

  it("with two accounts, more attempts are logged as failovers", async () => {
    const stand = await start(trouble, { accounts: [{ token: "sk-one" }, { token: "sk-two" }] })
    await ask(stand)
    assert.deepInclude(stand.logged[0], { attempts: 3, failovers: 2 })
    assert.notProperty(stand.logged[0], "retries")
  })

  const asStream = { whole_replies: "streamed" }

  it("a request for a stream that timed out after it was sent is not retried", async () => {
    const clock = makeMovedClock({ still: true })
    const stand = await start({ headless: true, after: "hang" }, {}, { timeouts: { first_byte: 5 }, ...asStream }, {
      clock
    })
    const asking = ask(stand)
    await stand.server.until(({ length }) => length === 1)
    clock.move(5_000)
    const { code, status } = await asking
    assert.deepEqual({ code, status }, { code: "upstream_timeout", status: 503 })
    assert.lengthOf(stand.server.requests, 1)
  })

  it("a server that takes no connection within its time limit is not tried again, and callers learn when to retry", async () => {
    const sockets: Array<Socket> = []
    // The handshake of TLS is a part of the connection: this server never answers it.
    const silent = createServer((socket) => sockets.push(socket.on("error", () => undefined)))
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve))
    const { port } = silent.address() as AddressInfo
    try {
      const stand = await start(streamed({ content: "Hello" }), {}, {
        base_url: `https://127.0.0.1:${port}/v1`,
        timeouts: { connect: 1 }
      })
      const { code, retryAfter, status } = await ask(stand)
      assert.deepEqual({ code, retryAfter, status }, { code: "upstream_timeout", retryAfter: "5", status: 503 })
      assert.isAbove(sockets.length, 0)
      assert.deepInclude(stand.logged[0], { attempts: 1 })
    } finally {
      for (const socket of sockets) socket.destroy()
      silent.close()
    }
  })

  it("a server that refuses connections is tried three times, and callers learn when to retry", async () => {
    const stand = await start(streamed({ content: "Hello" }), {}, {
      base_url: `http://127.0.0.1:${closedPort}/v1`
    })
    const { code, retryAfter, status } = await ask(stand)
    assert.deepEqual({ code, retryAfter, status }, { code: "upstream_error", retryAfter: "5", status: 503 })
    assert.deepInclude(stand.logged[0], { attempts: 3 })
  })

  it("a request for a stream that a proxy answered with 504 is not retried", async () => {
    const stand = await start(json(504, { error: { message: "late" } }), {}, asStream)
    await ask(stand)
    assert.lengthOf(stand.server.requests, 1)
  })
})

describe("a server that requires an API key when none is configured", () => {
  it("callers, the queue status and /readyz report it, with the time of the next try", async () => {
    const stand = await start(json(401, { error: { message: "You didn't provide an API key" } }), {}, {}, {
      clock: makeMovedClock({ still: true })
    })
    const { gateway, server } = stand
    const first = await ask(stand)
    assert.strictEqual(first.status, 503)
    assert.strictEqual(
      first.message,
      "The upstream asks for an API key and none is configured: You didn't provide an API key. Ask the gateway's operator."
    )
    // The back-off is a minute plus up to a quarter.
    assert.isTrue(Number(first.retryAfter) >= 60 && Number(first.retryAfter) <= 75, String(first.retryAfter))
    const second = await ask(stand)
    assert.strictEqual(
      second.message,
      "No upstream account can be used: the upstream asks for an API key and none is configured"
    )
    assert.strictEqual(second.retryAfter, first.retryAfter)
    assert.lengthOf(server.requests, 1)

    const queue = await fetch(`${gateway.url}/admin/queue/status`, { headers: { authorization: `Bearer ${adminKey}` } })
    assert.deepInclude(await queue.json(), {
      out: 1,
      reason: "the upstream asks for an API key and none is configured"
    })
    const ready = await fetch(`${gateway.url}/readyz`)
    assert.strictEqual(ready.status, 200)
    assert.deepEqual(await ready.json(), { status: "ready", accounts: { ready: 0, total: 1 } })
  })

  it("the queue status has no reason while the server serves without a key", async () => {
    const stand = await start(streamed({ content: "Hello" }))
    assert.strictEqual((await ask(stand)).status, 200)
    const ready = await fetch(`${stand.gateway.url}/readyz`)
    assert.deepEqual(await ready.json(), { status: "ready", accounts: { ready: 1, total: 1 } })
    const queue = await fetch(`${stand.gateway.url}/admin/queue/status`, {
      headers: { authorization: `Bearer ${adminKey}` }
    })
    assert.deepInclude(await queue.json(), { reason: null })
  })
})
