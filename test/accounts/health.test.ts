import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Random } from "effect"
import { TestClock } from "effect/testing"
import type { AccountHealth } from "../../src/domain/failureRules.ts"
import { UpstreamFailure } from "../../src/domain/UpstreamFailure.ts"
import {
  accounts,
  ask,
  buildPool,
  direct,
  errorOf,
  hold,
  makeDriver,
  managed,
  type Pool,
  shows,
  wrongCredentials
} from "./support.ts"

const a = "a@x.org"
const b = "b@x.org"

const factsOf = (pool: Pool, identifier: string) => Effect.map(pool.describe([identifier]), ([facts]) => facts!)

/** One attempt on an account that ends with a report; fails if the pool refuses the lease. */
const attempt = Effect.fnUntraced(function*(
  pool: Pool,
  health: AccountHealth | undefined,
  retryAfter?: number,
  target?: string
) {
  const { free, lease } = yield* hold(pool, managed(target))
  yield* lease.report(health, retryAfter)
  yield* free
})

/** Milliseconds until the account returns to rotation or is tried again. */
const recovery = (pool: Pool, identifier: string) =>
  Effect.map(factsOf(pool, identifier), (facts) => facts.recovery ?? 0)

/** Logins that succeed while `works` is true. */
const switchable = () => {
  const state = { failure: undefined as UpstreamFailure | undefined, logins: 0 }
  const { driver } = makeDriver({
    login: () =>
      Effect.flatMap(Effect.yieldNow, () => {
        state.logins++
        return state.failure === undefined ? Effect.succeed("token") : Effect.fail(state.failure)
      })
  })
  return { driver, state }
}

describe("an account's rate limit", () => {
  it.effect("takes the account out of rotation until the upstream's retry time", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a", "b") })
      yield* attempt(pool, "rate_limited", 30, a)
      assert.deepInclude(yield* factsOf(pool, a), {
        health: "cooling",
        recovery: 30_000,
        reason: "the upstream limits its rate",
        testStatus: ""
      })
      yield* shows(pool, { available_accounts: [b] })
      yield* TestClock.adjust("29999 millis")
      yield* shows(pool, { available_accounts: [b] })
      yield* TestClock.adjust("1 millis")
      yield* shows(pool, { available_accounts: [a, b] })
    }))

  it.effect("of more than an hour lets one request an hour use the account until it answers, for 30 days at most", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a") })
      yield* attempt(pool, "rate_limited", 40 * 86_400)
      for (let hour = 0; hour < 30 * 24 - 1; hour++) {
        assert.strictEqual(yield* recovery(pool, a), 3_600_000)
        yield* TestClock.adjust("1 hour")
        yield* shows(pool, { available_accounts: [a] })
        // A failure that says nothing about the account tells as little about its limit.
        yield* attempt(pool, "none")
        yield* shows(pool, { available_accounts: [] })
      }
      yield* TestClock.adjust("1 hour")
      yield* attempt(pool, "none")
      yield* shows(pool, { available_accounts: [a] })
      yield* attempt(pool, "rate_limited", 7_200)
      yield* TestClock.adjust("1 hour")
      yield* attempt(pool, undefined)
      yield* shows(pool, { available_accounts: [a] })
    }))

  it.effect("without a retry time lasts about a second, and longer each time until the account serves again", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a") })
      for (const seconds of [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]) {
        yield* attempt(pool, "rate_limited")
        const delay = yield* recovery(pool, a)
        assert.isAtLeast(delay, seconds * 1000)
        assert.isAtMost(delay, Math.min(seconds * 1250, 600_000))
        yield* TestClock.adjust(delay)
      }
      yield* attempt(pool, "rate_limited")
      assert.strictEqual(yield* recovery(pool, a), 600_000)
      yield* TestClock.adjust("10 minutes")
      yield* attempt(pool, undefined)
      yield* attempt(pool, "rate_limited")
      assert.isBelow(yield* recovery(pool, a), 1251)
    }).pipe(Random.withSeed("jitter")))

  it.effect("that concurrent requests report counts once", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({
        accounts: accounts("a"),
        runtime: { account_max_inflight: 10 }
      })
      const held = yield* Effect.forEach(Array.from({ length: 10 }), () => hold(pool))
      yield* Effect.forEach(held, ({ free, lease }) => Effect.andThen(lease.report("rate_limited", undefined), free))
      assert.isBelow(yield* recovery(pool, a), 1251)
    }))

  it.effect("stays after the success of an earlier request, and is extended by a later retry time", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a"), runtime: { account_max_inflight: 4 } })
      const one = yield* hold(pool)
      const two = yield* hold(pool)
      const three = yield* hold(pool)
      yield* one.lease.report("rate_limited", 5)
      yield* two.lease.report(undefined, undefined)
      assert.strictEqual(yield* recovery(pool, a), 5000)
      yield* three.lease.report("rate_limited", 60)
      assert.strictEqual(yield* recovery(pool, a), 60_000)
      yield* two.lease.report("rate_limited", 1)
      assert.strictEqual(yield* recovery(pool, a), 60_000)
    }))

  it.effect("on every account: a request waits if one recovers in time", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a", "b") })
      yield* attempt(pool, "rate_limited", 40, a)
      yield* attempt(pool, "rate_limited", 20, b)
      const waiting = yield* ask(pool)
      const pinned = yield* ask(pool, managed(a))
      yield* shows(pool, { waiting: 2, available: 0 })
      yield* TestClock.adjust("20 seconds")
      const { account, lease } = yield* Fiber.join(waiting)
      assert.deepStrictEqual([account, lease.waited], [b, 20_000])
      assert.isUndefined(pinned.pollUnsafe())
      yield* TestClock.adjust("20 seconds")
      assert.strictEqual((yield* Fiber.join(pinned)).account, a)
    }))

  it.effect("on every account: a request is rejected immediately with a retry time if none recovers in time", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a", "b") })
      yield* attempt(pool, "rate_limited", 300, a)
      yield* attempt(pool, "rate_limited", 90.5, b)
      const error = yield* Effect.flip(hold(pool))
      assert.deepInclude(error, { code: "upstream_rate_limited", status: 429, retryAfter: 91 })
      const pinned = yield* Effect.flip(hold(pool, managed(a)))
      assert.deepInclude(pinned, { code: "upstream_rate_limited", retryAfter: 300 })
      // A caller's own token is independent of the accounts.
      yield* hold(pool, direct("own"))
    }))

  it.effect("on the last account: waiters that cannot be served in time are rejected", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({
        accounts: accounts("a"),
        runtime: { account_max_inflight: 1, account_max_queue: 5 }
      })
      const held = yield* hold(pool)
      const early = yield* ask(pool)
      yield* TestClock.adjust("30 seconds")
      const late = yield* ask(pool)
      yield* held.lease.report("rate_limited", 45)
      assert.strictEqual(yield* errorOf(Fiber.join(early)), "upstream_rate_limited")
      assert.isUndefined(late.pollUnsafe())
      yield* held.free
      yield* TestClock.adjust("45 seconds")
      yield* Fiber.join(late)
    }))

  it.effect("is the reported reason if the queue has no places", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({
        accounts: accounts("a"),
        runtime: { account_max_inflight: 1, account_max_queue: 0 }
      })
      yield* attempt(pool, "rate_limited", 10)
      const error = yield* Effect.flip(hold(pool))
      assert.deepInclude(error, { code: "upstream_rate_limited", retryAfter: 10 })
    }))
})

describe("a rate-limited login", () => {
  it.effect("makes the account cool down", () =>
    Effect.gen(function*() {
      const { driver, state } = switchable()
      const { pool } = yield* buildPool({ accounts: accounts("a") }, () => driver)
      state.failure = new UpstreamFailure({ phase: "login", kind: "refused", refusal: "rate", retryAfter: 7 })
      const { free, lease } = yield* hold(pool)
      yield* Effect.flip(lease.credential.token)
      yield* lease.report("rate_limited", 7)
      yield* free
      assert.deepInclude(yield* factsOf(pool, a), { health: "cooling", recovery: 7000, testStatus: "" })
    }))
})

describe("an account that reports too many running requests", () => {
  it.effect("gets no requests for half a second, each time", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a") })
      for (let i = 0; i < 3; i++) {
        yield* attempt(pool, "busy")
        assert.deepInclude(yield* factsOf(pool, a), { health: "cooling", recovery: 500 })
        yield* TestClock.adjust("500 millis")
      }
      yield* shows(pool, { available: 1 })
    }))
})

describe("a faulty request, or a caller that disconnects", () => {
  it.effect("does not affect the account's health", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a") })
      yield* attempt(pool, "none")
      yield* attempt(pool, "token_expired")
      const fiber = yield* Effect.forkChild(Effect.andThen(hold(pool), Effect.never))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
      assert.deepInclude(yield* factsOf(pool, a), { health: "ready", reason: undefined, recovery: undefined })
    }))
})

describe("an account that the upstream rejects", () => {
  it.effect("is out of rotation with a reason, while others serve", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a", "b") })
      yield* attempt(pool, "suspended", undefined, a)
      assert.deepInclude(yield* factsOf(pool, a), {
        health: "out",
        testStatus: "failed",
        reason: "the upstream has suspended it"
      })
      for (let i = 0; i < 2; i++) assert.strictEqual((yield* hold(pool)).account, b)
      assert.deepInclude((yield* pool.metrics).accounts, { ready: 1, cooling: 0, out: 1, draining: 0 })
    }))

  it.effect("that is the only one causes all waiters to be rejected", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a"), runtime: { account_max_inflight: 1 } })
      const held = yield* hold(pool)
      const waiting = yield* ask(pool)
      yield* held.lease.report("refused_login", undefined)
      assert.strictEqual(yield* errorOf(Fiber.join(waiting)), "no_account_available")
      assert.strictEqual(yield* errorOf(hold(pool)), "no_account_available")
    }))

  it.effect("is probed by the pool itself, after growing delays of at most an hour", () =>
    Effect.gen(function*() {
      const { driver, state } = switchable()
      const { pool } = yield* buildPool({ accounts: accounts("a") }, () => driver)
      state.failure = wrongCredentials
      const { free, lease } = yield* hold(pool)
      yield* Effect.flip(lease.credential.token)
      yield* free
      for (const minutes of [1, 2, 4, 8, 16, 32, 60, 60]) {
        const delay = yield* recovery(pool, a)
        assert.isAtLeast(delay, Math.min(minutes, 60) * 60_000)
        assert.isAtMost(delay, Math.min(minutes * 75_000, 3_600_000))
        const before = state.logins
        yield* TestClock.adjust(delay - 1)
        assert.strictEqual(state.logins, before)
        yield* TestClock.adjust(1)
        assert.strictEqual(state.logins, before + 1)
      }
      state.failure = undefined
      yield* TestClock.adjust("1 hour")
      assert.deepInclude(yield* factsOf(pool, a), { health: "ready", testStatus: "", hasToken: true })
      // A successful login does not reset the faults: another refusal continues the back-off.
      yield* attempt(pool, "refused_login")
      assert.strictEqual(yield* recovery(pool, a), 3_600_000)
      yield* TestClock.adjust("1 hour")
      yield* attempt(pool, undefined)
      yield* attempt(pool, "refused_login")
      assert.isAtMost(yield* recovery(pool, a), 75_000)
    }))

  it.effect("is probed again after the same delay if the probe failed for another reason", () =>
    Effect.gen(function*() {
      const { driver, state } = switchable()
      const { pool } = yield* buildPool({ accounts: accounts("a") }, () => driver)
      yield* attempt(pool, "suspended")
      state.failure = new UpstreamFailure({ phase: "login", kind: "transport" })
      for (let i = 0; i < 3; i++) {
        const delay = yield* recovery(pool, a)
        assert.isAtLeast(delay, 60_000)
        assert.isAtMost(delay, 75_000)
        yield* TestClock.adjust(delay)
      }
      assert.deepInclude(yield* factsOf(pool, a), { health: "out", reason: "the upstream has suspended it" })
    }))

  it.effect("with only a token is probed with that token", () =>
    Effect.gen(function*() {
      let works = false
      const refused = new UpstreamFailure({ phase: "session", kind: "refused", refusal: "token" })
      const { driver } = makeDriver({ verify: () => Effect.suspend(() => works ? Effect.void : Effect.fail(refused)) })
      const { pool } = yield* buildPool({ accounts: [{ token: "only" }] }, () => driver)
      const { free, lease } = yield* hold(pool)
      const [identifier] = (yield* pool.status).available_accounts
      yield* Effect.flip(lease.credential.renew(yield* lease.credential.token))
      yield* lease.report("refused_login", undefined)
      yield* free
      assert.deepInclude(yield* factsOf(pool, identifier!), { health: "out", hasToken: false })
      yield* TestClock.adjust("75 seconds")
      assert.deepInclude(yield* factsOf(pool, identifier!), { health: "out" })
      works = true
      yield* TestClock.adjust("150 seconds")
      const again = yield* hold(pool)
      assert.strictEqual(yield* again.lease.credential.token, "only")
    }))

  it.effect("returns immediately when its credentials change", () =>
    Effect.gen(function*() {
      const { change, pool } = yield* buildPool({ accounts: accounts("a") })
      yield* attempt(pool, "refused_login")
      yield* change({ accounts: [{ email: a, password: "corrected" }] })
      assert.deepInclude(yield* factsOf(pool, a), { health: "ready", testStatus: "" })
      yield* hold(pool)
    }))

  it.effect("returns immediately when the upstream changes", () =>
    Effect.gen(function*() {
      let driver = makeDriver().driver
      const { pool } = yield* buildPool({ accounts: accounts("a") }, () => driver)
      yield* attempt(pool, "suspended")
      driver = makeDriver().driver
      assert.deepInclude(yield* factsOf(pool, a), { health: "ready", testStatus: "" })
      yield* attempt(pool, "suspended")
      assert.isAtMost(yield* recovery(pool, a), 75_000)
    }))

  it.effect("stays out when its probes are rate-limited", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a") })
      yield* attempt(pool, "suspended")
      const access = yield* pool.access(a)
      yield* access.report("rate_limited", 1)
      assert.deepInclude(yield* factsOf(pool, a), { health: "out", reason: "the upstream has suspended it" })
    }))

  it.effect("returns after a successful test", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a") })
      yield* attempt(pool, "refused_login")
      const access = yield* pool.access("A@x.org")
      assert.strictEqual(yield* access.credential.token, "a-1")
      assert.strictEqual((yield* pool.status).in_use, 0)
      yield* pool.setTestStatus(a, "failed")
      assert.deepInclude(yield* factsOf(pool, a), { health: "out", testStatus: "failed" })
      assert.strictEqual((yield* pool.status).failed_tests, 0)
      yield* pool.setTestStatus(a, "ok")
      assert.deepInclude(yield* factsOf(pool, a), { health: "ready", testStatus: "ok" })
      yield* pool.setTestStatus(a, "failed", "the reply was empty")
      assert.strictEqual((yield* pool.status).failed_tests, 1)
      const facts = yield* factsOf(pool, a)
      assert.deepInclude(facts, { health: "ready", testStatus: "failed" })
      assert.deepInclude(facts?.work.lastTest, { success: false, message: "the reply was empty" })
      assert.strictEqual(yield* errorOf(pool.access("z@x.org")), "not_found")
    }))
})
