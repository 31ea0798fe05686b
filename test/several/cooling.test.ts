/** Upstreams that are left alone for a while, over sockets and with a clock that the tests move. Counted at the servers. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { Logger } from "effect"
import type { RawConfig } from "../../src/config/json.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock, type MovedClock } from "../support/movedClock.ts"
import { untilHolds } from "../support/until.ts"
import {
  type Behaviour,
  change,
  chat,
  closedPort,
  type Farm,
  type Held,
  held,
  json,
  queueOf,
  said,
  send,
  startFarm,
  wayName,
  ways
} from "./support.ts"

let farm: Farm
let gateway: RunningGateway
let clock: MovedClock
beforeAll(async () => {
  farm = await startFarm()
})
afterAll(() => farm.stop())
const open = new Set<Held>()
afterEach(async () => {
  for (const each of open) each.releaseAll()
  open.clear()
  await gateway.stop()
})

const start = async (config: RawConfig) => {
  clock = makeMovedClock({ still: true })
  gateway = await startGateway(config, { clock })
}

const speaks: Behaviour = (request) => said("Hello", request)
const fails = (status: number, headers: Record<string, string> = {}): Behaviour => () => json(status, {}, headers)

const holds = (name: string): Held => {
  const each = held(speaks)
  open.add(each)
  farm.answer(name, each.behaviour)
  return each
}

const two = (one: Behaviour, config: RawConfig = {}): Promise<void> => {
  farm.answer("one", one)
  farm.answer("two", speaks)
  return start({
    upstreams: { one: farm.upstream("one"), two: farm.upstream("two") },
    routes: { r: ["one/m", "two/m"] },
    ...config
  })
}

const tries = (name: string) => farm.seen(name).length

/** Sends requests one after another, which `two` answers. Returns the tries of `one` that each made. */
const served = async (count: number): Promise<ReadonlyArray<number>> => {
  const each: Array<number> = []
  for (let sent = 0; sent < count; sent++) {
    const before = tries("one")
    assert.deepInclude(await chat(gateway, "r"), { status: 200, upstream: "two", text: "Hello" })
    each.push(tries("one") - before)
  }
  return each
}

const stateOf = async (name: string) => (await queueOf(gateway)).of[name]?.state

/** Longer than the first cooling, with its jitter; shorter than the second one. */
const first = 1_300

describe("failures of the server", () => {
  const troubles: ReadonlyArray<readonly [string, Behaviour]> = [
    ["500", fails(500)],
    ["502", fails(502)],
    ["503", fails(503)],
    ["a page", () => ({ headers: { "content-type": "text/html" }, pieces: ["<html></html>"] })],
    ["a reset", () => ({ headless: true, after: "reset" })],
    ["broken events", () => ({ pieces: ["data: {broken\n\n"] })]
  ]
  it.each(troubles)("cool the upstream after three in a row: %s", async (_, behaviour) => {
    await two(behaviour)
    assert.deepStrictEqual(await served(5), [1, 1, 1, 0, 0])
    assert.strictEqual(await stateOf("one"), "cooled")
  })

  it("of one request alone cool nothing", async () => {
    await two(fails(500))
    farm.answer("two", fails(500))
    assert.strictEqual((await chat(gateway, "r")).status, 503)
    assert.deepStrictEqual([tries("one"), tries("two")], [3, 3])
    assert.deepStrictEqual([await stateOf("one"), await stateOf("two")], ["ready", "ready"])
  })

  it("with an event in between cool nothing", async () => {
    let count = 0
    await two((request) => ++count % 3 === 0 ? said("Hello", request) : json(500, {}))
    for (let sent = 0; sent < 9; sent++) assert.strictEqual((await chat(gateway, "r")).status, 200)
    assert.strictEqual(tries("one"), 9)
    assert.strictEqual(await stateOf("one"), "ready")
  })

  const others: ReadonlyArray<readonly [string, Behaviour]> = [
    ["429", fails(429)],
    ["401", fails(401)],
    ["402", fails(402)],
    ["403", fails(403)],
    ["404", fails(404)],
    ["nothing at all", () => ({ pieces: [] })],
    ["an empty reply", (request) => said("", request)]
  ]
  it.each(others)("are not those of an account or a prompt: %s", async (_, behaviour) => {
    await two(behaviour)
    await served(5)
    assert.strictEqual(await stateOf("one"), "ready")
  })
})

describe("a refused connection", () => {
  it.each(ways)("cools the upstream immediately: $style, streamed $stream", async (way) => {
    farm.answer("two", speaks)
    const closed = { ...farm.upstream("one"), base_url: `http://127.0.0.1:${closedPort}/v1` }
    await start({
      upstreams: { one: closed, two: farm.upstream("two") },
      routes: { r: ["one/m", "two/m"] }
    })
    assert.deepInclude(await send(gateway, way, "r"), { status: 200, upstream: "two" }, wayName(way))
    assert.strictEqual(await stateOf("one"), "cooled")
  })

  it("of a caller's own token does as well", async () => {
    const closed = { ...farm.upstream("default"), base_url: `http://127.0.0.1:${closedPort}/v1` }
    farm.answer("two", speaks)
    await start({
      upstream: closed,
      accounts: [{ token: "k1" }],
      upstreams: { two: farm.upstream("two") },
      routes: { r: ["default/m", "two/m"] },
      auth: { direct_tokens: true }
    })
    assert.strictEqual((await chat(gateway, "r", { key: "own-token" })).status, 503)
    assert.strictEqual(await stateOf("default"), "cooled")
  })

  it("of the only upstream is no news of an upstream that is left out", async () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ message }) => {
      lines.push(String(message))
    })
    gateway = await startGateway({ upstream: { ...farm.upstream("one"), base_url: "http://127.0.0.1:9/v1" } }, {
      logger
    })
    assert.strictEqual((await chat(gateway, "m")).status, 503)
    assert.isNotEmpty(lines)
    assert.deepStrictEqual(lines.filter((line) => line.includes("upstream is")), [])
  })

  it("hides no upstream from a request without another target", async () => {
    const closed = { ...farm.upstream("one"), base_url: `http://127.0.0.1:${closedPort}/v1` }
    await start({ upstreams: { one: closed, two: farm.upstream("two") } })
    await chat(gateway, "one/m")
    assert.strictEqual(await stateOf("one"), "cooled")
    await change(gateway, (config) => ({ ...config, routes: { r: ["one/m"] } }))
    const told = await chat(gateway, "r")
    assert.deepInclude(told, { status: 503, upstream: "one" })
  })
})

describe("the end of a cooling", () => {
  it("is one request, while others still leave the upstream out", async () => {
    await two(fails(500))
    await served(4)
    const { release } = holds("one")
    assert.deepStrictEqual(await served(1), [0])
    clock.move(first)
    const probe = chat(gateway, "r")
    await untilHolds(() => tries("one") === 1)
    assert.deepStrictEqual(await served(3), [0, 0, 0])
    release()
    assert.deepInclude(await probe, { status: 200, upstream: "one" })
    assert.strictEqual(await stateOf("one"), "ready")
    farm.answer("one", speaks)
    assert.deepInclude(await chat(gateway, "r"), { status: 200, upstream: "one" })
  })

  it("doubles the time where that request fails, up to a minute", async () => {
    await two(fails(500))
    await served(3)
    let time = 1_000
    for (let round = 0; round < 8; round++) {
      clock.move(time * 0.99)
      assert.deepStrictEqual(await served(1), [0], `before ${time}`)
      clock.move(time * 0.27)
      assert.deepStrictEqual(await served(1), [1], `after ${time}`)
      time = Math.min(time * 2, 60_000)
    }
  })

  it("passes to the next request where the client of the first one leaves", async () => {
    await two(fails(500))
    await served(3)
    holds("one")
    clock.move(first)
    const leaving = new AbortController()
    const left = chat(gateway, "r", { signal: leaving.signal }).catch(() => "left")
    await untilHolds(() => tries("one") === 1)
    leaving.abort()
    await left
    await untilHolds(async () => (await queueOf(gateway)).in_use === 0)
    farm.answer("one", speaks)
    assert.deepInclude(await chat(gateway, "r"), { status: 200, upstream: "one" })
  })

  it("comes when a 503 says so", async () => {
    await two(fails(503, { "retry-after": "100" }))
    await served(3)
    farm.answer("one", speaks)
    clock.move(99_000)
    assert.deepStrictEqual(await served(1), [0])
    clock.move(1_000)
    assert.deepInclude(await chat(gateway, "r"), { status: 200, upstream: "one" })
  })

  it("comes after ten minutes at the latest", async () => {
    await two(fails(503, { "retry-after": "100000" }))
    await served(3)
    farm.answer("one", speaks)
    clock.move(599_000)
    assert.deepStrictEqual(await served(1), [0])
    clock.move(1_000)
    assert.deepInclude(await chat(gateway, "r"), { status: 200, upstream: "one" })
  })

  it("comes with another address", async () => {
    await two(fails(500))
    await served(3)
    farm.answer("moved", speaks)
    await change(gateway, (config) => ({
      ...config,
      upstreams: { one: farm.upstream("moved"), two: farm.upstream("two") }
    }))
    assert.deepInclude(await chat(gateway, "r"), { status: 200, upstream: "one" })
  })
})

describe("a request for a cooled upstream", () => {
  it("of which all targets are cooled goes to them all the same", async () => {
    await two(fails(500))
    farm.answer("two", fails(500))
    for (let sent = 0; sent < 2; sent++) await chat(gateway, "r")
    assert.deepStrictEqual([await stateOf("one"), await stateOf("two")], ["cooled", "cooled"])
    farm.answer("one", speaks)
    assert.deepInclude(await chat(gateway, "r"), { status: 200, upstream: "one" })
  })

  it("waits at the others, and no longer at it", async () => {
    const slot = { account_max_inflight: 1, account_max_queue: 4 }
    const { releaseAll } = holds("two")
    farm.answer("one", fails(500))
    await start({
      upstreams: { one: farm.upstream("one", slot), two: farm.upstream("two", slot) },
      routes: { r: ["one/m", "two/m"], wait: { targets: ["one/m", "two/m"], wait: 30 } }
    })
    const running = chat(gateway, "two/m")
    await untilHolds(() => tries("two") === 1)
    for (let sent = 0; sent < 3; sent++) await chat(gateway, "one/m")
    const before = tries("one")
    const waits = [chat(gateway, "r"), chat(gateway, "wait")]
    await untilHolds(async () => (await queueOf(gateway)).of["two"]?.waiting === 2)
    assert.strictEqual(tries("one"), before)
    farm.answer("two", speaks)
    releaseAll()
    for (const reply of [running, ...waits]) assert.deepInclude(await reply, { status: 200, upstream: "two" })
  })
})

describe("the time of the tries", () => {
  it.each(ways)("is shared by the targets that were not tried: $style, streamed $stream", async (way) => {
    farm.answer("one", () => ({ headless: true, after: "hang" }))
    farm.answer("two", speaks)
    const patient = { timeouts: { first_byte: 1_000, silence: 1_000 } }
    await start({
      upstream: { ...farm.upstream("default", { models: [] }), timeouts: { attempts: 20 } },
      upstreams: { one: farm.upstream("one", patient), two: farm.upstream("two", patient) },
      routes: { r: ["one/m", "two/m"] }
    })
    const reply = send(gateway, way, "r")
    await untilHolds(() => tries("one") === 1)
    clock.move(9_000)
    await untilHolds(async () => (await queueOf(gateway)).in_use === 1)
    assert.strictEqual(tries("two"), 0)
    clock.move(2_000)
    await untilHolds(() => tries("two") === 1)
    assert.deepInclude(await reply, { status: 200, text: "Hello" })
  })

  it("is over for an upstream that does not begin", async () => {
    farm.answer("one", () => ({ headless: true, after: "hang" }))
    farm.answer("two", speaks)
    await start({
      upstreams: { one: farm.upstream("one", { timeouts: { first_byte: 3 } }), two: farm.upstream("two") },
      routes: { r: ["one/m", "two/m"] }
    })
    const reply = chat(gateway, "r")
    await untilHolds(() => tries("one") === 1)
    clock.move(4_000)
    assert.deepInclude(await reply, { status: 200, upstream: "two" })
  })
})

describe("a head that leaves early for silence", () => {
  it("names no upstream", async () => {
    const { release } = holds("one")
    farm.answer("two", speaks)
    await start({
      upstreams: { one: farm.upstream("one"), two: farm.upstream("two") },
      routes: { r: ["one/m", "two/m"] }
    })
    const reply = send(gateway, { style: "chat", stream: true }, "r")
    await untilHolds(() => tries("one") === 1)
    clock.move(10_000)
    await untilHolds(async () => (await queueOf(gateway)).in_use === 1)
    release()
    assert.deepInclude(await reply, { status: 200, text: "Hello", upstream: null, target: null })
  })
})
