/** Accounts whose servers say how much of their quota is left: what is used up is left alone until its reset, and no longer. */
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import type { RawConfig } from "../../src/config/json.ts"
import { sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { admin } from "../gateway/support.ts"
import { adminKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock, type MovedClock } from "../support/movedClock.ts"
import { untilHolds } from "../support/until.ts"
import { type Behaviour, chat, type Farm, json, said, type SendOptions, startFarm } from "./support.ts"

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

/** A gateway with the models `a` and `b` of one upstream; `queue` are the seconds that requests may wait. */
const start = async (keys: ReadonlyArray<string>, { queue = 0, ...config }: RawConfig = {}) => {
  gateway = await startGateway({
    upstream: { driver: "embedded", timeouts: { queue: queue as number } },
    upstreams: { one: farm.upstream("one", { models: ["a", "b"] }) },
    accounts: keys.map((token) => ({ upstream: "one", token })),
    ...config
  }, { clock })
}

type Headers = Readonly<Record<string, string>>

/** Headers of a window of the whole account that resets after so many seconds. */
const window = (used: number, seconds: number, place = "primary"): Headers => ({
  [`x-codex-${place}-used-percent`]: String(used),
  [`x-codex-${place}-window-minutes`]: place === "primary" ? "300" : "10080",
  [`x-codex-${place}-reset-after-seconds`]: String(seconds)
})

/** Headers of used-up requests of a model; `limit` of them refill within the time. */
const modelOut = (reset: string, limit = 1): Headers => ({
  "x-ratelimit-limit-requests": String(limit),
  "x-ratelimit-remaining-requests": "0",
  "x-ratelimit-reset-requests": reset
})

/** Answers with the model's name, and with headers. */
const saying = (headers: (key: string | undefined, model: string) => Headers | undefined): Behaviour => (request) => {
  const model = String(request.body["model"])
  const answer = said(model, request)
  return {
    ...answer,
    headers: { "content-type": "text/event-stream", ...answer.headers, ...headers(request.key, model) }
  }
}

const refusing = (headers: Headers, error: object = { message: "slow down" }): Behaviour => () =>
  json(429, { error }, headers)

const told = async (model: string, options?: SendOptions) => {
  const reply = await chat(gateway, model, options)
  return [reply.status, reply.headers.get("retry-after"), reply.headers.get("x-should-retry")]
}

const keysSeen = () => farm.seen("one").map(({ key }) => key)
const pass = (seconds: number) => clock.move(seconds * 1_000)

interface ShownAccount {
  readonly identifier: string
  readonly health: string
  readonly recovery_seconds: number | null
  readonly quota: ReadonlyArray<Readonly<Record<"resets_at" | "seen_at", number>>>
}

const accounts = async () => (await admin(gateway.url, "GET", "/admin/accounts")).items as ReadonlyArray<ShownAccount>

const good = saying(() => undefined)

describe("the windows of accounts", () => {
  it("are in the list of accounts and in the metrics, empty after their reset", async () => {
    farm.answer("one", saying(() => ({ ...window(85, 600), ...modelOut("40s") })))
    await start(["k1"])
    await chat(gateway, "one/a")
    const shown = async () =>
      (await accounts())[0]!.quota.map(({ resets_at, seen_at, ...rest }) => [rest, resets_at - seen_at])
    const primary = { window: "5h", model: null, used: 0.85, limit: null, remaining: null, status: "low" }
    const requests = { window: "requests", model: "a", used: 1, limit: 1, remaining: 0, status: "exhausted" }
    assert.deepStrictEqual(await shown(), [[primary, 600_000], [requests, 40_000]])
    const scraped = await fetch(`${gateway.url}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } })
    const lines = (await scraped.text()).split("\n").filter((line) => line.startsWith("gateway_account_quota"))
    assert.deepStrictEqual(lines.map((line) => line.replace(/account="[0-9a-f]{12}",/, "")), [
      `gateway_account_quota_used{window="5h",model=""} 0.85`,
      `gateway_account_quota_used{window="requests",model="a"} 1`,
      `gateway_account_quota_reset_seconds{window="5h",model=""} 600`,
      `gateway_account_quota_reset_seconds{window="requests",model="a"} 40`
    ])
    pass(40)
    assert.deepStrictEqual(await shown(), [
      [primary, 600_000],
      [{ ...requests, used: 0, remaining: 1, status: "ok" }, 40_000]
    ])
  })
})

describe("a used-up window of an account", () => {
  it.each<[string, Behaviour, number]>([
    ["of a refusal with a time", refusing({ "retry-after": "3200" }, { code: "insufficient_quota" }), 3_200],
    [
      "of a refusal, of which the latest counts",
      refusing({
        "retry-after": "30",
        ...window(100, 3_000),
        ...window(100, 3_500, "secondary")
      }),
      3_500
    ],
    [
      "of a refusal whose body states the reset",
      refusing({}, { type: "usage_limit_reached", resets_in_seconds: 3_400 }),
      3_400
    ]
  ])("%s pauses the account until its reset", async (_, refuse, seconds) => {
    farm.answer("one", refuse)
    await start(["k1"])
    assert.deepStrictEqual(await told("one/a"), [429, String(seconds), "false"])
    pass(1_000)
    assert.deepStrictEqual(await told("one/b"), [429, String(seconds - 1_000), "false"])
    const [account] = await accounts()
    assert.deepInclude(account, { health: "cooling", recovery_seconds: seconds - 1_000 })
    assert.lengthOf(farm.seen("one"), 1)
    farm.answer("one", good)
    pass(seconds - 1_030)
    assert.deepStrictEqual(await told("one/a"), [429, "30", null])
    assert.lengthOf(farm.seen("one"), 0)
    pass(30)
    assert.deepInclude(await chat(gateway, "one/a"), { status: 200, text: "a" })
  })

  it("pauses the account without a refusal", async () => {
    farm.answer("one", saying((key) => key === "k1" ? window(100, 600) : window(50, 600)))
    await start(["k1", "k2"])
    for (let i = 0; i < 4; i++) assert.deepInclude(await chat(gateway, "one/a"), { status: 200, text: "a" })
    assert.deepStrictEqual(keysSeen(), ["k1", "k2", "k2", "k2"])
    pass(600)
    for (let i = 0; i < 2; i++) await chat(gateway, "one/a")
    assert.sameMembers(keysSeen().slice(4), ["k1", "k2"])
  })

  it("has requests wait if its reset is within their time", async () => {
    farm.answer("one", saying(() => window(100, 20)))
    await start(["k1"], { queue: 30 })
    await chat(gateway, "one/a")
    farm.answer("one", good)
    const waiting = chat(gateway, "one/a")
    await untilHolds(async () => (await admin(gateway.url, "GET", "/admin/queue/status")).waiting === 1)
    pass(20)
    assert.deepInclude(await waiting, { status: 200, text: "a" })
  })

  it("ends with a successful account test", async () => {
    farm.answer("one", saying(() => ({ ...window(100, 600), ...modelOut("10m") })))
    await start(["k1"])
    await chat(gateway, "one/a")
    assert.deepStrictEqual(await told("one/a"), [429, "600", "false"])
    farm.answer("one", good)
    const { identifier } = (await accounts())[0]!
    assert.deepInclude(await admin(gateway.url, "POST", "/admin/accounts/test", { identifier }), { success: true })
    assert.deepInclude(await chat(gateway, "one/a"), { status: 200, text: "a" })
  })

  it("in an event of a stream pauses the account", async () => {
    const primary = { used_percent: 100, window_minutes: 300, reset_after_seconds: 600 }
    const event = { type: "codex.rate_limits", rate_limits: { primary, secondary: null } }
    farm.answer("one", (request) => {
      const { pieces = [] } = said("a", request)
      return { pieces: [`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`, ...pieces] }
    })
    await start(["k1"], { upstreams: { one: farm.upstream("one", { driver: "responses", models: ["a"] }) } })
    assert.deepInclude(await chat(gateway, "one/a"), { status: 200, text: "a" })
    assert.deepStrictEqual(await told("one/a"), [429, "600", "false"])
    assert.lengthOf(farm.seen("one"), 1)
  })

  it("is nothing in a form that servers do not have", async () => {
    farm.answer("one", saying(() => ({ ...window(100, 600), "x-codex-primary-reset-after-seconds": "soon" })))
    await start(["k1"])
    for (let i = 0; i < 3; i++) assert.deepInclude(await chat(gateway, "one/a"), { status: 200, text: "a" })
  })
})

describe("a used-up window of a model", () => {
  it("pauses the model at that account alone", async () => {
    farm.answer("one", saying((key, model) => key === "k1" && model === "a" ? modelOut("40s") : undefined))
    await start(["k1", "k2"])
    for (const model of ["a", "a", "a", "b", "b"]) {
      assert.deepInclude(await chat(gateway, `one/${model}`), { status: 200, text: model })
    }
    assert.deepStrictEqual(keysSeen(), ["k1", "k2", "k2", "k1", "k2"])
    pass(40)
    for (let i = 0; i < 2; i++) await chat(gateway, "one/a")
    assert.sameMembers(keysSeen().slice(5), ["k1", "k2"])
  })

  it("refuses immediately, with the time of the first account, where all are out", async () => {
    farm.answer("one", (request, index) =>
      request.body["model"] === "a"
        ? json(429, {}, { ...modelOut("1m"), "retry-after": request.key === "k1" ? "300" : "200" })
        : good(request, index))
    await start(["k1", "k2"])
    assert.deepStrictEqual(await told("one/a"), [429, "200", "false"])
    assert.deepStrictEqual(keysSeen(), ["k1", "k2"])
    pass(50)
    assert.deepStrictEqual(await told("one/a"), [429, "150", "false"])
    assert.deepInclude(await chat(gateway, "one/b"), { status: 200, text: "b" })
    assert.lengthOf(farm.seen("one"), 3)
    assert.deepStrictEqual((await accounts()).map(({ health }) => health), ["ready", "ready"])
    farm.answer("one", good)
    pass(150)
    assert.deepInclude(await chat(gateway, "one/a"), { status: 200, text: "a" })
    assert.deepStrictEqual(keysSeen(), ["k2"])
  })

  it("lasts as long as one request takes to refill", async () => {
    farm.answer("one", saying(() => modelOut("6m0s", 12)))
    await start(["k1"])
    await chat(gateway, "one/a")
    assert.deepStrictEqual(await told("one/a"), [429, "30", null])
    pass(30)
    assert.deepInclude(await chat(gateway, "one/a"), { status: 200, text: "a" })
  })

  it("waits for the first of several accounts, including for one that is out for another reason", async () => {
    farm.answer(
      "one",
      (request, index) =>
        request.key === "k2" ? json(429, {}, { "retry-after": "25" }) : saying(() => modelOut("50s"))(request, index)
    )
    await start(["k1", "k2"], { queue: 30 })
    await chat(gateway, "one/a")
    const waiting = chat(gateway, "one/a")
    await untilHolds(() => clock.sleeping().some((millis) => millis === 25_000))
    farm.answer("one", good)
    pass(25)
    assert.deepInclude(await waiting, { status: 200, text: "a" })
    assert.deepStrictEqual(keysSeen(), ["k2"])
  })

  it("goes on to the other targets of a route", async () => {
    farm.answer("one", saying((_, model) => model === "a" ? modelOut("40s") : undefined))
    farm.answer("two", (request) => said("two", request))
    await start(["k1"], {
      upstreams: { one: farm.upstream("one", { models: ["a", "b"] }), two: farm.upstream("two", { models: ["a"] }) },
      accounts: [{ upstream: "one", token: "k1" }, { upstream: "two", token: "k2" }],
      routes: { other: ["one/a", "two/a"], own: ["one/a", "one/b"] }
    })
    await chat(gateway, "one/a")
    assert.deepInclude(await chat(gateway, "other"), { status: 200, text: "two" })
    assert.deepInclude(await chat(gateway, "own"), { status: 200, text: "b" })
    assert.deepStrictEqual(farm.seen("one").map(({ body }) => body["model"]), ["a", "b"])
  })

  it("refuses requests that are pinned to the account", async () => {
    farm.answer("one", saying((key) => key === "k1" ? modelOut("40s") : undefined))
    await start(["k1", "k2"])
    await chat(gateway, "one/a")
    const { identifier } = (await accounts()).at(-1)!
    const pinned = { headers: { "x-gateway-target-account": `one/${identifier}` } }
    assert.deepStrictEqual(await told("one/a", pinned), [429, "40", null])
    assert.deepInclude(await chat(gateway, "one/b", pinned), { status: 200, text: "b" })
    assert.deepStrictEqual(keysSeen(), ["k1", "k1"])
  })
})

const days = 30 * 86_400
const day = 24 * 3_600

describe("a wait of days", () => {
  /** Asks six times together in each of so many hours, and returns how many requests reach the server. */
  const reached = async (refuse: Behaviour, hours: number) => {
    farm.answer("one", refuse)
    let count = 0
    for (let hour = 0; hour < hours; hour++) {
      const replies = await Promise.all(Array.from({ length: 6 }, () => told("one/a")))
      for (const [status] of replies) assert.strictEqual(status, 429)
      count += farm.seen("one").length
      farm.answer("one", refuse)
      pass(3_600)
    }
    return count
  }

  it.each<[string, Behaviour]>([
    ["of an account", refusing({ "retry-after": String(days) }, { code: "insufficient_quota" })],
    ["of a model", refusing({ "retry-after": String(days) })],
    ["of a model's window", refusing({ ...modelOut("20h"), "retry-after": String(days) })]
  ])("%s is tried by one request an hour, and ends with its answer", async (_, refuse) => {
    farm.answer("one", refuse)
    await start(["k1"])
    await told("one/a")
    assert.lengthOf(farm.seen("one"), 1)
    pass(3_600)
    assert.strictEqual(await reached(refuse, 24), 24)
    farm.answer("one", good)
    for (let i = 0; i < 3; i++) assert.deepInclude(await chat(gateway, "one/a"), { status: 200, text: "a" })
    assert.deepInclude(await chat(gateway, "one/b"), { status: 200, text: "b" })
  })

  it("that names no limit of the account leaves its other models alone", async () => {
    const far = refusing({ "retry-after": String(days) })
    farm.answer("one", (request, index) => (request.body["model"] === "a" ? far : good)(request, index))
    await start(["k1"])
    // The request that the server refused gets its words; later ones learn when the model is tried next.
    assert.deepStrictEqual(await told("one/a"), [429, String(days), "false"])
    pass(2)
    for (let i = 0; i < 3; i++) assert.deepInclude(await chat(gateway, "one/b"), { status: 200, text: "b" })
    assert.deepStrictEqual(await told("one/a"), [429, "3598", "false"])
    assert.deepInclude((await accounts())[0], { health: "ready" })
    assert.lengthOf(farm.seen("one"), 4)
    pass(day)
    assert.strictEqual((await chat(gateway, "one/a")).status, 429)
    assert.lengthOf(farm.seen("one"), 5)
  })
})

describe("the reserve of an upstream", () => {
  const keys = { user: "sk-of-a-user", batch: "sk-of-a-batch" }
  const startReserving = (tokens: ReadonlyArray<string>, rest: RawConfig = {}) =>
    start(tokens, {
      upstreams: { one: farm.upstream("one", { models: ["a", "b"], reserve: 0.2 }) },
      keys: Object.values(keys),
      key_records: { [keyId(keys.batch, sha256Hex)]: { class: "background" } },
      ...rest
    })

  it("is kept for interactive keys, and for background keys the account is used up", async () => {
    farm.answer("one", saying((key) => window(key === "k1" ? 80 : 79, 600)))
    await startReserving(["k1", "k2"])
    for (let i = 0; i < 2; i++) await told("one/a", { key: keys.user })
    for (let i = 0; i < 3; i++) assert.strictEqual((await told("one/a", { key: keys.batch }))[0], 200)
    assert.sameMembers(keysSeen().slice(0, 2), ["k1", "k2"])
    assert.deepStrictEqual(keysSeen().slice(2), ["k2", "k2", "k2"])
    for (let i = 0; i < 2; i++) await told("one/a", { key: keys.user })
    assert.sameMembers(keysSeen().slice(5), ["k1", "k2"])
  })

  it("refuses background keys with the time of the first reset, where nothing else is left", async () => {
    farm.answer("one", saying((key) => window(90, key === "k1" ? 600 : 300)))
    await startReserving(["k1", "k2"])
    for (let i = 0; i < 2; i++) await told("one/a", { key: keys.user })
    assert.deepStrictEqual(await told("one/b", { key: keys.batch }), [429, "300", "false"])
    assert.deepStrictEqual(await told("one/b", { key: keys.user }), [200, null, null])
    pass(300)
    assert.deepStrictEqual(await told("one/b", { key: keys.batch }), [200, null, null])
  })
})

describe("the choice of an upstream", () => {
  const upstreams = (choose: string) => ({ upstreams: { one: farm.upstream("one", { models: ["a", "b"], choose }) } })
  const served = async (count: number) => {
    const before = farm.seen("one").length
    for (let i = 0; i < count; i++) await chat(gateway, "one/a")
    return keysSeen().slice(before)
  }
  const ranked = (...ranks: ReadonlyArray<object>) =>
    ranks.map((rank, i) => ({ upstream: "one", token: `k${i + 1}`, ...rank }))

  it("by weight gives each account its share", async () => {
    farm.answer("one", good)
    await start([], { ...upstreams("weighted"), accounts: ranked({ weight: 3 }, {}) })
    const seen = await served(8)
    assert.strictEqual(seen.filter((key) => key === "k1").length, 6)
    assert.containSubset(await accounts(), [{ weight: 3 }])
  })

  it("by priority uses one account until it is out, and keeps its requests after a change of the configuration", async () => {
    farm.answer("one", saying((key) => key === "k2" ? window(100, 60) : undefined))
    await start([], { ...upstreams("fill_first"), accounts: ranked({}, { priority: 1 }) })
    assert.deepStrictEqual(await served(3), ["k2", "k1", "k1"])
    farm.answer("one", good)
    pass(60)
    assert.deepStrictEqual(await served(3), ["k2", "k2", "k2"])
    await admin(gateway.url, "PATCH", "/admin/upstreams/one", { choose: "rotate" })
    assert.sameMembers(await served(2), ["k1", "k2"])
  })

  it("by reset spends what is lost soonest, once it knows each account", async () => {
    farm.answer("one", saying((key) => window(10, key === "k2" ? 60 : 600)))
    await start([], { ...upstreams("spend_soonest_reset"), accounts: ranked({}, {}, {}) })
    const [first, second, third, ...rest] = await served(6)
    assert.sameMembers([first, second, third], ["k1", "k2", "k3"])
    assert.deepStrictEqual(rest, ["k2", "k2", "k2"])
  })
})
