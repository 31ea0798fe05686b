/**
 * Failover over sockets: where a request goes after each failure before the first event, in every style, whole and streamed; whose error the
 * caller gets; who the reply says answered.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Logger, References } from "effect"
import type { RawConfig } from "../../src/config/json.ts"
import { adminKey, type GatewayOptions, type RunningGateway, startGateway } from "../support/gateway.ts"
import { untilHolds } from "../support/until.ts"
import { failures } from "./failures.ts"
import {
  type Behaviour,
  chat,
  closedPort,
  drivers,
  type Farm,
  json,
  said,
  send,
  startFarm,
  type Way,
  wayName,
  ways
} from "./support.ts"

let farm: Farm
beforeAll(async () => {
  farm = await startFarm()
})
afterAll(() => farm.stop())

/** Two upstreams for each way, of which the first has two accounts, and a route of both. */
const pairs = (ways: ReadonlyArray<Way>, route: RawConfig = {}) => {
  const names = ways.map(wayName)
  return {
    upstreams: Object.fromEntries(
      names.flatMap((name) =>
        [`one-${name}`, `two-${name}`].map((upstream) => [upstream, farm.upstream(upstream, { models: ["m", name] })])
      )
    ),
    accounts: names.flatMap((name) => [
      { upstream: `one-${name}`, token: "k1" },
      { upstream: `one-${name}`, token: "k2" },
      { upstream: `two-${name}`, token: "k3" }
    ]),
    routes: Object.fromEntries(names.map((name) => [name, { targets: [`one-${name}/m`, `two-${name}`], ...route }]))
  }
}

describe.each(failures)("after $name", ({ answer, goes, ownStatus, status }) => {
  let gateway: RunningGateway
  beforeAll(async () => {
    gateway = await startGateway(pairs(ways))
    for (const way of ways) {
      farm.answer(`one-${wayName(way)}`, answer)
      farm.answer(`two-${wayName(way)}`, (request) => said("Hello from two", request))
    }
  })
  afterAll(() => gateway.stop())

  it.each(ways)(`$style, streamed $stream: goes to ${goes}`, async (way) => {
    const name = wayName(way)
    const told = await send(gateway, way, name)
    const keys = farm.seen(`one-${name}`).map(({ key }) => key)
    assert.deepStrictEqual(keys.toSorted(), goes === "account" ? ["k1", "k2"] : keys.slice(0, 1), told.body)
    if (goes === "end") {
      const isOwn = way.style === "chat" || way.style === "responses"
      assert.strictEqual(told.status, isOwn ? ownStatus ?? status : status, told.body)
      assert.strictEqual(farm.seen(`two-${name}`).length, 0)
      assert.deepStrictEqual([told.upstream, told.target], [`one-${name}`, "m"])
      return
    }
    assert.strictEqual(told.status, 200, told.body)
    assert.strictEqual(told.text, "Hello from two")
    assert.strictEqual(farm.seen(`two-${name}`).length, 1)
    assert.strictEqual(told.model, name)
    assert.deepStrictEqual([told.upstream, told.target], [`two-${name}`, name])
  })
})

describe("an upstream that refuses the connection", () => {
  it.each(ways)("is passed over: $style, streamed $stream", async (way) => {
    const { upstreams, ...config } = pairs([way])
    const name = wayName(way)
    const closed = { ...farm.upstream("closed", { models: ["m"] }), base_url: `http://127.0.0.1:${closedPort}` }
    farm.answer(`two-${name}`, (request) => said("Hello", request))
    const gateway = await startGateway({ ...config, upstreams: { ...upstreams, [`one-${name}`]: closed } })
    const told = await send(gateway, way, name)
    await gateway.stop()
    assert.deepInclude(told, { status: 200, text: "Hello", model: name, upstream: `two-${name}`, target: name })
  })
})

describe.each(drivers.flatMap((from) => drivers.map((to) => ({ from, to }))))("from $from to $to", ({ from, to }) => {
  let gateway: RunningGateway
  const one = `${from}-before-${to}`
  const two = `${to}-after-${from}`
  beforeAll(async () => {
    farm.answer(one, () => json(500, { error: { message: "no" } }))
    farm.answer(two, (request) => said("Hello", request))
    gateway = await startGateway({
      upstreams: {
        [one]: farm.upstream(one, { driver: from, models: ["a"] }),
        [two]: farm.upstream(two, { driver: to, models: ["b"] })
      },
      accounts: [{ upstream: one, token: "k1" }, { upstream: two, token: "k2" }],
      routes: { both: [`${one}/a`, `${two}/b`] }
    })
  })
  afterAll(() => gateway.stop())

  it.each(ways)("$style, streamed $stream, is the same reply", async (way) => {
    const told = await send(gateway, way, "both")
    assert.deepInclude(told, { status: 200, text: "Hello", model: "both", upstream: two, target: "b" })
  })
})

/** A gateway with keyless upstreams `one`, `two`, …, and a route `r` of all; `behaviours` by name. */
const chain = async (
  behaviours: Readonly<Record<string, Behaviour>>,
  route: RawConfig = {},
  config: RawConfig = {},
  options: GatewayOptions = {}
) => {
  const names = Object.keys(behaviours)
  for (const [name, behaviour] of Object.entries(behaviours)) farm.answer(name, behaviour)
  return startGateway({
    upstreams: Object.fromEntries(names.map((name) => [name, farm.upstream(name)])),
    routes: { r: { targets: names.map((name) => `${name}/m`), ...route } },
    ...config
  }, options)
}

const counts = (...names: ReadonlyArray<string>) => names.map((name) => farm.seen(name).length)

const fails = (status: number, message: string, headers: Record<string, string> = {}, code?: string): Behaviour => () =>
  json(status, { error: { message, ...(code === undefined ? {} : { code }) } }, headers)

describe("where every target fails", () => {
  it("there are three tries of a target and eight in all", async () => {
    const gateway = await chain({ one: fails(500, "no"), two: fails(500, "no"), three: fails(500, "no") })
    const told = await chat(gateway, "r")
    await gateway.stop()
    assert.strictEqual(told.status, 503)
    assert.deepStrictEqual(counts("one", "two", "three"), [3, 3, 2])
  })

  it("the captures name the upstream of each try, with and without bodies", async () => {
    const gateway = await chain({ one: fails(500, "no"), two: fails(500, "no") })
    await chat(gateway, "r")
    const upstreams = async (path: string): Promise<ReadonlyArray<unknown>> => {
      const response = await fetch(`${gateway.url}/admin/dev/captures${path}`, {
        headers: { authorization: `Bearer ${adminKey}` }
      })
      const { items } = await response.json() as { readonly items: ReadonlyArray<{ readonly upstream?: string }> }
      return items.map(({ upstream }) => upstream)
    }
    const expected = ["two", "one", "two", "one", "two", "one"]
    assert.deepStrictEqual([await upstreams(""), await upstreams("?summary=true")], [expected, expected])
    await gateway.stop()
  })

  it("two targets have six tries, in turns", async () => {
    const order: Array<string> = []
    const failing = (name: string): Behaviour => () => {
      order.push(name)
      return json(500, {})
    }
    const gateway = await chain({ one: failing("one"), two: failing("two") })
    await chat(gateway, "r")
    await gateway.stop()
    assert.deepStrictEqual(order, ["one", "two", "one", "two", "one", "two"])
  })

  it.each(ways)("the caller gets the error of the last: $style, streamed $stream", async (way) => {
    const gateway = await chain({ one: fails(500, "first"), two: fails(404, "second") })
    const told = await send(gateway, way, "r")
    await gateway.stop()
    // The second target has failed for good, so the first one has the last word.
    assert.deepStrictEqual(counts("one", "two"), [3, 1])
    assert.strictEqual(told.status, 503)
    assert.match(told.body, /first[^"]*\(2 targets were tried\)/)
    assert.deepStrictEqual([told.upstream, told.target], ["one", "m"])
  })

  it("Retry-After is the earliest of those received", async () => {
    const gateway = await chain({
      one: fails(503, "no", { "retry-after": "20" }),
      two: fails(503, "no", { "retry-after": "9" }),
      three: fails(503, "no", { "retry-after": "30" })
    })
    const told = await chat(gateway, "r")
    await gateway.stop()
    assert.strictEqual(told.headers.get("retry-after"), "9", told.body)
  })
})

describe("the log line, the record and the metrics of a request with failed tries", () => {
  /** A request for `r`, with its log line, its record and the metric of failovers. */
  const observed = async (behaviours: Readonly<Record<string, Behaviour>>, config: RawConfig = {}) => {
    const logged: Array<Record<string, unknown>> = []
    const logger = Logger.make(({ fiber, message }) => {
      if (String(message) === "request") logged.push({ ...fiber.getRef(References.CurrentLogAnnotations) })
    })
    const gateway = await chain(behaviours, {}, config, { logger })
    const get = (path: string) => fetch(`${gateway.url}${path}`, { headers: { authorization: `Bearer ${adminKey}` } })
    const told = await chat(gateway, "r")
    await untilHolds(() => logged.length > 0)
    const { items } = await (await get("/admin/requests")).json() as {
      readonly items: ReadonlyArray<Record<string, unknown>>
    }
    const metrics = await (await get("/metrics")).text()
    await gateway.stop()
    const failovers = Number(/^gateway_failovers_total(?:\{[^}]*\})? (\d+)$/m.exec(metrics)?.[1] ?? 0)
    return { told, line: logged[0]!, record: items[0]!, failovers }
  }

  it("have a failover for each change of target, and a cause for each failed try", async () => {
    const { failovers, line, record, told } = await observed({ one: fails(500, "first"), two: fails(404, "second") })
    assert.strictEqual(told.status, 503)
    // one, two, one, one: the second target has failed for good.
    assert.deepInclude(line, { attempts: 4, failovers: 2, retries: 1 })
    const cause = (name: string, status: number, message: string) => ({ target: `${name}/m`, status, message })
    const first = cause("one", 500, "first")
    assert.deepStrictEqual(line["cause"], { ...first, earlier: [first, cause("two", 404, "second"), first] })
    assert.strictEqual(record["failovers"], 2)
    assert.strictEqual(failovers, 2)
  })

  it("have them too where the next target answers", async () => {
    const { failovers, line, record, told } = await observed({
      one: fails(503, "busy"),
      two: (request) => said("Hello", request)
    })
    assert.strictEqual(told.status, 200)
    assert.deepInclude(line, { attempts: 2, failovers: 1, cause: { target: "one/m", status: 503, message: "busy" } })
    assert.strictEqual(record["failovers"], 1)
    assert.strictEqual(failovers, 1)
  })

  it("have no failover where the next target is full", async () => {
    const { failovers, line } = await observed(
      { one: fails(500, "first"), two: fails(500, "second") },
      { accounts: [{ upstream: "one", token: "k1" }, { upstream: "two", token: "k2", disabled: true }] }
    )
    assert.deepInclude(line, { retries: 2 })
    assert.notProperty(line, "failovers")
    assert.strictEqual(failovers, 0)
  })

  it("have the beginning of the server's words in one line, without the account's token", async () => {
    const token = "a-token-that-nobody-may-read"
    const { line } = await observed({ one: fails(400, `line one\nhas ${token} and ${"word ".repeat(100)}`) }, {
      accounts: [{ upstream: "one", token }]
    })
    const { message, status } = line["cause"] as { readonly message: string; readonly status: number }
    assert.strictEqual(status, 400)
    assert.match(message, /^line one has \[secret\] and word /)
    assert.lengthOf(message, 200)
    assert.notInclude(JSON.stringify(line), token)
  })
})

describe("a refusal that is the request's own", () => {
  const tooLong = fails(400, "the prompt", {}, "context_length_exceeded")

  it("ends the request", async () => {
    const gateway = await chain({ one: tooLong, two: (request) => said("Hello", request) })
    const told = await chat(gateway, "r")
    await gateway.stop()
    assert.strictEqual(told.status, 400)
    assert.deepStrictEqual(counts("one", "two"), [1, 0])
    assert.notInclude(told.body, "were tried")
  })

  const refusals = [
    { also_on: "context_length", refusal: tooLong },
    { also_on: "context_length", refusal: fails(413, "large") },
    { also_on: "content_filter", refusal: fails(400, "filtered", {}, "content_filter") }
  ]
  it.each(refusals.flatMap((refusal) => ways.map((way) => ({ ...refusal, ...way }))))(
    "goes to the next target of a route with also_on $also_on: $style, streamed $stream",
    async ({ also_on, refusal, ...way }) => {
      const gateway = await chain({ one: refusal, two: (request) => said("Hello", request) }, { also_on: [also_on] })
      const told = await send(gateway, way, "r")
      await gateway.stop()
      assert.deepInclude(told, { status: 200, text: "Hello", upstream: "two" })
      assert.deepStrictEqual(counts("one", "two"), [1, 1])
    }
  )

  it("stands where those after it fail otherwise", async () => {
    const gateway = await chain({ one: tooLong, two: fails(500, "second") }, { also_on: ["context_length"] })
    const told = await chat(gateway, "r")
    await gateway.stop()
    assert.strictEqual(told.status, 400)
    assert.include(told.body, "the prompt")
    assert.deepStrictEqual(counts("one", "two"), [1, 3])
  })
})

describe("after the first event", () => {
  it.each(ways.filter(({ stream }) => stream))("no other target is asked: $style", async (way) => {
    const gateway = await chain({
      one: (request) => {
        const { pieces = [] } = said("Hello", request)
        const [first] = pieces
        return {
          pieces: [String(first).split("\n\n").slice(0, 2).map((frame) => `${frame}\n\n`).join("")],
          after: "reset"
        }
      },
      two: (request) => said("Hello from two", request)
    })
    const told = await send(gateway, way, "r")
    await gateway.stop()
    assert.deepStrictEqual(counts("one", "two"), [1, 0])
    assert.deepInclude(told, { status: 200, text: "Hello", upstream: "one" })
    assert.include(told.body, "error")
  })
})
