/** How a process handles its requests and connections after a stop signal. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Logger, References, Scope } from "effect"
import { once } from "node:events"
import { get, type IncomingMessage } from "node:http"
import { connect, type Socket } from "node:net"
import { Lifecycle } from "../../src/server/Lifecycle.ts"
import { make, type Reference } from "../../src/testing/Reference.ts"
import { type Running, start } from "../server/cli/process.ts"
import { businessKey } from "../support/gateway.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import { untilHolds } from "../support/until.ts"
import { accounts, chat, isQuiet, readSaid, send, startSite, textOf, untilQueue } from "./support.ts"

interface Process {
  readonly url: string
  readonly gateway: Running
  readonly reference: Reference["Service"]
}

/** The gateway as a separate process, with one account of one slot in front of a reference upstream. */
const withProcess = async (use: (process: Process) => Promise<void>, notice = 0) => {
  const scope = Scope.makeUnsafe()
  const reference = await Effect.runPromise(make())
  const baseUrl = await Effect.runPromise(Scope.provide(reference.listen(), scope))
  const config = {
    keys: [businessKey],
    accounts: accounts("a"),
    runtime: { account_max_inflight: 1, account_max_queue: 3 },
    upstream: { driver: "session", base_url: baseUrl },
    drain: { notice }
  }
  const gateway = start([], { PORT: "0", GATEWAY_CONFIG_JSON: JSON.stringify(config), GATEWAY_ADMIN_KEY: "admin" })
  try {
    const [, url = ""] = await gateway.printed(/listens on (http:\/\/\S+)\n/)
    await use({ url, gateway, reference })
  } finally {
    gateway.child.kill("SIGKILL")
    await gateway.ended
    await Effect.runPromise(Scope.close(scope, Exit.void))
  }
}

/** Opens a connection, uses it once, and keeps it alive. */
const keepAlive = async (url: string): Promise<Socket> => {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.write("GET /healthz HTTP/1.1\r\nhost: gateway\r\n\r\n")
  const [answer] = await once(socket, "data")
  assert.match(String(answer), /^HTTP\/1\.1 200 /)
  return socket
}

/** Sends a request with further headers on a used connection; returns everything received until it is closed. */
const askOn = async (socket: Socket, prompt: string, headers: string): Promise<string> => {
  const body = JSON.stringify({
    model: "upstream-chat",
    stream: true,
    messages: [{ role: "user", content: prompt }]
  })
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${businessKey}\r\n${headers}` +
      `content-length: ${body.length}\r\n\r\n${body}`
  )
  let text = ""
  socket.on("data", (data) => text += data.toString())
  await once(socket, "close")
  return text
}

const until = async (condition: () => Promise<boolean>) => {
  while (!await condition()) await new Promise(setImmediate)
}

/** Sends a request on a new connection: a kept one may be closed at the moment of its reuse. */
const probe = async (url: string) => {
  const request = get(url, { agent: false })
  const [response]: Array<IncomingMessage> = await once(request, "response")
  response?.resume()
  return { status: response?.statusCode, connection: response?.headers.connection }
}

describe.concurrent("a gateway process that receives SIGTERM", () => {
  it("finishes running and waiting requests, rejects new ones with shutting_down, and exits with code 0", () =>
    withProcess(async ({ gateway, reference, url }) => {
      const running = await send(url, "!say one two\n!fault hang-mid-stream after=1", { stream: true })
      assert.strictEqual(running.status, 200)
      const waiting = chat(url, "!say waited")
      // Idle connections that get a request before the signal count as busy, also with `Expect` or `Upgrade`.
      const announced = [
        askOn(await keepAlive(url), "!say expected", "expect: 100-continue\r\n"),
        askOn(await keepAlive(url), "!say upgraded", "connection: upgrade\r\nupgrade: h2c\r\n")
      ]
      const queue = async () => {
        const status = await fetch(`${url}/admin/queue/status`, { headers: { authorization: "Bearer admin" } })
        return await status.json() as { readonly waiting: number }
      }
      await until(async () => (await queue()).waiting === 3)
      const idle = await keepAlive(url)
      const idleClosed = once(idle, "close")
      assert.strictEqual((await probe(`${url}/readyz`)).status, 200)

      gateway.child.kill("SIGTERM")
      await until(async () => (await probe(`${url}/readyz`)).status === 503)
      assert.deepStrictEqual(await probe(`${url}/healthz`), { status: 200, connection: "close" })
      await idleClosed
      // Every new connection is accepted and gets the refusal.
      for (let i = 0; i < 50; i++) {
        assert.deepStrictEqual(await probe(`${url}/readyz`), { status: 503, connection: "close" })
      }
      for (const stream of [true, false]) {
        const said = await chat(url, "!say no", { stream })
        assert.deepInclude(said, { status: 503, ending: "whole" })
        assert.deepInclude(said.error, { code: "shutting_down", type: "service_unavailable_error" })
        assert.match(said.retryAfter ?? "", /^[1-9]\d*$/)
      }
      const generate = await fetch(`${url}/v1beta/models/upstream-chat:generateContent`, { method: "POST" })
      assert.deepInclude(await generate.json(), {
        error: { code: 503, message: "The gateway is shutting down", status: "UNAVAILABLE" }
      })
      assert.strictEqual(generate.headers.get("connection"), "close")
      assert.deepInclude(await (await fetch(`${url}/admin/settings`)).json(), {
        detail: "The gateway is shutting down"
      })

      // The preflight succeeds, so that a browser can read the refusal of the actual request.
      const preflight = await fetch(`${url}/v1/chat/completions`, {
        method: "OPTIONS",
        headers: { "access-control-request-method": "POST", "access-control-request-headers": "authorization" }
      })
      assert.strictEqual(preflight.status, 204)
      assert.include(preflight.headers.get("access-control-allow-headers"), "Authorization")

      const late = await fetch(`${url}/v1/models`, { headers: { "x-request-id": "late-request" } })
      assert.strictEqual(late.status, 503)
      await gateway.printed(
        /"request_id":"late-request","client":"127\.0\.0\.0\/24","path":"\/v1\/models","status":503,"outcome":"shutting_down"/
      )

      await Effect.runPromise(reference.cut())
      assert.strictEqual(textOf(await readSaid(running)), "one two")
      assert.strictEqual(textOf(await waiting), "waited")
      for (const [i, word] of ["expected", "upgraded"].entries()) {
        const text = await announced[i]!
        assert.include(text, word)
        assert.include(text, "[DONE]")
      }
      const { code, signal } = await gateway.ended
      assert.deepStrictEqual({ code, signal }, { code: 0, signal: null })
      const { calls } = await Effect.runPromise(reference.until(isQuiet))
      assert.deepInclude(calls, { completion: 4, continue: 1, stop_stream: 0 })
    }))
})

/** The drain timeout in seconds, by a clock that the test moves. */
const patience = 7

/** A gateway with one account of one slot, and the outcomes that it has logged. */
const startStopped = async () => {
  const clock = makeMovedClock({ still: true })
  const outcomes: Array<unknown> = []
  const logger = Logger.make(({ fiber, message }) => {
    if (String(message) === "request") outcomes.push(fiber.getRef(References.CurrentLogAnnotations)["outcome"])
  })
  const site = await startSite(
    { accounts: accounts("a"), runtime: { account_max_inflight: 1, account_max_queue: 2 } },
    { timeouts: { drain: patience }, clock, logger }
  )
  const { active } = Context.get(site.gateway.services, Lifecycle)
  return {
    site,
    outcomes,
    /** Stops the gateway with `count` requests that do not end by themselves. */
    stop: async (count: number) => {
      assert.strictEqual(active(), count)
      const stopped = site.stop()
      await untilHolds(() => clock.sleeping().includes(patience * 1000))
      clock.move(patience * 1000 - 1)
      await new Promise(setImmediate)
      assert.strictEqual(active(), count)
      clock.move(1)
      await stopped
    }
  }
}

describe("a gateway whose drain timeout passes", () => {
  it("ends streams, whole replies and waiting requests with shutting_down, in each style's error format", async () => {
    const { site, stop } = await startStopped()
    const asked = [
      ["/v1/responses", { input: "!say one two\n!fault hang-mid-stream after=1", stream: true }],
      ["/v1/messages", { max_tokens: 9, stream: true, messages: [{ role: "user", content: "waits" }] }],
      ["/v1/chat/completions", { messages: [{ role: "user", content: "waits" }] }]
    ] as const
    const replies: Array<Promise<Response>> = []
    for (const [path, body] of asked) {
      const reply = fetch(`${site.url}${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${businessKey}` },
        body: JSON.stringify({ model: "upstream-chat", ...body })
      })
      replies.push(reply)
      // The first request holds the only slot, and the others wait for it.
      if (replies.length === 1) await reply
    }
    await untilQueue(site, { waiting: 2 })
    await stop(3)
    const [responses, messages, chat] = await Promise.all(replies)
    assert.match(await responses!.text(), /event: response\.failed\n.*"shutting_down"/)
    assert.strictEqual(messages!.status, 503)
    assert.match(await messages!.text(), /"type":"error".*shutting down/)
    assert.deepStrictEqual([chat!.status, chat!.headers.get("retry-after")], [503, "5"])
    assert.match(await chat!.text(), /"code":"shutting_down"/)
  })

  it("ends a running stream after exactly the timeout, and stops it at the upstream", async () => {
    const { outcomes, site, stop } = await startStopped()
    const running = await send(site.url, "!say one two\n!fault hang-mid-stream after=1", { stream: true })
    assert.strictEqual(running.status, 200)
    const text = running.text()
    await stop(1)
    assert.match(await text, /"content":"one.*"code":"shutting_down".*\n\ndata: \[DONE\]\n\n$/s)
    assert.deepStrictEqual(outcomes, ["shutting_down"])
    const { calls } = await site.until(isQuiet)
    assert.deepInclude(calls, { completion: 1, stop_stream: 1 })
  })
})

describe("a gateway with drain.notice", () => {
  it("serves for that time after the stop signal, while /readyz is 503, and then drains", async () => {
    const clock = makeMovedClock({ still: true })
    const site = await startSite({ accounts: accounts("a"), drain: { notice: 5 } }, { clock })
    const lifecycle = Context.get(site.gateway.services, Lifecycle)
    assert.strictEqual((await probe(`${site.url}/readyz`)).status, 200)
    const stopped = site.stop()
    await untilHolds(() => clock.sleeping().includes(5_000))
    assert.deepStrictEqual(await probe(`${site.url}/readyz`), { status: 503, connection: "close" })
    assert.deepStrictEqual(await probe(`${site.url}/healthz`), { status: 200, connection: "close" })
    clock.move(4_999)
    await new Promise(setImmediate)
    assert.isFalse(lifecycle.isDraining())
    assert.strictEqual(textOf(await chat(site.url, "!say one")), "one")
    // A reply that runs over the end of the notice is drained.
    const running = await send(site.url, "!say one two\n!fault hang-mid-stream after=1", { stream: true })
    clock.move(1)
    await untilHolds(() => lifecycle.isDraining())
    assert.deepInclude((await chat(site.url, "!say no")).error, { code: "shutting_down" })
    await Effect.runPromise(site.reference.cut())
    assert.strictEqual(textOf(await readSaid(running)), "one two")
    await stopped
  })

  it("ends the notice at a second signal", () =>
    withProcess(async ({ gateway, url }) => {
      gateway.child.kill("SIGTERM")
      await gateway.printed(/Stopping: serving for 3600 s more, while \/readyz is 503/)
      assert.strictEqual((await probe(`${url}/readyz`)).status, 503)
      assert.strictEqual(textOf(await chat(url, "!say one")), "one")
      gateway.child.kill("SIGTERM")
      const { code, signal } = await gateway.ended
      assert.deepStrictEqual({ code, signal }, { code: 0, signal: null })
    }, 3_600))
})
