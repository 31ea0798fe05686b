/** Lists of the admin API in the order of a value: against a plain sort, over pages, with equal values. And the catalogue of models. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { accountSorts } from "../../src/admin/accounts/Api.ts"
import { sortedBy } from "../../src/admin/contract.ts"
import { keySorts } from "../../src/admin/keys/Api.ts"
import { keyValues } from "../../src/admin/keys/items.ts"
import { modelSorts } from "../../src/admin/models/Api.ts"
import { sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { orders, plainly } from "../support/plainSort.ts"
import { untilHolds } from "../support/until.ts"
import { caller } from "./support.ts"

let gateway: RunningGateway
const call = caller(() => gateway)

const idOf = (key: string) => keyId(key, sha256Hex)
const server = { driver: "openai", base_url: "http://127.0.0.1:9/v1" }

beforeAll(async () => {
  const names = ["b", "a", undefined, "b", "c", undefined, "a"]
  const keys = names.map((_, i) => `key-${i}`)
  gateway = await startGateway({
    keys: [businessKey, ...keys],
    key_records: Object.fromEntries(names.map((name, i) => [idOf(keys[i]!), {
      ...name === undefined ? {} : { name },
      ...i % 2 === 0 ? { max_inflight: i % 3 + 1 } : {},
      ...i === 1 ? { disabled: true } : {},
      ...i === 2 ? { limits: [{ window: "day", cost: 1 }], models: ["large", "fast"] } : {}
    }])),
    accounts: names.map((note, i) => ({
      upstream: i % 2 === 0 ? "gpu" : "hosted",
      token: `token-${i}`,
      note: note ?? "",
      disabled: i === 3
    })),
    upstream: { driver: "embedded" },
    upstreams: {
      gpu: { ...server, models: { small: "vendor-small", large: "vendor-large" } },
      hosted: { ...server, models: { small: "small" } }
    },
    routes: { fast: ["default/upstream-chat", "gpu/small"], hid: { targets: ["gpu/small"], hidden: true } },
    model_aliases: { short: "fast" },
    currency: "EUR",
    prices: {
      "default/*": { input: 0 },
      "vendor-large": { input: 1.5, output: 3 },
      "gpu/small": { input: 0.25, from: "2020-01-01" }
    }
  })
})
afterAll(() => gateway.stop())

const list = async (path: string) => {
  const answer = await call("GET", path)
  assert.strictEqual(answer.status, 200, answer.text)
  return answer.json
}

/** All items over pages of three. */
const pages = async (path: string, of = "items") => {
  const found: Array<Record<string, unknown>> = []
  for (let page = 1;; page++) {
    const reply = await list(`${path}&page=${page}&page_size=3`)
    found.push(...reply[of] as ReadonlyArray<Record<string, unknown>>)
    if (page >= Number(reply["total_pages"])) return found
  }
}

describe("a sort by a value", () => {
  it("has the order of a plain sort, unknown values last, and equal ones as they were", () => {
    const value = fc.option(fc.integer({ min: 0, max: 5 }), { nil: null })
    fc.assert(fc.property(fc.array(value), fc.constantFrom("asc", "desc", "" as const, undefined), (values, order) => {
      const items = values.map((each, place) => ({ each, place }))
      const sorted = sortedBy(items, ({ each }) => each, order)
      const plain: typeof items = []
      const wanted = [0, 1, 2, 3, 4, 5]
      for (const each of [...order === "asc" ? wanted : wanted.toReversed(), null]) {
        plain.push(...items.filter((item) => item.each === each))
      }
      assert.deepStrictEqual(sorted, plain)
    }))
  })
})

describe("the list of keys", () => {
  it("is sorted by each column over pages", async () => {
    const all = (await list("/admin/keys"))["items"] as ReadonlyArray<Parameters<typeof keyValues["id"]>[0]>
    for (const sort of keySorts) {
      for (const order of orders) {
        const plain = plainly(all, keyValues[sort], order).map(({ id }) => id)
        const found = await pages(`/admin/keys?sort=${sort}&order=${order}`)
        assert.deepStrictEqual(found.map(({ id }) => id), plain, `${sort} ${order}`)
      }
    }
  })

  it("refuses an unknown column and an unknown order", async () => {
    for (
      const path of [
        "keys?sort=secret",
        "keys?sort=id&order=up",
        "accounts?sort=token",
        "accounts?order=up",
        "models?sort=x"
      ]
    ) {
      const answer = await call("GET", `/admin/${path}`)
      assert.strictEqual(answer.status, 400, path)
      assert.match(answer.detail, path.includes("order") ? /order/ : /sort/)
    }
  })
})

describe("the list of accounts", () => {
  it("is sorted by each column over pages", async () => {
    const all = (await list("/admin/accounts?page_size=100"))["items"] as ReadonlyArray<
      Record<string, string | number | null>
    >
    assert.strictEqual(all.length, 7)
    for (const sort of accountSorts) {
      for (const order of orders) {
        const plain = plainly(all, (item) => item[sort], order).map(({ identifier }) => identifier)
        const found = await pages(`/admin/accounts?sort=${sort}&order=${order}`)
        assert.deepStrictEqual(found.map(({ identifier }) => identifier), plain, `${sort} ${order}`)
      }
    }
    const cut = await list("/admin/accounts?sort=note&upstream=gpu")
    assert.deepStrictEqual((cut["items"] as typeof all).map(({ note }) => note), ["c", "b", "a", ""])
  })
})

describe("the catalogue of models", () => {
  interface Model {
    readonly id: string
    readonly kind: string
    readonly stands_for: string | null
    readonly price_needed: boolean
    readonly prices: ReadonlyArray<Record<string, string | null>>
    readonly day: {
      readonly requests: number
      readonly cost: string
      readonly first_event_p95_ms: number | null
    } | null
  }
  const models = async (query: string) =>
    await pages(`/admin/models?${query}`, "models") as unknown as ReadonlyArray<Model>

  it("has every name with its kind, its prices and their entries, and whether a budget lacks one", async () => {
    const found = new Map((await models("q=")).map((model) => [model.id, model]))
    assert.deepInclude(found.get("short"), { kind: "alias", stands_for: "fast", day: null })
    assert.deepInclude(found.get("gpt-*"), { kind: "family", stands_for: "upstream-chat", day: null })
    assert.deepInclude(found.get("fast"), { kind: "route", stands_for: null, price_needed: false })
    assert.deepInclude(found.get("small"), { kind: "model", price_needed: false })
    assert.deepStrictEqual(found.get("fast")?.prices, [
      {
        target: "default/upstream-chat",
        entry: "default/*",
        from: null,
        input: "0",
        cached_input: null,
        output: null,
        per_request: null,
        listed: null
      },
      {
        target: "gpu/small",
        entry: "gpu/small",
        from: "2020-01-01T00:00:00Z",
        input: "0.25",
        cached_input: null,
        output: null,
        per_request: null,
        listed: null
      }
    ])
    assert.deepInclude(found.get("small")?.prices[1], { target: "hosted/small", entry: null, input: null })
  })

  it("marks a model without a price where a key with a budget may ask for it", async () => {
    const before = (await list("/admin/prices"))["prices"] as Record<string, unknown>
    const { "vendor-large": _, ...rest } = before
    assert.strictEqual((await call("PUT", "/admin/prices", { body: { prices: rest } })).status, 200)
    const needed = (await models("q=")).filter(({ price_needed }) => price_needed).map(({ id }) => id)
    assert.strictEqual((await call("PUT", "/admin/prices", { body: { prices: before } })).status, 200)
    assert.deepStrictEqual(needed, ["large"])
  })

  it("is sorted by each column in both directions over pages", async () => {
    const all = await models("q=")
    const priced = (unit: string) => ({ prices }: Model) => {
      const price = prices[0]?.[unit]
      return typeof price === "string" ? Number(price) : undefined
    }
    const values: Readonly<Record<(typeof modelSorts)[number], (model: Model) => string | number | null | undefined>> =
      {
        id: ({ id }) => id,
        kind: ({ kind }) => kind,
        input: priced("input"),
        output: priced("output"),
        requests: ({ day }) => day?.requests,
        cost: ({ day }) => day === null ? undefined : Number(day.cost),
        first_event_p95_ms: ({ day }) => day?.first_event_p95_ms
      }
    for (const sort of modelSorts) {
      for (const order of orders) {
        const plain = plainly(all, values[sort], order).map(({ id }) => id)
        assert.deepStrictEqual(
          (await models(`sort=${sort}&order=${order}`)).map(({ id }) => id),
          plain,
          `${sort} ${order}`
        )
      }
    }
  })

  it("is searched, sorted and filtered by kind, and knows the requests and times of a day", async () => {
    const asked = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "short", messages: [{ role: "user", content: "!say hello" }] })
    })
    assert.strictEqual(asked.status, 200, await asked.text())
    await untilHolds(async () => (await models("q=fast")).some(({ day }) => day?.requests === 1))
    assert.deepStrictEqual((await models("sort=requests")).slice(0, 1).map(({ day, id }) => [id, day?.requests]), [[
      "fast",
      1
    ]])
    const [slowest, ...others] = await models("sort=first_event_p95_ms")
    assert.strictEqual(slowest?.id, "fast")
    assert.isNumber(slowest?.day?.first_event_p95_ms)
    assert.isTrue(others.every(({ day }) => (day?.first_event_p95_ms ?? null) === null))
    assert.deepStrictEqual((await models("q=vendor-large")).map(({ id }) => id), ["large"])
    assert.deepStrictEqual((await models("kind=route&sort=id&order=asc")).map(({ id }) => id), ["fast", "hid"])
    const inputs = (await models("sort=input")).map(({ prices }) => prices[0]?.["input"] ?? null)
    assert.deepStrictEqual(inputs.slice(0, 3), ["1.5", "0.25", "0.25"])
  })
})
