/** Budgets of accounts and upstreams over the nodes of a real server: what one node uses leaves less to the others. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import type { PlacementRequest } from "../../src/accounts/Accounts.ts"
import type { LeaseBudget } from "../../src/accounts/budgets.ts"
import { scripts } from "../../src/cluster/store/scripts.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { CurrentNotices, Notices } from "../../src/config/Notices.ts"
import { gatewayError } from "../../src/domain/GatewayError.ts"
import type { Notice } from "../../src/domain/notices.ts"
import type { Used } from "../../src/usage/Admission.ts"
import { anywhere, ask, errorOf, hold, makeDriver, managed, type Pool } from "../accounts/support.ts"
import { until } from "../support/until.ts"
import { idle, poolNode } from "./poolNode.ts"
import { sentDuring, settledServer } from "./support.ts"

/** A request that reserves 10 tokens, or 40 of strict budgets, and uses 15. */
const budget = (used: Used = { counted: true, tokens: 15, cost: undefined }): LeaseBudget => {
  const share = { tokens: 10, cost: 0n, strict: undefined }
  const strict = { tokens: 40, cost: 0n }
  return {
    shareOf: (_, limits) => {
      const windows = limits.filter(({ strict }) => strict).map(({ window }) => window)
      return windows.length === 0 ? share : { ...share, strict: { ...strict, windows } }
    },
    sharesOf: () => ({ ...share, strict: { ...strict, windows: [] } }),
    used: () => used,
    isStrict: false
  }
}

const asking = (options: Partial<PlacementRequest> = {}): PlacementRequest => ({
  ...anywhere,
  patience: 0,
  budget: budget(),
  ...options
})

type Limit = Readonly<Record<string, string | number | boolean>>

const twoNodes = Effect.fnUntraced(function*(
  accounts: Readonly<Record<string, ReadonlyArray<Limit>>>,
  upstream: RawConfig = {}
) {
  const server = yield* settledServer
  const { driver } = makeDriver()
  const config = {
    upstream: { driver: "session", base_url: "http://127.0.0.1:9", ...upstream },
    runtime: { account_max_inflight: 20 },
    accounts: Object.entries(accounts).map(([name, budgets]) => ({ email: `${name}@x.org`, password: "p", budgets }))
  }
  const one = yield* poolNode(server, "one", config, driver)
  const other = yield* poolNode(server, "other", config, driver)
  return { one, other, server, pools: [one.pool, other.pool] as const }
})

/** Serves a request; returns its account. */
const serve = Effect.fnUntraced(function*(pool: Pool, options = asking()) {
  const { account, free, lease } = yield* hold(pool, managed(), options)
  yield* lease.report(undefined, undefined)
  yield* free
  yield* idle(pool)
  return account!
})

const budgetsOf = (pool: Pool, name: string) =>
  Effect.map(
    pool.describe([`${name}@x.org`]),
    ([facts]) => facts!.budgets.map(({ requests, tokens }) => ({ requests, tokens }))
  )

describe("the budgets of accounts at two nodes", () => {
  it.live("let exactly those of many concurrent requests that fit, and return what was not used", () =>
    Effect.gen(function*() {
      const { pools } = yield* twoNodes({ a: [{ window: "month", tokens: 400, strict: true }] })
      const asked = yield* Effect.all(
        Array.from({ length: 30 }, (_, i) => Effect.option(hold(pools[i % 2]!, managed(), asking()))),
        { concurrency: "unbounded" }
      )
      const granted = asked.flatMap((each) => each._tag === "Some" ? [each.value] : [])
      assert.lengthOf(granted, 10)
      yield* Effect.all(granted.map(({ free }) => free))
      for (const pool of pools) yield* idle(pool)
      for (const pool of pools) {
        assert.deepStrictEqual(yield* budgetsOf(pool, "a"), [{
          requests: null,
          tokens: { limit: 400, used: 150, remaining: 250 }
        }])
      }
      yield* serve(pools[1])
    }))

  it.live("leave an account at its budget alone at every node, and say until when", () =>
    Effect.gen(function*() {
      const { one, pools } = yield* twoNodes({
        a: [{ window: "month", requests: 1 }],
        b: [{ window: "month", requests: 2 }]
      })
      let hash: string | undefined
      const served: Array<string> = []
      for (const pool of [...pools, pools[0]]) served.push(yield* serve(pool))
      assert.deepStrictEqual(served.toSorted().map((name) => name[0]), ["a", "b", "b"])
      for (const pool of pools) {
        const error = yield* Effect.flip(hold(pool, managed(), asking()))
        assert.strictEqual(error.code, "upstream_rate_limited")
        assert.isAbove(error.retryAfter!, 60)
        const facts = yield* pool.describe(["a@x.org", "b@x.org"])
        hash ??= facts.find(({ identifier }) => identifier.startsWith(served[0]![0]!))?.hash
        for (const { health, reason } of facts) {
          assert.deepStrictEqual([health, reason], ["cooling", "its budget is used up"])
        }
      }
      // The node that used it knows why a conversation moves.
      assert.strictEqual(pools[0].whyNot({ upstream: "default", model: "m", account: hash! }), "budget")
      // Larger budgets count what was used.
      yield* one.change({
        accounts: ["a", "b"].map((name) => ({
          email: `${name}@x.org`,
          password: "p",
          budgets: [{ window: "month", requests: 2 }]
        }))
      })
      assert.strictEqual((yield* serve(pools[0]))[0], "a")
      assert.strictEqual(yield* errorOf(hold(pools[1], managed(), asking())), "upstream_rate_limited")
      // Without budgets nothing is left alone.
      yield* one.change({ accounts: [{ email: "b@x.org", password: "p" }] })
      assert.strictEqual((yield* serve(pools[1], asking({ patience: 5_000 })))[0], "b")
    }))

  it.live("pass an account with too little for a request, and wait where the other one is busy", () =>
    Effect.gen(function*() {
      const { pools } = yield* twoNodes({ a: [{ window: "month", tokens: 39, strict: true }], b: [] })
      for (const pool of pools) {
        for (let i = 0; i < 2; i++) assert.strictEqual((yield* serve(pool))[0], "b")
      }
      assert.deepInclude((yield* budgetsOf(pools[0], "a"))[0]!.tokens, { used: 0 })
    }))

  it.live("count nothing of a request that has used nothing, and refuse one without a bound", () =>
    Effect.gen(function*() {
      const { pools } = yield* twoNodes({ a: [{ window: "month", requests: 3, tokens: 100, strict: true }] })
      yield* serve(pools[0], asking({ budget: budget({ counted: false, tokens: 0, cost: undefined }) }))
      assert.deepInclude((yield* budgetsOf(pools[1], "a"))[0], {
        requests: { limit: 3, used: 0, remaining: 3 }
      })
      const unbounded: LeaseBudget = {
        ...budget(),
        shareOf: () => gatewayError("invalid_request", "max_tokens: must be set", { param: "max_tokens" }),
        sharesOf: () => ({ tokens: 10, cost: 0n, strict: undefined }),
        used: () => ({ counted: false, tokens: 0, cost: undefined })
      }
      assert.strictEqual(
        yield* errorOf(Effect.scoped(pools[0].lease(managed(), asking({ budget: unbounded })))),
        "invalid_request"
      )
      yield* idle(pools[0])
      assert.deepInclude((yield* budgetsOf(pools[1], "a"))[0]!.tokens, { used: 0 })
    }))

  it.live("keep the reservation of a request that waits, and need no more scripts", () =>
    Effect.gen(function*() {
      const { pools: [one, other], server } = yield* twoNodes(
        { a: [{ window: "month", tokens: 100, strict: true }] },
        { account_max_inflight: 1 }
      )
      const first = yield* hold(one, managed(), asking())
      const waiting = yield* ask(other, managed(), asking({ patience: 60_000 }))
      yield* first.lease.report(undefined, undefined)
      yield* first.free
      const second = yield* Fiber.join(waiting)
      assert.deepInclude((yield* budgetsOf(one, "a"))[0]!.tokens, { used: 55 })
      yield* second.free
      yield* idle(other)
      const sent = yield* sentDuring(server, serve(one))
      const times = (name: "acquire" | "release" | "keys") =>
        sent.filter(({ args, name: sentAs }) => sentAs === "EVALSHA" && args[0] === scripts[name].sha1).length
      assert.deepStrictEqual([times("acquire"), times("release"), times("keys")], [1, 1, 0])
    }))
})

describe("the budget of an upstream at two nodes", () => {
  it.live("tells webhooks what is used, at the node that used it", () =>
    Effect.gen(function*() {
      const queue = yield* Queue.unbounded<Notice>()
      const notices = new Notices(Date.now, queue)
      notices.wanted = new Set(["budget.warning", "budget.reached"])
      const { pools } = yield* Effect.provideService(
        twoNodes({ a: [] }, { budgets: [{ window: "month", requests: 2 }] }),
        CurrentNotices,
        notices
      )
      for (const pool of pools) yield* serve(pool)
      const told = yield* Queue.takeN(queue, 2)
      assert.deepStrictEqual(told.map(({ type }) => type), ["budget.warning", "budget.reached"])
      for (const { data } of told) {
        assert.deepInclude(data, { account: null, upstream: "default", unit: "requests", limit: 2, used: 2 })
      }
    }))

  it.live("counts what the nodes know when the store has lost its data", () =>
    Effect.gen(function*() {
      const limits = [{ window: "month", requests: 3 }]
      const { one, other, pools, server } = yield* twoNodes({ a: limits, b: [] }, { budgets: limits })
      for (const pool of pools) yield* serve(pool)
      yield* Effect.promise(() => server.crash())
      yield* until(() => [one, other].every(({ store }) => !store.isUp()))
      yield* Effect.promise(() => server.start())
      yield* until(() => [one, other].every(({ store }) => store.isUp()))
      yield* serve(pools[0], asking({ patience: 60_000 }))
      for (const pool of pools) {
        assert.strictEqual(yield* errorOf(hold(pool, managed(), asking())), "upstream_rate_limited")
      }
    }))

  it.live("closes the upstream for all of its accounts", () =>
    Effect.gen(function*() {
      const { pools } = yield* twoNodes({ a: [], b: [] }, { budgets: [{ window: "month", requests: 2 }] })
      for (const pool of pools) yield* serve(pool)
      for (const pool of pools) {
        assert.strictEqual(yield* errorOf(hold(pool, managed(), asking())), "upstream_rate_limited")
        assert.strictEqual(
          yield* errorOf(hold(pool, managed("a@x.org"), asking())),
          "upstream_rate_limited"
        )
      }
    }))
})
