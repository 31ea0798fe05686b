/**
 * Sticky conversations of two nodes over a real server: the store knows which account answered last.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { PlacementRequest } from "../../src/accounts/Accounts.ts"
import type { Preference, Stickiness } from "../../src/accounts/Lease.ts"
import type { Maker } from "../../src/domain/makers.ts"
import type { Driver } from "../../src/upstream/Upstream.ts"
import { accounts, anywhere, hold, makeDriver, managed, type Pool } from "../accounts/support.ts"
import { untilTrue } from "../support/until.ts"
import { poolNode } from "./poolNode.ts"
import { settledServer, storeLayer, storeNode } from "./support.ts"

const turn = (key: string, isContinued = true, prefersTarget = false): Stickiness => ({
  keys: [key],
  isContinued,
  prefersTarget,
  lifetimeOf: () => 3_600_000
})

/** Serves one turn: holds the lease, answers, and gives it back. Returns the upstream and the account. */
const serve = Effect.fnUntraced(function*(pool: Pool, sticky: Stickiness, options: PlacementRequest = anywhere) {
  const before = (yield* pool.status).in_use
  const { account, free, lease } = yield* hold(pool, managed(), { ...options, sticky })
  yield* lease.report(undefined, undefined)
  yield* free
  yield* untilTrue(Effect.map(pool.status, ({ in_use }) => in_use === before))
  return `${lease.upstream} ${account}`
})

describe("sticky conversations of two nodes", () => {
  it.live("meet the account of the turn before on either node, and are counted", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const config = { accounts: accounts("one", "two", "three"), runtime: { account_max_inflight: 1 } }
      const { driver } = makeDriver()
      const one = yield* poolNode(server, "one", config, driver)
      const other = yield* poolNode(server, "other", config, driver)
      const first = yield* serve(one.pool, turn("x", false))
      yield* serve(one.pool, turn("y", false))
      assert.strictEqual(yield* serve(other.pool, turn("x")), first)
      assert.strictEqual(yield* serve(one.pool, turn("x")), first)
      yield* untilTrue(Effect.map(one.pool.metrics, ({ stickyHits }) => stickyHits === 1))
      yield* untilTrue(Effect.map(other.pool.metrics, ({ stickyHits }) => stickyHits === 1))

      // A full account is passed over.
      const held = yield* hold(one.pool, managed(), { ...anywhere, sticky: turn("x") })
      assert.notStrictEqual(yield* serve(other.pool, turn("x")), first)
      yield* held.free
      yield* untilTrue(Effect.map(other.pool.metrics, ({ stickyMoves }) => stickyMoves === 1))
    }))

  it.live("meet their account at another node while the turn before goes on", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const config = { accounts: accounts("one", "two", "three"), runtime: { account_max_inflight: 2 } }
      const { driver } = makeDriver()
      const one = yield* poolNode(server, "one", config, driver)
      const other = yield* poolNode(server, "other", config, driver)
      const first = yield* hold(one.pool, managed(), { ...anywhere, sticky: turn("x", false) })
      yield* first.lease.report(undefined, undefined)
      const { store } = yield* storeNode(server, "reader")
      yield* untilTrue(Effect.map(store.send("HLEN", "gw:{main}:sticky"), (known) => known === 1))
      // Without the preference, the accounts without a request come first.
      const next = yield* hold(other.pool, managed(), { ...anywhere, sticky: turn("x") })
      assert.strictEqual(next.account, first.account)
      yield* next.free
      yield* first.free
    }))

  it.live("prefer the target where the route says so", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const keyless: Driver = {
        ...makeDriver({}, { login: undefined, sessions: undefined }).driver,
        name: "openai",
        isAnonymous: true
      }
      const upstream = { driver: "openai", base_url: "http://127.0.0.1:9/v1", models: { m: "m" }, max_inflight: 1 }
      const named = new Map([["gpu", keyless], ["hosted", keyless]])
      const node = (id: string) =>
        poolNode(server, id, { upstreams: { gpu: upstream, hosted: upstream } }, keyless, storeLayer(server, id), named)
      const one = yield* node("one")
      const other = yield* node("other")
      const targets = [{ upstream: "gpu", model: "m" }, { upstream: "hosted", model: "m" }]
      const both: PlacementRequest = { ...anywhere, targets }
      const held = yield* hold(one.pool, managed(), both)
      const answered = yield* serve(one.pool, turn("x", false, true), both)
      yield* held.free
      yield* untilTrue(Effect.map(one.pool.status, ({ in_use }) => in_use === 0))
      assert.match(answered, /^hosted /)
      assert.strictEqual(yield* serve(other.pool, turn("x", true, true), both), answered)
      assert.match(yield* serve(other.pool, turn("x", true, false), both), /^gpu /)
    }))
})

describe("accounts that a request prefers, on two nodes", () => {
  const prefers = (maker: Maker, more: Partial<Preference> = {}): PlacementRequest => ({
    ...anywhere,
    prefers: [{ maker, isAccount: false, prefersTarget: true, ...more }]
  })

  it.live("come from the organisation while one of them is free, then any, without a wait", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const team = ["one", "two", "three", "four"].map((token, i) => ({ token, organization: i < 2 ? "a" : "b" }))
      const config = { accounts: team, runtime: { account_max_inflight: 1 } }
      const { driver } = makeDriver()
      const one = yield* poolNode(server, "one", config, driver)
      const other = yield* poolNode(server, "other", config, driver)
      const first = yield* hold(one.pool, managed(), anywhere)
      const { account, upstream } = first.lease
      const organization = account?.organization()
      const maker = { upstream, account: account!.hash, organization }
      yield* first.free
      yield* untilTrue(Effect.map(one.pool.status, ({ in_use }) => in_use === 0))

      const own = yield* hold(other.pool, managed(), prefers(maker))
      assert.strictEqual(own.account, first.account)
      const second = yield* hold(one.pool, managed(), prefers(maker))
      assert.strictEqual(second.lease.account?.organization(), organization)
      assert.notStrictEqual(second.account, first.account)
      const third = yield* hold(other.pool, managed(), { ...prefers(maker), patience: 0 })
      assert.notStrictEqual(third.lease.account?.organization(), organization)

      // That account alone.
      yield* second.free
      yield* untilTrue(Effect.map(one.pool.status, ({ in_use }) => in_use === 2))
      const alone = yield* hold(one.pool, managed(), prefers(maker, { isAccount: true }))
      assert.notStrictEqual(alone.account, first.account)
      yield* own.free
      yield* untilTrue(Effect.map(one.pool.status, ({ in_use }) => in_use === 2))
      assert.strictEqual((yield* hold(one.pool, managed(), prefers(maker, { isAccount: true }))).account, first.account)
    }))

  it.live("are not those on which the request has failed", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const { driver } = makeDriver()
      const { pool } = yield* poolNode(server, "one", { accounts: accounts("one", "two") }, driver)
      const { account, free, lease } = yield* hold(pool, managed(), anywhere)
      yield* free
      const maker = { upstream: lease.upstream, account: lease.account!.hash, organization: undefined }
      assert.strictEqual((yield* hold(pool, managed(), prefers(maker))).account, account)
      const avoid = new Set([account!])
      assert.notStrictEqual((yield* hold(pool, managed(), { ...prefers(maker), avoid })).account, account)
    }))

  it.live("bring their target to the front where the request says so", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const keyless: Driver = {
        ...makeDriver({}, { login: undefined, sessions: undefined }).driver,
        name: "openai",
        isAnonymous: true
      }
      const upstream = { driver: "openai", base_url: "http://127.0.0.1:9/v1", models: { m: "m" }, max_inflight: 1 }
      const named = new Map([["gpu", keyless], ["hosted", keyless]])
      const config = { upstreams: { gpu: upstream, hosted: upstream } }
      const { pool } = yield* poolNode(server, "one", config, keyless, storeLayer(server, "one"), named)
      const targets = [{ upstream: "gpu", model: "m" }, { upstream: "hosted", model: "m" }]
      const { free, lease } = yield* hold(pool, managed(), { ...anywhere, targets: targets.slice(1) })
      const maker = { upstream: lease.upstream, account: lease.account!.hash, organization: undefined }
      yield* free
      yield* untilTrue(Effect.map(pool.status, ({ in_use }) => in_use === 0))
      const still = yield* hold(pool, managed(), { ...prefers(maker, { prefersTarget: false }), targets })
      assert.strictEqual(still.lease.upstream, "gpu")
      yield* still.free
      yield* untilTrue(Effect.map(pool.status, ({ in_use }) => in_use === 0))
      const moved = yield* hold(pool, managed(), { ...prefers(maker), targets })
      assert.strictEqual(moved.lease.upstream, "hosted")
      assert.strictEqual((yield* hold(pool, managed(), { ...prefers(maker), targets })).lease.upstream, "gpu")
    }))
})
