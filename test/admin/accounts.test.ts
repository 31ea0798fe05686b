/** Accounts that are disabled, noted, and changed in batches. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import { Accounts } from "../../src/accounts/Accounts.ts"
import {
  accounts,
  admin,
  chat,
  emailOf,
  hold,
  queueOf,
  type Site,
  startSite,
  textOf,
  times,
  untilQueue
} from "../gateway/support.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { type Answer, caller, storeOf } from "./support.ts"

type Item = Record<string, unknown>
const itemsIn = ({ json }: Answer) => json["items"] as ReadonlyArray<Item>

describe("a disabled account", () => {
  let site: Site
  afterEach(() => site.stop())

  const path = (name: string) => `/admin/accounts/${encodeURIComponent(emailOf(name))}`
  const mark = (name: string, marks: unknown) => admin(site.url, "PATCH", path(name), marks)

  it("gets no new lease under load, and no request is lost", async () => {
    site = await startSite({
      accounts: accounts("a", "b", "c"),
      runtime: { account_max_inflight: 2, account_max_queue: 200 }
    })
    const running = await hold(site, { target: emailOf("a") })
    const load = times(60, (i) => chat(site.url, `!pace 1ms\n!say ${i}`, { stream: i % 2 === 0 }))
    const { account } = await mark("a", { disabled: true })
    assert.deepInclude(account, { identifier: emailOf("a"), disabled: true, in_use: (account as Item)["in_use"] })
    const completions = async () => (await site.report()).requests.filter(({ call }) => call === "completion")
    const onDisabled = async (from: number) =>
      (await completions()).slice(from).filter(({ account }) => account === emailOf("a")).length
    const begun = (await completions()).length
    assert.deepStrictEqual((await Promise.all(load)).map(textOf), times(60, String))
    // A lease from before may reach the upstream only now: one slot was free beside the held one.
    assert.isAtMost(await onDisabled(begun), 1)
    const after = (await completions()).length
    const more = await Promise.all(times(20, (i) => chat(site.url, `!say ${i}`)))
    assert.deepStrictEqual(more.map(textOf), times(20, String))
    assert.strictEqual(await onDisabled(after), 0)
    // The running request continues.
    assert.deepInclude(await queueOf(site), {
      in_use: 1,
      in_use_accounts: [emailOf("a")],
      total: 2,
      available: 2,
      disabled: 1,
      recommended_concurrency: 4,
      global_max_inflight: 4
    })
    running.end()
    await untilQueue(site, { in_use: 0 })
    await mark("a", { disabled: false })
    assert.deepInclude(await queueOf(site), { total: 3, available: 3, disabled: 0, recommended_concurrency: 6 })
    assert.strictEqual(textOf(await chat(site.url, "!say back", { target: emailOf("a") })), "back")
  })

  it("rejects pinned requests, including waiting ones, and can still be tested", async () => {
    site = await startSite({ accounts: accounts("a", "b"), runtime: { account_max_inflight: 1, account_max_queue: 5 } })
    const target = emailOf("a")
    const running = await hold(site, { target })
    const waiting = chat(site.url, "!say one", { target })
    await untilQueue(site, { waiting: 1 })
    const { oldest_wait_ms, waiters } = await queueOf(site)
    assert.isAtLeast(Number(oldest_wait_ms), 0)
    assert.deepInclude((waiters as ReadonlyArray<Item>)[0], { style: "chat", account: target })
    await mark("a", { disabled: true })
    for (const said of [await waiting, await chat(site.url, "!say two", { target })]) {
      assert.deepInclude({ status: said.status, code: said.error?.code }, { status: 503, code: "no_account_available" })
    }
    assert.deepInclude(await queueOf(site), { waiting: 0, oldest_wait_ms: null, waiters: [] })
    const test = await admin(site.url, "POST", "/admin/accounts/test", { identifier: target })
    assert.deepInclude(test, { success: true })
    assert.strictEqual((await chat(site.url, "!say three", { target })).status, 503)
    running.end()
  })

  it("that was out of rotation stays out after it is enabled again", async () => {
    site = await startSite({ accounts: accounts("a", "b") })
    await Effect.runPromise(site.reference.suspend(emailOf("a"), true))
    for (const text of ["one", "two"]) assert.strictEqual(textOf(await chat(site.url, `!say ${text}`)), text)
    assert.deepInclude(await queueOf(site), { out: 1, total: 2 })
    await mark("a", { disabled: true })
    assert.deepInclude(await queueOf(site), { out: 0, disabled: 1, total: 1 })
    await mark("a", { disabled: false })
    assert.deepInclude(await queueOf(site), { out: 1, disabled: 0, total: 2 })
  })

  it("that is the only one leaves requests without an account", async () => {
    site = await startSite({ accounts: accounts("a") })
    await mark("a", { disabled: true })
    assert.strictEqual((await chat(site.url, "!say one")).error?.code, "no_account_available")
    assert.deepInclude(await queueOf(site), { total: 0, available: 0, recommended_concurrency: 0 })
  })
})

describe("accounts out of rotation", () => {
  it("are counted by their causes, say since when, and serve again with another password", async () => {
    const known = accounts("a", "b", "c").map((each, place) => place === 2 ? { ...each, password: "right" } : each)
    const site = await startSite({ accounts: accounts("a", "b", "c") }, { reference: { accounts: known } })
    for (const name of ["a", "b"]) await Effect.runPromise(site.reference.suspend(emailOf(name), true))
    for (const name of ["a", "b", "c"]) await chat(site.url, "!say one", { target: emailOf(name) })
    const list = async () => await admin(site.url, "GET", "/admin/accounts?sort=state&page_size=1")
    const { causes, counts, items } = await list() as {
      readonly causes: ReadonlyArray<Item>
      readonly counts: Item
      readonly items: ReadonlyArray<Item>
    }
    assert.deepInclude(counts, { all: 3, out: 3 })
    // The causes name accounts beyond the page, and add up.
    assert.deepStrictEqual(causes.map(({ accounts, names, state }) => [state, accounts, names]), [
      ["out", 2, ["b", "a"].map(emailOf)],
      ["out", 1, ["c"].map(emailOf)]
    ])
    const [{ health_reason, health_since, identifier }] = items as readonly [Item]
    const cause = causes.find(({ names }) => (names as ReadonlyArray<unknown>).includes(identifier))
    assert.strictEqual(cause?.["reason"], health_reason)
    assert.isAtMost(Number(cause?.["since"]), Number(health_since))
    const path = `/admin/accounts/${encodeURIComponent(emailOf("c"))}`
    const { account } = await admin(site.url, "PATCH", path, { password: "right" })
    assert.deepInclude(account, { identifier: emailOf("c"), health: "ready", health_reason: null, health_since: null })
    assert.strictEqual(textOf(await chat(site.url, "!say back", { target: emailOf("c") })), "back")
    await site.stop()
  })
})

describe("accounts in the admin API", () => {
  let gateway: RunningGateway
  const call = caller(() => gateway)
  beforeAll(async () => {
    gateway = await startGateway({
      accounts: [{ email: "One@x.org", password: "p", further: 1 }, { token: "a-long-token-of-two" }]
    })
  })
  afterAll(() => gateway.stop())

  const raw = async () => (await Effect.runPromise(storeOf(gateway).currentRaw))["accounts"] as ReadonlyArray<Item>
  const one = `/admin/accounts/${encodeURIComponent("one@x.org")}`

  it("reject a token that a header cannot carry", async () => {
    for (const token of ["to\nken", "to\u0000ken", "ключ"]) {
      const detail = "token has characters that no header can carry"
      const one = await call("POST", "/admin/accounts", { body: { token } })
      assert.deepStrictEqual([one.status, one.detail], [400, detail])
      const many = await call("POST", "/admin/accounts/batch", { body: { action: "add", accounts: [{ token }] } })
      assert.deepStrictEqual([many.json["changed"], many.json["failed"]], [0, 1])
      assert.deepInclude((many.json["results"] as ReadonlyArray<Item>)[0], { ok: false, detail: "token" })
    }
  })

  it("have a note and a disabled flag, which are listed and survive every way of writing", async () => {
    const marked = await call("PATCH", one, { body: { disabled: true, note: "on holiday" } })
    assert.deepInclude(marked.json, { success: true, config_writable: false, needs_host_sync: false })
    assert.deepInclude(marked.json["account"], { identifier: "One@x.org", disabled: true, note: "on holiday" })
    const expected = { email: "One@x.org", password: "p", further: 1, disabled: true, note: "on holiday" }
    assert.deepStrictEqual((await raw())[0], expected)
    assert.deepInclude(itemsIn(await call("GET", "/admin/accounts"))[1], { disabled: true, note: "on holiday" })
    const shown = await call("GET", "/admin/config")
    await call("POST", "/admin/config", { body: { accounts: shown.json["accounts"] } })
    assert.deepStrictEqual((await raw())[0], expected)
    const exported = await call("GET", "/admin/config/export")
    await call("POST", "/admin/config/import?mode=merge", { body: { accounts: [{ email: "one@x.org" }] } })
    await call("POST", "/admin/config/import?mode=replace", { body: exported.json["config"] })
    assert.deepStrictEqual((await raw())[0], expected)
    assert.strictEqual((await call("PATCH", one, { body: { disabled: false, note: "" } })).status, 200)
    assert.deepStrictEqual((await raw())[0], { email: "One@x.org", password: "p", further: 1 })
  })

  it("take a priority, a weight and budgets, and lose them by null", async () => {
    const budgets = [{ window: "day", requests: 5, cost: "1.5", strict: true }]
    const marks = { priority: 2, weight: 3, budgets }
    assert.strictEqual((await call("PATCH", one, { body: marks })).status, 200)
    assert.deepInclude((await raw())[0], marks)
    for (
      const body of [{ weight: 0 }, { priority: 0.5 }, { budgets: [{ window: "day" }] }, {
        budgets: [...budgets, ...budgets]
      }]
    ) {
      const refused = await call("PATCH", one, { body })
      assert.strictEqual(refused.status, 400, JSON.stringify(body))
      assert.match(refused.detail, new RegExp(Object.keys(body)[0]!))
    }
    assert.strictEqual(
      (await call("PATCH", one, { body: { priority: null, weight: null, budgets: null } })).status,
      200
    )
    assert.doesNotHaveAnyKeys((await raw())[0]!, ["priority", "weight", "budgets"])
  })

  it("reject invalid notes and flags, and unknown identifiers", async () => {
    const bodies = [{}, { disabled: null }, { disabled: "yes" }, { note: 7 }, { note: "x".repeat(201) }]
    for (const body of bodies) {
      const refused = await call("PATCH", one, { body })
      assert.strictEqual(refused.status, 400, JSON.stringify(body))
      assert.match(refused.detail, /disabled|note/)
    }
    const nothing = await call("PATCH", one, { body: {} })
    assert.deepStrictEqual(
      [nothing.status, nothing.detail],
      [
        400,
        "At least one of disabled, note, password, token, proxy, organization, priority, weight, budgets is required"
      ]
    )
    assert.strictEqual((await call("PATCH", "/admin/accounts/nobody", { body: { note: "x" } })).status, 404)
    assert.strictEqual((await call("PATCH", one, { body: { note: "x".repeat(200) } })).status, 200)
    await call("PATCH", one, { body: { note: "" } })
  })

  it("take another password or token, and keep their place, their marks and fields that are unknown", async () => {
    await call("PATCH", one, { body: { note: "of Ada" } })
    const changed = await call("PATCH", one, { body: { password: "q" } })
    assert.deepInclude(changed.json["account"], { identifier: "One@x.org", note: "of Ada" })
    assert.notInclude(JSON.stringify(changed.json), `"q"`)
    assert.deepStrictEqual((await raw())[0], { email: "One@x.org", password: "q", further: 1, note: "of Ada" })
    // The token of an account without a login is its name too.
    const identifierOf = async () => String(itemsIn(await call("GET", "/admin/accounts"))[0]!["identifier"])
    const other = async () => `/admin/accounts/${encodeURIComponent(await identifierOf())}`
    const before = await identifierOf()
    await call("PATCH", await other(), { body: { note: "of Grace" } })
    const renamed = await call("PATCH", await other(), { body: { token: " another-long-token " } })
    assert.deepInclude(renamed.json["account"], { note: "of Grace", token_preview: "anothe..." })
    assert.notStrictEqual((renamed.json["account"] as Item)["identifier"], before)
    assert.deepStrictEqual((await raw())[1], { token: "another-long-token", note: "of Grace" })
    for (
      const [path, body, fault] of [
        [one, { password: "" }, "password must not be empty"],
        [one, { token: " " }, "token must not be empty"],
        [one, { token: "to\nken" }, "token has characters that no header can carry"],
        [await other(), { password: "p" }, "password must be absent: the account has neither email nor mobile"]
      ] as const
    ) {
      const refused = await call("PATCH", path, { body })
      assert.deepStrictEqual([refused.status, refused.detail], [400, fault])
    }
    await call("POST", "/admin/accounts", { body: { token: "a-third-token" } })
    const taken = await call("PATCH", `/admin/accounts/${encodeURIComponent(await identifierOf())}`, {
      body: { token: "another-long-token" }
    })
    assert.deepStrictEqual([taken.status, taken.detail], [400, "The account already exists"])
    await call("DELETE", await other())
    await call("PATCH", await other(), { body: { token: "a-long-token-of-two", note: "" } })
    await call("PATCH", one, { body: { password: "p", note: "" } })
  })

  it("are filtered by state", async () => {
    await call("PATCH", one, { body: { disabled: true } })
    const names = async (state: string) =>
      itemsIn(await call("GET", `/admin/accounts?state=${state}`)).map(({ identifier }) => identifier)
    assert.deepStrictEqual(await names("disabled"), ["One@x.org"])
    assert.lengthOf(await names("ready"), 1)
    assert.deepStrictEqual([await names("cooling"), await names("out"), await names("failed")], [[], [], []])
    const sorted = await call("GET", "/admin/accounts?sort=state&state=")
    assert.strictEqual(itemsIn(sorted).at(-1)?.["identifier"], "One@x.org")
    assert.deepStrictEqual(sorted.json["counts"], { all: 2, out: 0, failed: 0, cooling: 0, ready: 1, disabled: 1 })
    // The states add up to all accounts; a failed test is a count of its own.
    await Effect.runPromise(Context.get(gateway.services, Accounts).setTestStatus("One@x.org", "failed", "no"))
    await call("PATCH", one, { body: { disabled: false } })
    const failed = await call("GET", "/admin/accounts?sort=state&state=failed")
    assert.deepStrictEqual(itemsIn(failed).map(({ identifier }) => identifier), ["One@x.org"])
    assert.deepStrictEqual(failed.json["counts"], { all: 2, out: 0, failed: 1, cooling: 0, ready: 2, disabled: 0 })
    assert.deepStrictEqual(failed.json["causes"], [
      { state: "failed", reason: null, accounts: 1, names: ["One@x.org"], recovery_seconds: null, since: null }
    ])
    const refused = await call("GET", "/admin/accounts?state=lost")
    assert.strictEqual(refused.status, 400)
    assert.include(refused.detail, "state")
    await call("PATCH", one, { body: { disabled: false } })
  })

  it("are added in a batch, with a result for each line", async () => {
    const accounts = [
      { email: "three@x.org", password: "p", note: "third" },
      { email: "ONE@x.org", password: "p" },
      { mobile: "13800000000", password: "p" },
      { mobile: "+86 138 0000 0000", password: "p" },
      { email: "four@x.org" },
      { email: 7, password: "p" },
      { email: "five@x.org", password: "p", note: "x".repeat(201) },
      "six@x.org"
    ]
    const expected = [
      { index: 0, identifier: "three@x.org", ok: true, detail: "" },
      { index: 1, identifier: "ONE@x.org", ok: false, detail: "duplicate" },
      { index: 2, identifier: "13800000000", ok: true, detail: "" },
      { index: 3, identifier: "+86 138 0000 0000", ok: false, detail: "duplicate" },
      { index: 4, identifier: "", ok: false, detail: "password" },
      { index: 5, identifier: "", ok: false, detail: "email" },
      { index: 6, identifier: "", ok: false, detail: "note" },
      { index: 7, identifier: "", ok: false, detail: "account" }
    ]
    const before = await raw()
    const tried = await call("POST", "/admin/accounts/batch", { body: { action: "add", accounts, dry_run: true } })
    assert.deepInclude(tried.json, { success: true, changed: 2, failed: 6, results: expected })
    assert.deepStrictEqual(await raw(), before)
    const added = await call("POST", "/admin/accounts/batch", { body: { action: "add", accounts } })
    assert.deepInclude(added.json, { success: true, changed: 2, failed: 6, results: expected, config_writable: false })
    assert.deepStrictEqual((await raw()).slice(before.length), [
      { email: "three@x.org", password: "p", note: "third" },
      { mobile: "13800000000", password: "p" }
    ])
  })

  it("are enabled, disabled and deleted in a batch", async () => {
    const identifiers = ["THREE@x.org", "nobody", "+8613800000000", "three@x.org"]
    const disabled = await call("POST", "/admin/accounts/batch", { body: { action: "disable", identifiers } })
    assert.deepInclude(disabled.json, {
      success: true,
      changed: 2,
      failed: 2,
      results: [
        { index: 0, identifier: "three@x.org", ok: true, detail: "" },
        { index: 1, identifier: "nobody", ok: false, detail: "unknown account" },
        { index: 2, identifier: "13800000000", ok: true, detail: "" },
        { index: 3, identifier: "three@x.org", ok: false, detail: "duplicate" }
      ]
    })
    assert.deepInclude((await call("GET", "/admin/queue/status")).json, { disabled: 2, total: 2 })
    const again = await call("POST", "/admin/accounts/batch", {
      body: { action: "disable", identifiers: ["three@x.org"] }
    })
    assert.deepInclude(again.json, { changed: 0, failed: 0 })
    await call("POST", "/admin/accounts/batch", { body: { action: "enable", identifiers: ["three@x.org"] } })
    assert.deepInclude((await call("GET", "/admin/queue/status")).json, { disabled: 1, total: 3 })
    const deleted = await call("POST", "/admin/accounts/batch", {
      body: { action: "delete", identifiers: ["three@x.org", "13800000000"] }
    })
    assert.deepInclude(deleted.json, { changed: 2, failed: 0 })
    assert.lengthOf(await raw(), 2)
  })

  it("reject a malformed batch", async () => {
    const bodies: ReadonlyArray<readonly [unknown, string]> = [
      [{}, "action"],
      [{ action: "burn", identifiers: [] }, "action"],
      [{ action: "add", identifiers: ["a"] }, "accounts"],
      [{ action: "delete", accounts: [] }, "identifiers"],
      [{ action: "delete", identifiers: times(20_001, String) }, "identifiers"],
      [{ action: "delete", identifiers: [], dry_run: "yes" }, "dry_run"]
    ]
    for (const [body, field] of bodies) {
      const refused = await call("POST", "/admin/accounts/batch", { body })
      assert.strictEqual(refused.status, 400)
      assert.include(refused.detail, field)
    }
  })
})
