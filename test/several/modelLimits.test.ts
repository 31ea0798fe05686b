/** A server without accounts that limits one of its models: the others go on, and the limited one is left alone for as long as it says. */
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import type { RawConfig } from "../../src/config/json.ts"
import { admin } from "../gateway/support.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock, type MovedClock } from "../support/movedClock.ts"
import { type Behaviour, chat, type Farm, json, said, startFarm, waiting as untilWaiting } from "./support.ts"

let clock: MovedClock
let farm: Farm
let gateway: RunningGateway

beforeEach(async () => {
  clock = makeMovedClock({ still: true })
  farm = await startFarm()
})
afterEach(async () => {
  await gateway.stop()
  await farm.stop()
})

/** Seconds that requests may wait. */
const start = async (config: RawConfig, queue = 0) => {
  const { upstream = { driver: "embedded" } } = config
  gateway = await startGateway({ ...config, upstream: { ...upstream as object, timeouts: { queue } } }, { clock })
}

/** Limits the model `a`; answers for others with their name. */
const limitsA = (headers: Record<string, string> = { "retry-after": "30" }): Behaviour => (request) =>
  request.body["model"] === "a"
    ? json(429, { error: { message: "slow down" } }, headers)
    : said(String(request.body["model"]), request)

const asked = (name: string) => farm.seen(name).map(({ body }) => body["model"])

/** Moves the clock by seconds. */
const pass = (seconds: number) => clock.move(seconds * 1_000)

describe("a 429 for one model of an upstream without accounts", () => {
  const configs: ReadonlyArray<readonly [string, (server: RawConfig) => RawConfig, (model: string) => string]> = [
    ["that is the only one", (server) => ({ upstream: server }), (model) => model],
    ["that has a credential in a header", (server) => ({
      upstream: { ...server, headers: { authorization: "Bearer k" } }
    }), (model) => model],
    ["whose account needs no key", (server) => ({ upstream: server, accounts: [{ token: "none" }] }), (model) => model],
    ["among several", (server) => ({ upstreams: { one: server } }), (model) => `one/${model}`]
  ]
  it.each(configs)("leaves its other models: an upstream %s", async (_, configOf, nameOf) => {
    farm.answer("one", limitsA())
    await start(configOf(farm.upstream("one", { models: ["a", "b"] })))
    const first = await chat(gateway, nameOf("a"))
    assert.deepStrictEqual([first.status, first.headers.get("retry-after")], [429, "30"], first.body)
    assert.include(first.body, "slow down")
    for (let i = 0; i < 3; i++) assert.deepInclude(await chat(gateway, nameOf("b")), { status: 200, text: "b" })
    pass(10)
    const second = await chat(gateway, nameOf("a"))
    assert.deepStrictEqual([second.status, second.headers.get("retry-after")], [429, "20"], second.body)
    assert.include(second.body, "upstream_rate_limited")
    assert.deepStrictEqual(asked("one"), ["a", "b", "b", "b"])
    pass(20)
    farm.answer("one", (request) => said("again", request))
    assert.deepInclude(await chat(gateway, nameOf("a")), { status: 200, text: "again" })
  })

  it("leaves the model alone for longer each time, if the server does not say how long", async () => {
    farm.answer("one", limitsA({}))
    await start({ upstreams: { one: farm.upstream("one", { models: ["a", "b"] }) } })
    for (const [count, seconds] of [[1, 1], [2, 2], [3, 4]] as const) {
      assert.strictEqual((await chat(gateway, "one/a")).status, 429)
      pass(seconds * 0.99)
      assert.strictEqual((await chat(gateway, "one/a")).status, 429)
      assert.lengthOf(asked("one"), count)
      pass(seconds * 0.27)
    }
  })

  it("holds requests for it until the server takes them again, a queue of them at most", async () => {
    farm.answer("one", limitsA({ "retry-after": "37" }))
    await start({ upstreams: { one: farm.upstream("one", { models: ["a", "b"], account_max_queue: 2 }) } }, 60)
    const waiting = [chat(gateway, "one/a"), chat(gateway, "one/a")]
    await untilWaiting(gateway, 2)
    const beyond = await chat(gateway, "one/a")
    assert.deepStrictEqual([beyond.status, beyond.headers.get("retry-after")], [429, "37"])
    assert.deepInclude(await chat(gateway, "one/b"), { status: 200, text: "b" })
    farm.answer("one", (request) => said("again", request))
    pass(37)
    for (const reply of await Promise.all(waiting)) assert.deepInclude(reply, { status: 200, text: "again" })
    assert.deepStrictEqual(asked("one"), ["a", "a"])
  })

  it("goes to the next target of a route immediately, and to another model of the upstream", async () => {
    farm.answer("one", limitsA())
    farm.answer("two", (request) => said("two", request))
    await start({
      upstreams: { one: farm.upstream("one", { models: ["a", "b"] }), two: farm.upstream("two", { models: ["a"] }) },
      routes: { other: ["one/a", "two/a"], own: { targets: ["one/a", "one/b"], wait: 20 } }
    }, 60)
    for (let i = 0; i < 2; i++) assert.deepInclude(await chat(gateway, "other"), { status: 200, text: "two" })
    for (let i = 0; i < 2; i++) assert.deepInclude(await chat(gateway, "own"), { status: 200, text: "b" })
    assert.deepStrictEqual(asked("one"), ["a", "b", "b"])
    const { upstreams } = await admin(gateway.url, "GET", "/admin/upstreams")
    assert.containSubset(upstreams, [{ name: "default" }, { name: "one", state: "ready", accounts: { cooling: 0 } }])
  })

  it("is forgotten when the upstream has another address", async () => {
    farm.answer("one", limitsA())
    farm.answer("two", (request) => said("two", request))
    await start({ upstreams: { one: farm.upstream("one", { models: ["a"] }) } })
    assert.strictEqual((await chat(gateway, "one/a")).status, 429)
    const { base_url } = farm.upstream("two")
    await admin(gateway.url, "PATCH", "/admin/upstreams/one", { base_url })
    assert.deepInclude(await chat(gateway, "one/a"), { status: 200, text: "two" })
  })
})

describe("a 429 of an upstream with accounts", () => {
  it("goes to another account, which serves all models", async () => {
    farm.answer(
      "one",
      (request) =>
        request.key === "k1" ? json(429, {}, { "retry-after": "30" }) : said(String(request.body["model"]), request)
    )
    await start({
      upstreams: { one: farm.upstream("one", { models: ["a", "b"] }) },
      accounts: [{ upstream: "one", token: "k1" }, { upstream: "one", token: "k2" }]
    })
    assert.deepInclude(await chat(gateway, "one/a"), { status: 200, text: "a" })
    for (let i = 0; i < 2; i++) assert.deepInclude(await chat(gateway, "one/b"), { status: 200, text: "b" })
    assert.deepStrictEqual(farm.seen("one").map(({ key }) => key), ["k1", "k2", "k2", "k2"])
  })
})
