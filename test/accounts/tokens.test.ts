import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { UpstreamFailure } from "../../src/domain/UpstreamFailure.ts"
import type { Driver } from "../../src/upstream/Upstream.ts"
import { accounts, buildPool, hold, makeDriver, managed, nameOf, type Pool, wrongCredentials } from "./support.ts"

const credentialOf = (pool: Pool, target?: string) =>
  Effect.map(hold(pool, managed(target)), ({ lease }) => lease.credential)

/** Logins that end when the test completes them, from the `first` on. */
const heldLogins = Effect.fnUntraced(function*(first: number) {
  const gate = yield* Deferred.make<void>()
  const logins: Array<string> = []
  const { driver } = makeDriver({
    login: (login) =>
      Effect.suspend(() => {
        logins.push(nameOf(login))
        const token = `${nameOf(login)}-${logins.length}`
        return logins.length < first ? Effect.succeed(token) : Effect.as(Deferred.await(gate), token)
      })
  })
  return { driver, logins, open: Deferred.succeed(gate, undefined) }
})

describe("an account's upstream token", () => {
  it.effect("comes from a login at the first use, not before", () =>
    Effect.gen(function*() {
      const { calls, driver } = makeDriver()
      const { pool } = yield* buildPool({ accounts: accounts("a", "b") }, () => driver)
      const credential = yield* credentialOf(pool)
      assert.deepStrictEqual(calls, [])
      assert.strictEqual(yield* credential.token, "a-1")
      assert.strictEqual(yield* credential.token, "a-1")
      assert.deepStrictEqual(calls, ["login a"])
    }))

  it.effect("comes from one login for all requests, even if the first of them is interrupted", () =>
    Effect.gen(function*() {
      const { driver, logins, open } = yield* heldLogins(1)
      const { pool } = yield* buildPool({
        accounts: accounts("a"),
        runtime: { account_max_inflight: 256, global_max_inflight: 256 }
      }, () => driver)
      const credential = yield* credentialOf(pool)
      const first = yield* Effect.forkChild(credential.token)
      const others = yield* Effect.forkChild(
        Effect.forEach(Array.from({ length: 1000 }), () => credential.token, { concurrency: "unbounded" })
      )
      yield* Effect.yieldNow
      yield* Fiber.interrupt(first)
      yield* open
      assert.deepStrictEqual([...new Set(yield* Fiber.join(others))], ["a-1"])
      assert.deepStrictEqual(logins, ["a"])
    }))

  it.effect("is replaced once, however many requests report it as rejected", () =>
    Effect.gen(function*() {
      const { calls, driver } = makeDriver()
      const { pool } = yield* buildPool({ accounts: accounts("a") }, () => driver)
      const credential = yield* credentialOf(pool)
      const stale = yield* credential.token
      const renewed = yield* Effect.forEach(Array.from({ length: 100 }), () => credential.renew(stale), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual([...new Set(renewed)], ["a-2"])
      assert.strictEqual(yield* credential.renew(stale), "a-2")
      assert.deepStrictEqual(calls, ["login a", "login a"])
    }))

  it.effect("that was rejected is dropped for all leases, unless it has been replaced already", () =>
    Effect.gen(function*() {
      const { calls, driver } = makeDriver()
      const { pool } = yield* buildPool({ accounts: accounts("a") }, () => driver)
      const one = yield* hold(pool)
      const two = yield* hold(pool)
      assert.deepStrictEqual([yield* one.lease.credential.token, yield* two.lease.credential.token], ["a-1", "a-1"])
      yield* one.lease.credential.drop
      assert.strictEqual(yield* one.lease.credential.token, "a-2")
      // The second request reports the same token later.
      yield* two.lease.credential.drop
      assert.strictEqual(yield* two.lease.credential.token, "a-2")
      assert.lengthOf(calls, 2)
    }))

  it.effect("is refreshed in the background when it is old, while the old one serves", () =>
    Effect.gen(function*() {
      const { calls, driver } = makeDriver()
      const { change, pool } = yield* buildPool({ accounts: accounts("a") }, () => driver)
      const credential = yield* credentialOf(pool)
      yield* credential.token
      yield* TestClock.adjust("5 hours")
      assert.strictEqual(yield* credential.token, "a-1")
      assert.lengthOf(calls, 1)
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(yield* credential.token, "a-1")
      yield* Effect.yieldNow
      assert.strictEqual(yield* credential.token, "a-2")
      // The interval may change at any time.
      yield* change({ runtime: { token_refresh_interval_hours: 1 } })
      yield* TestClock.adjust("1 hour")
      yield* credential.token
      yield* Effect.yieldNow
      assert.strictEqual(yield* credential.token, "a-3")
      assert.deepInclude(yield* pool.metrics, { logins: 1, refreshes: 2, loginFailures: 0 })
    }))

  it.effect("stays in use when its refresh fails, and the refresh is retried a minute later", () =>
    Effect.gen(function*() {
      let reachable = true
      let logins = 0
      const { driver } = makeDriver({
        login: () =>
          Effect.flatMap(Effect.yieldNow, () => {
            logins++
            return reachable
              ? Effect.succeed(`token-${logins}`)
              : Effect.fail(new UpstreamFailure({ phase: "login", kind: "transport" }))
          })
      })
      const { pool } = yield* buildPool({ accounts: accounts("a") }, () => driver)
      const credential = yield* credentialOf(pool)
      yield* credential.token
      reachable = false
      yield* TestClock.adjust("6 hours")
      for (let i = 0; i < 10; i++) {
        assert.strictEqual(yield* credential.token, "token-1")
        yield* Effect.yieldNow
      }
      assert.strictEqual(logins, 2)
      reachable = true
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* credential.token, "token-1")
      yield* Effect.yieldNow
      assert.strictEqual(yield* credential.token, "token-3")
      assert.deepInclude((yield* pool.describe(["a@x.org"]))[0], { health: "ready", testStatus: "" })
    }))

  it.effect("is refreshed by one login at a time, however long it takes", () =>
    Effect.gen(function*() {
      const { driver, logins, open } = yield* heldLogins(2)
      const { pool } = yield* buildPool({ accounts: accounts("a") }, () => driver)
      const credential = yield* credentialOf(pool)
      yield* credential.token
      yield* TestClock.adjust("6 hours")
      for (let minute = 0; minute < 5; minute++) {
        assert.strictEqual(yield* credential.token, "a-1")
        yield* TestClock.adjust("1 minute")
      }
      assert.lengthOf(logins, 2)
      yield* open
      yield* Effect.yieldNow
      assert.strictEqual(yield* credential.token, "a-2")
    }))

  it.effect("waiters for it end when the pool is closed", () =>
    Effect.gen(function*() {
      const { driver } = yield* heldLogins(1)
      const scope = yield* Scope.make()
      const { pool } = yield* Scope.provide(buildPool({ accounts: accounts("a") }, () => driver), scope)
      const waiting = yield* Effect.forkChild((yield* credentialOf(pool)).token)
      yield* Effect.yieldNow
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(waiting)))
    }))

  it.effect("a request that outlives the pool does not wait for it", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const { pool } = yield* Scope.provide(buildPool({ accounts: accounts("a") }), scope)
      const credential = yield* credentialOf(pool)
      yield* Scope.close(scope, Exit.void)
      const waiting = yield* Effect.forkChild(credential.token, { startImmediately: true })
      yield* Effect.yieldNow
      const exit = waiting.pollUnsafe()
      assert.isTrue(exit !== undefined && Exit.hasInterrupts(exit))
    }))

  it.effect("that is configured is used until the upstream rejects it", () =>
    Effect.gen(function*() {
      const { calls, driver } = makeDriver()
      const { pool } = yield* buildPool({
        accounts: [{ email: "a@x.org", password: "secret", token: "configured" }]
      }, () => driver)
      const credential = yield* credentialOf(pool)
      assert.strictEqual(yield* credential.token, "configured")
      yield* TestClock.adjust("7 hours")
      assert.strictEqual(yield* credential.token, "configured")
      assert.deepStrictEqual(calls, [])
      assert.strictEqual(yield* credential.renew("configured"), "a-1")
      assert.strictEqual(yield* credential.token, "a-1")
    }))

  it.effect("cannot be replaced if the account has no login", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: [{ token: "only" }] })
      const { lease } = yield* hold(pool)
      assert.match(lease.account?.key ?? "", /^token:[0-9a-f]{16}$/)
      assert.strictEqual(yield* lease.credential.token, "only")
      const failure = yield* Effect.flip(lease.credential.renew("only"))
      assert.deepInclude(failure, { phase: "login", kind: "refused" })
    }))

  it.effect("is used without a login if the upstream has no logins", () =>
    Effect.gen(function*() {
      const { driver } = makeDriver({ name: "openai" }, { login: undefined })
      const { pool } = yield* buildPool({
        accounts: [{ email: "a@x.org", password: "secret", token: "key" }]
      }, () => driver)
      const credential = yield* credentialOf(pool)
      assert.strictEqual(yield* credential.token, "key")
      yield* Effect.flip(credential.renew("key"))
    }))

  it.effect("is never sent to another upstream than its issuer", () =>
    Effect.gen(function*() {
      const first = makeDriver()
      const second = makeDriver({ login: (login) => Effect.succeed(`second-${nameOf(login)}`) })
      let driver: Driver = first.driver
      const { pool } = yield* buildPool({ accounts: accounts("a") }, () => driver)
      const before = yield* hold(pool)
      assert.strictEqual(yield* before.lease.credential.token, "a-1")
      driver = second.driver
      const after = yield* hold(pool)
      assert.strictEqual(after.lease.driver, second.driver)
      assert.strictEqual(yield* after.lease.credential.token, "second-a")
      // The older lease stays on its upstream.
      assert.strictEqual(yield* before.lease.credential.renew("a-1"), "a-2")
      assert.strictEqual(yield* after.lease.credential.token, "second-a")
      // Its reports say nothing about the account on the new upstream.
      yield* before.lease.report("suspended", undefined)
      assert.deepInclude((yield* pool.describe(["a@x.org"]))[0], { health: "ready" })
    }))

  it.effect("is dropped when the account's credentials change, and when the account is removed", () =>
    Effect.gen(function*() {
      const { calls, driver } = makeDriver()
      const { change, pool } = yield* buildPool({ accounts: accounts("a", "b") }, () => driver)
      yield* (yield* credentialOf(pool, "a@x.org")).token
      yield* change({ accounts: [{ email: "a@x.org", password: "other" }, ...accounts("b")] })
      assert.strictEqual(yield* (yield* credentialOf(pool, "a@x.org")).token, "a-2")
      yield* change({ accounts: accounts("b") })
      yield* change({ accounts: accounts("a", "b") })
      assert.deepInclude((yield* pool.describe(["a@x.org"]))[0], { hasToken: false, tokenPreview: "" })
      yield* change({ runtime: { token_refresh_interval_hours: 2 } })
      assert.deepStrictEqual(calls, ["login a", "login a"])
    }))

  it.effect("is kept when other accounts and settings change", () =>
    Effect.gen(function*() {
      const { calls, driver } = makeDriver()
      const { change, pool } = yield* buildPool({ accounts: accounts("a") }, () => driver)
      yield* (yield* credentialOf(pool)).token
      yield* change({ accounts: accounts("b", "a", "c"), keys: ["k"] })
      assert.strictEqual(yield* (yield* credentialOf(pool, "a@x.org")).token, "a-1")
      assert.deepStrictEqual(calls, ["login a"])
    }))

  it.effect("is shown only as a preview", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: [...accounts("a"), { token: "configured-token-of-mine" }] })
      const [a] = yield* pool.describe(["a@x.org"])
      assert.deepInclude(a, { hasToken: false, tokenPreview: "" })
      yield* (yield* credentialOf(pool, "a@x.org")).token
      const identifier = (yield* pool.status).available_accounts[1]!
      const facts = yield* pool.describe(["A@x.org", identifier])
      assert.deepStrictEqual(facts.map((fact) => [fact.hasToken, fact.tokenPreview]), [
        [true, "a..."],
        [true, "configur..."]
      ])
    }))
})

describe("a rejected login", () => {
  it.effect("fails all requests that wait for it, and counts as one fault of the account", () =>
    Effect.gen(function*() {
      let logins = 0
      const { driver } = makeDriver({
        login: () =>
          Effect.flatMap(Effect.yieldNow, () => {
            logins++
            return Effect.fail(wrongCredentials)
          })
      })
      const { pool } = yield* buildPool({
        accounts: accounts("a", "b"),
        runtime: { account_max_inflight: 5 }
      }, () => driver)
      const held = yield* Effect.forEach(Array.from({ length: 5 }), () => hold(pool, managed("a@x.org")))
      yield* Effect.forEach(held, ({ lease }) =>
        Effect.flatMap(Effect.flip(lease.credential.token), (failure) => {
          assert.strictEqual(failure, wrongCredentials)
          return lease.report("refused_login", undefined)
        }), { concurrency: "unbounded" })
      const [facts] = yield* pool.describe(["a@x.org"])
      assert.deepInclude(facts, { health: "out", testStatus: "failed", reason: "the upstream refuses its login" })
      assert.isAtLeast(facts!.recovery ?? 0, 60_000)
      assert.isAtMost(facts!.recovery ?? 0, 75_000)
      assert.strictEqual(logins, 1)
      // Another login by an older lease is not a further fault.
      yield* Effect.flip(held[0]!.lease.credential.token)
      assert.isAtMost((yield* pool.describe(["a@x.org"]))[0]!.recovery ?? 0, 75_000)
      assert.strictEqual((yield* pool.metrics).loginFailures, 2)
    }))
})
