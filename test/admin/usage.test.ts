/** Usage in the admin API: rows, sums and CSV. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Context } from "effect"
import { usageSorts } from "../../src/admin/usage/Api.ts"
import { sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { percentileNames } from "../../src/usage/Times.ts"
import { measureNames, type UsageEntry } from "../../src/usage/UsageEntry.ts"
import { UsageStore } from "../../src/usage/UsageStore.ts"
import { hourLength } from "../../src/usage/windows.ts"
import { type GatewayOptions, type RunningGateway, startGateway } from "../support/gateway.ts"
import { entry } from "../usage/support.ts"
import { caller } from "./support.ts"

let gateway: RunningGateway
afterEach(() => gateway.stop())

const call = caller(() => gateway)
const key = keyId("k", sha256Hex)
const account = "=cmd@x.org"
const accountHash = sha256Hex(account).slice(0, 12)
const at = Date.parse("2026-11-20T10:30:00Z")

const start = async (entries: ReadonlyArray<UsageEntry>, options: GatewayOptions = {}) => {
  gateway = await startGateway({
    keys: ["k"],
    key_records: { [key]: { name: "Team, \"A\"" } },
    accounts: [{ email: account, password: "pw" }]
  }, options)
  const store = Context.get(gateway.services, UsageStore)
  for (const each of entries) store.add(each)
}

const usage = async (query: string) => {
  const answer = await call("GET", `/admin/usage?${query}`)
  assert.strictEqual(answer.status, 200, answer.text)
  return answer.json as {
    readonly from: string
    readonly to: string
    readonly by: ReadonlyArray<string>
    readonly rows: ReadonlyArray<Record<string, unknown>>
    readonly totals: Record<string, unknown>
    readonly truncated: boolean
    readonly store: unknown
  }
}

const told = [
  entry({ at, key, account: accountHash, firstEvent: 5 }),
  entry({ at, key, account: accountHash, outcome: "failed", error: "upstream_error", model: "upstream-reasoner" }),
  entry({ at: at + hourLength, key: "direct", account: "none", style: "messages", outcome: "left", promptTokens: 100 })
]

const span = "from=2026-11-20&to=2026-11-21"

describe("usage in the admin API", () => {
  it("contains sums with every measure, in a fixed order", async () => {
    await start(told)
    const { by, from, rows, store, to, totals, truncated } = await usage(span)
    assert.deepStrictEqual({ by, from, rows, to, truncated }, {
      by: [],
      from: "2026-11-20T00:00:00Z",
      rows: [],
      to: "2026-11-21T00:00:00Z",
      truncated: false
    })
    assert.deepStrictEqual(Object.keys(totals), [
      ...measureNames,
      "cost",
      "unpriced_requests",
      "cache_write_tokens",
      "predicted_tokens",
      "prompt_cache_misses",
      "wasted_cost",
      "prompt_cache_hit_rate",
      ...percentileNames,
      "errors"
    ])
    assert.deepStrictEqual(totals, {
      requests: 3,
      succeeded: 1,
      failed: 1,
      left: 1,
      counted_requests: 3,
      prompt_tokens: 120,
      completion_tokens: 15,
      reasoning_tokens: 6,
      cached_tokens: 3,
      total_tokens: 135,
      estimated_requests: 0,
      tool_calls: 0,
      attempts: 3,
      queue_ms: 9,
      upstream_ms: 12,
      duration_ms: 27,
      cost: "0",
      unpriced_requests: 3,
      cache_write_tokens: 0,
      predicted_tokens: 0,
      prompt_cache_misses: 0,
      wasted_cost: "0",
      prompt_cache_hit_rate: 3 / 120,
      first_event_p50_ms: 5,
      first_event_p95_ms: 5,
      duration_p95_ms: 9,
      queue_p95_ms: 3,
      tokens_per_second_p50: null,
      errors: { upstream_error: 1 }
    })
    assert.deepStrictEqual(store, { kind: "memory", persistent: false, detail: null })
  })

  it("contains rows of the requested groups, with the current names of keys and accounts", async () => {
    await start(told)
    const { by, rows } = await usage(`${span}&by=account,hour,key`)
    assert.deepStrictEqual(by, ["account", "hour", "key"])
    assert.deepStrictEqual(rows.map((row) => Object.keys(row).slice(0, 6)), [
      ["account", "account_identifier", "hour", "key", "key_name", "requests"],
      ["account", "account_identifier", "hour", "key", "key_name", "requests"]
    ])
    assert.deepInclude(rows[0], {
      account: accountHash,
      account_identifier: account,
      hour: "2026-11-20T10:00:00Z",
      key,
      key_name: "Team, \"A\"",
      requests: 2
    })
    assert.deepInclude(rows[1], {
      account: "none",
      account_identifier: null,
      hour: "2026-11-20T11:00:00Z",
      key: "direct",
      key_name: null,
      requests: 1
    })
    const days = await usage(`${span}&by=day`)
    assert.deepInclude(days.rows[0], { day: "2026-11-20", requests: 3 })
  })

  it("is narrowed by filters, and truncated at the limit of rows", async () => {
    await start(told)
    assert.deepInclude((await usage(`${span}&model=upstream-reasoner,other`)).totals, { requests: 1, failed: 1 })
    assert.deepInclude((await usage(`${span}&key=direct&style=messages`)).totals, { requests: 1, left: 1 })
    assert.deepInclude((await usage(`${span}&account=000000000000`)).totals, { requests: 0 })
    const cut = await usage(`${span}&by=key&limit=1`)
    assert.deepInclude(cut, { truncated: true })
    assert.deepStrictEqual(cut.rows.map((row) => row["key"]), ["direct"])
    assert.deepInclude(cut.totals, { requests: 3 })
  })

  it("is restricted to keys by name or id and to accounts by identifier or hash, and refuses unknown ones", async () => {
    await start(told)
    const requests = async (query: string) => (await usage(`${span}&${query}`)).totals["requests"]
    assert.strictEqual(await requests(`key=${encodeURIComponent("Team, \"A\"")}`), 2)
    assert.strictEqual(await requests(`key=${key}`), 2)
    assert.strictEqual(await requests(`key=${key},direct`), 3)
    assert.strictEqual(await requests("key=00000000000000aa"), 0)
    assert.strictEqual(await requests(`account=${encodeURIComponent(account)}`), 2)
    assert.strictEqual(await requests(`account=${accountHash}`), 2)
    for (const [query, name] of [["key=Team", "key"], ["account=nobody", "account"]] as const) {
      for (const path of ["usage", "usage.csv"]) {
        const answer = await call("GET", `/admin/${path}?${span}&${query}`)
        assert.strictEqual(answer.status, 400)
        assert.include(answer.text, `${name}: no `)
      }
    }
  })

  it("sums the keys of each label that keys have now, and is restricted to labels", async () => {
    gateway = await startGateway({
      keys: ["a", "b", "c"],
      key_records: {
        [keyId("a", sha256Hex)]: { label: "sales, EU" },
        [keyId("b", sha256Hex)]: { label: "sales, EU" },
        [keyId("c", sha256Hex)]: { name: "c" }
      }
    })
    const store = Context.get(gateway.services, UsageStore)
    for (const name of ["a", "b", "b", "c", "gone"]) store.add(entry({ at, key: keyId(name, sha256Hex) }))
    store.add(entry({ at: at + 24 * hourLength, key: keyId("a", sha256Hex), app: "codex" }))
    const range = "from=2026-11-20&to=2026-11-22"
    const rows = async (query: string, ...names: ReadonlyArray<string>) =>
      (await usage(`${range}&${query}`)).rows.map((row) => [...names, "requests"].map((name) => row[name]))
    assert.deepStrictEqual(await rows("by=label", "label"), [["sales, EU", 4], ["none", 2]])
    assert.deepStrictEqual(await rows("by=day,label", "day", "label"), [
      ["2026-11-20", "sales, EU", 3],
      ["2026-11-20", "none", 2],
      ["2026-11-21", "sales, EU", 1]
    ])
    assert.deepStrictEqual(await rows("by=label,app&label=none", "label", "app"), [["none", "none", 2]])
    assert.deepStrictEqual((await usage(`${range}&label=${encodeURIComponent("sales, EU")}`)).totals["requests"], 4)
    assert.deepStrictEqual((await usage(`${range}&label=none`)).totals["requests"], 2)
    const cut = await usage(`${range}&by=label&limit=1`)
    assert.deepInclude(cut, { truncated: true })
    assert.deepInclude(cut.totals, { requests: 6 })
    const csv = (await call("GET", `/admin/usage.csv?${range}&by=label`)).text.split("\r\n")
    assert.match(csv[0]!, /^label,requests,/)
    assert.match(csv[1]!, /^"sales, EU",4,/)

    await call("PATCH", `/admin/keys/${keyId("b", sha256Hex)}`, { body: { label: "buying" } })
    assert.deepStrictEqual(await rows("by=label", "label"), [["buying", 2], ["none", 2], ["sales, EU", 2]])
    assert.deepStrictEqual(await rows("by=label&label=buying,none", "label"), [["buying", 2], ["none", 2]])
    await call("DELETE", `/admin/keys/${keyId("b", sha256Hex)}`)
    assert.deepStrictEqual(await rows("by=label", "label"), [["none", 4], ["sales, EU", 2]])
    for (const path of ["usage", "usage.csv"]) {
      const answer = await call("GET", `/admin/${path}?${range}&label=buying`)
      assert.strictEqual(answer.status, 400)
      assert.include(answer.text, "label: no API key has the label \\\"buying\\\"")
    }
  })

  it("is sorted by each measure in both directions, equal and unknown values in the order of the list", async () => {
    const count = 60
    await start(Array.from({ length: count }, (_, i) =>
      entry({
        at: at + (i % 3) * hourLength,
        key: "direct",
        account: "none",
        model: `m${i % 20}`,
        outcome: i % 4 === 0 ? "failed" : i % 5 === 0 ? "left" : "succeeded",
        error: i % 4 === 0 ? "upstream_error" : undefined,
        promptTokens: (i * 7) % 5,
        completionTokens: (i * 3) % 4,
        cost: i % 3 === 0 ? BigInt(i % 7) * 10n ** 20n : undefined,
        wasted: BigInt(i % 2),
        predictedTokens: i % 3,
        isCacheMiss: i % 6 === 0,
        cacheWriteTokens: i % 2,
        attempts: i % 3,
        queued: (i % 4) * 100,
        duration: 1000 + (i % 7) * 1000,
        firstEvent: i % 5 === 0 ? undefined : (i % 6) * 100
      })))
    const query = `${span}&by=model,hour`
    const { rows } = await usage(query)
    // Decimal numbers that are not exact as numbers.
    const nanos = (text: string): bigint => {
      const [units = "0", fraction = ""] = text.split(".")
      return BigInt(units + fraction.padEnd(9, "0"))
    }
    for (const sort of usageSorts) {
      const values = rows.map((row, place) => {
        const value = row[sort] as number | string | null
        return { row, place, value: typeof value === "string" ? nanos(value) : value }
      })
      for (const order of ["asc", "desc"] as const) {
        const expected = values.toSorted((a, b) => {
          if (a.value === b.value) return a.place - b.place
          if (a.value === null || b.value === null) return a.value === null ? 1 : -1
          return (a.value < b.value ? -1 : 1) * (order === "asc" ? 1 : -1)
        }).map(({ row }) => row)
        for (const limit of [count, 7, 1]) {
          const cut = await usage(`${query}&sort=${sort}&order=${order}&limit=${limit}`)
          assert.deepStrictEqual(cut.rows, expected.slice(0, limit), `${sort} ${order}`)
          assert.strictEqual(cut.truncated, limit < expected.length)
        }
        const first =
          (await call("GET", `/admin/usage.csv?${query}&sort=${sort}&order=${order}&limit=1`)).text.split("\r\n")[1]
        assert.include(first, `${String(expected[0]!["model"])},${String(expected[0]!["hour"])},`)
      }
    }
  })

  it("counts the rejected requests of a disabled or expired key under that key", async () => {
    const keys = ["disabled key", "expired key"]
    const [disabled, expired] = keys.map((each) => keyId(each, sha256Hex))
    gateway = await startGateway({
      keys,
      key_records: { [disabled!]: { disabled: true }, [expired!]: { expires_at: "2020-01-01T00:00:00Z" } }
    })
    for (const token of [...keys, "two words"]) {
      for (const headers of [{ authorization: `Bearer ${token}` }, { "x-gen-api-key": token }]) {
        const path = "x-gen-api-key" in headers
          ? "/v1beta/models/upstream-chat:generateContent"
          : "/v1/chat/completions"
        const reply = await fetch(`${gateway.url}${path}`, { method: "POST", headers, body: "{}" })
        assert.strictEqual(reply.status, 401, await reply.text())
      }
    }
    const { rows } = await usage("by=key")
    const refused = rows.map(({ counted_requests, errors, key: of }) => ({ counted_requests, errors, of }))
    const each = { counted_requests: 0, errors: { authentication_failed: 2 } }
    assert.sameDeepMembers(refused, [{ ...each, of: disabled }, { ...each, of: expired }, { ...each, of: "none" }])
    const { items } = (await call("GET", "/admin/keys")).json as { items: ReadonlyArray<{ usage: unknown }> }
    // Rejected requests are not usage of the key's limits.
    for (const item of items) assert.deepInclude(item.usage, { last_used_at: null })
  })

  it("covers the last 24 hours by default, in whole hours, and accepts times in each form", async () => {
    await start([])
    const before = Date.now()
    const { from, to } = await usage("")
    assert.strictEqual(Date.parse(to) - Date.parse(from), 24 * hourLength)
    assert.isTrue(Date.parse(to) >= before && Date.parse(to) < Date.now() + hourLength)
    for (
      const [query, expected] of [
        ["from=2026-11-20T10:59:59Z&to=2026-11-20T11:00:01Z", "2026-11-20T10:00:00Z 2026-11-20T12:00:00Z"],
        ["from=2026-11-20T10:00:00%2B01:00&to=2026-11-20T11:00:00Z", "2026-11-20T09:00:00Z 2026-11-20T11:00:00Z"],
        ["from=1763632800&to=1763640000.5", "2025-11-20T10:00:00Z 2025-11-20T13:00:00Z"],
        ["to=2026-03-01", "2026-02-28T00:00:00Z 2026-03-01T00:00:00Z"],
        // No later than the format of a time can express.
        ["from=9999-12-31&to=9999-12-31T23:59:59Z", "9999-12-31T00:00:00Z 9999-12-31T23:00:00Z"]
      ] as const
    ) {
      const { from, to } = await usage(query)
      assert.strictEqual(`${from} ${to}`, expected, query)
    }
  })

  it("sums days of a time zone from their hours, and says which days are in UTC", async () => {
    const night = Date.parse("2026-11-20T23:30:00Z")
    await start([entry({ at }), entry({ at: night }), entry({ at: night + hourLength })])
    const daysOf = async (zone: string) =>
      (await usage(`from=2026-11-20&to=2026-11-22&by=day${zone}`)).rows.map(({ day, requests }) => [day, requests])
    assert.deepStrictEqual(await daysOf(""), [["2026-11-20", 2], ["2026-11-21", 1]])
    assert.deepStrictEqual(await daysOf("&zone=Europe/Berlin"), [["2026-11-20", 1], ["2026-11-21", 2]])
    assert.deepStrictEqual(await daysOf("&zone=America/New_York"), [["2026-11-20", 3]])
    const { utc_days_before, zone } = await usage("zone=Europe/Berlin") as unknown as Record<string, string>
    assert.strictEqual(zone, "Europe/Berlin")
    assert.isBelow(Date.parse(utc_days_before!), Date.now() - 89 * 24 * hourLength)
    assert.include(
      (await call("GET", "/admin/usage.csv?from=2026-11-20&to=2026-11-22&by=day&zone=Europe/Berlin")).text,
      "2026-11-21,2"
    )
  })

  it("rejects invalid parameters by name", async () => {
    await start([])
    for (
      const [query, detail] of [
        ["from=yesterday", "from must be"],
        ["to=2026-02-30", "to must be"],
        ["to=99999999999999999", "to must be"],
        ["from=2026-11-20&to=2026-11-20", "from must be before to"],
        ["from=2100-01-01", "from must be before to"],
        ["by=key,who", "by must be of key, model, account, style, hour, day"],
        ["by=key,key", "by names key twice"],
        ["by=session,model", "session, agent and parent go with key, label, app, hour and day, and not with model"],
        ["by=app&agent=a&style=chat", "and not with style"],
        ["zone=Nowhere", "zone must be the name of a time zone"],
        ["limit=0", "limit must be between 1 and 10000"],
        ["limit=10001", "limit must be between 1 and 10000"],
        ["limit=many", "limit must be between 1 and 10000"],
        ["sort=errors", "sort"],
        ["sort=requests&order=up", "order"]
      ] as const
    ) {
      const answer = await call("GET", `/admin/usage?${query}`)
      assert.strictEqual(answer.status, 400, query)
      assert.include(answer.detail, detail)
    }
    assert.strictEqual((await call("GET", "/admin/usage", { bearer: null })).status, 401)
    assert.strictEqual((await call("GET", "/admin/usage.csv", { bearer: "k" })).status, 401)
  })

  it("is exported as CSV that spreadsheets read as text", async () => {
    await start([...told, entry({ at, key, account: accountHash, outcome: "failed", error: "rate_limit_exceeded" })])
    const { headers, status, text } = await call("GET", `/admin/usage.csv?${span}&by=key,account,day`)
    assert.strictEqual(status, 200)
    assert.strictEqual(headers.get("content-type"), "text/csv; charset=utf-8")
    assert.match(headers.get("content-disposition") ?? "", /^attachment; filename=".*\.csv"$/)
    assert.isNull(headers.get("x-truncated"))
    assert.deepStrictEqual(text.split("\r\n"), [
      `key,key_name,account,account_identifier,day,${
        measureNames.join(",")
      },cost,currency,unpriced_requests,errors,cache_write_tokens,predicted_tokens,prompt_cache_misses,wasted_cost,${
        percentileNames.join(",")
      }`,
      "direct,,none,,2026-11-20,1,0,0,1,1,100,5,2,1,105,0,0,1,3,4,9,0,,1,,0,0,0,0,,,9,3,",
      `${key},"Team, ""A""",${accountHash},'${account},2026-11-20,3,1,2,0,3,30,15,6,3,45,0,0,3,9,12,27,0,,3,rate_limit_exceeded=1;upstream_error=1,0,0,0,0,5,5,9,3,`,
      ""
    ])
    const cut = await call("GET", `/admin/usage.csv?${span}&by=key&limit=1`)
    assert.strictEqual(cut.headers.get("x-truncated"), "true")
    assert.strictEqual(cut.text.split("\r\n").length, 3)
  })

  it("is exported as CSV completely, beyond the limit of rows for JSON", async () => {
    const rows = 30_000
    await start([])
    const store = Context.get(gateway.services, UsageStore)
    for (let i = 0; i < rows; i++) store.add(entry({ at, model: `m${i}` }))
    const { headers, text } = await call("GET", `/admin/usage.csv?${span}&by=model`)
    assert.isNull(headers.get("x-truncated"))
    const lines = text.split("\r\n")
    assert.strictEqual(lines.length, rows + 2)
    assert.strictEqual(new Set(lines.slice(1, -1).map((line) => line.slice(0, line.indexOf(",")))).size, rows)
  })
})
