/** Quotas of accounts that two nodes share over a real server: what one node learns leaves the account alone at the other. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { Caller, PlacementRequest } from "../../src/accounts/Accounts.ts"
import { type RawConfig, sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { accounts, anywhere, errorOf, hold, makeDriver, managed, type Pool } from "../accounts/support.ts"
import { untilTrue } from "../support/until.ts"
import { idle, poolNode } from "./poolNode.ts"
import { settledServer } from "./support.ts"

const asking = (...models: ReadonlyArray<string>): PlacementRequest => ({
  ...anywhere,
  patience: 0,
  targets: models.map((model) => ({ upstream: "default", model }))
})

/** Headers of used-up requests of a model, and of a window of the account with a used share. */
const ofModel = (seconds: number) => ({
  "x-ratelimit-limit-requests": "1",
  "x-ratelimit-remaining-requests": "0",
  "x-ratelimit-reset-requests": `${seconds}s`
})
const ofAccount = (used: number) => ({
  "x-codex-primary-used-percent": String(used),
  "x-codex-primary-window-minutes": "300",
  "x-codex-primary-reset-after-seconds": "900"
})

/** Serves a request for a model whose answer has headers; returns the account. */
const serve = Effect.fnUntraced(function*(pool: Pool, model: string, headers?: Readonly<Record<string, string>>) {
  const { account, free, lease } = yield* hold(pool, managed(), asking(model))
  yield* lease.report(undefined, undefined)
  const { isOfModel, seconds } = lease.shown.saw(headers, undefined, undefined)
  if (seconds !== undefined && !isOfModel) yield* lease.report("rate_limited", seconds)
  yield* free
  yield* idle(pool)
  return account!
})

const twoNodes = (...names: ReadonlyArray<string>) => twoNodesOf({ accounts: accounts(...names) })
const twoNodesOf = Effect.fnUntraced(function*(config: RawConfig) {
  const server = yield* settledServer
  const { driver } = makeDriver()
  const one = yield* poolNode(server, "one", config, driver)
  const other = yield* poolNode(server, "other", config, driver)
  return { one: one.pool, other: other.pool }
})

describe("the quotas of accounts at two nodes", () => {
  it.live("leave a used-up model of an account alone, and end with a test at either node", () =>
    Effect.gen(function*() {
      const { one, other } = yield* twoNodes("a", "b")
      const first = yield* serve(one, "m", ofModel(900))
      for (let i = 0; i < 3; i++) assert.notStrictEqual(yield* serve(other, "m"), first)
      const second = yield* serve(one, "m", ofModel(800))
      assert.notStrictEqual(second, first)
      for (const pool of [one, other]) {
        const error = yield* Effect.flip(hold(pool, managed(), asking("m")))
        assert.strictEqual(error.code, "upstream_rate_limited")
        assert.isTrue(error.retryAfter! > 700 && error.retryAfter! <= 800, String(error.retryAfter))
        assert.isFalse(error.shouldRetry)
      }
      // The accounts serve their other models.
      assert.sameMembers([yield* serve(one, "n"), yield* serve(other, "n")], [first, second])
      const { name } = { name: second.includes("@") ? second : `${second}@x.org` }
      yield* one.setTestStatus(name, "ok")
      yield* untilTrue(Effect.map(Effect.option(serve(other, "m")), (found) => found._tag === "Some"))
      assert.strictEqual(yield* serve(one, "m"), second)
    }))

  it.live("reach the store with the next request, while the answer that stated them goes on", () =>
    Effect.gen(function*() {
      const { one, other } = yield* twoNodes("a", "b")
      const first = yield* hold(one, managed(), asking("m"))
      first.lease.shown.saw(ofModel(900), undefined, undefined)
      const second = yield* hold(one, managed(), asking("n", "m"))
      yield* second.free
      yield* first.free
      yield* idle(one)
      assert.notStrictEqual(second.account, first.account)
      // The account whose turn it is serves the other model of the request.
      const third = yield* hold(other, managed(), asking("m", "n"))
      assert.deepStrictEqual([third.account, third.lease.model], [first.account, "n"])
      yield* third.free
    }))

  it.live("let a request wait that no account suits, until the first one does", () =>
    Effect.gen(function*() {
      const { one, other } = yield* twoNodes("a")
      const account = yield* serve(one, "m", ofModel(900))
      const waiting = yield* Effect.forkChild(
        hold(other, managed(), { ...asking("m"), patience: 3_600_000 })
      )
      yield* untilTrue(Effect.map(one.status, ({ waiting }) => waiting === 1))
      yield* one.setTestStatus("a@x.org", "ok")
      assert.strictEqual((yield* Fiber.join(waiting)).account, account)
    }))

  it.live("take an account out of rotation until its reset, and are seen at each node", () =>
    Effect.gen(function*() {
      const { one, other } = yield* twoNodes("a")
      const account = yield* serve(one, "m", { ...ofAccount(40), ...ofModel(0.001) })
      yield* serve(one, "m", ofAccount(100))
      assert.strictEqual(yield* errorOf(hold(other, managed(), asking("m"))), "upstream_rate_limited")
      for (const pool of [one, other]) {
        const [facts] = yield* pool.describe(["a@x.org"])
        assert.isTrue(facts!.recovery! > 800_000 && facts!.recovery! <= 900_000, String(facts!.recovery))
        const windows = facts!.quota.map(({ model, status, used, window }) => [window, model, used, status])
        assert.sameDeepMembers(windows, [["5h", null, 1, "exhausted"], ["requests", "m", 0, "ok"]])
      }
      yield* other.setTestStatus("a@x.org", "ok")
      yield* untilTrue(Effect.map(one.describe(["a@x.org"]), ([facts]) => facts!.quota.length === 0))
      assert.strictEqual(yield* serve(one, "m"), account)
    }))

  it.live("keep sixteen windows of an account at most, those that are used up before others", () =>
    Effect.gen(function*() {
      const { one, other } = yield* twoNodes("a")
      yield* serve(one, "out", ofModel(900))
      const open = { ...ofModel(900), "x-ratelimit-limit-requests": "2", "x-ratelimit-remaining-requests": "1" }
      for (let i = 0; i < 20; i++) yield* serve(i % 2 === 0 ? one : other, `m${i}`, open)
      const [facts] = yield* other.describe(["a@x.org"])
      assert.lengthOf(facts!.quota, 16)
      assert.includeMembers(facts!.quota.map(({ model }) => model), ["out", "m19"])
      assert.strictEqual(yield* errorOf(hold(other, managed(), asking("out"))), "upstream_rate_limited")
    }))
})

describe("the reserve of an upstream at two nodes", () => {
  it.live("is kept for interactive keys by a node that learns of it at its grant", () =>
    Effect.gen(function*() {
      const id = keyId("k", sha256Hex)
      const { one, other } = yield* twoNodesOf({
        upstream: { driver: "session", base_url: "http://127.0.0.1:9", reserve: 0.2 },
        accounts: accounts("a", "b"),
        key_records: { [id]: { class: "background" } }
      })
      const background: Caller = { _tag: "Managed", owner: "key", target: undefined, key: id }
      const low = yield* serve(one, "m", ofAccount(85))
      const second = yield* serve(one, "m", ofAccount(10))
      for (let i = 0; i < 3; i++) {
        const { account, free } = yield* hold(other, background, asking("m"))
        assert.strictEqual(account, second)
        yield* free
        yield* idle(other)
      }
      yield* serve(one, "m", ofAccount(85))
      yield* serve(one, "m", ofAccount(85))
      const error = yield* Effect.flip(hold(other, background, asking("m")))
      assert.strictEqual(error.code, "upstream_rate_limited")
      assert.isTrue(error.retryAfter! > 800 && error.retryAfter! <= 900, String(error.retryAfter))
      assert.sameMembers([yield* serve(other, "m"), yield* serve(other, "m")], [low, second])
    }))
})

describe("the choice of an upstream at two nodes", () => {
  const upstream = (choose: string) => ({ upstream: { driver: "session", base_url: "http://127.0.0.1:9", choose } })
  const ranked = (...ranks: ReadonlyArray<object>) =>
    accounts(...ranks.map((_, i) => `a${i}`)).map((account, i) => ({ ...account, ...ranks[i] }))

  it.live("gives each account its share of the requests of both", () =>
    Effect.gen(function*() {
      const weights = ranked({ weight: 3 }, {}, { weight: 2 })
      const { one, other } = yield* twoNodesOf({ ...upstream("weighted"), accounts: weights })
      const served: Array<string> = []
      for (let i = 0; i < 12; i++) served.push(yield* serve(i % 3 === 0 ? one : other, "m"))
      const counts = ["a0", "a1", "a2"].map((name) => served.filter((account) => account.startsWith(name)).length)
      assert.deepStrictEqual(counts, [6, 2, 4])
    }))

  it.live("spends first what resets first, as either node has learned", () =>
    Effect.gen(function*() {
      const { one, other } = yield* twoNodesOf({ ...upstream("spend_soonest_reset"), accounts: ranked({}, {}) })
      const reset = (seconds: number) => ({ ...ofAccount(10), "x-codex-primary-reset-after-seconds": String(seconds) })
      const first = yield* serve(one, "m", reset(900))
      const second = yield* serve(other, "m", reset(300))
      assert.notStrictEqual(second, first)
      for (const pool of [one, other, one]) assert.strictEqual(yield* serve(pool, "m"), second)
    }))
})
