import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Random, Result } from "effect"
import { TestClock } from "effect/testing"
import type { LeaseBudget } from "../../src/accounts/budgets.ts"
import { CurrentShutdown, Shutdown } from "../../src/config/clock/Shutdown.ts"
import type { Driver } from "../../src/upstream/Upstream.ts"
import { notCounted } from "../../src/usage/Admission.ts"
import { sized } from "../support/effort.ts"
import {
  accounts,
  anywhere,
  ask,
  buildPool,
  direct,
  errorOf,
  hold,
  idle,
  makeDriver,
  managed,
  shows
} from "./support.ts"

const a = "a@x.org"
const b = "b@x.org"
const c = "c@x.org"

describe("a lease on an account", () => {
  it.effect("goes to the least recently used account", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a", "b", "c") })
      const given: Array<string | undefined> = []
      for (let i = 0; i < 4; i++) given.push((yield* hold(pool)).account)
      assert.deepStrictEqual(given, [a, b, c, a])
    }))

  it.effect("is rejected with a retry time when the slots and the queue are full", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({
        accounts: accounts("a"),
        runtime: { account_max_inflight: 1, account_max_queue: 1 }
      })
      yield* hold(pool)
      yield* ask(pool)
      const error = yield* Effect.flip(hold(pool))
      assert.strictEqual(error.code, "rate_limit_exceeded")
      assert.strictEqual(error.status, 429)
      assert.isAtLeast(error.retryAfter ?? 0, 1)
      yield* shows(pool, { in_use: 1, waiting: 1, available: 0, total: 1, max_queue_size: 1 })
    }))

  it.effect("never waits if the queue has no places", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({
        accounts: accounts("a"),
        runtime: { account_max_inflight: 1, account_max_queue: 0 }
      })
      yield* hold(pool)
      assert.strictEqual(yield* errorOf(hold(pool)), "rate_limit_exceeded")
    }))

  it.effect("is rejected immediately without patience, and leaves no place in the queue", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a"), runtime: { account_max_inflight: 1 } })
      const first = yield* hold(pool, managed(), { patience: 0 })
      assert.strictEqual(yield* errorOf(hold(pool, managed(), { patience: 0 })), "rate_limit_exceeded")
      yield* shows(pool, { in_use: 1, waiting: 0 })
      yield* first.free
      yield* hold(pool, managed(), { patience: 0 })
    }))

  it.effect("is granted in order of arrival, past waiters that are pinned to a busy account", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a", "b"), runtime: { account_max_inflight: 1 } })
      const first = yield* hold(pool)
      const second = yield* hold(pool)
      assert.deepStrictEqual([first.account, second.account], [a, b])
      const onlyA = yield* ask(pool, managed("A@x.org"))
      const any = yield* ask(pool)
      yield* second.free
      assert.strictEqual((yield* Fiber.join(any)).account, b)
      assert.isUndefined(onlyA.pollUnsafe())
      yield* first.free
      assert.strictEqual((yield* Fiber.join(onlyA)).account, a)
    }))

  it.effect("is rejected when its wait times out, and leaves the queue", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a"), runtime: { account_max_inflight: 1 } })
      yield* hold(pool)
      const waiting = yield* ask(pool)
      yield* TestClock.adjust("59 seconds")
      assert.isUndefined(waiting.pollUnsafe())
      yield* TestClock.adjust("1 second")
      const { code, message } = yield* Effect.flip(Fiber.join(waiting))
      assert.deepStrictEqual([code, message], [
        "rate_limit_exceeded",
        "The gateway is busy: the request waited 60 s for a free account. Retry later."
      ])
      yield* shows(pool, { waiting: 0, in_use: 1 })
    }))

  it.effect("is rejected for waiters once the shutdown ends running requests", () =>
    Effect.gen(function*() {
      const shutdown = new Shutdown()
      const config = { accounts: accounts("a"), runtime: { account_max_inflight: 1, account_max_queue: 2 } }
      const { pool } = yield* Effect.provideService(buildPool(config), CurrentShutdown, shutdown)
      const held = yield* hold(pool)
      const waiting = yield* ask(pool)
      shutdown.force()
      assert.strictEqual(yield* errorOf(Fiber.join(waiting)), "shutting_down")
      const late = yield* ask(pool)
      yield* Effect.yieldNow
      assert.isDefined(late.pollUnsafe())
      assert.strictEqual(yield* errorOf(Fiber.join(late)), "shutting_down")
      yield* held.free
      yield* shows(pool, idle)
    }))

  it.effect("reports its waiting time", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a"), runtime: { account_max_inflight: 1 } })
      const first = yield* hold(pool)
      assert.strictEqual(first.lease.waited, 0)
      const waiting = yield* ask(pool)
      yield* TestClock.adjust("3 seconds")
      yield* first.free
      assert.strictEqual((yield* Fiber.join(waiting)).lease.waited, 3000)
    }))

  it.effect("is not granted to a caller that has left the queue", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({
        accounts: accounts("a"),
        runtime: { account_max_inflight: 1, account_max_queue: 2 }
      })
      const first = yield* hold(pool)
      const leaver = yield* ask(pool)
      const stayer = yield* ask(pool)
      yield* shows(pool, { waiting: 2 })
      yield* Fiber.interrupt(leaver)
      yield* shows(pool, { waiting: 1 })
      yield* first.free
      assert.strictEqual((yield* Fiber.join(stayer)).account, a)
      yield* shows(pool, { waiting: 0, in_use: 1 })
    }))

  it.effect("is returned if it is granted just as its caller is interrupted", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a"), runtime: { account_max_inflight: 1 } })
      const first = yield* hold(pool)
      const leaver = yield* ask(pool)
      // In one step: the slot is granted before the waiting fiber runs again.
      leaver.interruptUnsafe()
      yield* first.free
      yield* Fiber.await(leaver)
      yield* shows(pool, idle)

      const second = yield* hold(pool)
      const other = yield* Effect.forkChild(Effect.scoped(pool.lease(managed(), anywhere)))
      yield* Effect.yieldNow
      yield* second.free
      other.interruptUnsafe()
      yield* Fiber.await(other)
      yield* shows(pool, idle)
    }))

  it.effect("is returned once, whatever ends its scope", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a") })
      const lease = pool.lease(managed(), anywhere)
      yield* Effect.scoped(lease)
      yield* shows(pool, idle)
      yield* Effect.exit(Effect.scoped(Effect.andThen(lease, Effect.fail("no"))))
      yield* shows(pool, idle)
      yield* Effect.exit(Effect.scoped(Effect.andThen(lease, Effect.die("no"))))
      yield* shows(pool, idle)
      const fiber = yield* Effect.forkChild(Effect.scoped(Effect.andThen(lease, Effect.never)))
      yield* Effect.yieldNow
      yield* shows(pool, { in_use: 1 })
      yield* Fiber.interrupt(fiber)
      yield* shows(pool, idle)
    }))

  it.effect("is returned for each of thousands of callers that are interrupted at random", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({
        accounts: accounts("a", "b", "c", "d", "e"),
        runtime: { account_max_inflight: 2, account_max_queue: 1000 }
      })
      const outcomes = { served: 0, refused: 0, left: 0 }
      const user = Effect.gen(function*() {
        const target = (yield* Random.next) < 0.2 ? "c@x.org" : undefined
        const turns = yield* Random.nextIntBetween(0, 12)
        const fiber = yield* pool.lease(managed(target), anywhere).pipe(
          Effect.andThen(Effect.repeat(Effect.yieldNow, { times: turns })),
          Effect.scoped,
          Effect.forkChild
        )
        const patience = yield* Random.nextIntBetween(0, 12)
        for (let i = 0; i < patience; i++) yield* Effect.yieldNow
        if ((yield* Random.next) < 0.5) fiber.interruptUnsafe()
        const exit = yield* Fiber.await(fiber)
        if (Exit.isSuccess(exit)) outcomes.served++
        else if (Exit.hasInterrupts(exit)) outcomes.left++
        else outcomes.refused++
        const status = yield* pool.status
        assert.isAtMost(status.in_use, 10)
        assert.isAtMost(status.waiting, 1000)
      })
      const users = sized(20_000)
      yield* Effect.forEach(Array.from({ length: users }), () => user, { concurrency: 2000, discard: true })
      yield* shows(pool, idle)
      for (const count of Object.values(outcomes)) assert.isAbove(count, users / 20)
    }).pipe(Random.withSeed("20,000 users")))
})

describe("the retry of a request", () => {
  const failedOn = (...keys: ReadonlyArray<string>) => ({ avoid: new Set(keys) })

  it.effect("goes to another account, and waits while that is busy", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a", "b"), runtime: { account_max_inflight: 1 } })
      const onB = yield* hold(pool, managed("b@x.org"))
      const retry = yield* ask(pool, managed(), failedOn(a))
      assert.isUndefined(retry.pollUnsafe())
      // Another request gets the account that the retry avoids.
      assert.strictEqual((yield* hold(pool)).account, a)
      yield* onB.free
      assert.strictEqual((yield* Fiber.join(retry)).account, b)
    }))

  it.effect("goes to the same account if no other is in rotation", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a", "b") })
      const onB = yield* hold(pool, managed("b@x.org"))
      yield* onB.lease.report("suspended", undefined)
      assert.strictEqual((yield* hold(pool, managed(), failedOn(a))).account, a)
    }))

  it.effect("stays on its account if asked to, unless the account is out of rotation", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a", "b", "c") })
      const stay = { stay: b }
      assert.strictEqual((yield* hold(pool, managed(), stay)).account, b)
      const again = yield* hold(pool, managed(), stay)
      assert.strictEqual(again.account, b)
      yield* again.lease.report("refused_login", undefined)
      assert.notStrictEqual((yield* hold(pool, managed(), stay)).account, b)
    }))

  it.effect("that waits for its account goes elsewhere when the account leaves the rotation", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a", "b"), runtime: { account_max_inflight: 1 } })
      const onA = yield* hold(pool)
      const waiting = yield* ask(pool, managed(), { avoid: new Set(), stay: a })
      yield* onA.lease.report("suspended", undefined)
      assert.strictEqual((yield* Fiber.join(waiting)).account, b)
    }))
})

describe("a pinned request", () => {
  it.effect("finds its account by any spelling", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({
        accounts: [...accounts("a"), { email: "Both@X.org", mobile: "138 0013-8000", password: "secret" }]
      })
      const status = yield* pool.status
      for (const target of ["both@x.org", "BOTH@x.org", "13800138000", "+86 138 0013 8000"]) {
        const { account, free } = yield* hold(pool, managed(target))
        assert.strictEqual(account, "both@x.org")
        yield* free
      }
      assert.deepStrictEqual(status.available_accounts, [a, "Both@X.org"])
    }))

  it.effect("is rejected with 400 if its account is not configured", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a") })
      const error = yield* Effect.flip(hold(pool, managed("z@x.org")))
      assert.deepInclude(error, { code: "invalid_request", param: "X-Gateway-Target-Account" })
    }))

  it.effect("never moves to another account", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a", "b") })
      const options = { avoid: new Set([a]) }
      const onA = yield* hold(pool, managed(a), options)
      assert.strictEqual(onA.account, a)
      yield* onA.lease.report("suspended", undefined)
      assert.strictEqual(yield* errorOf(hold(pool, managed(a), options)), "no_account_available")
    }))
})

describe("a change of the pool's configuration", () => {
  it.effect("a raised limit serves waiters", () =>
    Effect.gen(function*() {
      const { change, pool } = yield* buildPool({
        accounts: accounts("a"),
        runtime: { account_max_inflight: 1, account_max_queue: 9 }
      })
      yield* hold(pool)
      const waiting = [yield* ask(pool), yield* ask(pool), yield* ask(pool)]
      yield* change({ runtime: { account_max_inflight: 3, account_max_queue: 9 } })
      yield* Fiber.join(waiting[0]!)
      yield* Fiber.join(waiting[1]!)
      assert.isUndefined(waiting[2]!.pollUnsafe())
      yield* shows(pool, { in_use: 3, waiting: 1, max_inflight_per_account: 3, global_max_inflight: 3 })
    }))

  it.effect("a lowered limit drops no request, and applies to the next lease", () =>
    Effect.gen(function*() {
      const { change, pool } = yield* buildPool({
        accounts: accounts("a"),
        runtime: { account_max_inflight: 3, account_max_queue: 9 }
      })
      const held = [yield* hold(pool), yield* hold(pool), yield* hold(pool)]
      yield* change({ runtime: { account_max_inflight: 1, account_max_queue: 9 } })
      const waiting = yield* ask(pool)
      yield* held[0]!.free
      yield* held[1]!.free
      assert.isUndefined(waiting.pollUnsafe())
      yield* shows(pool, { in_use: 1, waiting: 1 })
      yield* held[2]!.free
      yield* Fiber.join(waiting)
    }))

  it.effect("a removed account finishes its requests and gets no new lease", () =>
    Effect.gen(function*() {
      const { change, pool } = yield* buildPool({
        accounts: accounts("a", "b"),
        runtime: { account_max_inflight: 1, global_max_inflight: 2 }
      })
      const onA = yield* hold(pool, managed(a))
      const pinned = yield* ask(pool, managed(a))
      yield* change({ accounts: accounts("b") })
      assert.strictEqual(yield* errorOf(Fiber.join(pinned)), "invalid_request")
      yield* shows(pool, { total: 1, in_use: 1, in_use_accounts: [a], available_accounts: [b] })
      assert.strictEqual((yield* hold(pool)).account, b)
      const waiting = yield* ask(pool)
      yield* onA.free
      assert.isUndefined(waiting.pollUnsafe())
      yield* shows(pool, { total: 1, in_use: 1, in_use_accounts: [b] })
    }))

  it.effect("an added account serves waiters", () =>
    Effect.gen(function*() {
      const { change, pool } = yield* buildPool({ accounts: accounts("a"), runtime: { account_max_inflight: 1 } })
      yield* hold(pool)
      const waiting = yield* ask(pool)
      yield* change({ accounts: accounts("a", "b") })
      assert.strictEqual((yield* Fiber.join(waiting)).account, b)
    }))

  it.effect("an account that is added again while it drains keeps its slots", () =>
    Effect.gen(function*() {
      const { change, pool } = yield* buildPool({
        accounts: accounts("a", "b"),
        runtime: { account_max_inflight: 1, global_max_inflight: 5 }
      })
      const onA = yield* hold(pool)
      yield* change({ accounts: accounts("b") })
      yield* change({ accounts: accounts("a", "b") })
      yield* shows(pool, { total: 2, in_use: 1, available_accounts: [b] })
      yield* onA.free
      yield* shows(pool, { available: 2, in_use: 0 })
    }))
})

describe("a pool without accounts", () => {
  it.effect("has one account if the upstream needs no credential", () =>
    Effect.gen(function*() {
      const { driver } = makeDriver({
        name: "embedded",
        isAnonymous: true
      })
      const { change, pool } = yield* buildPool({ upstream: {} }, () => driver)
      const first = yield* hold(pool)
      assert.strictEqual(yield* first.lease.credential.token, undefined)
      yield* shows(pool, { total: 1, recommended_concurrency: 2, in_use_accounts: ["embedded"] })
      yield* first.free
      yield* change({ accounts: accounts("a") })
      const second = yield* hold(pool)
      assert.strictEqual(yield* second.lease.credential.token, "a-1")
      yield* shows(pool, { total: 1, in_use_accounts: [a] })
    }))

  it.effect("rejects requests if the upstream needs a credential", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({})
      const error = yield* Effect.flip(hold(pool))
      assert.deepInclude(error, { code: "no_account_available", status: 503, retryAfter: 5 })
    }))
})

describe("a caller's own upstream token", () => {
  it.effect("needs no account, and counts in the global limit", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({
        accounts: accounts("a"),
        runtime: { account_max_inflight: 2, global_max_inflight: 2 }
      })
      const own = yield* hold(pool, direct("own-token"))
      assert.strictEqual(yield* own.lease.credential.token, "own-token")
      assert.isUndefined(own.lease.account)
      yield* hold(pool)
      yield* shows(pool, { in_use: 2, in_use_accounts: [a], available: 1 })
      const waiting = yield* ask(pool, direct("other"))
      const behind = yield* ask(pool)
      yield* own.free
      yield* Fiber.join(waiting)
      assert.isUndefined(behind.pollUnsafe())
    }))

  it.effect("takes at most half of the slots and of the queue, and does not delay callers with a key", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({
        accounts: accounts("a", "b"),
        runtime: { account_max_inflight: 2, global_max_inflight: 4, account_max_queue: 4 }
      })
      const first = yield* hold(pool, direct("one"))
      yield* hold(pool, direct("two"))
      const third = yield* ask(pool, direct("three"))
      const fourth = yield* ask(pool, direct("four"))
      const error = yield* Effect.flip(hold(pool, direct("five")))
      assert.deepInclude(error, { code: "rate_limit_exceeded", status: 429 })
      // Callers with a key are served at once, although two direct callers came before them.
      yield* hold(pool)
      yield* hold(pool)
      yield* ask(pool)
      yield* shows(pool, { in_use: 4, waiting: 3 })
      yield* first.free
      yield* Fiber.join(third)
      assert.isUndefined(fourth.pollUnsafe())
    }))

  it.effect("takes at most auth.direct_max_inflight slots", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({
        accounts: accounts("a"),
        runtime: { account_max_inflight: 4, account_max_queue: 0 },
        auth: { direct_max_inflight: 3 }
      })
      for (const token of ["one", "two", "three"]) yield* hold(pool, direct(token))
      assert.strictEqual((yield* Effect.flip(hold(pool, direct("four")))).code, "rate_limit_exceeded")
      yield* hold(pool)
    }))

  it.effect("works without a configured account", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({})
      assert.strictEqual(yield* (yield* hold(pool, direct("own"))).lease.credential.token, "own")
    }))

  it.effect("is never refreshed, and does not affect any account", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a") })
      const { lease } = yield* hold(pool, direct("own"))
      yield* lease.credential.drop
      yield* lease.report("refused_login", undefined)
      assert.isTrue(Result.isFailure(yield* Effect.result(lease.credential.renew("own"))))
      assert.strictEqual(yield* lease.credential.token, "own")
      yield* shows(pool, { available: 1 })
    }))

  it.effect("is rejected if auth.direct_tokens is off", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a"), auth: { direct_tokens: false } })
      const error = yield* Effect.flip(hold(pool, direct("own")))
      assert.deepInclude(error, { code: "authentication_failed", status: 401 })
    }))
})

describe("a lease during a change of the upstream", () => {
  it.effect("that waited is on the new upstream", () =>
    Effect.gen(function*() {
      const { driver: first } = makeDriver()
      const { driver: second } = makeDriver()
      let driver: Driver = first
      const { pool } = yield* buildPool(
        { accounts: accounts("a"), runtime: { account_max_inflight: 1 } },
        () => driver
      )
      const held = yield* hold(pool)
      const waiting = yield* ask(pool)
      driver = second
      yield* held.free
      assert.strictEqual((yield* Fiber.join(waiting)).lease.driver, second)
      assert.strictEqual(held.lease.driver, first)
    }))
})

describe("a lease on an account whose sessions are being deleted", () => {
  it.effect("is on the upstream that was configured in the meantime", () =>
    Effect.gen(function*() {
      const { driver: first } = makeDriver({ sessions: { deleteAll: () => Effect.never } })
      const { driver: second } = makeDriver()
      let driver: Driver = first
      const { pool } = yield* buildPool({ accounts: accounts("a"), auto_delete: { mode: "all" } }, () => driver)
      const held = yield* hold(pool)
      yield* held.lease.registerSession("session")
      yield* held.free
      const waiting = yield* ask(pool)
      assert.isUndefined(waiting.pollUnsafe())
      driver = second
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual((yield* Fiber.join(waiting)).lease.driver, second)
    }))
})

describe("the end of a lease", () => {
  it.effect("stops the upstream call first, then frees the slot", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("a") })
      const stopped = yield* Deferred.make<number>()
      const attempt = Effect.gen(function*() {
        yield* pool.lease(managed(), anywhere)
        yield* Effect.addFinalizer(() =>
          Effect.flatMap(pool.status, (status) => Deferred.succeed(stopped, status.in_use))
        )
      })
      yield* Effect.scoped(attempt)
      assert.strictEqual(yield* Deferred.await(stopped), 1)
      yield* shows(pool, idle)
    }))

  it.effect("returns what it has reserved of its upstream's budget after its account has left", () =>
    Effect.gen(function*() {
      const share = { tokens: 0, cost: 0n, strict: undefined }
      const budget: LeaseBudget = {
        shareOf: () => share,
        sharesOf: () => share,
        used: () => notCounted,
        isStrict: false
      }
      const { change, pool } = yield* buildPool({
        upstream: {
          driver: "session",
          base_url: "http://127.0.0.1:9",
          budgets: [{ window: "month", requests: 1 }]
        },
        accounts: accounts("a")
      })
      const held = yield* hold(pool, managed(), { budget })
      yield* change({ accounts: accounts("b") })
      assert.strictEqual(yield* errorOf(hold(pool, managed(), { budget })), "upstream_rate_limited")
      yield* held.free
      assert.strictEqual((yield* hold(pool, managed(), { budget, patience: 0 })).account, b)
    }))
})
