/** Callers that leave: in the queue, before the first event, in mid-stream. Nothing of theirs stays behind. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { connect } from "node:net"
import type { Report } from "../../src/testing/CallLog.ts"
import type { FaultOrder } from "../../src/testing/Provider.ts"
import { businessKey } from "../support/gateway.ts"
import { makeMovedClock, type MovedClock } from "../support/movedClock.ts"
import { untilHolds } from "../support/until.ts"
import { accounts, chat, isQuiet, queueOf, send, type Site, startSite, textOf, untilQueue } from "./support.ts"

let site: Site
afterEach(() => site.stop())

/** One account with one slot: whoever is served next shows that the slot is free. */
const start = async (config: { readonly queue?: number } = {}, logger?: Logger.Logger<unknown, void>) => {
  site = await startSite(
    { accounts: accounts("a"), runtime: { account_max_inflight: 1, account_max_queue: config.queue ?? 8 } },
    logger === undefined ? {} : { logger }
  )
}

/** The caller goes away; what it waited for ends as an abort. */
const leave = async (abort: AbortController, answer: Promise<unknown>) => {
  abort.abort()
  const error: unknown = await answer.then(() => undefined, (error: unknown) => error)
  assert.strictEqual(error instanceof Error ? error.name : error, "AbortError")
}

/** A moment in which nothing of a reply has been shown: what is ordered, and how one knows that it has come. */
interface Moment {
  readonly about: string
  readonly fault: FaultOrder
  readonly reached: (report: Report) => boolean
  /** The upstream can be told to stop only what has told its id. */
  readonly stops: number
}

const has = (call: keyof Report["calls"]) => (report: Report) => report.calls[call] === 1

const moments: ReadonlyArray<Moment> = [
  {
    about: "while the session is made",
    fault: { name: "hang-before-headers", call: "create" },
    reached: has("create"),
    stops: 0
  },
  {
    about: "before the head of the reply",
    fault: { name: "hang-before-headers" },
    reached: has("completion"),
    stops: 0
  },
  { about: "before the first event", fault: { name: "hang-before-events" }, reached: has("completion"), stops: 0 }
]

for (const stream of [true, false]) {
  describe(`a caller of a ${stream ? "stream" : "whole reply"} that leaves`, () => {
    it("the queue makes room for the next, and the upstream never hears of it", async () => {
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
      it(`${about} frees the slot at once`, async () => {
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

    it("during the login leaves the token to the next", async () => {
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

    it("in mid-reply stops the upstream, and then frees the slot", async () => {
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
      // The stop came before the slot was given on.
      assert.deepStrictEqual(
        requests.map(({ call }) => call).filter((call) => call === "completion" || call === "stop_stream"),
        ["completion", "stop_stream", "completion"]
      )
      assert.lengthOf(lines.filter((line) => line.includes("client_left")), 1)
    })

    it("while the reply is resumed leaves nothing open", async () => {
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

describe("a caller that offers another protocol", () => {
  it("is noticed when it leaves", async () => {
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

/** What the upstream is told of a reply that ends before it does: it is slow to hear it, for as long as the clock stands. */
describe("an upstream that is slow to hear that a reply is over", () => {
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
  /** The slot is held until the upstream has had its time to hear of it, and is free then. */
  const untilFree = async () => {
    await site.until(has("stop_stream"))
    assert.deepInclude(await queueOf(site), { in_use: 1 })
    clock.move(2_000)
    await untilQueue(site, { in_use: 0, waiting: 0 })
  }

  for (const stream of [true, false]) {
    it(`keeps no caller of a ${stream ? "stream" : "whole reply"} waiting, and gives the slot back once it has heard`, async () => {
      await begin("a")
      const asking = ask(stream, new AbortController().signal, "!count 400\n!fault hang-mid-stream after=50", {
        stop: ["12"]
      })
      // One that answers at once has heard before the reply is over.
      await untilHolds(() => clock.sleeping().some((left) => left === 250))
      clock.move(250)
      const response = await asking
      assert.include(await response.text(), "\"finish_reason\":\"stop\"")
      await untilFree()
      assert.strictEqual(textOf(await chat(site.url, "!say next")), "next")
    })
  }

  it("gives the slot back although the caller leaves at the end of the stream", async () => {
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

  it("hears of no other attempt for a caller that has left in the second one", async () => {
    await begin("a", "b", "c")
    await Effect.runPromise(site.reference.fail({ name: "reset-before-headers" }))
    const abort = new AbortController()
    // Text where a call is demanded is held: nothing of the reply can be shown.
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

describe("callers that leave all at once", () => {
  it("in every window leave every slot free", async () => {
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
