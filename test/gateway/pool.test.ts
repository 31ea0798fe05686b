/** The pool as callers and the upstream see it over sockets: limits, queue, tokens, pinned requests, health, sessions. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Report } from "../../src/testing/CallLog.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import {
  accounts,
  admin,
  chat,
  emailOf,
  hold,
  isQuiet,
  queueOf,
  type Said,
  type Site,
  startSite,
  textOf,
  times,
  untilQueue
} from "./support.ts"

let site: Site
afterEach(() => site.stop())

const fail = (order: Parameters<Site["reference"]["fail"]>[0]) => Effect.runPromise(site.reference.fail(order))

const items = async () =>
  (await admin(site.url, "GET", "/admin/accounts"))["items"] as ReadonlyArray<
    Record<string, unknown>
  >
const itemOf = async (name: string) => (await items()).find(({ email }) => email === emailOf(name))

const completionsBy = (report: Report, name: string) =>
  report.requests.filter(({ account, call }) => call === "completion" && account === emailOf(name)).length

describe("pool limits", () => {
  const rows = [
    {
      about: "slots of each account",
      runtime: { account_max_inflight: 3, account_max_queue: 200 },
      perAccount: 3,
      all: 12
    },
    {
      about: "slots of all accounts together",
      runtime: { account_max_inflight: 3, account_max_queue: 200, global_max_inflight: 7 },
      perAccount: 3,
      all: 7
    }
  ]
  for (const { about, all, perAccount, runtime } of rows) {
    it(`${about} are all used by 200 callers, and never exceeded`, async () => {
      site = await startSite({ accounts: accounts("a", "b", "c", "d"), runtime }, {
        reference: { maxRunning: perAccount, remember: 0 }
      })
      const held = await Promise.all(times(all, () => hold(site)))
      const answers = times(200 - all, (i) => chat(site.url, `!say ${i}`, { stream: i % 2 === 0 }))
      await untilQueue(site, { waiting: 200 - all, in_use: all })
      assert.strictEqual((await site.report()).streams, all)
      for (const { end } of held) end()
      assert.deepStrictEqual((await Promise.all(answers)).map(textOf), times(200 - all, String))
      const report = await site.until(isQuiet)
      assert.strictEqual(report.mostStreams, all)
      for (const name of ["a", "b", "c", "d"]) assert.isAtMost(report.mostAtOnce[emailOf(name)] ?? 0, perAccount)
      assert.deepInclude(report.calls, { login: 4, create: 200, completion: 200, stop_stream: all })
      assert.deepInclude(await queueOf(site), { in_use: 0, waiting: 0, available: 4 })
    })
  }

  it("exactly the requests without a slot or a place in the queue are rejected", async () => {
    site = await startSite({
      accounts: accounts("a", "b"),
      runtime: { account_max_inflight: 2, account_max_queue: 5 }
    })
    const held = await Promise.all(times(4, () => hold(site)))
    const waiting = times(5, (i) => chat(site.url, `!say ${i}`))
    await untilQueue(site, { waiting: 5 })
    const turnedAway = await Promise.all(times(191, (i) => chat(site.url, "!say no", { stream: i % 2 === 0 })))
    for (const said of turnedAway) {
      assert.deepInclude(said, { status: 429, text: "", ending: "whole", shouldRetry: undefined })
      assert.deepInclude(said.error, { code: "rate_limit_exceeded", type: "rate_limit_error" })
      assert.match(said.retryAfter ?? "", /^[1-9]\d*$/)
    }
    for (const { end } of held) end()
    assert.deepStrictEqual((await Promise.all(waiting)).map(textOf), times(5, String))
    const { calls, mostStreams } = await site.until(isQuiet)
    assert.deepInclude({ mostStreams, completion: calls.completion }, { mostStreams: 4, completion: 9 })
  })

  it("waiting requests are served in order of arrival", async () => {
    site = await startSite({ accounts: accounts("a"), runtime: { account_max_inflight: 1, account_max_queue: 9 } })
    const { end } = await hold(site)
    const waiting: Array<Promise<Said>> = []
    for (let i = 0; i < 9; i++) {
      waiting.push(chat(site.url, `!say ${i}`))
      await untilQueue(site, { waiting: i + 1 })
    }
    end()
    await Promise.all(waiting)
    const { prompts } = await site.until(isQuiet)
    assert.deepStrictEqual(prompts.slice(1).map((prompt) => /!say (\d)/.exec(prompt)?.[1]), times(9, String))
  })

  it("a request that waits longer than timeouts.queue is rejected with 429", async () => {
    const clock = makeMovedClock({ still: true })
    site = await startSite(
      { accounts: accounts("a"), runtime: { account_max_inflight: 1, account_max_queue: 9 } },
      { timeouts: { queue: 5 }, clock }
    )
    const { end } = await hold(site)
    for (const stream of [true, false]) {
      const asking = chat(site.url, "!say one", { stream })
      await untilQueue(site, { waiting: 1 })
      clock.move(4_900)
      assert.deepInclude(await queueOf(site), { waiting: 1 })
      clock.move(200)
      const said = await asking
      assert.deepInclude(said, { status: 429, ending: "whole" })
      assert.strictEqual(said.error?.code, "rate_limit_exceeded")
      assert.match(said.retryAfter ?? "", /^[1-9]\d*$/)
    }
    end()
    await site.until(isQuiet)
  })

  it("a caller's own token counts in the global limit, and in no account's", async () => {
    site = await startSite({
      accounts: accounts("a"),
      auth: { direct_max_inflight: 2 },
      runtime: { account_max_inflight: 2, account_max_queue: 1, global_max_inflight: 2 }
    })
    const own = await Promise.all(times(2, () => hold(site, { key: "a-token-of-my-own" })))
    assert.deepInclude(await queueOf(site), { in_use: 2, in_use_accounts: [] })
    const waiting = chat(site.url, "!say one")
    await untilQueue(site, { waiting: 1 })
    assert.strictEqual((await chat(site.url, "!say no", { key: "another-token" })).error?.code, "rate_limit_exceeded")
    own[0]?.end()
    assert.strictEqual(textOf(await waiting), "one")
    own[1]?.end()
    await site.until(isQuiet)
  })
})

describe("account tokens", () => {
  it("tokens that are revoked under load are replaced by one login per account, and every request succeeds", async () => {
    site = await startSite({
      accounts: accounts("a", "b"),
      runtime: { account_max_inflight: 8, account_max_queue: 200 }
    }, { reference: { remember: 0 } })
    const callers = times(40, async (i) => {
      const said: Array<Said> = []
      for (let k = 0; k < 10; k++) said.push(await chat(site.url, "!say one two", { stream: i % 2 === 0 }))
      return said
    })
    for (const round of [1, 2, 3]) {
      await site.until(({ finished, logins }) =>
        finished > 200 * round && logins[emailOf("a")] === round && logins[emailOf("b")] === round
      )
      await Effect.runPromise(site.reference.revoke())
    }
    const said = (await Promise.all(callers)).flat()
    assert.deepStrictEqual(said.map(textOf), Array(400).fill("one two"))
    const { logins } = await site.until(isQuiet)
    assert.deepStrictEqual(logins, { [emailOf("a")]: 4, [emailOf("b")]: 4 })
  })

  it("one login serves all requests that need the first token", async () => {
    site = await startSite({
      accounts: accounts("a"),
      runtime: { account_max_inflight: 50, account_max_queue: 0 }
    })
    await fail({ name: "slow", call: "login", millis: 50 })
    const said = await Promise.all(times(50, () => chat(site.url, "!say one")))
    assert.deepStrictEqual(said.map(textOf), Array(50).fill("one"))
    assert.deepStrictEqual((await site.until(isQuiet)).logins, { [emailOf("a")]: 1 })
  })

  it("an old token is refreshed in the background while it serves", async () => {
    const clock = makeMovedClock({ still: true })
    const hour = 3_600_000
    site = await startSite({
      accounts: accounts("a"),
      runtime: { account_max_inflight: 4, account_max_queue: 50, token_refresh_interval_hours: 2 }
    }, { clock })
    assert.strictEqual(textOf(await chat(site.url, "!say one")), "one")
    clock.move(2.5 * hour)
    await fail({ name: "hang-before-headers", call: "login" })
    const said = await Promise.all(times(20, () => chat(site.url, "!say old")))
    assert.deepStrictEqual(said.map(textOf), Array(20).fill("old"))
    const during = await site.report()
    assert.deepStrictEqual(during.logins, { [emailOf("a")]: 1 })
    assert.strictEqual(during.calls.login, 2)
    // A failed refresh is retried later, while the old token serves.
    while ((await site.report()).calls.login < 3) {
      clock.move(0.02 * hour)
      assert.strictEqual(textOf(await chat(site.url, "!say old")), "old")
    }
    assert.strictEqual(textOf(await chat(site.url, "!say new")), "new")
    assert.deepStrictEqual((await site.until(isQuiet)).logins, { [emailOf("a")]: 2 })
    assert.deepInclude(await itemOf("a"), { health: "ready" })
  })

  it("an account's expired token is replaced although the refreshed token of another account was rejected too", async () => {
    site = await startSite({ accounts: accounts("a", "b") })
    for (const text of ["one", "two"]) assert.strictEqual(textOf(await chat(site.url, `!say ${text}`)), text)
    await Effect.runPromise(site.reference.revoke())
    await fail({ name: "token-expired", account: emailOf("a"), times: 2 })
    const failed = await chat(site.url, "!say three")
    assert.strictEqual(failed.error?.code, "no_account_available")
    // The token failed, not the account: it stays in rotation, and logs in when it is needed.
    assert.deepInclude(await queueOf(site), { available_accounts: [emailOf("b")] })
    assert.strictEqual(textOf(await chat(site.url, "!say four")), "four")
    assert.deepStrictEqual((await site.until(isQuiet)).logins, { [emailOf("a")]: 2, [emailOf("b")]: 2 })
  })
})

describe("a pinned request", () => {
  it("stays on its account under load, faults and rate limits", async () => {
    site = await startSite({
      accounts: accounts("a", "b", "c"),
      runtime: { account_max_inflight: 2, account_max_queue: 100 }
    }, { clock: makeMovedClock({ still: true }) })
    const target = "  B@x.ORG "
    const mixed = await Promise.all(
      times(60, (i) => chat(site.url, "!pace 1ms\n!say one two", i % 2 === 0 ? { target } : {}))
    )
    assert.deepStrictEqual(mixed.map(textOf), Array(60).fill("one two"))
    const loaded = await site.until(isQuiet)
    assert.isAtLeast(completionsBy(loaded, "b"), 30)
    assert.isAtMost(loaded.mostAtOnce[emailOf("b")] ?? 0, 2)

    await Effect.runPromise(site.reference.forget)
    await fail({ name: "trouble", account: emailOf("b"), times: 3 })
    assert.strictEqual((await chat(site.url, "!say one", { target })).error?.code, "upstream_error")
    await fail({ name: "rate-limited", retryAfter: 90, account: emailOf("b") })
    // The two remaining faults are used up first.
    for (const code of ["upstream_error", "upstream_error", "upstream_rate_limited", "upstream_rate_limited"]) {
      assert.strictEqual((await chat(site.url, "!say one", { target })).error?.code, code)
    }
    const limited = await chat(site.url, "!say one", { target })
    assert.deepInclude(limited, { status: 429, shouldRetry: "false", retryAfter: "90" })
    assert.strictEqual(textOf(await chat(site.url, "!say free")), "free")
    const { requests } = await site.until(isQuiet)
    assert.deepStrictEqual(
      requests.filter(({ call }) => call === "completion").map(({ account }) => account).slice(0, 4),
      Array(4).fill(emailOf("b"))
    )
    assert.strictEqual(completionsBy(await site.report(), "b"), 4)
  })

  it("waits for its own account without blocking others", async () => {
    site = await startSite({
      accounts: accounts("a", "b"),
      runtime: { account_max_inflight: 1, account_max_queue: 5 }
    })
    const { end } = await hold(site, { target: emailOf("b") })
    const pinned = chat(site.url, "!say pinned", { target: emailOf("b") })
    await untilQueue(site, { waiting: 1 })
    for (let i = 0; i < 3; i++) assert.strictEqual(textOf(await chat(site.url, `!say ${i}`)), String(i))
    assert.deepInclude(await queueOf(site), { waiting: 1 })
    end()
    assert.strictEqual(textOf(await pinned), "pinned")
    const report = await site.until(isQuiet)
    assert.deepStrictEqual([completionsBy(report, "a"), completionsBy(report, "b")], [3, 2])
  })

  it("is rejected with 400 if its account is not configured", async () => {
    site = await startSite({ accounts: accounts("a") })
    const said = await chat(site.url, "!say one", { target: "nobody@x.org" })
    assert.deepInclude(said, { status: 400, shouldRetry: "false" })
    assert.strictEqual(said.error?.code, "invalid_request")
    assert.strictEqual(said.error?.param, "X-Gateway-Target-Account")
    assert.strictEqual((await site.report()).calls.login, 0)
  })
})

describe("an account that the upstream rejects", () => {
  it("a suspended account leaves the rotation with a reason, and returns after a successful test", async () => {
    site = await startSite({ accounts: accounts("a", "b") })
    for (const text of ["one", "two"]) assert.strictEqual(textOf(await chat(site.url, `!say ${text}`)), text)
    await Effect.runPromise(site.reference.suspend(emailOf("a"), true))
    const said = await Promise.all(times(6, (i) => chat(site.url, `!say ${i}`, { stream: i % 2 === 0 })))
    assert.deepStrictEqual(said.map(textOf), times(6, String))
    assert.deepInclude(await itemOf("a"), { health: "out", test_status: "failed", in_use: 0 })
    assert.match(String((await itemOf("a"))?.["health_reason"]), /suspended/)
    assert.isAbove(Number((await itemOf("a"))?.["recovery_seconds"]), 0)
    assert.deepInclude(await itemOf("b"), { health: "ready", health_reason: null, recovery_seconds: null })
    assert.deepInclude(await queueOf(site), { available: 1, available_accounts: [emailOf("b")], total: 2 })

    await Effect.runPromise(site.reference.suspend(emailOf("a"), false))
    const test = await admin(site.url, "POST", "/admin/accounts/test", { identifier: emailOf("a") })
    assert.deepInclude(test, { success: true })
    assert.deepInclude(await itemOf("a"), { health: "ready", health_reason: null, test_status: "ok" })
    await site.until(isQuiet)
  })

  it("a wrong password of the only account empties the pool, without a login for each request", async () => {
    site = await startSite({ accounts: accounts("a") }, {
      reference: { accounts: [{ email: emailOf("a"), password: "another" }] }
    })
    const said = await Promise.all(times(5, () => chat(site.url, "!say one")))
    for (const { error, status } of said) {
      assert.deepInclude({ status, code: error?.code }, { status: 503, code: "no_account_available" })
    }
    assert.deepInclude(await itemOf("a"), { health: "out", test_status: "failed" })
    assert.match(String((await itemOf("a"))?.["health_reason"]), /login/)
    // Out of rotation: a request causes no login.
    const { refusedLogins } = await site.report()
    assert.strictEqual((await chat(site.url, "!say one")).status, 503)
    assert.strictEqual((await site.report()).refusedLogins, refusedLogins)
    assert.strictEqual(refusedLogins, 1)

    await admin(site.url, "POST", "/admin/accounts/test", { identifier: emailOf("a") })
    assert.strictEqual((await site.report()).refusedLogins, 2)
  })

  it("a rate-limited account cools down, and requests wait if the delay is short", async () => {
    const clock = makeMovedClock({ still: true })
    site = await startSite({
      accounts: accounts("a"),
      runtime: { account_max_inflight: 1, account_max_queue: 9 }
    }, { clock })
    await fail({ name: "rate-limited", retryAfter: 1 })
    const both = Promise.all([chat(site.url, "!say one"), chat(site.url, "!say two")])
    await untilQueue(site, { waiting: 2, in_use: 0 })
    assert.strictEqual((await site.report()).calls.completion, 1)
    clock.move(2_000)
    assert.deepStrictEqual((await both).map(textOf).toSorted(), ["one", "two"])
    await fail({ name: "rate-limited", retryAfter: 400 })
    const said = await chat(site.url, "!say three")
    assert.deepInclude(said, { status: 429, retryAfter: "400" })
    assert.deepInclude(await itemOf("a"), { health: "cooling", test_status: "" })
    await site.until(isQuiet)
  })
})

describe("auto_delete", () => {
  it("single: deletes each session after its slot is free", async () => {
    const clock = makeMovedClock({ still: true })
    site = await startSite({
      accounts: accounts("a"),
      auto_delete: { mode: "single" },
      runtime: { account_max_inflight: 1, account_max_queue: 0 }
    }, { timeouts: { first_byte: 5 }, clock })
    await fail({ name: "hang-before-headers", call: "delete" })
    assert.strictEqual(textOf(await chat(site.url, "!say one", { stream: true })), "one")
    await site.until(({ calls }) => calls.delete === 1)
    await untilQueue(site, { in_use: 0 })
    assert.strictEqual(textOf(await chat(site.url, "!say two")), "two")
    const { requests } = await site.report()
    assert.strictEqual(requests.find(({ call }) => call === "delete")?.outcome, "open")
    clock.move(6_000)
    const report = await site.until((report) => report.calls.delete === 2 && isQuiet(report))
    assert.deepInclude(report.sessions, { created: 2, deleted: 1 })
    assert.strictEqual(report.calls.delete_all, 0)
  })

  it("single: also deletes the sessions of failed attempts and disconnected callers", async () => {
    site = await startSite({ accounts: accounts("a", "b"), auto_delete: { mode: "single" } })
    await fail({ name: "trouble", times: 2 })
    assert.strictEqual(textOf(await chat(site.url, "!say one")), "one")
    const { end } = await hold(site)
    end()
    const report = await site.until(({ calls, sessions }) => calls.delete === 4 && sessions.open === 0)
    assert.strictEqual(report.sessions.created, 4)
    await site.until(isQuiet)
  })

  it("all: waits until the account has no lease, and the next lease waits for the deletion", async () => {
    site = await startSite({
      accounts: accounts("a"),
      auto_delete: { mode: "all" },
      runtime: { account_max_inflight: 2, account_max_queue: 9 }
    })
    const { end } = await hold(site)
    assert.strictEqual(textOf(await chat(site.url, "!say one")), "one")
    assert.strictEqual((await site.report()).calls.delete_all, 0)
    await fail({ name: "slow", call: "delete_all", millis: 50 })
    end()
    await site.until(({ calls }) => calls.delete_all === 1)
    assert.strictEqual(textOf(await chat(site.url, "!say two")), "two")
    const report = await site.until(({ calls, sessions }) => calls.delete_all === 2 && sessions.open === 0)
    assert.deepStrictEqual(
      report.requests.map(({ call }) => call).filter((call) => call === "create" || call === "delete_all"),
      ["create", "create", "delete_all", "create", "delete_all"]
    )
    assert.strictEqual(report.sessions.deleted, 3)
    assert.strictEqual(report.calls.delete, 0)
    await site.until(isQuiet)
  })
})
