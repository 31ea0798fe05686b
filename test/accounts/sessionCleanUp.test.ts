import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { UpstreamFailure } from "../../src/domain/UpstreamFailure.ts"
import type { KeepsSessions } from "../../src/upstream/Upstream.ts"
import { accounts, ask, buildPool, direct, hold, makeDriver, managed, type Pool, shows } from "./support.ts"

const a = "a@x.org"

/** A lease that logs in and makes sessions, as a completion does. */
const use = Effect.fnUntraced(function*(pool: Pool, sessions: ReadonlyArray<string>, target?: string) {
  const held = yield* hold(pool, managed(target))
  yield* held.lease.credential.token
  for (const session of sessions) yield* held.lease.registerSession(session)
  return held
})

/** A driver whose deletion of all sessions ends when the test completes it; `running` counts them. */
const heldDeletion = Effect.gen(function*() {
  const gate = yield* Deferred.make<void>()
  const state = { running: 0, interrupted: 0 }
  const deleteAll: KeepsSessions["deleteAll"] = () =>
    Effect.suspend(() => {
      state.running++
      return Deferred.await(gate)
    }).pipe(
      Effect.onInterrupt(() => Effect.sync(() => void state.interrupted++)),
      Effect.ensuring(Effect.sync(() => void state.running--))
    )
  return { ...makeDriver({ sessions: { deleteAll } }), state, open: Deferred.succeed(gate, undefined) }
})

const deletions = (calls: ReadonlyArray<string>) => calls.filter((call) => call.startsWith("delete"))

describe("auto_delete", () => {
  it.effect("none: keeps sessions", () =>
    Effect.gen(function*() {
      const { calls, driver } = makeDriver()
      const { pool } = yield* buildPool({ accounts: accounts("a") }, () => driver)
      yield* (yield* use(pool, ["s1"])).free
      assert.deepStrictEqual(deletions(calls), [])
    }))

  it.effect("single: deletes the sessions of the lease, once its slot is free", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const built = yield* Deferred.make<Pool>()
      const { driver } = makeDriver({
        sessions: {
          delete: (token, id) =>
            Deferred.await(built).pipe(
              Effect.flatMap((pool) => pool.status),
              Effect.map(({ in_use }) => void seen.push(`${id} ${token} ${in_use}`))
            )
        }
      })
      const { pool } = yield* buildPool({ accounts: accounts("a"), auto_delete: { mode: "single" } }, () => driver)
      yield* Deferred.succeed(built, pool)
      const { free } = yield* use(pool, ["s1", "s2"])
      yield* free
      yield* Effect.yieldNow
      assert.deepStrictEqual(seen, ["s1 a-1 0", "s2 a-1 0"])
      assert.deepInclude(yield* pool.metrics, { sessionCleanUps: 2, sessionCleanUpFailures: 0 })
    }))

  it.effect("single: deletes the session of a caller's own token too", () =>
    Effect.gen(function*() {
      const { calls, driver } = makeDriver()
      const { change, pool } = yield* buildPool({
        accounts: accounts("a"),
        auto_delete: { mode: "single" }
      }, () => driver)
      const own = yield* hold(pool, direct("own"))
      yield* own.lease.registerSession("s1")
      yield* own.free
      yield* Effect.yieldNow
      assert.deepStrictEqual(deletions(calls), ["delete s1 with own"])
      // The other sessions in a caller's own account are not deleted.
      yield* change({ auto_delete: { mode: "all" } })
      const again = yield* hold(pool, direct("own"))
      yield* again.lease.registerSession("s2")
      yield* again.free
      yield* Effect.yieldNow
      assert.deepStrictEqual(deletions(calls), ["delete s1 with own", "delete s2 with own"])
    }))

  it.effect("all: waits until the account has no leases", () =>
    Effect.gen(function*() {
      const { calls, driver } = makeDriver()
      const { pool } = yield* buildPool({ accounts: accounts("a"), auto_delete: { mode: "all" } }, () => driver)
      const one = yield* use(pool, ["s1"])
      const two = yield* use(pool, [])
      yield* one.free
      yield* Effect.yieldNow
      assert.deepStrictEqual(deletions(calls), [])
      yield* two.free
      yield* Effect.yieldNow
      assert.deepStrictEqual(deletions(calls), ["delete all with a-1"])
      yield* shows(pool, { in_use: 0 })
    }))

  it.effect("all: does not run for a slot that goes straight to a waiter", () =>
    Effect.gen(function*() {
      const { calls, driver } = makeDriver()
      const { pool } = yield* buildPool({
        accounts: accounts("a"),
        runtime: { account_max_inflight: 1 },
        auto_delete: { mode: "all" }
      }, () => driver)
      const one = yield* use(pool, ["s1"])
      const waiting = yield* ask(pool)
      yield* one.free
      const two = yield* Fiber.join(waiting)
      yield* Effect.yieldNow
      assert.deepStrictEqual(deletions(calls), [])
      yield* two.free
      yield* Effect.yieldNow
      assert.deepStrictEqual(deletions(calls), ["delete all with a-1"])
    }))

  it.effect("all: a lease prefers an account whose sessions are not being deleted", () =>
    Effect.gen(function*() {
      const { driver, open, state } = yield* heldDeletion
      const { pool } = yield* buildPool({ accounts: accounts("a", "b"), auto_delete: { mode: "all" } }, () => driver)
      const onA = yield* use(pool, ["s1"])
      const onB = yield* use(pool, [])
      yield* onA.free
      yield* onB.free
      yield* Effect.yieldNow
      assert.strictEqual(state.running, 1)
      assert.strictEqual((yield* hold(pool)).account, "b@x.org")
      yield* open
      yield* Effect.yieldNow
      assert.strictEqual((yield* hold(pool)).account, a)
    }))

  it.effect("all: a lease waits for a running deletion", () =>
    Effect.gen(function*() {
      const { driver, open, state } = yield* heldDeletion
      const { pool } = yield* buildPool({ accounts: accounts("a"), auto_delete: { mode: "all" } }, () => driver)
      yield* (yield* use(pool, ["s1"])).free
      const waiting = yield* ask(pool)
      yield* TestClock.adjust("4 seconds")
      assert.isUndefined(waiting.pollUnsafe())
      yield* open
      const { account, lease } = yield* Fiber.join(waiting)
      assert.deepStrictEqual([account, lease.waited], [a, 4000])
      assert.deepStrictEqual(state, { running: 0, interrupted: 0 })
    }))

  it.effect("all: a lease waits five seconds at most, and the deletion is then abandoned", () =>
    Effect.gen(function*() {
      const { driver, state } = yield* heldDeletion
      const { pool } = yield* buildPool({ accounts: accounts("a"), auto_delete: { mode: "all" } }, () => driver)
      yield* (yield* use(pool, ["s1"])).free
      const waiting = yield* ask(pool)
      yield* TestClock.adjust("5 seconds")
      yield* Fiber.join(waiting)
      yield* Effect.yieldNow
      assert.deepStrictEqual(state, { running: 0, interrupted: 1 })
    }))

  it.effect("a failed deletion fails no request", () =>
    Effect.gen(function*() {
      const failure = Effect.fail(new UpstreamFailure({ phase: "session", kind: "transport" }))
      const { driver } = makeDriver({ sessions: { delete: () => failure, deleteAll: () => failure } })
      const { change, pool } = yield* buildPool({
        accounts: accounts("a"),
        auto_delete: { mode: "single" }
      }, () => driver)
      yield* (yield* use(pool, ["s1", "s2"])).free
      yield* change({ auto_delete: { mode: "all" } })
      yield* (yield* use(pool, ["s3"])).free
      yield* Effect.yieldNow
      yield* (yield* use(pool, [])).free
      assert.deepInclude(yield* pool.metrics, { sessionCleanUps: 0, sessionCleanUpFailures: 3 })
      yield* shows(pool, { in_use: 0, available: 1 })
    }))

  it.effect("has no effect on an upstream without sessions", () =>
    Effect.gen(function*() {
      const { calls, driver } = makeDriver({}, { sessions: undefined })
      const { pool } = yield* buildPool({ accounts: accounts("a"), auto_delete: { mode: "all" } }, () => driver)
      yield* (yield* use(pool, ["s1"])).free
      yield* Effect.yieldNow
      assert.deepStrictEqual(deletions(calls), [])
    }))

  it.effect("a deletion gets five seconds when the gateway stops", () =>
    Effect.gen(function*() {
      const { driver, open, state } = yield* heldDeletion
      const config = { accounts: accounts("a"), auto_delete: { mode: "all" } }
      const stop = Effect.fnUntraced(function*(pool: Pool, scope: Scope.Closeable) {
        yield* (yield* use(pool, ["s1"])).free
        yield* Effect.yieldNow
        assert.strictEqual(state.running, 1)
        const stopping = yield* Effect.forkChild(Scope.close(scope, Exit.void))
        yield* TestClock.adjust("4 seconds")
        assert.isUndefined(stopping.pollUnsafe())
        return stopping
      })
      const first = yield* Scope.make()
      const stuck = yield* stop((yield* Scope.provide(buildPool(config, () => driver), first)).pool, first)
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(stuck)
      assert.deepStrictEqual(state, { running: 0, interrupted: 1 })

      const second = yield* Scope.make()
      const slow = yield* stop((yield* Scope.provide(buildPool(config, () => driver), second)).pool, second)
      yield* open
      yield* Fiber.join(slow)
      assert.deepStrictEqual(state, { running: 0, interrupted: 1 })
    }))
})
