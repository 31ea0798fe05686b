/** Keys with names, limits and expiry in the admin API. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import { isJsonObject, type RawConfig, sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { makeAdminClient } from "../../src/inProcess/adminClient.ts"
import { adminKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { caller, storeOf } from "./support.ts"

let gateway: RunningGateway
afterEach(() => gateway.stop())

const logged: Array<string> = []
const logger = Logger.make(({ message }) => void logged.push(String(message)))

const start = async (config: RawConfig = {}) => {
  logged.length = 0
  gateway = await startGateway(config, { logger })
}

const call = caller(() => gateway)
const idOf = (key: string) => keyId(key, sha256Hex)

const rawOf = (running: RunningGateway) => Effect.runPromise(storeOf(running).currentRaw)
const recordsOf = async () => (await rawOf(gateway))["key_records"]

const ok = async (method: string, path: string, body?: unknown) => {
  const answer = await call(method, path, body === undefined ? {} : { body })
  assert.strictEqual(answer.status, 200, answer.text)
  return answer.json
}

const items = async (query = ""): Promise<ReadonlyArray<Record<string, unknown>>> => {
  const { items } = await ok("GET", `/admin/keys${query}`)
  assert.isArray(items)
  return items as ReadonlyArray<Record<string, unknown>>
}

const complete = (key: string) =>
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "Hello" }] })
  })

const bare = {
  name: null,
  label: null,
  note: null,
  disabled: false,
  expires_at: null,
  models: null,
  max_inflight: null,
  class: null,
  limits: [],
  created_at: null
}

describe("the list of keys", () => {
  it("shows every field and never a key", async () => {
    const record = {
      name: "team a",
      expires_at: "2020-01-01T01:00:00+01:00",
      models: ["gpt-4o"],
      limits: [{ window: "day", tokens: 20 }]
    }
    await start({
      keys: ["sk-team-a", "short"],
      key_records: { [idOf("sk-team-a")]: record },
      runtime: { key_max_inflight: 9 }
    })
    const { headers, json, text } = await call("GET", "/admin/keys")
    assert.strictEqual(headers.get("cache-control"), "no-store")
    assert.notInclude(text, "sk-team-a")
    assert.deepInclude(json, { total: 2, page: 1, page_size: 100, total_pages: 1 })
    assert.deepStrictEqual(json["store"], { kind: "memory", persistent: false, detail: null })
    const [first, second] = await items()
    const { windows, ...usage } = first!["usage"] as { windows: ReadonlyArray<Record<string, unknown>> }
    assert.deepStrictEqual({ ...first, usage }, {
      ...bare,
      id: "8879f6a4ae35c420",
      preview: "sk-...",
      state: "expired",
      name: "team a",
      expires_at: "2020-01-01T00:00:00Z",
      models: ["gpt-4o"],
      limits: [{ window: "day", requests: null, tokens: 20, cost: null, strict: false, fallback: null }],
      usage: { in_flight: 0, max_inflight: 9, last_used_at: null, requests_today: 0, cost_today: "0" }
    })
    assert.deepStrictEqual(windows.map(({ requests, tokens, window }) => ({ window, requests, tokens })), [
      { window: "day", requests: null, tokens: { limit: 20, used: 0, remaining: 20 } }
    ])
    assert.deepStrictEqual(second, {
      ...bare,
      id: idOf("short"),
      preview: "s...",
      state: "active",
      usage: { in_flight: 0, max_inflight: 9, last_used_at: null, requests_today: 0, cost_today: "0", windows: [] }
    })
  })

  it("have a label, by which they are found, filtered and sorted", async () => {
    const keys = ["a", "b", "c", "d"]
    await start({ keys, key_records: { [idOf("a")]: { label: " sales " }, [idOf("b")]: { label: "Buying" } } })
    const { id } = await ok("POST", "/admin/keys", { generate: true, label: "sales" })
    const ids = async (query: string) => (await items(query)).map((item) => item["id"])
    assert.deepStrictEqual(await ids("?label=sales"), [idOf("a"), id])
    assert.deepStrictEqual(await ids("?label=none"), [idOf("c"), idOf("d")])
    assert.deepStrictEqual(await ids("?label=sale"), [])
    assert.deepStrictEqual(await ids("?label="), [...keys.map(idOf), id])
    assert.deepStrictEqual(await ids("?q=SALE&state=active"), [idOf("a"), id])
    assert.deepStrictEqual((await ids("?sort=label&order=asc")).slice(0, 3), [idOf("b"), idOf("a"), id])
    await ok("PATCH", `/admin/keys/${idOf("c")}`, { label: " sales " })
    await ok("PATCH", `/admin/keys/${idOf("a")}`, { label: " " })
    assert.deepStrictEqual(await ids("?label=sales"), [idOf("c"), id])
    for (
      const [label, message] of [["none", "none stands for keys without a label"], [
        "x".repeat(101),
        "at most 100"
      ]] as const
    ) {
      const { status, text } = await call("PATCH", `/admin/keys/${idOf("c")}`, { body: { label } })
      assert.strictEqual(status, 400)
      assert.include(text, `key_records.${idOf("c")}.label`)
      assert.include(text, message)
    }
  })

  it("has pages, and finds keys by id, name or note", async () => {
    const keys = Array.from({ length: 25 }, (_, i) => `key number ${i}`)
    await start({
      keys,
      key_records: { [idOf(keys[3]!)]: { name: "Marketing" }, [idOf(keys[4]!)]: { note: "for marketing too" } }
    })
    const ids = async (query: string) => (await items(query)).map(({ id }) => id)
    assert.deepStrictEqual(await ids("?page=2&page_size=10"), keys.slice(10, 20).map(idOf))
    assert.deepStrictEqual(await ids("?page=9"), [])
    assert.deepStrictEqual(await ids("?q=MARKETING"), [idOf(keys[3]!), idOf(keys[4]!)])
    assert.deepStrictEqual(await ids(`?q=${idOf(keys[7]!).slice(0, 12)}`), [idOf(keys[7]!)])
    await ok("PATCH", `/admin/keys/${idOf(keys[4]!)}`, { disabled: true })
    assert.deepStrictEqual(await ids("?state=disabled"), [idOf(keys[4]!)])
    assert.deepStrictEqual(await ids("?state=active&q=MARKETING"), [idOf(keys[3]!)])
    assert.deepStrictEqual(await ids("?state=expired"), [])
    assert.deepInclude(await ok("GET", "/admin/keys?page=-3&page_size=99999"), { page: 1, page_size: 1000, total: 25 })
  })

  it("shows what the requests of a key cost today, and sorts by it", async () => {
    await start({ keys: ["a", "b", "c"], currency: "USD", prices: { "upstream-chat": { per_request: "0.25" } } })
    for (const key of ["b", "c", "b"]) await (await complete(key)).text()
    const costs = async (order: string) =>
      (await items(`?sort=cost_today&order=${order}`)).map(({ id, usage }) => [
        id,
        (usage as { readonly cost_today: string }).cost_today
      ])
    const [none, some, most] = [[idOf("a"), "0"], [idOf("c"), "0.25"], [idOf("b"), "0.5"]]
    assert.deepStrictEqual(await costs("asc"), [none, some, most])
    assert.deepStrictEqual(await costs("desc"), [most, some, none])
  })

  it("shows the usage and last use of a key", async () => {
    await start({
      keys: ["k"],
      key_records: { [idOf("k")]: { limits: [{ window: "month", requests: 10, tokens: 10_000 }] } }
    })
    const { usage } = await (await complete("k")).json() as { usage: { total_tokens: number } }
    const [item] = await items()
    const told = item?.["usage"] as {
      last_used_at: string
      requests_today: number
      windows: ReadonlyArray<{ started_at: string; resets_at: string; requests: unknown; tokens: unknown }>
    }
    assert.isBelow(Math.abs(Date.now() - Date.parse(told.last_used_at)), 600_000)
    assert.strictEqual(told.requests_today, 1)
    assert.deepStrictEqual(told.windows[0]?.requests, { limit: 10, used: 1, remaining: 9 })
    assert.deepStrictEqual(told.windows[0]?.tokens, {
      limit: 10_000,
      used: usage.total_tokens,
      remaining: 10_000 - usage.total_tokens
    })
    assert.match(told.windows[0]?.started_at ?? "", /-01T00:00:00Z$/)
  })
})

describe("adding a key", () => {
  it("accepts a given key with its limits, or generates one that is shown once", async () => {
    await start({ keys: ["first"] })
    const given = await ok("POST", "/admin/keys", {
      key: " mine ",
      name: " Mine ",
      limits: [{ window: "hour", requests: 3, tokens: null }],
      models: null
    })
    const listed = (await items()).find(({ id }) => id === idOf("mine"))
    assert.deepStrictEqual(given, {
      success: true,
      total_keys: 2,
      ...listed,
      config_writable: false,
      needs_host_sync: false
    })
    assert.deepInclude(given, {
      preview: "m...",
      name: "Mine",
      limits: [{ window: "hour", requests: 3, tokens: null, cost: null, strict: false, fallback: null }]
    })
    const records = await recordsOf()
    const record = isJsonObject(records) ? records[idOf("mine")] : undefined
    assert.isTrue(isJsonObject(record))
    const { created_at, ...rest } = record as Record<string, unknown>
    assert.deepStrictEqual(rest, { name: "Mine", limits: [{ window: "hour", requests: 3 }] })
    assert.match(String(created_at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)

    const made = await ok("POST", "/admin/keys", { generate: true, key: null })
    assert.match(String(made["key"]), /^sk-gw-[\w-]{43}$/)
    assert.strictEqual(made["id"], idOf(String(made["key"])))
    assert.strictEqual(made["preview"], `${String(made["key"]).slice(0, 10)}...${String(made["key"]).slice(-4)}`)
    assert.strictEqual((await complete(String(made["key"]))).status, 200)
    assert.notInclude((await call("GET", "/admin/keys")).text, String(made["key"]))
  })

  it("is rejected as a whole if any field is invalid", async () => {
    await start({ keys: ["first"] })
    const before = await rawOf(gateway)
    for (
      const [body, detail] of [
        [{}, "key is required, or generate: true"],
        [{ key: "a", generate: true }, "key must not be sent with generate"],
        [{ generate: "yes" }, "generate must be true or false"],
        [{ key: 1 }, "key must be a string"],
        [{ key: " " }, "key must not be empty"],
        [{ key: "first" }, "key already exists"],
        [
          { key: "a", limits: [{ window: "year", requests: 1 }] },
          `key_records.${idOf("a")}.limits[0].window must be one of`
        ],
        [{ key: "a", models: [] }, `key_records.${idOf("a")}.models must have 1 to 100`],
        [{ key: "a", models: ["gpt-4o", "nobody"] }, `key_records.${idOf("a")}.models[1] must name a model`],
        [{ key: "a", expires_at: "tomorrow" }, `key_records.${idOf("a")}.expires_at must be an RFC 3339 time`]
      ] as const
    ) {
      const answer = await call("POST", "/admin/keys", { body })
      assert.strictEqual(answer.status, 400, answer.text)
      assert.include(answer.detail, detail)
    }
    assert.deepStrictEqual(await rawOf(gateway), before)
  })
})

describe("changing a key", () => {
  it("keeps absent fields, clears null fields, and applies from the next request on", async () => {
    const record = {
      name: "old",
      note: "kept",
      max_inflight: 3,
      limits: [{ window: "day", requests: 5 }],
      hand: "made"
    }
    await start({ keys: ["k"], key_records: { [idOf("k")]: record } })
    assert.strictEqual((await complete("k")).status, 200)
    const reply = await ok("PATCH", `/admin/keys/${idOf("k")}`, {
      name: "new",
      max_inflight: null,
      limits: [{ window: "week", tokens: 9 }],
      expires_at: "2100-01-01T00:00:00+02:00"
    })
    assert.deepInclude(reply, { success: true, config_writable: false, needs_host_sync: false })
    assert.deepInclude(reply["key"], { id: idOf("k"), state: "active", name: "new", note: "kept", max_inflight: null })
    assert.deepStrictEqual(await recordsOf(), {
      [idOf("k")]: {
        name: "new",
        note: "kept",
        limits: [{ window: "week", tokens: 9 }],
        expires_at: "2099-12-31T22:00:00Z",
        hand: "made"
      }
    })
    assert.strictEqual((await complete("k")).status, 429)
    await ok("PATCH", `/admin/keys/${idOf("k")}`, { limits: null, disabled: true })
    const disabled = await complete("k")
    assert.strictEqual(disabled.status, 401)
    assert.include(await disabled.text(), "This API key is disabled")
    await ok("PATCH", `/admin/keys/${idOf("k")}`, { disabled: false, limits: [] })
    assert.strictEqual((await complete("k")).status, 200)
  })

  it("a limit is not cleared by a value of the wrong type", async () => {
    const record = {
      disabled: true,
      models: ["upstream-chat"],
      max_inflight: 1,
      limits: [{ window: "day", requests: 1 }]
    }
    await start({ keys: ["k"], key_records: { [idOf("k")]: record } })
    for (const field of Object.keys(record)) {
      for (const value of ["", " ", ...(field === "disabled" ? [] : [false])]) {
        const answer = await call("PATCH", `/admin/keys/${idOf("k")}`, { body: { [field]: value } })
        assert.strictEqual(answer.status, 400, answer.text)
        assert.include(answer.detail, `key_records.${idOf("k")}.${field} must be`)
      }
    }
    assert.deepStrictEqual(await recordsOf(), { [idOf("k")]: record })
    await ok("PATCH", `/admin/keys/${idOf("k")}`, Object.fromEntries(Object.keys(record).map((field) => [field, null])))
    assert.deepStrictEqual(await recordsOf(), { [idOf("k")]: {} })
  })

  it("an unknown id is a 404, and the key's value cannot be changed", async () => {
    await start({ keys: ["k"], key_records: { [idOf("gone")]: { name: "left over" } } })
    assert.strictEqual((await call("PATCH", `/admin/keys/${idOf("gone")}`, { body: { name: "x" } })).status, 404)
    assert.strictEqual((await call("PATCH", `/admin/keys/k`, { body: { name: "x" } })).status, 404)
    const moved = await call("PATCH", `/admin/keys/${idOf("k")}`, { body: { key: "other" } })
    assert.strictEqual(moved.status, 400)
    assert.include(moved.detail, "key cannot be changed")
  })
})

describe("the generated key of a start without keys", () => {
  let generated = "none"
  const startWithoutKeys = async () => {
    await start({ keys: [] })
    generated = storeOf(gateway).now().generated_key ?? "none"
  }

  it("is listed as generated, can be limited, and serves callers", async () => {
    await startWithoutKeys()
    assert.deepInclude(await ok("GET", "/admin/config"), { keys: [], generated_key: generated })
    const [item, ...others] = await items()
    assert.lengthOf(others, 0)
    assert.deepInclude(item, { id: idOf(generated), generated: true, state: "active" })
    assert.strictEqual((await complete(generated)).status, 200)
    await ok("PATCH", `/admin/keys/${idOf(generated)}`, { limits: [{ window: "day", requests: 1 }] })
    assert.strictEqual((await complete(generated)).status, 429)
  })

  it("ends immediately when a key is added, and is never used as an upstream token", async () => {
    const ways: ReadonlyArray<readonly [string, unknown]> = [
      ["/admin/keys", { key: "first" }],
      ["/admin/keys", { generate: true }],
      ["/admin/config", { keys: ["first"] }],
      ["/admin/import", { keys: ["first"] }],
      ["/admin/config/import", { config: { keys: ["first"] } }],
      ["/admin/config/import", { config: { keys: ["first"] }, mode: "replace" }]
    ]
    for (const [path, body] of ways) {
      await startWithoutKeys()
      const { ended } = await ok("POST", path, body)
      assert.strictEqual(ended, idOf(generated))
      assert.include(logged, "The generated gateway key is no longer accepted")
      assert.strictEqual((await complete(generated)).status, 401)
      assert.notProperty(await ok("GET", "/admin/config"), "generated_key")
      assert.deepStrictEqual((await items()).filter((item) => Object.hasOwn(item, "generated")), [])
      // It stays ended after a restart, and after the removal of the last key.
      const raw = await rawOf(gateway)
      await ok("POST", "/admin/config", { keys: [] })
      assert.strictEqual((await complete(generated)).status, 401)
      assert.deepStrictEqual(await items(), [])
      await gateway.stop()
      await start(raw)
      assert.strictEqual((await complete(generated)).status, 401)
      await gateway.stop()
    }
    await startWithoutKeys()
  })

  it("stays while no key is added, and can be removed", async () => {
    await startWithoutKeys()
    await ok("POST", "/admin/config/import", { config: { runtime: { account_max_inflight: 3 } }, mode: "replace" })
    assert.strictEqual((await complete(generated)).status, 200)
    const { id, total_keys } = await ok("DELETE", `/admin/keys/${idOf(generated)}`)
    assert.deepStrictEqual([id, total_keys], [idOf(generated), 0])
    assert.strictEqual((await complete(generated)).status, 401)
    assert.deepStrictEqual(await items(), [])
  })

  it("becomes permanent when it is added as a key", async () => {
    await startWithoutKeys()
    assert.notProperty(await ok("POST", "/admin/keys", { key: generated }), "ended")
    assert.strictEqual((await complete(generated)).status, 200)
    assert.deepStrictEqual((await items()).map(({ id }) => id), [idOf(generated)])
    assert.notProperty((await items())[0], "generated")
  })
})

describe("a key of 16 hex digits, the form of a key id", () => {
  const [spelt, old] = [idOf("k"), "0123456789abcdef"]

  it("is rejected on every route that adds keys, with the field's name", async () => {
    await start({ keys: ["k"] })
    const wrong: ReadonlyArray<readonly [string, unknown, string]> = [
      ["/admin/keys", { key: ` ${spelt} ` }, "key must not be 16 hex digits"],
      ["/admin/config", { keys: ["k", spelt] }, "keys[1] must not be 16 hex digits"],
      ["/admin/config/import", { config: { keys: [spelt] } }, "keys[0] must not be 16 hex digits"],
      ["/admin/config/import?mode=replace", { keys: [spelt] }, "keys[0] must not be 16 hex digits"],
      ["/admin/import", { keys: ["another", spelt] }, "keys[1] must not be 16 hex digits"]
    ]
    for (const [path, body, message] of wrong) {
      const answer = await call("POST", path, { body })
      assert.strictEqual(answer.status, 400, path)
      assert.include(answer.detail, message)
    }
    assert.deepStrictEqual((await rawOf(gateway))["keys"], ["k"])
    // A key id has no capitals.
    await ok("POST", "/admin/keys", { key: spelt.toUpperCase() })
  })

  it("in an older file remains a key, also after changes", async () => {
    await start({ keys: [old, "k"] })
    assert.strictEqual((await complete(old)).status, 200)
    await ok("POST", "/admin/keys", { key: "another" })
    await ok("POST", "/admin/config/import", { config: { keys: [old, "one more"] } })
    await ok("POST", "/admin/config/import", { config: { keys: [old] }, mode: "replace" })
    assert.deepStrictEqual((await rawOf(gateway))["keys"], [old])
    await ok("DELETE", `/admin/keys/${old}`)
    assert.strictEqual((await call("POST", "/admin/keys", { body: { key: old } })).status, 400)
  })
})

describe("removing a key", () => {
  it("removes its record too, by the key or by its id", async () => {
    const other = idOf("b")
    await start({
      keys: ["a", "b", "c", other],
      key_records: Object.fromEntries(["a", "b", "c", other].map((key) => [idOf(key), { name: key }]))
    })
    const removed = async (name: string) => (await ok("DELETE", `/admin/keys/${name}`))["id"]
    assert.strictEqual(await removed("a"), idOf("a"))
    assert.strictEqual(await removed(idOf("c")), idOf("c"))
    // An id takes precedence over an older key with the same text.
    assert.strictEqual(await removed(other), other)
    assert.deepStrictEqual(await recordsOf(), { [idOf(other)]: { name: other } })
    assert.deepStrictEqual((await rawOf(gateway))["keys"], [other])
    assert.strictEqual(await removed(other), idOf(other))
    assert.isUndefined(await recordsOf())
    assert.strictEqual((await call("DELETE", `/admin/keys/${other}`)).status, 404)
  })

  it("removes its record also if the whole list is replaced or imported", async () => {
    await start({
      keys: ["a", "b", "c"],
      key_records: Object.fromEntries(["a", "b", "c"].map((key) => [idOf(key), { name: key }]))
    })
    await ok("POST", "/admin/config", { keys: ["b", "c", "d"] })
    assert.deepStrictEqual(await recordsOf(), { [idOf("b")]: { name: "b" }, [idOf("c")]: { name: "c" } })
    await ok("POST", "/admin/config/import", { config: { keys: ["c"] }, mode: "replace" })
    assert.deepStrictEqual(await recordsOf(), { [idOf("c")]: { name: "c" } })
    const exports = await Promise.all(["/admin/config/export", "/admin/export"].map((path) => ok("GET", path)))
    for (const { config } of exports) {
      assert.deepStrictEqual((config as Record<string, unknown>)["key_records"], { [idOf("c")]: { name: "c" } })
    }
  })
})

describe("the typed client for keys", () => {
  it("adds, lists, changes and removes keys, and reads usage", async () => {
    await start({ keys: ["k"] })
    const [made, changed, list, usage] = await Effect.runPromise(
      Effect.gen(function*() {
        const admin = yield* makeAdminClient({ baseUrl: gateway.url, credential: adminKey })
        const made = yield* admin["admin-keys"].add({ payload: { generate: true, name: "team" } })
        const changed = yield* admin["admin-keys"].change({ params: { id: made.id }, payload: { max_inflight: 2 } })
        yield* admin["admin-keys"].remove({ params: { key: made.id } })
        const list = yield* admin["admin-keys"].list({ query: {} })
        return [made, changed, list, yield* admin["admin-usage"].query({ query: { by: "key" } })] as const
      }).pipe(Effect.provide(FetchHttpClient.layer))
    )
    assert.strictEqual(changed.key.id, made.id)
    assert.strictEqual(changed.key.usage.max_inflight, 2)
    assert.deepStrictEqual(list.items.map(({ id }) => id), [idOf("k")])
    assert.strictEqual(usage.totals.requests, 0)
  })
})
