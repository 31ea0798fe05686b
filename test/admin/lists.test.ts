/** Keys and accounts: adding, listing, removing. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { accountPage as pageOf } from "../../src/admin/accounts/view.ts"
import type { Account } from "../../src/config/Account.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { caller, storeOf } from "./support.ts"

let gateway: RunningGateway
const call = caller(() => gateway)

beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())

const rawAccounts = async () => (await Effect.runPromise(storeOf(gateway).currentRaw))["accounts"]

describe("keys in the admin API", () => {
  it("are trimmed, work immediately, and are rejected if they exist", async () => {
    const added = await call("POST", "/admin/keys", { body: { key: "  fresh-key " } })
    assert.deepInclude(added.json, { success: true, total_keys: 2 })
    const used = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: "Bearer fresh-key" },
      body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "hello" }] })
    })
    assert.strictEqual(used.status, 200)
    await used.text()
    const again = await call("POST", "/admin/keys", { body: { key: "fresh-key" } })
    assert.strictEqual(again.status, 400)
    assert.notInclude(again.detail, "fresh-key")
    assert.strictEqual((await call("POST", "/admin/keys", { body: { key: "  " } })).status, 400)
  })

  it("are removed whatever their characters and length", async () => {
    const keys = ["sk/with?odd#chars & more%", "schlüssel-钥匙", "k".repeat(4_000), "a+b", "..%2f.."]
    for (const key of keys) assert.strictEqual((await call("POST", "/admin/keys", { body: { key } })).status, 200)
    const { keys: listed } = (await call("GET", "/admin/config")).json
    assert.includeMembers(listed as Array<string>, keys)
    for (const key of keys) {
      const removed = await call("DELETE", `/admin/keys/${encodeURIComponent(key)}`)
      assert.strictEqual(removed.status, 200, key.slice(0, 30))
      assert.strictEqual((await call("DELETE", `/admin/keys/${encodeURIComponent(key)}`)).status, 404)
    }
    assert.deepStrictEqual((await call("GET", "/admin/config")).json["keys"], ["test-key", "fresh-key"])
  })

  it("are rejected if a URL could not name them for removal", async () => {
    for (const key of ["k".repeat(4_097), "钥".repeat(1_000), "\ud800"]) {
      assert.strictEqual((await call("POST", "/admin/keys", { body: { key } })).status, 400)
    }
  })

  it("are all added by concurrent requests", async () => {
    const keys = Array.from({ length: 50 }, (_, index) => `parallel-${index}`)
    await Promise.all(keys.map((key) => call("POST", "/admin/keys", { body: { key } })))
    assert.includeMembers((await call("GET", "/admin/config")).json["keys"] as Array<string>, keys)
    await Promise.all(keys.map((key) => call("DELETE", `/admin/keys/${key}`)))
  })
})

describe("accounts in the admin API", () => {
  it("are added with a login, and the reply shows the account", async () => {
    const added = await call("POST", "/admin/accounts", {
      body: { email: " One@X.org ", password: " p w ", note: "shared", mobile: null }
    })
    assert.deepInclude(added.json, { success: true, total_accounts: 1 })
    const [listed] = (await call("GET", "/admin/accounts")).json["items"] as ReadonlyArray<unknown>
    assert.deepStrictEqual(added.json["account"], listed)
    assert.deepInclude(listed, { identifier: "One@X.org", has_password: true, note: "shared" })
    await call("POST", "/admin/accounts", { body: { mobile: "138 1234 5678", password: "pw" } })
    await call("POST", "/admin/accounts", { body: { token: " abcdefghijklmnopqrstuvwxyz " } })
    assert.deepStrictEqual(await rawAccounts(), [
      { email: "One@X.org", password: " p w ", note: "shared" },
      { mobile: "138 1234 5678", password: "pw" },
      { token: "abcdefghijklmnopqrstuvwxyz" }
    ])
  })

  it("are added with what the operator sets of them, and faults have the fields of the body", async () => {
    const login = { email: "marked@x.org", password: "pw" }
    const marks = { disabled: true, priority: 3, weight: 2, budgets: [{ window: "day", requests: 5 }] }
    const refused: ReadonlyArray<readonly [body: object, says: RegExp]> = [
      [{ ...login, budgets: [{ window: "day", requests: -1 }] }, /^budgets\[0\]\.requests must /],
      [{ ...login, budgets: [{ window: "week day" }] }, /^budgets\[0\]/],
      [{ ...login, weight: 0 }, /^weight must /],
      [{ ...login, proxy: "nowhere" }, /^proxy must /],
      [{ ...login, disabled: "yes" }, /^disabled: /]
    ]
    for (const [body, says] of refused) {
      const answer = await call("POST", "/admin/accounts", { body })
      assert.strictEqual(answer.status, 400, JSON.stringify(body))
      assert.match(answer.detail, says)
    }
    const batch = await call("POST", "/admin/accounts/batch", {
      body: { action: "add", accounts: refused.slice(0, 3).map(([body]) => body), dry_run: true }
    })
    const details = (batch.json["results"] as ReadonlyArray<{ detail: string }>).map(({ detail }) => detail)
    assert.deepStrictEqual(details.map((detail) => /^\w+/.exec(detail)?.[0]), ["budgets", "budgets", "weight"])
    const added = await call("POST", "/admin/accounts", { body: { ...login, ...marks } })
    assert.strictEqual(added.status, 200, added.detail)
    assert.deepInclude(added.json["account"], { disabled: true, priority: 3, weight: 2 })
    assert.include(JSON.stringify(await rawAccounts()), JSON.stringify({ ...login, ...marks }))
    const patched = await call("PATCH", "/admin/accounts/marked@x.org", { body: { proxy: "nowhere" } })
    assert.match(patched.detail, /^proxy must /)
    await call("DELETE", "/admin/accounts/marked@x.org")
  })

  it("are rejected without a usable login, or if they exist in another spelling", async () => {
    const refused: ReadonlyArray<readonly [body: Record<string, string>, says: string]> = [
      [{}, "email"],
      [{ password: "pw" }, "email"],
      [{ email: "two@x.org" }, "password"],
      [{ email: "two@x.org", password: "" }, "password"],
      [{ mobile: "none", password: "pw" }, "mobile"],
      [{ email: "one@x.ORG", password: "pw" }, "already"],
      [{ mobile: "+86-138-1234-5678", password: "pw" }, "already"],
      [{ email: "two@x.org", mobile: "13812345678", password: "pw" }, "already"],
      [{ token: "abcdefghijklmnopqrstuvwxyz" }, "already"]
    ]
    for (const [body, says] of refused) {
      const answer = await call("POST", "/admin/accounts", { body })
      assert.strictEqual(answer.status, 400, JSON.stringify(body))
      assert.include(answer.detail, says)
    }
  })

  it("are listed newest first with every field, without secrets", async () => {
    const { items, ...page } = (await call("GET", "/admin/accounts")).json
    assert.deepStrictEqual(page, { total: 3, page: 1, page_size: 10, total_pages: 1 })
    const [token, mobile, email] = (items as ReadonlyArray<Record<string, unknown>>).map(({ hash, ...item }) => {
      assert.match(String(hash), /^[0-9a-f]{12}$/)
      return item
    })
    const unmarked = { disabled: false, note: "" }
    const well = {
      ...unmarked,
      test_status: "",
      health: "ready",
      health_reason: null,
      recovery_seconds: null,
      in_use: 0,
      slots: 2,
      last_used_at: null,
      requests_hour: 0,
      failed_hour: 0,
      last_error: null,
      health_since: null,
      last_test: null,
      quota: [],
      budgets: []
    }
    assert.deepStrictEqual(email, {
      identifier: "One@X.org",
      email: "One@X.org",
      mobile: "",
      has_password: true,
      has_token: false,
      token_preview: "",
      ...well,
      note: "shared"
    })
    assert.deepStrictEqual(mobile, {
      identifier: "138 1234 5678",
      email: "",
      mobile: "138 1234 5678",
      has_password: true,
      has_token: false,
      token_preview: "",
      ...well
    })
    assert.match(String(token?.["identifier"]), /^token:[0-9a-f]{16}$/)
    assert.deepInclude(token, { has_password: false, has_token: true, token_preview: "abcdefgh..." })
  })

  it("show the outcome of a test and the token from its login", async () => {
    await call("POST", "/admin/accounts/test", { body: { identifier: "one@x.org" } })
    const items = (await call("GET", "/admin/accounts?q=one")).json["items"] as ReadonlyArray<Record<string, unknown>>
    assert.strictEqual(items.length, 1)
    assert.deepInclude(items[0], { test_status: "ok", has_token: true })
    assert.match(String(items[0]?.["token_preview"]), /^.{1,8}\.\.\.$/)
  })

  it("are removed by any of their identifiers", async () => {
    const [token] = (await call("GET", "/admin/accounts")).json["items"] as ReadonlyArray<Record<string, unknown>>
    const names = ["ONE@x.org", "+86 13812345678", String(token?.["identifier"])]
    for (const [index, name] of names.entries()) {
      const removed = await call("DELETE", `/admin/accounts/${encodeURIComponent(name)}`)
      assert.strictEqual(removed.status, 200, name)
      assert.deepInclude(removed.json, { success: true, total_accounts: 2 - index })
      assert.strictEqual((await call("DELETE", `/admin/accounts/${encodeURIComponent(name)}`)).status, 404)
    }
    assert.deepStrictEqual(await rawAccounts(), [])
  })
})

describe("the account list", () => {
  const account = (index: number): Account => ({
    upstream: "default",
    identifier: `user${index}@x.org`,
    name: `user${index}@x.org`,
    email: `user${index}@x.org`,
    mobile: index % 2 === 0 ? `138-0000-${String(index).padStart(4, "0")}` : undefined,
    password: undefined,
    token: undefined,
    credential: undefined,
    disabled: false,
    note: "",
    proxy: undefined,
    organization: undefined,
    identity: [`user${index}@x.org`, ...(index % 2 === 0 ? [`+861380000${String(index).padStart(4, "0")}`] : [])],
    priority: undefined,
    weight: undefined,
    budgets: undefined
  })
  const everything = { page: undefined, page_size: undefined, q: undefined }

  it("has clamped pages, newest first, which together contain every account", () => {
    fc.assert(fc.property(fc.nat(250), fc.option(fc.integer({ min: -5, max: 300 })), (count, size) => {
      const accounts = Array.from({ length: count }, (_, index) => account(index))
      const asked = { ...everything, page_size: size ?? undefined }
      const first = pageOf(accounts, asked)
      assert.strictEqual(first.page_size, size === null ? 10 : Math.min(100, Math.max(1, size)))
      assert.strictEqual(first.total_pages, Math.max(1, Math.ceil(count / first.page_size)))
      const pages = Array.from(
        { length: first.total_pages },
        (_, index) => pageOf(accounts, { ...asked, page: index + 1 })
      )
      assert.deepStrictEqual(pages.flatMap((page) => page.items), accounts.toReversed())
      assert.deepStrictEqual(pageOf(accounts, { ...asked, page: first.total_pages + 1 }).items, [])
      assert.deepStrictEqual(pageOf(accounts, { ...asked, page: -3 }), first)
      assert.deepStrictEqual(pageOf(accounts, { ...asked, page: 1e300 }).items, [])
    }))
  })

  it("is filtered by identifier, email and mobile, in any case and spelling", () => {
    const accounts = Array.from({ length: 20 }, (_, index) => account(index))
    const found = (q: string) => pageOf(accounts, { ...everything, q }).items.map((each) => each.identifier)
    assert.deepStrictEqual(found("USER7@"), ["user7@x.org"])
    assert.deepStrictEqual(found(" user7@ "), ["user7@x.org"])
    assert.deepStrictEqual(found("138-0000-0004"), ["user4@x.org"])
    assert.deepStrictEqual(found("13800000004"), ["user4@x.org"])
    assert.deepStrictEqual(found("+86 138 0000 0004"), ["user4@x.org"])
    assert.deepStrictEqual(found("nobody"), [])
    assert.strictEqual(pageOf(accounts, { ...everything, q: "nobody" }).total_pages, 1)
    assert.strictEqual(pageOf(accounts, { ...everything, q: "" }).total, 20)
  })

  it("takes its page from the query", async () => {
    for (let index = 0; index < 12; index++) {
      await call("POST", "/admin/accounts", { body: { email: `paged${index}@x.org`, password: "pw" } })
    }
    const emails = async (query: string) => {
      const { items, ...page } = (await call("GET", `/admin/accounts${query}`)).json
      return [(items as ReadonlyArray<{ email: string }>).map(({ email }) => email), page] as const
    }
    assert.deepStrictEqual(await emails("?page=2&page_size=5"), [
      ["paged6@x.org", "paged5@x.org", "paged4@x.org", "paged3@x.org", "paged2@x.org"],
      { total: 12, page: 2, page_size: 5, total_pages: 3 }
    ])
    assert.deepStrictEqual((await emails("?page=0&page_size=1000"))[1], {
      total: 12,
      page: 1,
      page_size: 100,
      total_pages: 1
    })
    assert.deepStrictEqual(await emails("?page=9&q=paged1"), [[], { total: 3, page: 9, page_size: 10, total_pages: 1 }])
    assert.deepStrictEqual(await emails("?page=&page_size=&q="), await emails(""))
    for (const wrong of ["page=x", "page_size=5x", "page=1&page=2"]) {
      const answer = await call("GET", `/admin/accounts?${wrong}`)
      assert.strictEqual(answer.status, 400, wrong)
      assert.include(answer.detail, wrong.split("=")[0]!)
    }
  })
})
