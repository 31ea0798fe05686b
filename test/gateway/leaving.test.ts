/** Callers that disconnect in the queue, before the first event and in mid-stream leave nothing behind. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Layer, Logger } from "effect"
import { connect } from "node:net"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import type { Report } from "../../src/testing/CallLog.ts"
import type { FaultOrder } from "../../src/testing/Provider.ts"
import { adminKey, businessKey } from "../support/gateway.ts"
import { makeMovedClock, type MovedClock } from "../support/movedClock.ts"
import { untilHolds } from "../support/until.ts"
import { accounts, chat, isQuiet, queueOf, send, type Site, startSite, textOf, untilQueue } from "./support.ts"

let site: Site
afterEach(() => site.stop())

/** One account with one slot: the next served request shows that the slot is free. */
const start = async (config: { readonly queue?: number } = {}, logger?: Logger.Logger<unknown, void>) => {
  site = await startSite(
    { accounts: accounts("a"), runtime: { account_max_inflight: 1, account_max_queue: config.queue ?? 8 } },
    logger === undefined ? {} : { logger }
  )
}

/** The caller disconnects; its fetch fails with an abort. */
const leave = async (abort: AbortController, answer: Promise<unknown>) => {
  abort.abort()
  const error: unknown = await answer.then(() => undefined, (error: unknown) => error)
  assert.strictEqual(error instanceof Error ? error.name : error, "AbortError")
}

/** A moment before any output: the fault that causes it, and how the report shows that it is reached. */
interface Moment {
  readonly about: string
  readonly fault: FaultOrder
  readonly reached: (report: Report) => boolean
  /** The number of expected stops: the upstream can stop only a reply whose id it has sent. */
  readonly stops: number
}

const has = (call: keyof Report["calls"]) => (report: Report) => report.calls[call] === 1

const moments: ReadonlyArray<Moment> = [
  {
    about: "while the session is created",
    fault: { name: "hang-before-headers", call: "create" },
    reached: has("create"),
    stops: 0
  },
  {
    about: "before the upstream's response headers",
    fault: { name: "hang-before-headers" },
    reached: has("completion"),
    stops: 0
  },
  {
    about: "before the upstream's first event",
    fault: { name: "hang-before-events" },
    reached: has("completion"),
    stops: 0
  }
]

for (const stream of [true, false]) {
  describe(`a caller of a ${stream ? "stream" : "whole reply"} disconnects`, () => {
    it("in the queue: its place goes to the next caller, and the upstream receives nothing", async () => {
      await start({ queue: 1 })
      const first = new AbortController()
      const running = await send(site.url, "!say one\n!fault hang-mid-stream after=1", {
        stream: true,
        signal: first.signal
      })
      assert.strictEqual(running.status, 200)
      const second = new AbortController()
      const waiting = send(site.url, "!say gone", { stream, signal: second.signal })
      await untilQueue(site, { waiting: 1 })
      assert.strictEqual((await chat(site.url, "!say no room", { stream })).error?.code, "rate_limit_exceeded")
      await leave(second, waiting)
      await untilQueue(site, { waiting: 0 })
      const third = chat(site.url, "!say third", { stream })
      await untilQueue(site, { waiting: 1 })
      await leave(first, running.text())
      assert.strictEqual(textOf(await third), "third")
      const { calls, prompts } = await site.until(isQuiet)
      assert.deepInclude(calls, { create: 2, completion: 2, stop_stream: 1 })
      assert.notInclude(prompts.join(), "gone")
    })

    for (const { about, fault, reached, stops } of moments) {
      it(`${about}: the slot is free at once`, async () => {
        await start()
        assert.strictEqual(textOf(await chat(site.url, "!say warm", { stream })), "warm")
        await Effect.runPromise(site.reference.forget)
        await Effect.runPromise(site.reference.fail(fault))
        const abort = new AbortController()
        const answer = send(site.url, "!say one", { stream, signal: abort.signal })
        await site.until(reached)
        const next = chat(site.url, "!say next", { stream })
        await untilQueue(site, { waiting: 1 })
        await leave(abort, answer)
        assert.strictEqual(textOf(await next), "next")
        const report = await site.until(isQuiet)
        assert.strictEqual(report.aborted, 1)
        assert.strictEqual(report.calls.stop_stream, stops)
      })
    }

    it("during the login: the next request uses the token", async () => {
      await start()
      await Effect.runPromise(site.reference.fail({ name: "slow", call: "login", millis: 1_000 }))
      const abort = new AbortController()
      const answer = send(site.url, "!say one", { stream, signal: abort.signal })
      await site.until(has("login"))
      await leave(abort, answer)
      assert.strictEqual(textOf(await chat(site.url, "!say next", { stream })), "next")
      const { calls } = await site.until(isQuiet)
      assert.deepInclude(calls, { login: 1, create: 1, completion: 1 })
    })

    it("in mid-reply: the upstream is stopped, then the slot goes to the next caller", async () => {
      const lines: Array<string> = []
      await start(
        {},
        Logger.make((options) => {
          lines.push(JSON.stringify(Logger.formatStructured.log(options)))
        })
      )
      const abort = new AbortController()
      const answer = send(site.url, "!say [\"one\",\" two\"]\n!fault hang-mid-stream after=1", {
        stream,
        signal: abort.signal
      })
      await site.until((report) => report.streams === 1)
      const reader = stream ? (await answer).body?.getReader() : undefined
      let shown = ""
      while (reader !== undefined && !shown.includes("one")) {
        shown += new TextDecoder().decode((await reader.read()).value)
      }
      const next = chat(site.url, "!say next", { stream })
      await untilQueue(site, { waiting: 1 })
      await leave(abort, reader?.read() ?? answer)
      assert.strictEqual(textOf(await next), "next")
      const { calls, requests } = await site.until(isQuiet)
      assert.deepInclude(calls, { completion: 2, stop_stream: 1, continue: 0 })
      // The stop precedes the next use of the slot.
      assert.deepStrictEqual(
        requests.map(({ call }) => call).filter((call) => call === "completion" || call === "stop_stream"),
        ["completion", "stop_stream", "completion"]
      )
      assert.lengthOf(lines.filter((line) => line.includes("client_left")), 1)
    })

    it("while the reply is resumed: the upstream has no open request", async () => {
      await start()
      const abort = new AbortController()
      await Effect.runPromise(site.reference.fail({ name: "reset-mid-stream", after: 0 }))
      await Effect.runPromise(site.reference.fail({ name: "hang-before-headers", call: "continue" }))
      const answer = send(site.url, "!say one", { stream, signal: abort.signal })
      await site.until(has("continue"))
      const next = chat(site.url, "!say next", { stream })
      await untilQueue(site, { waiting: 1 })
      await leave(abort, answer)
      assert.strictEqual(textOf(await next), "next")
      const { calls } = await site.until(isQuiet)
      assert.deepInclude(calls, { completion: 2, continue: 1, stop_stream: 1 })
    })
  })
}

describe("a caller that sends an Upgrade header", () => {
  it("its disconnection ends the upstream request and frees the slot", async () => {
    await start()
    const { hostname, port } = new URL(site.url)
    const socket = connect(Number(port), hostname)
    const body = JSON.stringify({
      model: "upstream-chat",
      messages: [{ role: "user", content: "!say one\n!fault hang-mid-stream after=1" }]
    })
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${businessKey}\r\n` +
        `connection: upgrade\r\nupgrade: h2c\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    )
    await site.until((report) => report.streams === 1)
    socket.destroy()
    await site.until(isQuiet)
    await untilQueue(site, { in_use: 0 })
  })
})

/** An upstream that delays its answer to a stop, for as long as the clock stands still. */
describe("an upstream that is slow to answer a stop", () => {
  let clock: MovedClock
  const ask = (stream: boolean, signal: AbortSignal, prompt: string, rest: object = {}) =>
    fetch(`${site.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}` },
      body: JSON.stringify({ model: "upstream-chat", stream, messages: [{ role: "user", content: prompt }], ...rest }),
      signal
    })
  const begin = async (...names: ReadonlyArray<string>) => {
    clock = makeMovedClock({ still: true })
    site = await startSite({ accounts: accounts(...names), runtime: { account_max_inflight: 1 } }, { clock })
    await Effect.runPromise(site.reference.fail({ name: "hang-before-headers", call: "stop_stream" }))
  }
  /** The slot is held until the stop has ended, by an answer or the timeout. */
  const untilFree = async () => {
    await site.until(has("stop_stream"))
    assert.deepInclude(await queueOf(site), { in_use: 1 })
    clock.move(2_000)
    await untilQueue(site, { in_use: 0, waiting: 0 })
  }

  for (const stream of [true, false]) {
    it(`the caller of a ${stream ? "stream" : "whole reply"} does not wait for it, and the slot is freed after the stop`, async () => {
      await begin("a")
      const asking = ask(stream, new AbortController().signal, "!count 400\n!fault hang-mid-stream after=50", {
        stop: ["12"]
      })
      // The reply waits this long for an upstream that answers quickly.
      await untilHolds(() => clock.sleeping().some((left) => left === 250))
      clock.move(250)
      const response = await asking
      assert.include(await response.text(), "\"finish_reason\":\"stop\"")
      await untilFree()
      assert.strictEqual(textOf(await chat(site.url, "!say next")), "next")
    })
  }

  it("the slot is freed although the caller disconnects at the end of the stream", async () => {
    await begin("a")
    const abort = new AbortController()
    const response = await ask(true, abort.signal, "!count 400\n!fault hang-mid-stream after=50", { stop: ["12"] })
    const reader = response.body!.getReader()
    let shown = ""
    while (!shown.includes("\"finish_reason\":\"stop\"")) shown += new TextDecoder().decode((await reader.read()).value)
    await leave(abort, reader.read())
    await untilFree()
    assert.strictEqual(textOf(await chat(site.url, "!say next")), "next")
  })

  it("no other attempt starts after the caller has disconnected in the second one", async () => {
    await begin("a", "b", "c")
    await Effect.runPromise(site.reference.fail({ name: "reset-before-headers" }))
    const abort = new AbortController()
    // With a required tool call, text is held back, so that the caller receives nothing.
    const answer = ask(true, abort.signal, "!say one\n!fault hang-mid-stream after=1", {
      tools: [{ type: "function", function: { name: "lookup", parameters: { type: "object", properties: {} } } }],
      tool_choice: "required"
    })
    await site.until(({ calls, streams }) => calls.completion === 2 && streams === 1)
    await leave(abort, answer)
    await untilFree()
    const { calls } = await site.until(isQuiet)
    assert.deepInclude(calls, { completion: 2, stop_stream: 1 })
    assert.strictEqual(textOf(await chat(site.url, "!say next")), "next")
  })
})

describe("many callers disconnect together", () => {
  it("from running and from waiting requests: every slot is free again", async () => {
    site = await startSite({
      accounts: accounts("a", "b"),
      runtime: { account_max_inflight: 3, account_max_queue: 100 }
    })
    const aborts = Array.from({ length: 60 }, () => new AbortController())
    const answers = aborts.map(({ signal }, i) =>
      chat(site.url, `!say one\n!fault ${i % 2 === 0 ? "hang-mid-stream after=1" : "hang-before-events"}`, {
        stream: i % 3 === 0,
        signal
      })
    )
    await site.until((report) => report.streams === 6)
    await untilQueue(site, { waiting: 54 })
    await Promise.all(aborts.map((abort, i) => leave(abort, answers[i]!)))
    await site.until(isQuiet)
    const again = await Promise.all(Array.from({ length: 12 }, () => chat(site.url, "!say again")))
    assert.deepStrictEqual(again.map(textOf), Array(12).fill("again"))
    assert.deepInclude(await queueOf(site), { in_use: 0, waiting: 0, available: 2 })
  })
})

describe("an operator disconnects", () => {
  it("while a change waits for another one: it ends, and changes nothing", async () => {
    let asked = 0
    const left: Array<boolean> = []
    const store = Layer.effect(
      ConfigStore,
      Effect.map(ConfigStore, (own): ConfigStore["Service"] => ({
        ...own,
        update: (f, options) =>
          Effect.onExit(
            Effect.andThen(Effect.sync(() => asked++), own.update(f, options)),
            (exit) => Effect.sync(() => left.push(Exit.hasInterrupts(exit)))
          )
      }))
    ).pipe(Layer.provideMerge(ConfigStore.layerJson({ keys: [businessKey] }, { adminKey })))
    site = await startSite({}, { store })
    const { now, update } = Context.get(site.gateway.services, ConfigStore)
    const turn = Deferred.makeUnsafe<void>()
    const holder = Effect.runPromise(update((raw) => Effect.as(Deferred.await(turn), raw)))
    const abort = new AbortController()
    const change = fetch(`${site.url}/admin/keys`, {
      method: "POST",
      signal: abort.signal,
      headers: { authorization: `Bearer ${adminKey}` },
      body: JSON.stringify({ key: "a new key" })
    })
    await untilHolds(() => asked === 2)
    await leave(abort, change)
    await untilHolds(() => left.length === 1)
    await Effect.runPromise(Deferred.succeed(turn, undefined))
    await holder
    assert.deepStrictEqual(left, [true, false])
    assert.deepStrictEqual(now().keys, [businessKey])
  })
})
