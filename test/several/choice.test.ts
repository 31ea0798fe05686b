/**
 * Which target a request takes, and how it waits at several: order and spread, one slot and one place each, `wait`, pinned accounts, tokens
 * of callers, disabled targets, and changes of the configuration while requests wait. Counted at the servers.
 */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import type { RawConfig } from "../../src/config/json.ts"
import { admin } from "../gateway/support.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock, type MovedClock } from "../support/movedClock.ts"
import { untilHolds } from "../support/until.ts"
import {
  change,
  chat,
  type Farm,
  type Held,
  held,
  json,
  post,
  queueOf,
  said,
  send,
  startFarm,
  type Told,
  waiting,
  ways
} from "./support.ts"

let farm: Farm
let gateway: RunningGateway
let clock: MovedClock
beforeAll(async () => {
  farm = await startFarm()
})
afterAll(() => farm.stop())
/** What the test holds; a gateway stops once its requests are over. */
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

/** Holds the answers of upstreams, by name. */
const holding = <Name extends string>(...names: ReadonlyArray<Name>): Record<Name, Held> => {
  const each = {} as Record<Name, Held>
  for (const name of names) {
    each[name] = held()
    open.add(each[name])
    farm.answer(name, each[name].behaviour)
  }
  return each
}

const counts = (...names: ReadonlyArray<string>) => names.map((name) => farm.seen(name).length)

/** Resolves once the upstream has got so many requests. */
const arrived = (name: string, count: number) => untilHolds(() => farm.seen(name).length === count)

const oneSlot = { account_max_inflight: 1 }

/** Two keyless upstreams with one slot each, and a route of both. */
const two = (route: RawConfig = {}, config: RawConfig = {}): RawConfig => ({
  upstreams: { one: farm.upstream("one", oneSlot), two: farm.upstream("two", oneSlot) },
  routes: { r: { targets: ["one/m", "two/m"], ...route } },
  ...config
})

/** Requests wait ten seconds at most. */
const brief = (): RawConfig => ({ upstream: { ...farm.upstream("default", { models: [] }), timeouts: { queue: 10 } } })

describe("the choice among free targets", () => {
  it.each(ways)("is the first one with a free slot: $style, streamed $stream", async (way) => {
    const { one, two: second } = holding("one", "two")
    await start(two())
    const first = send(gateway, way, "r")
    await arrived("one", 1)
    const other = send(gateway, way, "r")
    await arrived("two", 1)
    one.releaseAll()
    second.releaseAll()
    assert.deepInclude(await first, { status: 200, upstream: "one", model: "r" })
    assert.deepInclude(await other, { status: 200, upstream: "two", model: "r" })
  })

  it("is the one with the highest share of free slots of a route with spread even", async () => {
    const { one, two } = holding("one", "two")
    await start({
      upstreams: {
        one: farm.upstream("one", { account_max_inflight: 4 }),
        two: farm.upstream("two", { account_max_inflight: 2 })
      },
      routes: { r: { targets: ["one/m", "two/m"], spread: "even" } }
    })
    const taken: Array<string> = []
    const replies: Array<Promise<Told>> = []
    for (let sent = 1; sent <= 6; sent++) {
      replies.push(chat(gateway, "r"))
      const before = counts("one", "two")
      await untilHolds(() => farm.seen("one").length + farm.seen("two").length === sent)
      taken.push(farm.seen("one").length > before[0]! ? "one" : "two")
    }
    assert.deepStrictEqual(taken, ["one", "two", "one", "one", "two", "one"])
    one.releaseAll()
    two.releaseAll()
    for (const reply of replies) assert.strictEqual((await reply).status, 200)
  })

  it("is each by its weight of a route with spread weighted, and another one while it is full", async () => {
    const { one, two } = holding("one", "two")
    await start({
      upstreams: {
        one: farm.upstream("one", { account_max_inflight: 9 }),
        two: farm.upstream("two", { account_max_inflight: 50 })
      },
      routes: { r: { targets: [{ target: "one/m", weight: 3 }, "two/m"], spread: "weighted" } }
    })
    const replies: Array<Promise<Told>> = []
    const sent = (count: number) => {
      for (let i = 0; i < count; i++) replies.push(chat(gateway, "r"))
      return untilHolds(() => farm.seen("one").length + farm.seen("two").length === replies.length)
    }
    await sent(8)
    assert.deepStrictEqual(counts("one", "two"), [6, 2])
    await sent(8)
    assert.deepStrictEqual(counts("one", "two"), [9, 7])
    one.releaseAll()
    two.releaseAll()
    for (const reply of replies) assert.strictEqual((await reply).status, 200)
  })

  it("is by weight also after requests that only some of the targets can serve", async () => {
    const answer = (name: string) =>
      farm.answer(name, (request) =>
        request.path.endsWith("/embeddings")
          ? json(200, { object: "list", data: [{ object: "embedding", index: 0, embedding: [1] }], model: "m" })
          : said(name, request))
    for (const name of ["one", "two", "three"]) answer(name)
    await start({
      upstreams: {
        one: farm.upstream("one"),
        two: farm.upstream("two"),
        three: farm.upstream("three", { models: ["n"] })
      },
      embeddings: { provider: "upstream" },
      routes: {
        r: {
          targets: [{ target: "one/m", weight: 3 }, "two/m", { target: "three/n", weight: 4 }],
          spread: "weighted"
        }
      }
    })
    // Vectors of two models do not mix.
    for (let i = 0; i < 8; i++) {
      const reply = await post(gateway, "/v1/embeddings", { model: "r", input: "a" })
      assert.strictEqual(reply.status, 200, reply.body)
    }
    assert.deepStrictEqual(counts("one", "two", "three"), [6, 2, 0])
    for (let i = 0; i < 16; i++) assert.strictEqual((await chat(gateway, "r")).status, 200)
    assert.deepStrictEqual(counts("one", "two", "three"), [12, 4, 8])
  })

  it("serves a model that several upstreams list in the order of the file, without a route", async () => {
    holding("one", "two").one.releaseAll()
    farm.answer("one", (request) => said("one", request))
    await start({ upstreams: { one: farm.upstream("one"), two: farm.upstream("two") } })
    assert.deepInclude(await chat(gateway, "m"), { status: 200, upstream: "one", target: "m", model: "m" })
    assert.deepStrictEqual(counts("one", "two"), [1, 0])
  })

  it("leaves out a target that takes no pictures", async () => {
    const models = { m: { model: "m", images: false } }
    farm.answer("one", (request) => said("one", request))
    farm.answer("two", (request) => said("two", request))
    await start({
      upstreams: { one: { ...farm.upstream("one"), models }, two: farm.upstream("two") },
      routes: { r: ["one/m", "two/m"] }
    })
    const picture = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } }
    const body = { messages: [{ role: "user", content: [{ type: "text", text: "What?" }, picture] }] }
    assert.deepInclude(await chat(gateway, "r", { body }), { status: 200, upstream: "two" })
    assert.deepInclude(await chat(gateway, "r"), { status: 200, upstream: "one" })
    assert.deepStrictEqual(counts("one", "two"), [1, 1])
  })
})

describe("a request that waits at several targets", () => {
  it.each(ways)("takes the first slot that frees, and only that: $style, streamed $stream", async (way) => {
    const { one, two: second } = holding("one", "two")
    await start(two())
    const running = [chat(gateway, "r"), chat(gateway, "r")]
    await arrived("two", 1)
    const reply = send(gateway, way, "r")
    await waiting(gateway, 1)
    const queued = await queueOf(gateway)
    assert.deepStrictEqual([queued.of["one"]?.waiting, queued.of["two"]?.waiting, queued.in_use], [1, 1, 2])
    second.release()
    await arrived("two", 2)
    const after = await queueOf(gateway)
    assert.deepStrictEqual([after.waiting, after.of["one"]?.waiting, after.of["two"]?.waiting], [0, 0, 0])
    assert.strictEqual(after.in_use, 2)
    one.releaseAll()
    second.releaseAll()
    await Promise.all(running)
    assert.deepInclude(await reply, { status: 200, upstream: "two" })
    assert.deepStrictEqual(counts("one", "two"), [1, 2])
  })

  it("leaves every queue when its client leaves", async () => {
    const { one, two: second } = holding("one", "two")
    await start(two())
    const running = [chat(gateway, "r"), chat(gateway, "r")]
    await arrived("two", 1)
    const leaving = new AbortController()
    const left = chat(gateway, "r", { signal: leaving.signal }).catch(() => "left")
    await waiting(gateway, 1)
    leaving.abort()
    assert.strictEqual(await left, "left")
    await waiting(gateway, 0)
    one.releaseAll()
    second.releaseAll()
    await Promise.all(running)
    assert.deepStrictEqual(counts("one", "two"), [1, 1])
    await untilHolds(async () => (await queueOf(gateway)).in_use === 0)
  })

  it("waits no longer than timeouts.queue", async () => {
    const { one, two: second } = holding("one", "two")
    await start(two({}, brief()))
    const running = [chat(gateway, "r"), chat(gateway, "r")]
    await arrived("two", 1)
    const late = chat(gateway, "r")
    await waiting(gateway, 1)
    clock.move(10_000)
    const told = await late
    assert.strictEqual(told.status, 429, told.body)
    assert.include(told.body, "rate_limit_exceeded")
    assert.isNull(told.upstream)
    one.releaseAll()
    second.releaseAll()
    await Promise.all(running)
  })

  it("has one time for all of its waits, and an error that a full target does not hide", async () => {
    const { one, two: second } = holding("one", "two")
    await start(two({}, brief()))
    const running = [chat(gateway, "one/m"), chat(gateway, "two/m")]
    await arrived("one", 1)
    await arrived("two", 1)
    const reply = chat(gateway, "r")
    await waiting(gateway, 1)
    farm.answer("one", () => json(500, { error: { message: "broken" } }))
    clock.move(6_000)
    one.releaseAll()
    await arrived("one", 1)
    await waiting(gateway, 1)
    assert.deepStrictEqual((await queueOf(gateway)).of["two"]?.waiting, 1)
    clock.move(4_000)
    const told = await reply
    assert.strictEqual(told.status, 503)
    assert.include(told.body, "broken")
    assert.deepStrictEqual([told.upstream, told.target], ["one", "m"])
    second.releaseAll()
    await Promise.all(running)
  })

  it("counts against the bound of all upstreams together", async () => {
    const { one, two } = holding("one", "two")
    await start({
      upstreams: {
        one: farm.upstream("one", { account_max_inflight: 4 }),
        two: farm.upstream("two", { account_max_inflight: 4 })
      },
      routes: { r: { targets: ["one/m", "two/m"], spread: "even" } },
      runtime: { global_max_inflight: 3 }
    })
    const replies = [1, 2, 3, 4, 5].map(() => chat(gateway, "r"))
    await waiting(gateway, 2)
    assert.strictEqual((await queueOf(gateway)).in_use, 3)
    await untilHolds(() => farm.seen("one").length + farm.seen("two").length === 3)
    one.release()
    await untilHolds(() => farm.seen("one").length + farm.seen("two").length === 4)
    assert.strictEqual((await queueOf(gateway)).in_use, 3)
    farm.answer("one", (request) => said("one", request))
    farm.answer("two", (request) => said("two", request))
    one.releaseAll()
    two.releaseAll()
    for (const reply of replies) assert.strictEqual((await reply).status, 200)
  })
})

describe("wait", () => {
  it("keeps a request at a full first target, until it is over", async () => {
    const { one } = holding("one")
    farm.answer("two", (request) => said("two", request))
    await start(two({ wait: 5 }))
    const first = chat(gateway, "r")
    await arrived("one", 1)
    const second = chat(gateway, "r")
    await waiting(gateway, 1)
    const { of } = await queueOf(gateway)
    assert.deepStrictEqual([of["one"]?.waiting, of["two"]?.waiting], [1, 0])
    clock.move(4_999)
    await waiting(gateway, 1)
    assert.deepStrictEqual(counts("one", "two"), [1, 0])
    clock.move(1)
    assert.deepInclude(await second, { status: 200, upstream: "two" })
    one.releaseAll()
    assert.deepInclude(await first, { status: 200, upstream: "one" })
  })

  it("ends with the first target's slot", async () => {
    const { one } = holding("one")
    farm.answer("two", (request) => said("two", request))
    await start(two({ wait: 5 }))
    const first = chat(gateway, "r")
    await arrived("one", 1)
    const second = chat(gateway, "r")
    await waiting(gateway, 1)
    one.release()
    await arrived("one", 2)
    one.release()
    assert.deepInclude(await first, { status: 200, upstream: "one" })
    assert.deepInclude(await second, { status: 200, upstream: "one" })
    assert.deepStrictEqual(counts("two"), [0])
  })

  it("does not hold a request at a first target whose accounts are out", async () => {
    farm.answer("one", () => json(401, {}))
    farm.answer("two", (request) => said("two", request))
    await start({ ...two({ wait: 5 }), accounts: [{ upstream: "one", token: "k1" }] })
    assert.deepInclude(await chat(gateway, "r"), { status: 200, upstream: "two" })
    assert.deepInclude(await chat(gateway, "r"), { status: 200, upstream: "two" })
    assert.deepStrictEqual(counts("one", "two"), [1, 2])
  })

  it("does not hold a request that has failed at the first target", async () => {
    farm.answer("one", () => json(500, {}))
    farm.answer("two", (request) => said("two", request))
    await start(two({ wait: 5 }))
    assert.deepInclude(await chat(gateway, "r"), { status: 200, upstream: "two" })
  })
})

describe("a pinned account", () => {
  const accounts = [
    { upstream: "one", email: "a@example.com", token: "k1" },
    { upstream: "two", email: "b@example.com", token: "k2" },
    { upstream: "three", email: "c@example.com", token: "k3" }
  ]
  const pinned = (account: string) => ({ headers: { "x-gateway-target-account": account } })
  const startPinned = () => start({ ...two(), upstreams: { ...upstreams(), three: farm.upstream("three") }, accounts })
  const upstreams = () => ({ one: farm.upstream("one"), two: farm.upstream("two") })

  it.each(ways)("leaves the targets of its upstream: $style, streamed $stream", async (way) => {
    farm.answer("one", (request) => said("one", request))
    farm.answer("two", (request) => said("two", request))
    await startPinned()
    assert.deepInclude(await send(gateway, way, "r", pinned("b@example.com")), { status: 200, upstream: "two" })
    assert.deepInclude(await send(gateway, way, "r", pinned("two/b@example.com")), { status: 200, upstream: "two" })
    assert.deepStrictEqual(counts("one", "two"), [0, 2])
  })

  it("has no failover", async () => {
    farm.answer("one", () => json(500, {}))
    farm.answer("two", (request) => said("two", request))
    await startPinned()
    assert.deepInclude(await chat(gateway, "r", pinned("a@example.com")), { status: 503, upstream: "one" })
    assert.deepStrictEqual(counts("one", "two"), [1, 0])
  })

  it("of an upstream without a target is a mistake that names both", async () => {
    await startPinned()
    const told = await chat(gateway, "r", pinned("c@example.com"))
    assert.strictEqual(told.status, 400)
    for (const name of ["three", "one", "two"]) assert.include(told.body, `\\"${name}\\"`)
    assert.strictEqual((await chat(gateway, "r", pinned("d@example.com"))).status, 400)
  })
})

describe("a caller's own token", () => {
  const own = { key: "own-token" }

  it.each(ways)("goes to default alone, once: $style, streamed $stream", async (way) => {
    farm.answer("default", () => json(500, {}))
    farm.answer("two", (request) => said("two", request))
    await start({
      upstream: farm.upstream("default"),
      upstreams: { two: farm.upstream("two") },
      routes: { r: ["two/m", "default/m"], other: ["two/m"] },
      auth: { direct_tokens: true }
    })
    assert.deepInclude(await send(gateway, way, "r", own), { status: 503, upstream: "default" })
    assert.deepStrictEqual(counts("default", "two"), [1, 0])
    assert.strictEqual(farm.seen("default")[0]?.key, "own-token")
    const refused = await send(gateway, way, "other", own)
    assert.strictEqual(refused.status, 403, refused.body)
    assert.deepStrictEqual(counts("default", "two"), [1, 0])
  })

  it("is refused without a default", async () => {
    farm.answer("two", (request) => said("two", request))
    await start({ upstreams: { two: farm.upstream("two") } })
    assert.strictEqual((await chat(gateway, "m", own)).status, 401)
    assert.strictEqual((await chat(gateway, "m", { key: businessKey })).status, 200)
  })
})

/** The configuration with other fields of an upstream. */
const withUpstream = (name: string, fields: RawConfig) => (config: RawConfig): RawConfig => {
  const upstreams = config["upstreams"] as Record<string, RawConfig>
  return { ...config, upstreams: { ...upstreams, [name]: { ...upstreams[name], ...fields } } }
}

const disabled = (name: string) => withUpstream(name, { enabled: false })
const withoutModel = (name: string) => withUpstream(name, { models: { other: "other" } })
const listedOnly = (config: RawConfig): RawConfig => {
  const { routes: _, ...rest } = config
  return rest
}

describe("a disabled upstream", () => {
  it.each(ways)("is left out: $style, streamed $stream", async (way) => {
    farm.answer("one", (request) => said("one", request))
    farm.answer("two", (request) => said("two", request))
    await start(disabled("one")(two()))
    assert.deepInclude(await send(gateway, way, "r"), { status: 200, upstream: "two", model: "r" })
    assert.deepStrictEqual(counts("one", "two"), [0, 1])
  })

  it("has no models until it is enabled: they are in no list, and their names are unknown", async () => {
    const config = two()
    await start(disabled("two")(disabled("one")(config)))
    const headers = { authorization: `Bearer ${businessKey}` }
    const get = async (path: string) => await fetch(gateway.url + path, { headers })
    const lists = ["/v1/models", "/v1beta/models", "/msgcompat/v1/models", "/admin/models"]
    const shown = async () =>
      Promise.all(lists.map(async (path) => {
        const { items, data = items, models = data } = path === "/admin/models"
          ? await admin(gateway.url, "GET", path) as Record<string, Array<Record<string, string>>>
          : await (await get(path)).json() as Record<string, Array<Record<string, string>>>
        return models!.map(({ id, name = id }) => (name ?? "").replace("models/", "")).filter((id) => id.length === 1)
      }))
    assert.deepStrictEqual(await shown(), lists.map(() => []))
    for (const way of ways) {
      const [refused, unknown] = [await send(gateway, way, "r"), await send(gateway, way, "no-such-model")]
      assert.strictEqual(refused.status, unknown.status, refused.body)
      assert.match(refused.body, /The model \\?"r\\?" does not exist; /)
    }
    for (const path of ["/v1/models/r", "/v1beta/models/m", "/msgcompat/v1/models/r"]) {
      assert.strictEqual((await get(path)).status, 404, path)
    }
    await change(gateway, withUpstream("two", { enabled: true }))
    for (const ids of await shown()) assert.sameMembers(ids, ["m", "r"])
    farm.answer("two", (request) => said("two", request))
    assert.deepInclude(await send(gateway, ways[0]!, "r"), { status: 200, upstream: "two" })
  })
})

const changes: ReadonlyArray<readonly [string, (name: string) => (config: RawConfig) => RawConfig]> = [
  ["is disabled", disabled],
  ["loses its model", withoutModel],
  ["is removed", (name) => (config) => {
    const upstreams = Object.entries(config["upstreams"] as Record<string, RawConfig>)
    return { ...config, upstreams: Object.fromEntries(upstreams.filter(([other]) => other !== name)) }
  }]
]

describe.each(changes)("while requests wait, an upstream that %s", (_, edit) => {
  /** Without a route, so that no route names what goes. */
  const startFull = async () => {
    const each = holding("one", "two")
    await start(listedOnly(two()))
    const running = [chat(gateway, "m"), chat(gateway, "m")]
    await arrived("two", 1)
    return { ...each, running }
  }

  it.each(ways)("gives up its place: $style, streamed $stream", async (way) => {
    const { one, running, two } = await startFull()
    const reply = send(gateway, way, "m")
    await waiting(gateway, 1)
    await change(gateway, edit("one"))
    assert.strictEqual((await queueOf(gateway)).waiting, 1)
    one.releaseAll()
    // A slot of the upstream that has gone serves nobody who waits.
    assert.strictEqual((await running[0])?.status, 200)
    assert.deepStrictEqual(counts("one", "two"), [1, 1])
    two.release()
    await arrived("two", 2)
    two.release()
    assert.deepInclude(await reply, { status: 200, upstream: "two" })
    await running[1]
  })

  it("ends the request where it was the last", async () => {
    const { one, running, two } = await startFull()
    const reply = chat(gateway, "m")
    await waiting(gateway, 1)
    await change(gateway, edit("one"))
    await change(gateway, (config) => withUpstream("three", farm.upstream("three"))(edit("two")(config)))
    const told = await reply
    assert.strictEqual(told.status, 503, told.body)
    assert.include(told.body, "no_account_available")
    one.releaseAll()
    two.releaseAll()
    for (const each of running) assert.strictEqual((await each).status, 200)
  })

  it("is not tried after a failure of another one", async () => {
    const gate = Promise.withResolvers<void>()
    farm.answer("one", () => ({ pieces: [gate.promise, "data: {broken\n\n"] }))
    farm.answer("two", (request) => said("two", request))
    farm.answer("three", (request) => said("three", request))
    await start({ upstreams: Object.fromEntries(["one", "two", "three"].map((name) => [name, farm.upstream(name)])) })
    const reply = chat(gateway, "m")
    await arrived("one", 1)
    await change(gateway, edit("two"))
    gate.resolve()
    assert.deepInclude(await reply, { status: 200, upstream: "three" })
    assert.deepStrictEqual(counts("one", "two", "three"), [1, 0, 1])
  })
})

describe("an alias of a target", () => {
  it.each(ways)("is served by that target alone, under its own name: $style, streamed $stream", async (way) => {
    farm.answer("one", () => json(500, {}))
    farm.answer("two", (request) => said("two", request))
    await start(two({}, { model_aliases: { quick: "two/m", slow: "one/m" } }))
    assert.deepInclude(await send(gateway, way, "quick"), { status: 200, upstream: "two", target: "m", model: "quick" })
    assert.deepInclude(await send(gateway, way, "slow"), { status: 503, upstream: "one" })
    assert.strictEqual(farm.seen("two").length, 1)
  })
})

describe("the accounts of a target", () => {
  it("come before the next target, as long as one is in rotation that has not failed", async () => {
    farm.answer("one", ({ key }) => json(key === "k1" ? 429 : 403, {}))
    farm.answer("two", (request) => said("two", request))
    await start({ ...two(), accounts: [{ upstream: "one", token: "k1" }, { upstream: "one", token: "k2" }] })
    // The first request takes k1 out of rotation, so k2 is the only one for the second.
    for (let sent = 0; sent < 2; sent++) {
      assert.deepInclude(await chat(gateway, "r"), { status: 200, upstream: "two" })
    }
    assert.deepStrictEqual(farm.seen("one").map(({ key }) => key).toSorted(), ["k1", "k2", "k2"])
  })

  it("have their own limit", async () => {
    const { one, two: second } = holding("one", "two")
    await start({
      ...two(),
      accounts: [{ upstream: "one", token: "k1" }, { upstream: "one", token: "k2" }]
    })
    const replies = [1, 2, 3].map(() => chat(gateway, "r"))
    await arrived("one", 2)
    await arrived("two", 1)
    assert.deepStrictEqual(farm.seen("one").map(({ key }) => key).toSorted(), ["k1", "k2"])
    one.releaseAll()
    second.releaseAll()
    for (const reply of replies) assert.strictEqual((await reply).status, 200)
  })
})
