/**
 * Two nodes in one process over a real server: the guarantees of the pool hold over both.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { hash } from "node:crypto"
import type { Caller } from "../../src/accounts/Accounts.ts"
import { logInTo } from "../../src/accounts/tokens.ts"
import { Store } from "../../src/cluster/store/Store.ts"
import { StoreUnavailable } from "../../src/cluster/store/StoreShape.ts"
import { CurrentShutdown, Shutdown } from "../../src/config/clock/Shutdown.ts"
import type { RawConfig } from "../../src/config/json.ts"
import type { Driver } from "../../src/upstream/Upstream.ts"
import {
  accounts,
  anywhere,
  ask,
  direct,
  errorOf,
  hold,
  makeDriver,
  managed,
  wrongCredentials
} from "../accounts/support.ts"
import { until, untilTrue } from "../support/until.ts"
import { idle, poolNode } from "./poolNode.ts"
import { settledServer, storeLayer } from "./support.ts"

const two = Effect.fnUntraced(function*(config: RawConfig, driver: Driver = makeDriver().driver) {
  const server = yield* settledServer
  const one = yield* poolNode(server, "one", config, driver)
  const other = yield* poolNode(server, "other", config, driver)
  return { server, one, other }
})

describe("a pool that two nodes share", () => {
  it.live("has one limit, one queue and one rotation", () =>
    Effect.gen(function*() {
      const { one, other } = yield* two({ accounts: accounts("a", "b"), runtime: { account_max_inflight: 1 } })
      const first = yield* hold(one.pool)
      const second = yield* hold(other.pool)
      assert.sameMembers([first.lease.account?.identifier, second.lease.account?.identifier], ["a@x.org", "b@x.org"])
      const third = yield* ask(other.pool)
      yield* until(() => third.pollUnsafe() === undefined)
      yield* untilTrue(Effect.map(one.pool.status, ({ waiting }) => waiting >= 1))
      const fourth = yield* ask(one.pool)
      yield* untilTrue(Effect.map(other.pool.status, ({ waiting }) => waiting >= 2))
      const status = yield* other.pool.status
      assert.deepInclude(status, { in_use: 2, waiting: 2, available: 0, total: 2, max_queue_size: 2 })
      assert.strictEqual(yield* errorOf(hold(one.pool)), "rate_limit_exceeded")
      yield* first.free
      const served = yield* Fiber.join(third)
      assert.strictEqual(served.lease.account?.identifier, first.lease.account?.identifier)
      assert.isUndefined(fourth.pollUnsafe())
      yield* second.free
      const last = yield* Fiber.join(fourth)
      yield* Effect.all([served.free, last.free])
      yield* idle(one.pool)
    }))

  it.live("rejects a request without patience, which leaves no place in the queue", () =>
    Effect.gen(function*() {
      const { one, other } = yield* two({ accounts: accounts("a"), runtime: { account_max_inflight: 1 } })
      const first = yield* hold(one.pool, managed(), { patience: 0 })
      assert.strictEqual(yield* errorOf(hold(other.pool, managed(), { patience: 0 })), "rate_limit_exceeded")
      assert.deepInclude(yield* other.pool.status, { in_use: 1, waiting: 0 })
      yield* first.free
      yield* idle(one.pool)
    }))

  it.live("serves pinned requests and callers' own tokens, and releases interrupted requests", () =>
    Effect.gen(function*() {
      const { one, other } = yield* two({
        accounts: accounts("a", "b"),
        runtime: { account_max_inflight: 1, global_max_inflight: 2 }
      })
      const pinned = yield* hold(one.pool, managed("b@x.org"))
      assert.strictEqual(pinned.lease.account?.identifier, "b@x.org")
      assert.strictEqual(yield* errorOf(hold(other.pool, managed("c@x.org"))), "invalid_request")
      const own = yield* hold(other.pool, direct("token"))
      assert.isUndefined(own.lease.account)
      const waiting = yield* ask(other.pool, managed("b@x.org"))
      yield* untilTrue(Effect.map(one.pool.status, ({ waiting }) => waiting >= 1))
      assert.strictEqual((yield* one.pool.status).waiters[0]?.account, "b@x.org")
      yield* Fiber.interrupt(waiting)
      yield* Effect.all([pinned.free, own.free])
      yield* idle(one.pool)
    }))

  it.live("logs in once for all nodes, and reports a rejected login to all", () =>
    Effect.gen(function*() {
      const { calls, driver } = makeDriver()
      const { one, other } = yield* two({ accounts: accounts("a"), runtime: { account_max_inflight: 4 } }, driver)
      const first = yield* hold(one.pool)
      const second = yield* hold(other.pool)
      const tokens = yield* Effect.all([first.lease.credential.token, second.lease.credential.token], {
        concurrency: 2
      })
      assert.deepStrictEqual(tokens, ["a-1", "a-1"])
      // The upstream rejects the token of both; only the first to report it logs in again.
      assert.strictEqual(yield* first.lease.credential.renew("a-1"), "a-2")
      assert.strictEqual(yield* second.lease.credential.renew("a-1"), "a-2")
      assert.deepStrictEqual(calls, ["login a", "login a"])
      yield* Effect.all([first.free, second.free])
      yield* idle(other.pool)
    }))

  it.live("leaves the deletion of all sessions to a lease that has a token", () =>
    Effect.gen(function*() {
      const deleted: Array<string | undefined> = []
      const { driver } = makeDriver({
        sessions: { deleteAll: (token) => Effect.sync(() => void deleted.push(token)) }
      })
      const config = {
        accounts: accounts("a"),
        runtime: { account_max_inflight: 2 },
        auto_delete: { mode: "all" }
      }
      const { one, other } = yield* two(config, driver)
      const used = yield* hold(one.pool)
      const unused = yield* hold(other.pool)
      yield* used.lease.credential.token
      yield* used.lease.registerSession("s1")
      yield* used.free
      // The store has ended this lease before the other one, which is the account's last.
      yield* untilTrue(Effect.map(one.pool.status, ({ in_use }) => in_use === 1))
      yield* unused.free
      yield* idle(one.pool)
      assert.deepStrictEqual(deleted, [])
      const next = yield* hold(other.pool)
      yield* next.lease.credential.token
      yield* next.free
      yield* untilTrue(Effect.sync(() => deleted.length > 0))
      assert.deepStrictEqual(deleted, ["a-1"])
    }))

  it.live("counts the accounts in rotation whose last test failed", () =>
    Effect.gen(function*() {
      const { one, other } = yield* two({ accounts: accounts("a", "b") })
      const failedTests = Effect.map(other.pool.status, ({ failed_tests }) => failed_tests)
      yield* one.pool.setTestStatus("a@x.org", "failed", "the reply was empty")
      assert.strictEqual(yield* failedTests, 1)
      // An account that is out counts as that alone.
      const access = yield* one.pool.access("a@x.org")
      yield* access.report("refused_login", undefined)
      assert.strictEqual(yield* failedTests, 0)
      yield* one.pool.setTestStatus("a@x.org", "ok")
      yield* other.pool.setTestStatus("b@x.org", "failed")
      assert.strictEqual(yield* failedTests, 1)
      yield* one.pool.setTestStatus("b@x.org", "ok")
      assert.strictEqual(yield* failedTests, 0)
    }))

  it.live("takes an account out of rotation for all nodes, and one of them probes it", () =>
    Effect.gen(function*() {
      let works = false
      const { driver } = makeDriver()
      const refusing: Driver = {
        ...driver,
        capabilities: {
          ...driver.capabilities,
          login: (login) => works ? logInTo(driver, login) : Effect.fail(wrongCredentials)
        }
      }
      const { one, other, server } = yield* two({ accounts: accounts("a", "b") }, refusing)
      const first = yield* hold(one.pool)
      const failed = yield* Effect.exit(first.lease.credential.token)
      assert.isTrue(Exit.isFailure(failed))
      yield* first.free
      const [facts] = yield* other.pool.describe([first.lease.account?.identifier ?? ""])
      assert.deepInclude(facts, { health: "out", testStatus: "failed", reason: "the upstream refuses its login" })
      const next = yield* hold(other.pool)
      assert.notStrictEqual(next.lease.account?.identifier, first.lease.account?.identifier)
      yield* next.free
      works = true
      // The probe is due at once.
      const name = one.store.secrets.nameOf(first.lease.account?.key ?? "")
      yield* one.store.send("ZADD", "gw:{main}:pool:default:untried", "1", name)
      const again = other.pool.describe([first.lease.account?.identifier ?? ""])
      yield* untilTrue(Effect.map(again, ([facts]) => facts?.health === "ready"))
      assert.isAbove(server.port, 0)
    }))

  it.live("returns an account to rotation although the first report of its probe is lost", () =>
    Effect.gen(function*() {
      let works = false
      let lost = 0
      const { driver } = makeDriver()
      const refusing: Driver = {
        ...driver,
        capabilities: {
          ...driver.capabilities,
          login: (login) => works ? logInTo(driver, login) : Effect.fail(wrongCredentials)
        }
      }
      const server = yield* settledServer
      /** A store that fails the first report of a probe. */
      const deaf = Layer.effect(
        Store,
        Effect.map(Store, (store): Store["Service"] => ({
          ...store,
          run: (name, ...args) =>
            name === "report" && args[1]?.includes("\"since\":\"try\"") === true && lost++ === 0
              ? Effect.fail(new StoreUnavailable({ message: "lost" }))
              : store.run(name, ...args)
        }))
      ).pipe(Layer.provide(storeLayer(server, "one")))
      const one = yield* poolNode(server, "one", { accounts: accounts("a") }, refusing, deaf)
      const first = yield* hold(one.pool)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(first.lease.credential.token)))
      yield* first.free
      works = true
      yield* one.store.send(
        "ZADD",
        "gw:{main}:pool:default:untried",
        "1",
        one.store.secrets.nameOf(first.lease.account?.key ?? "")
      )
      const again = one.pool.describe([first.lease.account?.identifier ?? ""])
      yield* untilTrue(Effect.map(again, ([facts]) => facts?.health === "ready"))
      assert.strictEqual(lost, 2)
    }))

  it.live("reports the cause and the next probe if no account is in rotation", () =>
    Effect.gen(function*() {
      const { driver: refusing } = makeDriver({ login: () => Effect.fail(wrongCredentials) })
      const { one, other } = yield* two({ accounts: accounts("a") }, refusing)
      const first = yield* hold(one.pool)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(first.lease.credential.token)))
      yield* first.free
      for (const { pool } of [one, other]) {
        const { message, retryAfter = 0 } = yield* Effect.flip(hold(pool))
        assert.strictEqual(message, "No upstream account can be used: the upstream refuses its login")
        // The next probe follows after 60 to 75 seconds.
        assert.isTrue(retryAfter >= 50 && retryAfter <= 75, String(retryAfter))
        assert.strictEqual((yield* pool.status).reason, "the upstream refuses its login")
      }
      // A due or running probe may end at any moment.
      yield* one.store.send(
        "ZADD",
        "gw:{main}:pool:default:untried",
        "inf",
        one.store.secrets.nameOf(first.lease.account?.key ?? "")
      )
      assert.strictEqual((yield* Effect.flip(hold(other.pool))).retryAfter, 1)
    }))

  it.live("applies one configuration, whichever node changes it", () =>
    Effect.gen(function*() {
      const { one, other } = yield* two({ accounts: accounts("a"), runtime: { account_max_inflight: 1 } })
      const caller: Caller = { _tag: "Managed", owner: hash("sha256", "k"), target: undefined, key: "k" }
      const held = yield* hold(one.pool, caller)
      const waiting = yield* ask(one.pool, caller)
      yield* untilTrue(Effect.map(one.pool.status, ({ waiting }) => waiting >= 1))
      yield* other.change({ runtime: { account_max_inflight: 2 } })
      const second = yield* Fiber.join(waiting)
      assert.strictEqual(second.lease.account?.identifier, "a@x.org")
      // Two admins at once: neither change is lost.
      yield* Effect.all([one.change({ accounts: accounts("a", "c") }), other.change({ keys: ["k", "l"] })], {
        concurrency: 2
      })
      yield* until(() => one.configuration.now().keys.length === 2)
      yield* until(() => other.configuration.now().accounts.length === 2)
      // The request of a removed key does not get the lease that it waited for.
      yield* one.change({ accounts: accounts("a"), runtime: { account_max_inflight: 2 } })
      const late = yield* ask(one.pool, caller)
      yield* untilTrue(Effect.map(one.pool.status, ({ waiting }) => waiting >= 1))
      yield* other.change({ keys: ["l"], runtime: { account_max_inflight: 3 } })
      assert.strictEqual(yield* errorOf(Fiber.join(late)), "authentication_failed")
      yield* Effect.all([held.free, second.free])
      yield* idle(one.pool)
      assert.strictEqual(one.store.membership.revision(), other.store.membership.revision())
    }))

  it.live("serves an in-process caller that waits across a change of the configuration", () =>
    Effect.gen(function*() {
      const { one, other } = yield* two({ accounts: accounts("a"), runtime: { account_max_inflight: 1 } })
      const held = yield* hold(one.pool)
      const waiting = yield* ask(one.pool)
      yield* untilTrue(Effect.map(other.pool.status, ({ waiting }) => waiting === 1))
      yield* other.change({ keys: ["l"] })
      yield* held.free
      yield* (yield* Fiber.join(waiting)).free
      yield* idle(other.pool)
    }))

  it.live("serves a request by another account if its account was removed while the grant was under way", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const { driver } = makeDriver()
      const config = { accounts: accounts("a", "b"), runtime: { account_max_inflight: 1 } }
      const arrives = yield* Deferred.make<void>()
      const slow = Layer.effect(
        Store,
        Effect.map(Store, (store) =>
          Store.of({
            ...store,
            run: (name, ...args) => {
              const reply = store.run(name, ...args)
              return name === "acquire" ? Effect.tap(reply, () => Deferred.await(arrives)) : reply
            }
          }))
      )
      const one = yield* poolNode(server, "one", config, driver, Layer.provide(slow, storeLayer(server, "one")))
      const other = yield* poolNode(server, "other", config, driver)
      const held = yield* hold(other.pool, managed("b@x.org"))
      const any = yield* ask(one.pool)
      yield* untilTrue(Effect.map(other.pool.status, ({ in_use }) => in_use === 2))
      yield* other.change({ accounts: accounts("b") })
      yield* until(() => one.configuration.now().accounts.length === 1)
      yield* Deferred.succeed(arrives, undefined)
      yield* held.free
      const served = yield* Fiber.join(any)
      assert.strictEqual(served.lease.account?.identifier, "b@x.org")
      yield* served.free
      yield* idle(other.pool)
    }))

  it.live("rejects the waiters of a stopping node, and keeps the order of the others", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const { driver } = makeDriver()
      const config = { accounts: accounts("a"), runtime: { account_max_inflight: 1, account_max_queue: 2 } }
      const shutdown = new Shutdown()
      const one = yield* Effect.provideService(poolNode(server, "one", config, driver), CurrentShutdown, shutdown)
      const other = yield* poolNode(server, "other", config, driver)
      const held = yield* hold(other.pool)
      const told = yield* ask(one.pool)
      yield* untilTrue(Effect.map(other.pool.status, ({ waiting }) => waiting === 1))
      const waiting = yield* ask(other.pool)
      yield* untilTrue(Effect.map(other.pool.status, ({ waiting }) => waiting === 2))
      shutdown.force()
      assert.strictEqual(yield* errorOf(Fiber.join(told)), "shutting_down")
      yield* untilTrue(Effect.map(other.pool.status, ({ waiting }) => waiting === 1))
      // New requests are not queued.
      assert.strictEqual(yield* errorOf(hold(one.pool)), "shutting_down")
      yield* held.free
      yield* (yield* Fiber.join(waiting)).free
      yield* idle(other.pool)
    }))

  it.live("releases the leases of a dead node", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const { driver } = makeDriver()
      const config = { accounts: accounts("a"), runtime: { account_max_inflight: 1 } }
      const one = yield* poolNode(server, "one", config, driver)
      const scope = yield* Scope.make()
      const gone = yield* Scope.provide(poolNode(server, "gone", config, driver), scope)
      yield* Scope.provide(gone.pool.lease(managed(), anywhere), yield* Scope.make())
      const waiting = yield* ask(one.pool)
      yield* untilTrue(Effect.map(one.pool.status, ({ waiting }) => waiting >= 1))
      yield* Scope.close(scope, Exit.void)
      const lease = yield* Fiber.join(waiting)
      yield* lease.free
      yield* idle(one.pool)
    }))
})
