/**
 * The order of the tables of keys, models and accounts in Chromium: each head in both directions against a plain sort, over pages, and by
 * a reload, Back and a copied link the same. Requests and usage have this in their own files.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import type { SortValue } from "../../src/admin/contract.ts"
import { sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { UsageStore } from "../../src/usage/UsageStore.ts"
import { dayLength, dayOf } from "../../src/usage/windows.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import { orders, plainly } from "../support/plainSort.ts"
import { untilHolds } from "../support/until.ts"
import { entry } from "../usage/support.ts"
import { adminOf, controls, openSignedIn, showsRows, useBrowser } from "./support.ts"

const browser = useBrowser()
let gateway: RunningGateway
const admin = adminOf(() => gateway)

/** Noon: no day ends while the tests run. */
const noon = dayOf(Date.now()) + dayLength / 2

/** How many rows each list has: more than a page. */
const count = 60
const places = Array.from({ length: count }, (_, i) => i)
const keys = places.map((i) => `${String(i).padStart(2, "0")}-is-the-number-of-a-key`)
const idOf = (key: string) => keyId(key, sha256Hex)
const modelOf = (i: number) => `model-${String(i).padStart(2, "0")}`

const server = { driver: "openai", base_url: "http://127.0.0.1:9/v1" }
const leaving = new AbortController()
const held: Array<Promise<unknown>> = []

const ask = (key: string, content: string, init: RequestInit = {}) =>
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content }] }),
    ...init
  })

beforeAll(async () => {
  gateway = await startGateway({
    keys,
    key_records: Object.fromEntries(keys.map((key, i) => [idOf(key), {
      ...i % 6 === 5 ? {} : { name: `Team ${i * 7 % 20}` },
      ...i % 7 === 3 ? { disabled: true } : i % 11 === 4 ? { expires_at: "2020-01-01T00:00:00Z" } : {},
      ...i % 4 === 2 ? { limits: [{ window: "day", requests: 100 + i % 3 }] } : {}
    }])),
    // The accounts of another server serve nothing.
    accounts: places.map((i) => ({
      ...i % 3 === 0 ? { upstream: "gpu" } : {},
      token: "secret",
      email: `${String(i * 17 % count).padStart(2, "0")}@example.com`,
      password: "p"
    })),
    upstream: { driver: "embedded" },
    upstreams: { gpu: { ...server, models: Object.fromEntries(places.map((i) => [modelOf(i), modelOf(i)])) } },
    routes: { "route-b": ["gpu/model-07"], "route-a": ["gpu/model-03", "gpu/model-04"] },
    model_aliases: { quick: "route-a", another: "model-03" },
    currency: "EUR",
    prices: Object.fromEntries(places.filter((i) => i % 3 > 0).map((i) => [modelOf(i), { input: i % 5, output: 1 }]))
  }, { clock: makeMovedClock({ wall: noon }) })
  const store = Context.get(gateway.services, UsageStore)
  for (const i of places) {
    for (let requests = 0; requests < i % 4; requests++) {
      store.add(entry({
        at: noon - 60_000 * (i % 9),
        key: idOf(keys[i]!),
        model: modelOf(i),
        account: "none",
        cost: i % 5 === 0 ? undefined : BigInt(i % 6) * 10n ** 9n,
        firstEvent: i % 7 === 0 ? undefined : 200 * (i % 8)
      }))
    }
  }
  const active = keys.filter((_, i) => i % 7 !== 3 && i % 11 !== 4)
  for (const i of places) assert.strictEqual((await ask(active[i % 5]!, "!say hello")).status, 200)
  for (const i of [1, 6, 6, 8, 9]) {
    held.push(ask(active[i]!, "!wait 1000s", { signal: leaving.signal }).catch(() => undefined))
  }
  await untilHolds(async () => (await admin("/admin/queue/status"))["in_use"] === held.length)
})
afterAll(async () => {
  leaving.abort()
  await Promise.all(held)
  await gateway.stop()
})

type Item = Readonly<Record<string, unknown>>
type ValueOf = (item: Item) => SortValue

/** The value of a field, which may be one of a field: `usage.in_flight`. */
const field = (path: string): ValueOf => (item) =>
  path.split(".").reduce<unknown>((value, name) => (value as Item | null)?.[name], item) as SortValue

const amount = (path: string): ValueOf => (item) => {
  const value = field(path)(item)
  return value === null || value === undefined ? undefined : Number(value)
}

/** The used share of the only limit. */
const limitShare: ValueOf = ({ usage }) => {
  const [window] = (usage as { readonly windows: ReadonlyArray<{ readonly requests: Record<string, number> }> }).windows
  return window && window.requests["used"]! / window.requests["limit"]!
}

interface Sorted {
  readonly name: string
  readonly route: string
  /** The list in the order that equal values keep. */
  readonly path: string
  readonly items: string
  /** What the row of an item begins with. */
  readonly rowOf: ValueOf
  /** Each head with the order of its first press, and what it sorts by. */
  readonly heads: Readonly<Record<string, readonly [first: (typeof orders)[number], valueOf: ValueOf]>>
}

const tables: ReadonlyArray<Sorted> = [
  {
    name: "Keys",
    route: "keys",
    path: "/admin/keys?page_size=100",
    items: "items",
    rowOf: ({ name, preview }) => String(name ?? preview),
    heads: {
      Key: ["asc", field("name")],
      State: ["asc", field("state")],
      Limits: ["desc", limitShare],
      Running: ["desc", field("usage.in_flight")],
      "Requests today": ["desc", field("usage.requests_today")],
      "Today, EUR": ["desc", amount("usage.cost_today")],
      "Last used": ["desc", field("usage.last_used_at")]
    }
  },
  {
    name: "Models",
    route: "models",
    path: "/admin/models?page_size=1000",
    items: "models",
    rowOf: field("id"),
    heads: {
      Model: ["asc", field("id")],
      Kind: ["asc", field("kind")],
      In: ["asc", amount("prices.0.input")],
      Requests: ["desc", field("day.requests")],
      "Cost in EUR": ["desc", amount("day.cost")],
      "First, p95": ["desc", field("day.first_event_p95_ms")]
    }
  },
  {
    name: "Accounts",
    route: "accounts",
    path: "/admin/accounts?page_size=100",
    items: "items",
    rowOf: field("identifier"),
    heads: {
      Account: ["asc", field("identifier")],
      Upstream: ["asc", field("upstream")],
      Slots: ["desc", field("in_use")],
      "Last hour": ["desc", field("requests_hour")],
      "Last used": ["desc", field("last_used_at")]
    }
  }
]

const spoken = { asc: "ascending", desc: "descending" } as const
const pageSize = 50

describe("the order of a table", () => {
  it.each(tables)(
    "$name: each head sorts in both directions over pages; a reload, Back and a copied link show the same rows",
    async ({ heads, items, name, path, route, rowOf }) => {
      const { close, context, page } = await openSignedIn(browser(), gateway.url, route, {
        // Every column has room.
        viewport: { width: 1440, height: 900 }
      })
      const table = page.getByRole("table", { name, exact: true })
      const { button } = controls(() => page)
      const list = (await admin(path))[items] as ReadonlyArray<Item>
      assert.isAbove(list.length, pageSize)
      const rows = (valueOf: ValueOf, order: (typeof orders)[number]) => plainly(list, valueOf, order).map(rowOf)
      const marked = table.locator("[aria-sort]:not([aria-sort=none])")
      let last: ReadonlyArray<unknown> = []
      for (const [head, [first, valueOf]] of Object.entries(heads)) {
        assert.isAbove(new Set(list.map(valueOf)).size, 1, head)
        const header = table.getByRole("columnheader", { name: head, exact: true })
        for (const order of [first, ...orders.filter((each) => each !== first)]) {
          // The first press is the mouse's. The head keeps the focus for the key.
          if (order === first) await header.getByRole("button").click()
          else await page.keyboard.press("Enter")
          const sorted = rows(valueOf, order)
          await showsRows(page, name, sorted.slice(0, pageSize))
          assert.strictEqual(await header.getAttribute("aria-sort"), spoken[order], head)
          assert.strictEqual(await marked.count(), 1, head)
          last = sorted.slice(pageSize)
        }
        await button("Next page").click()
        await showsRows(page, name, last)
      }
      await page.reload()
      await showsRows(page, name, last)
      const address = page.url()
      // To the page of a row, and to a link with another order.
      await table.locator("tbody th a").first().click()
      await page.getByRole("heading", { level: 1, name, exact: true }).waitFor({ state: "detached" })
      await page.goBack()
      await showsRows(page, name, last)
      const [other, [first, valueOf]] = Object.entries(heads)[0]!
      await page.goto(`${gateway.url}/console/#/${route}`)
      await marked.waitFor({ state: "detached" })
      await table.getByRole("columnheader", { name: other, exact: true }).getByRole("button").click()
      await showsRows(page, name, rows(valueOf, first).slice(0, pageSize))
      await page.goBack()
      await showsRows(page, name, last)
      assert.strictEqual(page.url(), address)
      const copied = await context.newPage()
      await copied.goto(address)
      await showsRows(copied, name, last)
      await close()
    }
  )
})
