/** Accounts and upstreams with budgets: at a budget they are left alone until its window ends, and strict budgets hold at once. */
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import type { RawConfig } from "../../src/config/json.ts"
import { admin } from "../gateway/support.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock, type MovedClock } from "../support/movedClock.ts"
import { untilHolds } from "../support/until.ts"
import { chat, type Farm, held, json, startFarm } from "./support.ts"

let clock: MovedClock
let farm: Farm
let gateway: RunningGateway

beforeEach(async () => {
  // A Monday at noon.
  clock = makeMovedClock({ still: true, wall: Date.UTC(2027, 0, 4, 12) })
  farm = await startFarm()
  for (const name of ["one", "two"]) farm.answer(name, () => reply())
})
afterEach(async () => {
  await gateway.stop()
  await farm.stop()
})

/** A reply of 10 tokens of the prompt and 5 of the completion. */
const reply = (content = "Hello") =>
  json(200, {
    object: "chat.completion",
    model: "m",
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
  })

const prices = { m: { input: 1_000, output: 1_000 } }

type Budget = Readonly<Record<string, string | number | boolean>>

/** A gateway with the upstreams `one` and `two` behind the route `r`; accounts by their key, each with its budgets. */
const start = async (
  accounts: Readonly<Record<string, ReadonlyArray<Budget>>>,
  { one, two, ...config }: { readonly one?: RawConfig; readonly two?: RawConfig } & RawConfig = {}
) => {
  gateway = await startGateway({
    upstream: { driver: "embedded", timeouts: { queue: 0 } },
    upstreams: {
      one: farm.upstream("one", { whole_replies: "whole", ...one }),
      two: farm.upstream("two", { whole_replies: "whole", ...two })
    },
    routes: { r: ["one/m", "two/m"] },
    accounts: Object.entries(accounts).map(([name, budgets]) => {
      const [upstream = "", token = ""] = name.split("/")
      return { upstream, token, note: token, budgets }
    }),
    prices,
    ...config
  }, { clock })
}

const told = async (model: string, options?: Parameters<typeof chat>[2]) => {
  const reply = await chat(gateway, model, options)
  return [reply.status, reply.headers.get("retry-after")]
}

const keysSeen = (name = "one") => farm.seen(name).map(({ key }) => key)

interface ShownAccount {
  readonly note: string
  readonly health: string
  readonly health_reason: string | null
  readonly budgets: ReadonlyArray<
    Readonly<Record<"requests" | "tokens" | "cost", { readonly used: unknown; readonly remaining: unknown }>>
  >
}

const accountsOf = async (upstream: string) =>
  (await admin(gateway.url, "GET", `/admin/accounts?upstream=${upstream}`)).items as ReadonlyArray<ShownAccount>

describe("the budget of an account", () => {
  it("leaves the account alone until the window ends, and names the end when all are out", async () => {
    await start({ "one/k1": [{ window: "minute", requests: 1 }], "one/k2": [{ window: "minute", requests: 2 }] })
    for (let i = 0; i < 3; i++) assert.strictEqual((await told("one/m"))[0], 200)
    assert.deepStrictEqual(keysSeen().toSorted(), ["k1", "k2", "k2"])
    assert.deepStrictEqual(await told("one/m"), [429, "60"])
    assert.lengthOf(keysSeen(), 3)
    const items = await accountsOf("one")
    for (const item of items) {
      assert.deepStrictEqual([item.health, item.health_reason], ["cooling", "its budget is used up"])
      assert.deepStrictEqual(item.budgets[0]!.requests.remaining, 0)
    }
    clock.move(60_000)
    assert.strictEqual((await told("one/m"))[0], 200)
  })

  it("counts the bill of each try at its own account", async () => {
    farm.answer(
      "one",
      ({ key }) =>
        key === "k1" ? json(200, { choices: [], usage: { prompt_tokens: 10, completion_tokens: 0 } }) : reply()
    )
    await start({ "one/k1": [{ window: "day", cost: 1 }], "one/k2": [{ window: "day", cost: 1 }] })
    assert.strictEqual((await told("one/m"))[0], 200)
    const items = await accountsOf("one")
    const used = items.map((item) => [item.note, item.budgets[0]!.cost.used])
    assert.sameDeepMembers(used, [["k1", "0.01"], ["k2", "0.015"]])
  })

  it("reserves strictly what a try may use, so that concurrent requests stay within it", async () => {
    const { behaviour, releaseAll } = held(() => reply())
    farm.answer("one", behaviour)
    await start({ "one/k1": [{ window: "day", tokens: 100, strict: true }] }, { one: { account_max_inflight: 50 } })
    let refused = 0
    const asked = Array.from({ length: 10 }, async () => {
      const [status] = await told("one/m", { body: { max_tokens: 20 } })
      if (status === 429) refused++
      return status
    })
    await untilHolds(() => farm.seen("one").length + refused === 10)
    const running = farm.seen("one").length
    const used = async () => (await accountsOf("one"))[0]!.budgets[0]!.tokens.used as number
    const reserved = await used()
    const share = reserved / running
    assert.isAbove(share, 20)
    assert.isAtMost(reserved, 100)
    assert.isAbove(reserved + share, 100)
    releaseAll()
    await Promise.all(asked)
    await untilHolds(async () => await used() === running * 15)
    farm.answer("one", () => reply())
    assert.strictEqual((await told("one/m", { body: { max_tokens: 20 } }))[0], 200)
  })

  it("refuses a request without a bound if a budget is strict", async () => {
    await start({ "one/k1": [{ window: "day", tokens: 100, strict: true }] })
    const reply = await chat(gateway, "one/m")
    const { param } = (JSON.parse(reply.body) as { readonly error: { readonly param: string } }).error
    assert.deepStrictEqual([reply.status, param], [400, "max_completion_tokens"])
  })
})

describe("the budget of an upstream", () => {
  it("leaves the upstream to the next target of the route", async () => {
    await start({ "one/k1": [], "one/k2": [], "two/k3": [] }, { one: { budgets: [{ window: "minute", requests: 2 }] } })
    for (let i = 0; i < 4; i++) assert.strictEqual((await told("r"))[0], 200)
    assert.lengthOf(keysSeen("one"), 2)
    assert.lengthOf(keysSeen("two"), 2)
    assert.deepStrictEqual(await told("one/m"), [429, "60"])
    clock.move(60_000)
    assert.strictEqual((await told("r"))[0], 200)
    assert.lengthOf(keysSeen("one"), 3)
  })
})
