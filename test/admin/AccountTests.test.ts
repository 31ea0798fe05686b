/** Tests of accounts against an upstream that each test scripts. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Accounts } from "../../src/accounts/Accounts.ts"
import { AccountTests } from "../../src/admin/accounts/AccountTests.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { type RawConfig, sha256Hex } from "../../src/config/json.ts"
import { tokenIdentifier } from "../../src/domain/identity.ts"
import { nativeModels } from "../../src/domain/models.ts"
import { resolveRoute } from "../../src/domain/routes.ts"
import { type UpstreamEvent, UpstreamFinish, UpstreamReasoning, UpstreamText } from "../../src/domain/UpstreamEvent.ts"
import { UpstreamFailure } from "../../src/domain/UpstreamFailure.ts"
import { Captures } from "../../src/recordings/Captures.ts"
import type { Driver } from "../../src/upstream/Upstream.ts"
import { Upstreams } from "../../src/upstream/Upstreams.ts"
import { accounts, anywhere, type DriverChanges, makeDriver } from "../accounts/support.ts"

/** A driver with scripted sessions and replies, and the calls that it received. */
const makeUpstream = (
  overrides: (calls: Array<string>) => DriverChanges = () => ({}),
  without: { readonly login?: undefined; readonly sessions?: undefined } = {}
) => {
  const made = makeDriver()
  const { calls } = made
  const { login = made.driver.capabilities.login, sessions, ...others } = overrides(calls)
  const driver: Driver = {
    ...made.driver,
    complete: ({ credential, model }) =>
      Effect.map(credential.token, (token) => {
        calls.push(`complete ${model.id} with ${token}`)
        return {
          id: "session-2",
          sessionId: "session-2",
          events: Stream.fromArray([UpstreamReasoning("thought"), UpstreamText("answer"), UpstreamFinish("stop")])
        }
      }),
    ...others,
    capabilities: {
      login,
      sessions: {
        ...made.driver.capabilities.sessions!,
        create: (token) => Effect.as(Effect.sync(() => void calls.push(`create with ${token}`)), "session-1"),
        list: (token) =>
          Effect.as(Effect.sync(() => void calls.push(`list with ${token}`)), [
            { id: "other", title: "", updatedAt: 0 }
          ]),
        ...sessions
      },
      ...without
    }
  }
  return { driver, calls }
}

const build = Effect.fnUntraced(function*(driver: Driver, config: RawConfig = { accounts: accounts("a", "b") }) {
  const context = yield* Layer.build(
    AccountTests.layer.pipe(
      Layer.provideMerge(Layer.mergeAll(Accounts.layer, Captures.layer)),
      Layer.provideMerge(
        ConfigStore.layerJson({ upstream: { driver: "session", base_url: "http://127.0.0.1:9" }, ...config })
      ),
      Layer.provide(Upstreams.layerOf(driver))
    )
  )
  const tests = Context.get(context, AccountTests)
  const pool = Context.get(context, Accounts)
  const store = Context.get(context, ConfigStore)
  return {
    tests,
    pool,
    test: (identifier: string, message = "", { id } = nativeModels[1]!) =>
      tests.test({
        identifier,
        message,
        model: resolveRoute(store.now().route_table, "usual", id),
        modelName: id,
        requestId: "request"
      }),
    factsOf: (identifier: string) => Effect.map(pool.describe([identifier]), ([facts]) => facts)
  }
})

const tokenExpired = new UpstreamFailure({ phase: "session", kind: "refused", refusal: "token" })

describe("an account test without a message", () => {
  it.effect("logs in, creates and deletes a session, and reports the number of sessions", () =>
    Effect.gen(function*() {
      const { calls, driver } = makeUpstream()
      const { factsOf, test } = yield* build(driver)
      assert.deepStrictEqual(yield* test("A@x.org"), {
        account: "A@x.org",
        success: true,
        response_time: 0,
        message: "The login works and a session was made",
        model: "upstream-reasoner",
        session_count: 1,
        config_writable: false
      })
      assert.deepStrictEqual(calls, ["login a", "create with a-1", "delete session-1 with a-1", "list with a-1"])
      assert.strictEqual((yield* factsOf("a@x.org"))?.testStatus, "ok")
      assert.strictEqual((yield* factsOf("b@x.org"))?.testStatus, "")
    }))

  it.effect("refreshes an expired token once", () =>
    Effect.gen(function*() {
      let expired = 1
      const { calls, driver } = makeUpstream((calls) => ({
        sessions: {
          create: (token) =>
            Effect.suspend(() => {
              calls.push(`create with ${token}`)
              return expired-- > 0 ? Effect.fail(tokenExpired) : Effect.succeed("session-1")
            })
        }
      }))
      const { factsOf, test } = yield* build(driver)
      assert.isTrue((yield* test("a@x.org")).success)
      assert.deepStrictEqual(calls.slice(0, 4), ["login a", "create with a-1", "login a", "create with a-2"])

      expired = 2
      const refused = yield* test("a@x.org")
      assert.deepInclude(refused, { success: false, session_count: 0 })
      assert.include(refused.message, "The upstream refused an account's token")
      assert.deepInclude(yield* factsOf("a@x.org"), { testStatus: "failed", health: "out" })
    }))

  it.effect("a success returns the account to rotation", () =>
    Effect.gen(function*() {
      let working = false
      const { driver } = makeUpstream(() => ({
        login: () =>
          working
            ? Effect.succeed("token")
            : Effect.fail(new UpstreamFailure({ phase: "login", kind: "refused", refusal: "login" }))
      }))
      const { factsOf, pool, test } = yield* build(driver)
      const failed = yield* test("a@x.org")
      assert.isFalse(failed.success)
      assert.include(failed.message, "The login of an account was refused by the upstream")
      assert.deepInclude(yield* factsOf("a@x.org"), { health: "out", testStatus: "failed" })
      assert.strictEqual((yield* pool.status).available, 1)
      working = true
      assert.isTrue((yield* test("a@x.org")).success)
      assert.deepInclude(yield* factsOf("a@x.org"), { health: "ready", testStatus: "ok", reason: undefined })
      assert.strictEqual((yield* pool.status).available, 2)
    }))

  it.effect("succeeds without sessions that cannot be deleted or listed, and does not wait for the deletion", () =>
    Effect.gen(function*() {
      const { driver } = makeUpstream(() => ({
        sessions: { delete: () => Effect.never, list: () => Effect.fail(tokenExpired) }
      }))
      const { test } = yield* build(driver)
      const running = yield* Effect.forkChild(test("a@x.org"))
      yield* TestClock.adjust("5 seconds")
      assert.deepInclude(yield* Fiber.join(running), { success: true, session_count: 0 })
    }))

  it.effect("checks the token if the upstream keeps no sessions, and says so", () =>
    Effect.gen(function*() {
      const { calls, driver } = makeUpstream(() => ({ name: "openai" }), { login: undefined, sessions: undefined })
      const { test, tests } = yield* build(driver, { accounts: [{ token: "server-key" }, ...accounts("a")] })
      const identifier = tokenIdentifier("server-key", sha256Hex)
      assert.deepInclude(yield* test(identifier), {
        success: true,
        session_count: 0,
        message: "The account works; the openai upstream keeps no sessions"
      })
      assert.deepStrictEqual(calls, ["verify server-key"])
      assert.include(yield* tests.deleteSessions(identifier), "keeps no sessions")
      assert.deepStrictEqual(calls, ["verify server-key"])
    }))

  it.effect("of an unknown account fails with a message", () =>
    Effect.gen(function*() {
      const { calls, driver } = makeUpstream()
      const { test } = yield* build(driver)
      assert.deepInclude(yield* test("stranger@x.org"), {
        account: "stranger@x.org",
        success: false,
        message: "No such account is configured"
      })
      assert.deepStrictEqual(calls, [])
    }))
})

describe("an account test with a message", () => {
  it.effect("completes on the account, reports the reasoning, and deletes the session", () =>
    Effect.gen(function*() {
      const { calls, driver } = makeUpstream()
      const { test } = yield* build(driver)
      assert.deepInclude(yield* test("b@x.org", "hello"), {
        success: true,
        message: "answer",
        thinking: "thought",
        session_count: 1
      })
      assert.deepStrictEqual(calls, [
        "login b",
        "complete upstream-reasoner with b-1",
        "delete session-2 with b-1",
        "list with b-1"
      ])
    }))

  it.effect("fails on an empty, an interrupted and a withdrawn reply", () =>
    Effect.gen(function*() {
      const broken = new UpstreamFailure({ phase: "stream", kind: "truncated" })
      const replies: ReadonlyArray<readonly [Stream.Stream<UpstreamEvent, UpstreamFailure>, RegExp]> = [
        [Stream.succeed(UpstreamFinish("stop")), /no (?:reply|answer|text|output)|empty/i],
        [Stream.concat(Stream.succeed(UpstreamText("half")), Stream.fail(broken)), /broke|cut|ended/i],
        [Stream.succeed(UpstreamFinish("content_filter")), /content filter/]
      ]
      let next = 0
      const { calls, driver } = makeUpstream(() => ({
        complete: () => Effect.sync(() => ({ id: "session-2", sessionId: "session-2", events: replies[next++]![0] }))
      }))
      const { factsOf, test } = yield* build(driver)
      for (const [, message] of replies) {
        const result = yield* test("a@x.org", "hello")
        assert.isFalse(result.success)
        assert.match(result.message, message)
        assert.notProperty(result, "thinking")
      }
      assert.strictEqual(calls.filter((call) => call.startsWith("delete session-2")).length, 3)
      assert.strictEqual((yield* factsOf("a@x.org"))?.testStatus, "failed")
    }))

  it.effect("ends after 120 seconds, and deletes its session when the operator disconnects", () =>
    Effect.gen(function*() {
      const started = yield* Deferred.make<void>()
      const { calls, driver } = makeUpstream(() => ({
        complete: () =>
          Effect.as(Deferred.succeed(started, undefined), {
            id: "session-2",
            sessionId: "session-2",
            events: Stream.never
          })
      }))
      const { test } = yield* build(driver)
      const slow = yield* Effect.forkChild(test("a@x.org", "hello"))
      yield* Deferred.await(started)
      yield* TestClock.adjust("120 seconds")
      assert.deepInclude(yield* Fiber.join(slow), { success: false, response_time: 120_000 })

      const left = yield* Effect.forkChild(test("a@x.org", "hello"))
      yield* TestClock.adjust("1 second")
      calls.length = 0
      yield* Fiber.interrupt(left)
      assert.deepStrictEqual(calls, ["delete session-2 with a-1"])
    }))

  it.effect("takes no slot, so that a busy account can be tested", () =>
    Effect.gen(function*() {
      const { driver } = makeUpstream()
      const { pool, test } = yield* build(driver, {
        accounts: accounts("a"),
        runtime: { account_max_inflight: 1, account_max_queue: 0 }
      })
      yield* Effect.scoped(Effect.gen(function*() {
        yield* pool.lease({ _tag: "Managed", owner: "key", target: undefined }, anywhere)
        assert.isTrue((yield* test("a@x.org", "hello")).success)
        assert.strictEqual((yield* pool.status).in_use, 1)
      }))
    }))
})

describe("deletion of an account's sessions", () => {
  it.effect("uses the account's token, and refreshes it if it has expired", () =>
    Effect.gen(function*() {
      let expired = true
      const { calls, driver } = makeUpstream((calls) => ({
        sessions: {
          deleteAll: (token) =>
            Effect.suspend(() => {
              calls.push(`delete all with ${token}`)
              if (!expired) return Effect.void
              expired = false
              return Effect.fail(tokenExpired)
            })
        }
      }))
      const { tests } = yield* build(driver)
      assert.isUndefined(yield* tests.deleteSessions("a@x.org"))
      assert.deepStrictEqual(calls, ["login a", "delete all with a-1", "login a", "delete all with a-2"])
    }))

  it.effect("fails with the upstream's error", () =>
    Effect.gen(function*() {
      const { driver } = makeUpstream(() => ({
        sessions: {
          deleteAll: () =>
            Effect.fail(
              new UpstreamFailure({ phase: "session", kind: "refused", refusal: "other", message: "on fire" })
            )
        }
      }))
      const { tests } = yield* build(driver)
      assert.include((yield* Effect.flip(tests.deleteSessions("a@x.org"))).message, "on fire")
      assert.strictEqual((yield* Effect.flip(tests.deleteSessions("nobody"))).message, "No such account is configured")
    }))
})
