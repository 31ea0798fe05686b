/**
 * Settings, accounts, keys and the upstream change while requests run: each change takes effect at once and drops no
 * request.
 */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { make, type Reference } from "../../src/testing/Reference.ts"
import { businessKey } from "../support/gateway.ts"
import {
  account,
  accounts,
  admin,
  chat,
  type ChatOptions,
  emailOf,
  hold,
  isQuiet,
  queueOf,
  readSaid,
  send,
  type Site,
  startSite,
  textOf,
  times,
  untilQueue
} from "./support.ts"

let site: Site
afterEach(() => site.stop())

const put = (settings: unknown) => admin(site.url, "PUT", "/admin/settings", settings)
const addAccount = (name: string) => admin(site.url, "POST", "/admin/accounts", account(name))
const removeAccount = (name: string) =>
  admin(site.url, "DELETE", `/admin/accounts/${encodeURIComponent(emailOf(name))}`)

/** A stream that has sent its first word; the second word comes late enough for a change in between. */
const begin = async (options: ChatOptions = {}) => {
  const response = await send(site.url, "!say one\n!wait 300ms\n!say \" two\"", { ...options, stream: true })
  assert.strictEqual(response.status, 200)
  return { text: async () => textOf(await readSaid(response)) }
}

describe("changed limits", () => {
  it("a raised limit admits waiting requests immediately", async () => {
    site = await startSite({ accounts: accounts("a"), runtime: { account_max_inflight: 1, account_max_queue: 20 } })
    const first = await hold(site)
    const waiting = times(10, (i) => chat(site.url, `!say ${i}`, { stream: i % 2 === 0 }))
    await untilQueue(site, { waiting: 10 })
    await put({ runtime: { account_max_inflight: 11 } })
    assert.deepStrictEqual((await Promise.all(waiting)).map(textOf), times(10, String))
    assert.strictEqual((await site.report()).streams, 1)
    first.end()
    await site.until(isQuiet)
  })

  it("a lowered limit applies to the next lease, and drops no running or waiting request", async () => {
    site = await startSite({ accounts: accounts("a"), runtime: { account_max_inflight: 5, account_max_queue: 3 } })
    const held = await Promise.all(times(5, () => hold(site)))
    const waiting = times(3, (i) => chat(site.url, `!say ${i}`))
    await untilQueue(site, { waiting: 3 })
    await put({ runtime: { account_max_inflight: 2, account_max_queue: 1 } })
    assert.deepInclude(await queueOf(site), { in_use: 5, waiting: 3, max_inflight_per_account: 2, max_queue_size: 1 })
    assert.strictEqual((await chat(site.url, "!say no")).error?.code, "rate_limit_exceeded")
    for (const { end } of held.slice(0, 3)) end()
    await untilQueue(site, { in_use: 2 })
    assert.deepInclude(await queueOf(site), { waiting: 3 })
    assert.strictEqual((await site.report()).streams, 2)
    held[3]?.end()
    assert.deepStrictEqual((await Promise.all(waiting)).map(textOf), times(3, String))
    held[4]?.end()
    await site.until((report) => report.calls.stop_stream === 5 && isQuiet(report))
  })
})

describe("changed accounts", () => {
  it("an added account serves waiting requests", async () => {
    site = await startSite({ accounts: [], runtime: { account_max_inflight: 1, account_max_queue: 5 } })
    assert.strictEqual((await chat(site.url, "!say no")).error?.code, "no_account_available")
    await addAccount("a")
    const first = await hold(site)
    const waiting = chat(site.url, "!say two")
    await untilQueue(site, { waiting: 1 })
    await addAccount("b")
    assert.strictEqual(textOf(await waiting), "two")
    first.end()
    const { logins } = await site.until(isQuiet)
    assert.deepStrictEqual(logins, { [emailOf("a")]: 1, [emailOf("b")]: 1 })
  })

  it("a disabled account gets no request, and is served from again once it is enabled", async () => {
    site = await startSite({ accounts: accounts("a", "b"), runtime: { account_max_inflight: 5, account_max_queue: 5 } })
    const setDisabled = (disabled: boolean) =>
      admin(site.url, "PATCH", `/admin/accounts/${encodeURIComponent(emailOf("a"))}`, { disabled })
    const pinned = () => chat(site.url, "!say pinned", { target: emailOf("a") })
    assert.strictEqual(textOf(await pinned()), "pinned")
    await setDisabled(true)
    for (const text of ["one", "two", "three"]) assert.strictEqual(textOf(await chat(site.url, `!say ${text}`)), text)
    assert.notStrictEqual((await pinned()).status, 200)
    await setDisabled(false)
    assert.strictEqual(textOf(await pinned()), "pinned")
    const { requests } = await site.until(isQuiet)
    assert.deepStrictEqual(
      requests.filter(({ call }) => call === "completion").map(({ account }) => account),
      ["a", "b", "b", "b", "a"].map(emailOf)
    )
  })

  it("a removed account finishes its running request and gets no new one", async () => {
    site = await startSite({ accounts: accounts("a", "b"), runtime: { account_max_inflight: 1, account_max_queue: 5 } })
    const running = await begin({ target: emailOf("a") })
    const pinned = chat(site.url, "!say pinned", { target: emailOf("a") })
    await untilQueue(site, { waiting: 1 })
    await removeAccount("a")
    assert.deepInclude(await queueOf(site), { in_use: 1, in_use_accounts: [emailOf("a")], total: 1, waiting: 0 })
    assert.deepInclude(await pinned, { status: 400 })
    for (const text of ["one", "two"]) assert.strictEqual(textOf(await chat(site.url, `!say ${text}`)), text)
    assert.strictEqual(await running.text(), "one two")
    await untilQueue(site, { in_use: 0 })
    const { requests } = await site.until(isQuiet)
    assert.deepStrictEqual(
      requests.filter(({ call }) => call === "completion").map(({ account }) => account),
      [emailOf("a"), emailOf("b"), emailOf("b")]
    )
  })

  it("an account with a changed password logs in with the new one", async () => {
    site = await startSite({ accounts: accounts("a") })
    assert.strictEqual(textOf(await chat(site.url, "!say one")), "one")
    await site.change({ accounts: [{ ...account("a"), password: "another" }] })
    assert.strictEqual(textOf(await chat(site.url, "!say two")), "two")
    const { requests } = await site.until(isQuiet)
    assert.deepStrictEqual(
      requests.filter(({ call }) => call === "login").map(({ body }) => JSON.parse(body)["password"]),
      [account("a").password, "another"]
    )
  })
})

describe("changed keys", () => {
  it("a key works from its addition until its removal, and is never sent upstream", async () => {
    site = await startSite({ accounts: accounts("a") })
    const key = "a-key-of-a-caller"
    const refused = async () => {
      for (const stream of [true, false]) {
        const said = await chat(site.url, "!say no", { key, stream })
        assert.deepInclude(said, { status: 401, shouldRetry: "false", ending: "whole" })
        assert.strictEqual(said.error?.code, "authentication_failed")
      }
    }
    await admin(site.url, "POST", "/admin/keys", { key })
    const running = await begin({ key })
    await admin(site.url, "DELETE", `/admin/keys/${key}`)
    await refused()
    await admin(site.url, "POST", "/admin/keys", { key })
    assert.strictEqual(textOf(await chat(site.url, "!say again", { key })), "again")
    await admin(site.url, "DELETE", `/admin/keys/${key}`)
    await refused()
    assert.strictEqual(await running.text(), "one two")
    const { requests } = await site.until(isQuiet)
    assert.deepStrictEqual([...new Set(requests.map(({ account }) => account))], [emailOf("a")])
  })

  it("a bearer that is not a key is an upstream token only while auth.direct_tokens is on", async () => {
    site = await startSite({ accounts: accounts("a") })
    const key = "a-token-of-my-own"
    assert.strictEqual(textOf(await chat(site.url, "!say one", { key })), "one")
    const running = await begin({ key })
    await site.change({ auth: { direct_tokens: false } })
    assert.strictEqual((await chat(site.url, "!say no", { key })).status, 401)
    assert.strictEqual(await running.text(), "one two")
    assert.strictEqual((await site.until(isQuiet)).calls.completion, 2)
  })
})

describe("settings, accounts and keys that change under load", () => {
  it("every request of a hundred callers succeeds", async () => {
    site = await startSite({
      keys: [businessKey, "second-key"],
      accounts: accounts("a", "b"),
      runtime: { account_max_inflight: 4, account_max_queue: 400 }
    }, { reference: { remember: 0 } })
    let changing = true
    const callers = times(100, async (i) => {
      const said = []
      do said.push(await chat(site.url, "!say one two", { stream: i % 2 === 0 }))
      while (changing)
      return said
    })
    for (let i = 0; i < 6; i++) {
      await put({ runtime: { account_max_inflight: 1 + i % 3, global_max_inflight: 3 + i } })
      await addAccount(`c${i}`)
      await admin(site.url, "POST", "/admin/keys", { key: `key-${i}` })
      await put({ auto_delete: { mode: (["single", "all", "none"] as const)[i % 3] } })
      await removeAccount(i === 0 ? "a" : `c${i - 1}`)
      await admin(site.url, "DELETE", i === 0 ? "/admin/keys/second-key" : `/admin/keys/key-${i - 1}`)
    }
    changing = false
    const said = (await Promise.all(callers)).flat()
    assert.deepStrictEqual([...new Set(said.map(textOf))], ["one two"])
    const report = await site.until(isQuiet)
    assert.isAtMost(report.mostStreams, 8)
    for (const most of Object.values(report.mostAtOnce)) assert.isAtMost(most, 4)
    assert.strictEqual(report.calls.stop_stream, 0)
    await untilQueue(site, { in_use: 0, waiting: 0, total: 2 })
  })
})

describe("a change to another upstream", () => {
  const withOther = async (use: (other: Reference["Service"], url: string) => Promise<void>) => {
    const scope = Scope.makeUnsafe()
    const other = await Effect.runPromise(make({ accounts: [account("a")] }))
    const url = await Effect.runPromise(Scope.provide(other.listen(), scope))
    await use(other, url).finally(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  }

  it("never sends a token of the old upstream to the new one; a running request finishes on the old one", async () => {
    site = await startSite({
      accounts: accounts("a"),
      auto_delete: { mode: "single" },
      runtime: { account_max_inflight: 4, account_max_queue: 20 }
    }, { reference: { accounts: [account("a")] } })
    assert.strictEqual(textOf(await chat(site.url, "!say one")), "one")
    await withOther(async (other, url) => {
      // The session is continued and deleted at the upstream that created it.
      const running = await send(
        site.url,
        "!say [\"one\"]\n!wait 300ms\n!say \" two\"\n!fault cut-off after=1 times=1",
        {
          stream: true
        }
      )
      assert.strictEqual(running.status, 200)
      const before = await site.report()
      await site.change({ upstream: { driver: "session", base_url: url } })
      const said = await Promise.all(times(10, (i) => chat(site.url, `!say ${i}`, { stream: i % 2 === 0 })))
      assert.deepStrictEqual(said.map(textOf), times(10, String))
      assert.strictEqual(textOf(await readSaid(running)), "one two")
      const old = await site.until(({ calls, open }) => calls.delete === 2 && open === 0)
      assert.strictEqual(old.calls.completion, before.calls.completion)
      assert.strictEqual(old.calls.continue, 1)
      const seen = await Effect.runPromise(other.until(({ calls }) => calls.delete === 10))
      assert.deepStrictEqual(seen.logins, { [emailOf("a")]: 1 })
      // The report contains any token that the reference does not know.
      assert.deepStrictEqual([...new Set(seen.requests.map(({ account }) => account))], [emailOf("a")])
      assert.strictEqual(seen.requests[0]?.call, "login")

      await site.change({ upstream: { driver: "session", base_url: site.baseUrl } })
      assert.strictEqual(textOf(await chat(site.url, "!say back")), "back")
      assert.deepStrictEqual((await site.report()).logins, { [emailOf("a")]: 2 })
    })
  })

  it("serves waiting requests on the new upstream", async () => {
    site = await startSite({ accounts: accounts("a"), runtime: { account_max_inflight: 1, account_max_queue: 5 } })
    const first = await hold(site)
    const waiting = chat(site.url, "!say two")
    await untilQueue(site, { waiting: 1 })
    await withOther(async (other, url) => {
      await site.change({ upstream: { driver: "session", base_url: url } })
      first.end()
      assert.strictEqual(textOf(await waiting), "two")
      assert.deepInclude((await Effect.runPromise(other.report)).calls, { login: 1, completion: 1, stop_stream: 0 })
      assert.deepInclude((await site.until(isQuiet)).calls, { login: 1, completion: 1, stop_stream: 1 })
    })
  })
})
