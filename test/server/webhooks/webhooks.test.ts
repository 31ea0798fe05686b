/** Webhooks of a gateway in front of a receiver on a socket: what is sent, when it is sent again, and what operators see of it. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Redacted from "effect/Redacted"
import { type RawConfig, sha256Hex } from "../../../src/config/json.ts"
import { accountHash, identityKeys, keyId } from "../../../src/domain/identity.ts"
import { type NoticeType, noticeTypes } from "../../../src/domain/notices.ts"
import { keyWithin } from "../../../src/domain/upstreamNames.ts"
import { signaturesOf } from "../../../src/server/webhooks/send.ts"
import { caller, storeOf } from "../../admin/support.ts"
import { chat, closedPort, type Farm, json, said, settled, startFarm } from "../../several/support.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { makeMovedClock, type MovedClock } from "../../support/movedClock.ts"
import { untilHolds } from "../../support/until.ts"
import { isSignedBy, type Received, type Receiver, startReceiver } from "./receiver.ts"

const secretOf = (letter: string): string => `whsec_${Buffer.alloc(32, letter).toString("base64")}`
const secret = secretOf("a")
const canary = "canary-value-of-a-header"

let farm: Farm
let receiver: Receiver
let gateway: RunningGateway | undefined
let clock: MovedClock
const call = caller(() => gateway!)
beforeAll(async () => {
  farm = await startFarm()
  receiver = await startReceiver()
})
afterAll(async () => {
  await farm.stop()
  await receiver.stop()
})
afterEach(async () => {
  await gateway?.stop()
  receiver.answer = (response) => void response.writeHead(204).end()
  receiver.received.length = 0
})

const start = async (config: RawConfig, environment: Readonly<Record<string, string>> = {}) => {
  // Six in the morning, so that no window of a day ends while the test moves the clock.
  clock = makeMovedClock({ still: true, wall: Date.UTC(2027, 0, 4, 6) })
  gateway = await startGateway(config, { clock, environment })
}

const hook = (rest: RawConfig = {}): RawConfig => ({ name: "ops", url: receiver.url, secret, ...rest })

type View = Readonly<Record<"state" | "waiting" | "delivered" | "dropped", unknown>> & {
  readonly last: Readonly<Record<string, unknown>> | null
}

const stateOf = async (name = "ops"): Promise<View> => {
  const { states } = (await call("GET", "/admin/webhooks")).json as { states: ReadonlyArray<View & { name: string }> }
  return states.find((each) => each.name === name)!
}

const came = (count: number) => untilHolds(() => receiver.received.length >= count)

/** Lets the gateway do what it would do now, without waiting for time. */
const idle = () => settled(50)

const sorted = (list: ReadonlyArray<string>) => [...list].sort()

describe("a signature", () => {
  it("comes from the standard's example", () => {
    const example = Redacted.make("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    const message = { id: "msg_p5jXN8AQM9LWM0D4loKWxJek", body: "{\"test\": 2432232314}" }
    assert.strictEqual(
      signaturesOf({ secret: example, secret_previous: undefined }, message, 1_614_265_330),
      "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )
  })
})

describe("webhooks", () => {
  it("report the limits of a key once for a window, and a missing price once a minute", async () => {
    const id = keyId(businessKey, sha256Hex)
    await start({
      upstreams: { one: farm.upstream("one") },
      prices: { other: { input: 1 } },
      key_records: { [id]: { name: "Team", limits: [{ window: "day", requests: 5 }] } },
      webhooks: [hook({ secret_previous: secretOf("b"), headers: { "x-own": canary } })]
    })
    const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
    farm.answer("one", () => json(200, { choices: [{ message: { content: "Hi" }, finish_reason: "stop" }], usage }))
    const statuses: Array<number> = []
    for (let i = 0; i < 7; i++) statuses.push((await chat(gateway!, "one/m")).status)
    assert.deepStrictEqual(statuses, [200, 200, 200, 200, 200, 429, 429])
    await came(3)
    await idle()
    assert.deepStrictEqual(sorted(receiver.types()), ["budget.reached", "budget.warning", "price.missing"])
    for (const delivery of receiver.received) {
      const { body, headers } = delivery
      assert.isTrue(isSignedBy(secret, delivery) && isSignedBy(secretOf("b"), delivery))
      assert.isFalse(isSignedBy(secretOf("c"), delivery))
      assert.strictEqual(headers["x-own"], canary)
      assert.strictEqual(headers["content-type"], "application/json")
      assert.strictEqual(headers["webhook-timestamp"], String(Math.floor(clock.currentTimeMillisUnsafe() / 1_000)))
      assert.match(String(headers["webhook-id"]), /^evt_[0-9a-f]{32}$/)
      assert.strictEqual(body.timestamp.slice(0, 16), "2027-01-04T06:00")
      assert.sameMembers(Object.keys(body.data), [...noticeTypes[body.type as NoticeType].data])
    }
    const dataOf = (type: string) => receiver.received.find(({ body }) => body.type === type)!.body.data
    const window = {
      key: id,
      name: "Team",
      account: null,
      note: null,
      upstream: null,
      window: "day",
      unit: "requests",
      limit: 5,
      resets_at: "2027-01-05T00:00:00Z"
    }
    assert.deepStrictEqual(dataOf("budget.warning"), { ...window, used: 4, share: 0.8 })
    assert.deepStrictEqual(dataOf("budget.reached"), { ...window, used: 5, share: 1 })
    assert.deepStrictEqual(dataOf("price.missing"), { upstream: "one", model: "m", units: ["input", "output"] })
    // The next day is another window.
    clock.move(24 * 3_600_000)
    for (let i = 0; i < 4; i++) assert.strictEqual((await chat(gateway!, "one/m")).status, 200)
    await came(5)
    await idle()
    assert.deepStrictEqual(sorted(receiver.types().slice(3)), ["budget.warning", "price.missing"])
    const ids = receiver.received.map(({ headers }) => headers["webhook-id"])
    assert.strictEqual(new Set(ids).size, 5)
    const all = receiver.received.map(({ text }) => text).join("\n")
    for (const text of [businessKey, adminKey, canary, "whsec_", "Hi"]) assert.notInclude(all, text)
  })

  it("report the budgets of accounts and upstreams once for a window", async () => {
    await start({
      upstreams: { one: farm.upstream("one", { budgets: [{ window: "day", cost: 1 }] }) },
      accounts: [{
        upstream: "one",
        token: "sk-account-canary",
        note: "of Anna",
        budgets: [{ window: "hour", requests: 5 }]
      }],
      prices: { m: { input: 30_000, output: 30_000 } },
      webhooks: [hook({ events: ["budget.*"] })]
    })
    const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
    farm.answer("one", () => json(200, { choices: [{ message: { content: "Hi" }, finish_reason: "stop" }], usage }))
    const statuses: Array<number> = []
    for (let i = 0; i < 7; i++) statuses.push((await chat(gateway!, "one/m")).status)
    assert.deepStrictEqual(statuses, [200, 200, 200, 200, 200, 429, 429])
    await came(2)
    await idle()
    const account = accountHash(
      keyWithin("one", identityKeys({ token: "sk-account-canary" }, sha256Hex)[0]!),
      sha256Hex
    )
    const named = { account, note: "of Anna" }
    const ofAccount = { key: null, name: null, ...named, upstream: "one", window: "hour", unit: "requests", limit: 5 }
    const ofUpstream = {
      key: null,
      name: null,
      account: null,
      note: null,
      upstream: "one",
      window: "day",
      unit: "cost",
      limit: "1"
    }
    const events = () =>
      receiver.received.map(({ body: { data: { resets_at: _, ...data }, type } }) => [type, data] as const)
    assert.deepStrictEqual(events(), [
      ["budget.warning", { ...ofAccount, used: 4, share: 0.8 }],
      ["budget.reached", { ...ofAccount, used: 5, share: 1 }]
    ])
    clock.move(3_600_000)
    await chat(gateway!, "one/m")
    await came(3)
    await idle()
    assert.deepStrictEqual(events().slice(2), [["budget.warning", { ...ofUpstream, used: "0.9", share: 0.9 }]])
    assert.notInclude(receiver.received.map(({ text }) => text).join("\n"), "canary")
  })

  it("report accounts, pools, upstreams and quotas, each to the webhooks that choose it", async () => {
    const port = closedPort
    const named = { driver: "openai", models: { m: "m" } }
    await start({
      upstreams: {
        one: farm.upstream("one", { models: ["m"] }),
        shut: { ...named, base_url: `http://127.0.0.1:${port}/v1` }
      },
      accounts: [{ upstream: "one", token: "sk-account-canary" }],
      routes: { r: ["shut/m", "one/m"] },
      webhooks: [
        hook({ events: ["account.*", "pool.*", "upstream.cooled"] }),
        hook({ name: "quotas", url: `${receiver.url}/quota`, events: ["quota.*"] })
      ]
    })
    const limits = (used: number) => ({
      "x-codex-primary-used-percent": String(used),
      "x-codex-primary-window-minutes": "300",
      "x-codex-primary-reset-after-seconds": "900"
    })
    const answers = (used: number) =>
      farm.answer("one", (request) => {
        const reply = said("Hi", request)
        return { ...reply, headers: { ...reply.headers, "content-type": "text/event-stream", ...limits(used) } }
      })
    answers(85)
    assert.strictEqual((await chat(gateway!, "r")).status, 200)
    await came(2)
    answers(90)
    assert.strictEqual((await chat(gateway!, "r")).status, 200)
    const account = accountHash(
      keyWithin("one", identityKeys({ token: "sk-account-canary" }, sha256Hex)[0]!),
      sha256Hex
    )
    assert.deepStrictEqual(sorted(receiver.types()), ["quota.low", "upstream.cooled"])
    const low = receiver.received.find(({ path }) => path === "/hook/quota")!
    const { resets_at, ...data } = low.body.data
    assert.deepStrictEqual(data, {
      account,
      note: null,
      upstream: "one",
      window: "5h",
      model: null,
      limit: null,
      remaining: null,
      share: 0.85
    })
    assert.strictEqual(resets_at, "2027-01-04T06:15:00Z")
    const cooled = receiver.received.find(({ path }) => path === "/hook")!
    assert.strictEqual(cooled.body.data["upstream"], "shut")
    // The pool is looked at each second.
    clock.move(1_000)
    await idle()
    farm.answer("one", () => json(401, { error: { message: "wrong key" } }))
    await chat(gateway!, "one/m")
    await came(3)
    clock.move(1_000)
    await came(4)
    answers(20)
    const [{ identifier }] = (await call("GET", "/admin/accounts")).json["items"] as [{ identifier: string }]
    assert.strictEqual((await call("POST", "/admin/accounts/test", { body: { identifier } })).status, 200)
    await came(5)
    clock.move(1_000)
    await came(6)
    assert.deepStrictEqual(receiver.types().slice(2), ["account.refused", "pool.empty", "account.back", "pool.back"])
    for (const { body } of receiver.received) {
      assert.sameMembers(Object.keys(body.data), [...noticeTypes[body.type as NoticeType].data])
    }
    const all = receiver.received.map(({ text }) => text).join("\n")
    for (const text of ["sk-account-canary", "canary", "127.0.0.1", "Hi", adminKey]) assert.notInclude(all, text)
  })

  it("are delivered again five times with the same id and body, and are then counted as dropped", async () => {
    await start({
      keys: [businessKey],
      prices: { other: { input: 1 } },
      webhooks: [hook({ events: ["price.missing"] })]
    })
    receiver.answer = (response, { path }) =>
      void response.writeHead(path === "/hook" ? 302 : 204, { location: `${receiver.url}/other` }).end()
    assert.strictEqual((await chat(gateway!, "upstream-chat")).status, 200)
    await came(1)
    const waits = [5, 30, 120, 600, 3_600]
    for (const [i, seconds] of waits.entries()) {
      await untilHolds(async () =>
        (await stateOf()).last !== null && clock.sleeping().some((ms) => isAbout(ms, seconds))
      )
      clock.move(0.89 * seconds * 1_000)
      await idle()
      assert.strictEqual(receiver.received.length, i + 1)
      clock.move(0.22 * seconds * 1_000)
      await came(i + 2)
    }
    await untilHolds(async () => (await stateOf()).dropped === 1)
    const { last, ...state } = await stateOf()
    assert.deepInclude(state, { state: "active", waiting: 0, delivered: 0, dropped: 1 })
    assert.deepInclude(last, {
      type: "price.missing",
      status: 302,
      error: "the receiver redirects, which is not followed"
    })
    const recent = (await call("GET", "/admin/webhooks/deliveries?name=ops")).json["deliveries"] as ReadonlyArray<
      RawConfig
    >
    assert.lengthOf(recent, 6)
    assert.strictEqual(new Set(recent.map(({ id }) => id)).size, 1)
    // A redirect is not followed.
    assert.isTrue(receiver.received.every(({ path }) => path === "/hook"))
    const distinct = (of: (delivery: Received) => unknown) => new Set(receiver.received.map(of)).size
    assert.strictEqual(distinct(({ headers, text }) => `${String(headers["webhook-id"])} ${text}`), 1)
    assert.strictEqual(distinct(({ headers }) => headers["webhook-timestamp"]), 6)
    assert.isTrue(receiver.received.every((delivery) => isSignedBy(secret, delivery)))
  })

  it("end with a 410 until they are changed, and delay neither a request nor a stop", async () => {
    await start({
      prices: { other: { input: 1 } },
      webhooks: [hook(), hook({ name: "slow", url: `${receiver.url}/slow` })]
    })
    receiver.answer = (response, { path }) => {
      if (path === "/hook") response.writeHead(410).end()
    }
    assert.strictEqual((await chat(gateway!, "upstream-chat")).status, 200)
    await came(2)
    await untilHolds(async () => (await stateOf()).state === "gone")
    assert.deepInclude(await stateOf(), { waiting: 0, dropped: 1 })
    // The slow receiver has a delivery, and the next event waits behind it.
    clock.move(61_000 - 10_000)
    assert.strictEqual((await chat(gateway!, "upstream-chat")).status, 200)
    await idle()
    assert.deepInclude(await stateOf("slow"), { waiting: 1, delivered: 0 })
    assert.deepInclude((await stateOf("slow")).last, {
      status: null,
      error: "the receiver does not answer within 10 seconds"
    })
    clock.move(10_000)
    assert.strictEqual((await chat(gateway!, "upstream-chat")).status, 200)
    await untilHolds(async () => (await stateOf("slow")).waiting === 2)
    assert.strictEqual(receiver.received.filter(({ path }) => path === "/hook").length, 1)
    const url = `${receiver.url}/new`
    receiver.answer = (response, { path }) => {
      if (path === "/hook/new") response.writeHead(204).end()
    }
    const body = {
      webhooks: [{ name: "ops", url, secret: "***" }, { name: "slow", url: `${receiver.url}/slow`, secret: "***" }]
    }
    assert.strictEqual((await call("PUT", "/admin/webhooks", { body })).status, 200)
    await untilHolds(async () => (await stateOf()).state === "active")
    clock.move(61_000)
    assert.strictEqual((await chat(gateway!, "upstream-chat")).status, 200)
    await untilHolds(async () => (await stateOf()).delivered === 1)
    assert.isTrue(isSignedBy(secret, receiver.received.find(({ path }) => path === "/hook/new")!))
    // The stop in `afterEach` does not wait for the slow receiver, whose time stands still.
  })

  it("show no secret to operators, keep what `***` stands for, and are tested immediately", async () => {
    await start({ webhooks: [] }, { HOOK_SECRET: secretOf("r") })
    const webhook = {
      name: "ops",
      url: `${receiver.url}?token=canary-token`,
      secret,
      secret_previous: secretOf("p"),
      headers: { "X-Own": canary },
      events: ["budget.*"]
    }
    assert.strictEqual((await call("PUT", "/admin/webhooks", { body: { webhooks: [webhook] } })).status, 200)
    const view = await call("GET", "/admin/webhooks")
    const [shown] = view.json["webhooks"] as [RawConfig]
    assert.deepStrictEqual(shown, {
      name: "ops",
      url: `${receiver.url}?token=***`,
      secret: "***",
      secret_previous: "***",
      headers: { "X-Own": "***" },
      events: ["budget.*"]
    })
    const changed = { ...shown, events: ["quota.low", "budget.*"] }
    assert.strictEqual((await call("PUT", "/admin/webhooks", { body: { webhooks: [changed] } })).status, 200)
    const { webhooks } = await Effect.runPromise(storeOf(gateway!).currentRaw)
    assert.deepStrictEqual(webhooks as unknown, [{ ...webhook, events: ["quota.low", "budget.*"] }])
    // Another origin gets no secret of this one.
    for (const url of ["http://127.0.0.1:9/hook", "https://elsewhere.example/hook?token=***"]) {
      const moved = await call("PUT", "/admin/webhooks", { body: { webhooks: [{ ...shown, url }] } })
      assert.strictEqual(moved.status, 400)
      assert.include(moved.detail, "webhooks[0].secret must be written with its value")
    }
    const { json: tested } = await call("POST", "/admin/webhooks/test", { body: { name: "ops" } })
    assert.deepInclude(tested, { success: true, name: "ops", type: "webhook.test", status: 204, error: null })
    const [delivery] = receiver.received
    assert.deepStrictEqual(delivery!.body.data, { webhook: "ops" })
    assert.strictEqual(delivery!.path, "/hook?token=canary-token")
    assert.isTrue(isSignedBy(secret, delivery!) && isSignedBy(secretOf("p"), delivery!))
    assert.deepInclude((await stateOf()).last, { id: tested["id"], type: "webhook.test" })
    receiver.answer = (response) => void response.writeHead(500).end("canary of the receiver")
    const { json: failed } = await call("POST", "/admin/webhooks/test", { body: { name: "ops" } })
    assert.deepInclude(failed, { success: false, status: 500, error: "the receiver answers with HTTP 500" })
    assert.strictEqual((await call("POST", "/admin/webhooks/test", { body: { name: "none" } })).status, 404)
    // An event that was sent is sent again with its id and body, and the last hundred deliveries are kept.
    const recent = async () => {
      const { json } = await call("GET", "/admin/webhooks/deliveries?name=ops")
      return json["deliveries"] as ReadonlyArray<RawConfig>
    }
    assert.deepStrictEqual((await recent()).map(({ id, status }) => [id, status]), [
      [failed["id"], 500],
      [tested["id"], 204]
    ])
    const again = (id: unknown, name = "ops") => call("POST", "/admin/webhooks/resend", { body: { name, id } })
    receiver.answer = (response) => void response.writeHead(202).end()
    assert.deepInclude((await again(failed["id"])).json, { success: true, id: failed["id"], status: 202, error: null })
    const [, second, third] = receiver.received
    assert.deepStrictEqual([third!.text, third!.headers["webhook-id"]], [second!.text, second!.headers["webhook-id"]])
    for (let i = 0; i < 100; i++) await again(failed["id"])
    assert.lengthOf(await recent(), 100)
    const refused = await again(tested["id"])
    assert.strictEqual(refused.status, 404)
    assert.include(refused.detail, "No delivery of this event is kept")
    assert.strictEqual((await again(failed["id"], "none")).status, 404)
    assert.strictEqual((await call("GET", "/admin/webhooks/deliveries?name=none")).status, 404)
    const history = await call("GET", "/admin/changes")
    assert.include(history.text, "the webhooks were changed")
    assert.include(history.text, "webhooks[ops].events")
    const seen = [
      view.text,
      history.text,
      (await call("GET", "/metrics")).text,
      (await call("GET", "/admin/settings")).text
    ]
    for (const text of [secret, secretOf("p"), canary, "canary-token"]) assert.notInclude(seen.join("\n"), text)
    assert.strictEqual((await call("PUT", "/admin/webhooks", { body: { webhooks: [] } })).status, 200)
    assert.notProperty(await Effect.runPromise(storeOf(gateway!).currentRaw), "webhooks")
  })
})

const isAbout = (ms: number, seconds: number) => ms >= 900 * seconds && ms <= 1_100 * seconds
