/** Accounts of several upstreams in the admin API: adding, naming, filtering, changing, and keeping their secrets. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { RawConfig } from "../../src/config/json.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { caller, storeOf } from "./support.ts"

let gateway: RunningGateway
const call = caller(() => gateway)
afterEach(() => gateway.stop())

const server = { driver: "openai", base_url: "http://127.0.0.1:9/v1", models: { m: "m" } }
const proxy = "http://user:proxy-secret@127.0.0.1:3128"
const several: RawConfig = {
  upstream: { driver: "embedded" },
  upstreams: { gpu: server, hosted: server },
  accounts: [
    { email: "a@x.org", password: "pw" },
    { upstream: "gpu", email: "a@x.org", token: "gpu-token-0123456789" },
    { upstream: "gpu", email: "b@x.org", token: "t", proxy },
    { upstream: "hosted", email: "b@x.org", token: "t" }
  ]
}

const start = async (raw: RawConfig = several) => {
  gateway = await startGateway(raw)
}

const ok = async (method: string, path: string, body?: unknown) => {
  const answer = await call(method, path, body === undefined ? {} : { body })
  assert.strictEqual(answer.status, 200, answer.text)
  return answer.json
}

const path = (name: string) => `/admin/accounts/${encodeURIComponent(name)}`
const rawAccounts = async () => (await Effect.runPromise(storeOf(gateway).currentRaw))["accounts"]
const shown = async (query: string) =>
  ((await ok("GET", `/admin/accounts${query}`))["items"] as ReadonlyArray<Record<string, unknown>>)
    .map(({ identifier, upstream }) => `${String(upstream)}: ${String(identifier)}`)

describe("accounts of several upstreams in the admin API", () => {
  it("show their upstream, and are filtered by it", async () => {
    await start()
    assert.deepStrictEqual(await shown(""), ["hosted: b@x.org", "gpu: b@x.org", "gpu: a@x.org", "default: a@x.org"])
    assert.deepStrictEqual(await shown("?upstream=gpu"), ["gpu: b@x.org", "gpu: a@x.org"])
    assert.deepStrictEqual(await shown("?upstream=gpu&q=b@"), ["gpu: b@x.org"])
    assert.deepStrictEqual(await shown("?upstream=other"), [])
  })

  it("do not show an upstream where there is one only", async () => {
    await start({ accounts: [{ email: "a@x.org", password: "pw" }] })
    const { items } = await ok("GET", "/admin/accounts")
    assert.notProperty((items as ReadonlyArray<object>)[0], "upstream")
  })

  it("are added to their upstream, once", async () => {
    await start()
    const added = await ok("POST", "/admin/accounts", { upstream: "hosted", email: "a@x.org", token: "t" })
    assert.deepInclude(added["account"], { upstream: "hosted", identifier: "a@x.org" })
    const again = await call("POST", "/admin/accounts", { body: { upstream: "hosted", email: "A@x.org", token: "t" } })
    assert.strictEqual(again.detail, "The account already exists")
    const stray = await call("POST", "/admin/accounts", { body: { upstream: "other", token: "t" } })
    assert.strictEqual(stray.status, 400)
    assert.match(stray.detail, /^upstream must be the name of a configured upstream/)
    const batch = await ok("POST", "/admin/accounts/batch", {
      action: "add",
      accounts: [
        { upstream: "hosted", token: "t1" },
        { upstream: "hosted", token: "t1" },
        { upstream: "gpu", token: "t1" },
        { upstream: "other", token: "t1" }
      ]
    })
    const results = batch["results"] as ReadonlyArray<{ identifier: string; detail: string }>
    assert.deepStrictEqual(results.map(({ detail }) => detail), ["", "duplicate", "", "upstream"])
    assert.match(results[0]!.identifier, /^hosted\/token:/)
  })

  it("are named with their upstream; a name of several is refused with both", async () => {
    await start()
    await ok("PATCH", path("a@x.org"), { note: "first" })
    await ok("PATCH", path("gpu/a@x.org"), { note: "second" })
    assert.deepInclude(await rawAccounts(), { email: "a@x.org", password: "pw", note: "first" })
    const both = "identifier names accounts of several upstreams: use gpu/b@x.org or hosted/b@x.org"
    for (
      const answer of [
        await call("PATCH", path("b@x.org"), { body: { note: "n" } }),
        await call("DELETE", path("b@x.org")),
        await call("POST", "/admin/accounts/test", { body: { identifier: "b@x.org" } }),
        await call("POST", "/admin/accounts/sessions/delete-all", { body: { identifier: "b@x.org" } })
      ]
    ) {
      assert.strictEqual(answer.status, 400)
      assert.strictEqual(answer.detail, both)
    }
    const { results } = await ok("POST", "/admin/accounts/batch", {
      action: "delete",
      identifiers: ["b@x.org", "hosted/b@x.org"]
    })
    assert.deepStrictEqual(results, [
      { index: 0, identifier: "b@x.org", ok: false, detail: both },
      { index: 1, identifier: "hosted/b@x.org", ok: true, detail: "" }
    ])
    assert.strictEqual((await call("DELETE", path("b@x.org"))).status, 200)
    assert.strictEqual((await call("DELETE", path("b@x.org"))).status, 404)
  })

  it("keep their upstream", async () => {
    await start()
    const answer = await call("PATCH", path("gpu/a@x.org"), { body: { upstream: "hosted" } })
    assert.strictEqual(answer.status, 400)
    assert.match(answer.detail, /^upstream cannot be changed; add the account to the other upstream/)
  })

  it("show their proxy without its user information, and keep it when that is sent back", async () => {
    await start()
    const { items } = await ok("GET", "/admin/accounts?upstream=gpu")
    const [item] = items as ReadonlyArray<Record<string, unknown>>
    assert.strictEqual(item?.["proxy"], "http://***@127.0.0.1:3128")
    const before = await rawAccounts()
    await ok("PATCH", path("gpu/b@x.org"), { proxy: "http://***@127.0.0.1:3128" })
    await ok("PATCH", path("gpu/b@x.org"), { proxy: "***" })
    assert.deepStrictEqual(await rawAccounts(), before)
    await ok("PATCH", path("gpu/b@x.org"), { proxy: null })
    await ok("PATCH", path("hosted/b@x.org"), { proxy: "direct" })
    const [, , third, fourth] = await rawAccounts() as ReadonlyArray<RawConfig>
    assert.notProperty(third, "proxy")
    assert.strictEqual(fourth?.["proxy"], "direct")
    const wrong = await call("PATCH", path("hosted/b@x.org"), { body: { proxy: "http://***@127.0.0.1:1" } })
    assert.match(wrong.detail, /^proxy must be written with its user information/)
  })

  it("are in the configuration that is read, unless it is read without accounts", async () => {
    await start()
    const { accounts, ...rest } = await ok("GET", "/admin/config")
    assert.isAtLeast((accounts as ReadonlyArray<unknown>).length, 3)
    assert.deepStrictEqual(await ok("GET", "/admin/config?accounts=true"), { accounts, ...rest })
    assert.deepStrictEqual(await ok("GET", "/admin/config?accounts=false"), rest)
    assert.match((await call("GET", "/admin/config?accounts=no")).detail, /accounts/)
  })

  it("may name their organisation", async () => {
    await start()
    await ok("POST", "/admin/accounts", { upstream: "gpu", email: "new@x.org", token: "t", organization: " team " })
    const named = async (account: string) => {
      const { items } = await ok("GET", "/admin/accounts?upstream=gpu")
      const found = (items as ReadonlyArray<Record<string, unknown>>).find(({ identifier }) => identifier === account)
      return found?.["organization"]
    }
    assert.strictEqual(await named("new@x.org"), "team")
    await ok("PATCH", path("gpu/b@x.org"), { organization: "team" })
    assert.strictEqual(await named("b@x.org"), "team")
    const before = await rawAccounts()
    await ok("POST", "/admin/config", await ok("GET", "/admin/config"))
    assert.deepStrictEqual(await rawAccounts(), before)
    await ok("PATCH", path("gpu/b@x.org"), { organization: null })
    assert.isUndefined(await named("b@x.org"))
    for (const method of ["POST", "PATCH"]) {
      const body = { ...(method === "POST" ? { token: "u", upstream: "gpu" } : {}), organization: "x".repeat(201) }
      const answer = await call(method, method === "POST" ? "/admin/accounts" : path("gpu/b@x.org"), { body })
      assert.strictEqual(answer.status, 400)
      assert.match(answer.detail, /organization must have at most 200 characters/)
    }
  })

  it("posted back as the configuration shows them, change nothing", async () => {
    await start()
    const before = await rawAccounts()
    await ok("POST", "/admin/config", await ok("GET", "/admin/config"))
    assert.deepStrictEqual(await rawAccounts(), before)
  })

  it("can be listed anew with their upstream", async () => {
    await start()
    await ok("POST", "/admin/config", {
      accounts: [{ upstream: "hosted", email: "new@x.org", token: "t" }, { upstream: "gpu", email: "a@x.org" }]
    })
    assert.deepStrictEqual(await rawAccounts(), [
      { upstream: "hosted", email: "new@x.org", token: "t" },
      { upstream: "gpu", email: "a@x.org", token: "gpu-token-0123456789" }
    ])
  })
})
