/** What a gateway knows of accounts and upstreams over a restart: pauses, windows of quotas, and the use of budgets. */
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import type { RawConfig } from "../../src/config/json.ts"
import { admin } from "../gateway/support.ts"
import { type Received, type Receiver, startReceiver } from "../server/webhooks/receiver.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock, type MovedClock } from "../support/movedClock.ts"
import { untilHolds } from "../support/until.ts"
import { chat, type Farm, json, said, settled, startFarm } from "./support.ts"

let clock: MovedClock
let farm: Farm
let folder: string
let receiver: Receiver
let gateway: RunningGateway

beforeEach(async () => {
  // A Monday at noon.
  clock = makeMovedClock({ still: true, wall: Date.UTC(2027, 0, 4, 12) })
  farm = await startFarm()
  folder = mkdtempSync(path.join(tmpdir(), "restarts-"))
  receiver = await startReceiver()
})
afterEach(async () => {
  await gateway.stop()
  await farm.stop()
  await receiver.stop()
  rmSync(folder, { recursive: true })
})

type Accounts = Readonly<Record<string, ReadonlyArray<RawConfig>>>

/** A gateway with the models `a` and `b` of one upstream; accounts by their keys, each with its budgets. */
const start = async (accounts: Accounts, { one, usage, ...config }: RawConfig & { readonly one?: RawConfig } = {}) => {
  gateway = await startGateway({
    upstream: { driver: "embedded", timeouts: { queue: 0 } },
    upstreams: { one: farm.upstream("one", { models: ["a", "b"], whole_replies: "whole", ...one }) },
    accounts: Object.entries(accounts).map(([token, budgets]) => ({ upstream: "one", token, note: token, budgets })),
    usage: { file: path.join(folder, "usage.sqlite"), ...usage as RawConfig },
    ...config
  }, { clock, keepsUsage: true })
}

const restart = async (...config: Parameters<typeof start>) => {
  await gateway.stop()
  await start(...config)
}

interface ShownAccount {
  readonly note: string
  readonly identifier: string
  readonly health: string
  readonly recovery_seconds: number | null
  readonly quota: ReadonlyArray<{ readonly window: string; readonly model: string | null; readonly used: number }>
  readonly budgets: ReadonlyArray<{
    readonly requests: { readonly used: number } | null
    readonly cost: { readonly used: string } | null
  }>
}

const accounts = async () => {
  const items = (await admin(gateway.url, "GET", "/admin/accounts")).items as ReadonlyArray<ShownAccount>
  return items.toSorted((a, b) => a.note.localeCompare(b.note))
}

const health = async () => (await accounts()).map((each) => [each.note, each.health, each.recovery_seconds])
const windows = async () =>
  (await accounts()).map(({ quota }) => quota.map(({ model, used, window }) => [window, model, used]))

/** Headers of a window of the whole account. */
const window = (used: number, seconds: number) => ({
  "x-codex-primary-used-percent": String(used),
  "x-codex-primary-window-minutes": "300",
  "x-codex-primary-reset-after-seconds": String(seconds)
})
/** Headers of used-up requests of a model. */
const modelOut = {
  "x-ratelimit-limit-requests": "1",
  "x-ratelimit-remaining-requests": "0",
  "x-ratelimit-reset-requests": "1h"
}

/** Each key's answer: low, used up, refused without a window, and out of requests for its model. */
const answers: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  k1: window(85, 600),
  k2: window(100, 3_600),
  k3: { "retry-after": "7200" },
  k4: modelOut
}
const ofQuotas = () =>
  farm.answer("one", (request) => {
    const { key = "" } = request
    if (key === "k3") return json(429, { error: { message: "slow down", code: "insufficient_quota" } }, answers[key])
    const answer = said("Hi", request)
    return { ...answer, headers: { "content-type": "text/event-stream", ...answer.headers, ...answers[key] } }
  })

const four = { k1: [], k2: [], k3: [], k4: [] }
const keysSeen = () => farm.seen("one").map(({ key }) => key)

/** Asks each account once. */
const askAll = async () => {
  for (let i = 0; i < 3; i++) assert.strictEqual((await chat(gateway, "one/a")).status, 200)
  assert.deepStrictEqual(keysSeen().toSorted(), ["k1", "k2", "k3", "k4"])
}

/** A reply of 10 tokens of the prompt and 5 of the completion. */
const reply = () =>
  json(200, {
    object: "chat.completion",
    model: "a",
    choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
  })

describe("a restart", () => {
  it("keeps the pauses and windows of accounts until their resets", async () => {
    ofQuotas()
    await start(four)
    await askAll()
    const before = [
      ["k1", "ready", null],
      ["k2", "cooling", 3_600],
      ["k3", "cooling", 3_600],
      ["k4", "ready", null]
    ]
    assert.deepStrictEqual(await health(), before)
    const quotas = [[["5h", null, 0.85]], [["5h", null, 1]], [], [["requests", "a", 1]]]
    assert.deepStrictEqual(await windows(), quotas)
    await restart(four)
    assert.deepStrictEqual(await health(), before)
    assert.deepStrictEqual(await windows(), quotas)
    // The window of k1 ends while the gateway is stopped, and another restart finds the same as the first.
    await gateway.stop()
    clock.move(600_000)
    await start(four)
    assert.deepStrictEqual(await windows(), [[], ...quotas.slice(1)])
    assert.deepStrictEqual((await health())[1], ["k2", "cooling", 3_000])
    farm.answer("one", (request) => said("Hi", request))
    for (let i = 0; i < 2; i++) assert.strictEqual((await chat(gateway, "one/a")).status, 200)
    assert.deepStrictEqual(keysSeen(), ["k1", "k1"])
    assert.strictEqual((await chat(gateway, "one/b")).status, 200)
    assert.deepStrictEqual(keysSeen(), ["k1", "k1", "k4"])
    clock.move(3_000_000)
    await untilHolds(async () => (await health())[1]![1] === "ready")
    // The server of k3 states two hours. It is tried an hour after each start.
    assert.strictEqual((await health())[2]![2], 600)
  })

  it("leaves out accounts that have left, and those whose pause an operator has ended", async () => {
    ofQuotas()
    await start(four)
    await askAll()
    farm.answer("one", (request) => said("Hi", request))
    const { identifier } = (await accounts()).find(({ note }) => note === "k3")!
    await admin(gateway.url, "POST", "/admin/accounts/test", { identifier })
    await restart({ k1: [], k3: [], k5: [] })
    assert.deepStrictEqual(await health(), [["k1", "ready", null], ["k3", "ready", null], ["k5", "ready", null]])
    assert.deepStrictEqual(await windows(), [[["5h", null, 0.85]], [], []])
  })

  it("keeps what is used of the budgets of accounts and upstreams", async () => {
    farm.answer("one", reply)
    const budgets = { k1: [{ window: "hour", requests: 2 }], k2: [{ window: "month", cost: 1 }] }
    const config = {
      one: { budgets: [{ window: "day", requests: 4 }] },
      prices: { a: { input: 1_000, output: 1_000 } }
    }
    await start(budgets, config)
    const used = async () => (await accounts()).map(({ budgets: [budget] }) => (budget!.requests ?? budget!.cost)!.used)
    for (let i = 0; i < 3; i++) assert.strictEqual((await chat(gateway, "one/a")).status, 200)
    assert.deepStrictEqual(await used(), [2, "0.015"])
    await restart(budgets, config)
    assert.deepStrictEqual(await used(), [2, "0.015"])
    assert.strictEqual((await chat(gateway, "one/a")).status, 200)
    assert.deepStrictEqual(await used(), [2, "0.03"])
    const refused = async () => {
      const { headers, status } = await chat(gateway, "one/a")
      return [status, headers.get("retry-after")]
    }
    // The upstream has served its four requests of the day, before the restart and after it.
    assert.deepStrictEqual(await refused(), [429, "43200"])
    await restart(budgets, config)
    assert.deepStrictEqual(await refused(), [429, "43200"])
    assert.deepStrictEqual((await health())[0], ["k1", "cooling", 3_600])
    // A window that has ended meanwhile is empty.
    clock.move(24 * 3_600_000)
    await restart(budgets, config)
    assert.deepStrictEqual(await used(), [0, "0.03"])
    assert.strictEqual((await chat(gateway, "one/a")).status, 200)
  })

  it("begins anew without a history", async () => {
    ofQuotas()
    const config = { usage: { enabled: false }, one: { budgets: [{ window: "day", requests: 4 }] } }
    await start(four, config)
    await askAll()
    assert.strictEqual((await chat(gateway, "one/b")).status, 200)
    assert.strictEqual((await chat(gateway, "one/b")).status, 429)
    await restart(four, config)
    assert.deepStrictEqual((await health()).map(([, is]) => is), ["ready", "ready", "ready", "ready"])
    assert.deepStrictEqual(await windows(), [[], [], [], []])
    assert.strictEqual((await chat(gateway, "one/a")).status, 200)
  })

  const hook = () => ({ name: "ops", url: receiver.url, secret: `whsec_${"a".repeat(44)}` })
  const types = () => receiver.received.map(({ body }: Received) => body.type)

  it("sends no event of a window of a quota again", async () => {
    ofQuotas()
    const config = { webhooks: [{ ...hook(), events: ["quota.*"] }] }
    await start({ k1: [], k2: [] }, config)
    for (let i = 0; i < 2; i++) assert.strictEqual((await chat(gateway, "one/a")).status, 200)
    await untilHolds(() => receiver.received.length === 2)
    assert.deepStrictEqual(types().toSorted(), ["quota.exhausted", "quota.low"])
    await restart({ k1: [], k2: [] }, config)
    assert.strictEqual((await chat(gateway, "one/a")).status, 200)
    await settled(50)
    assert.lengthOf(receiver.received, 2)
    clock.move(600_000)
    assert.strictEqual((await chat(gateway, "one/a")).status, 200)
    await untilHolds(() => receiver.received.length === 3)
  })

  it("sends no event of a budget again", async () => {
    farm.answer("one", reply)
    const config = { webhooks: [{ ...hook(), events: ["budget.*"] }] }
    const budgets = { k1: [{ window: "day", requests: 5 }] }
    await start(budgets, config)
    for (let i = 0; i < 4; i++) assert.strictEqual((await chat(gateway, "one/a")).status, 200)
    await untilHolds(() => receiver.received.length === 1)
    await restart(budgets, config)
    assert.strictEqual((await chat(gateway, "one/a")).status, 200)
    await untilHolds(() => receiver.received.length === 2)
    await settled(50)
    assert.deepStrictEqual(types(), ["budget.warning", "budget.reached"])
  })
})
