/** Usage at the console, in Chromium: why requests are slow and what costs most, in few clicks, and the order of the table. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import type { Locator, Page } from "playwright-core"
import { sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { UsageStore } from "../../src/usage/UsageStore.ts"
import { hourLength, hourOf } from "../../src/usage/windows.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { entry } from "../usage/support.ts"
import { adminOf, controls, goTo, openSignedIn, showsRows, useBrowser, type Watched } from "./support.ts"

const browser = useBrowser()
let gateway: RunningGateway
let watched: Watched
let page: Page

const keys = { "team a": "key-of-team-a", "team b": "key-of-team-b" } as const
const idOf = (name: keyof typeof keys): string => keyId(keys[name], sha256Hex)

/** The first hour with slow requests: the running one. */
const slowSince = hourOf(Date.now())

/** The models of the table: more than a page has. */
const models = Array.from({ length: 130 }, (_, i) => `model-${String(i).padStart(3, "0")}`)

const euros = (amount: number): bigint => BigInt(amount) * 10n ** 9n

beforeAll(async () => {
  gateway = await startGateway({
    keys: Object.values(keys),
    key_records: Object.fromEntries(
      (Object.keys(keys) as Array<keyof typeof keys>).map((name) => [idOf(name), { name }])
    ),
    currency: "EUR"
  })
  const store = Context.get(gateway.services, UsageStore)
  for (let hours = 0; hours < 20; hours++) {
    const at = slowSince - hours * hourLength
    for (let i = 0; i < 6; i++) {
      const waits = {
        at,
        key: idOf("team a"),
        account: "none",
        firstEvent: 400,
        model: "upstream-chat",
        cost: euros(1)
      }
      store.add(
        hours === 0
          ? entry({ ...waits, queued: 15_000, upstream: 400, duration: 20_000, firstEvent: 15_400 })
          : entry({ ...waits, queued: 10, upstream: 400, duration: 1000 })
      )
    }
  }
  store.add(entry({ at: slowSince, key: idOf("team b"), model: "upstream-reasoner", cost: euros(900) }))
  store.add(
    entry({
      at: slowSince,
      key: "direct",
      account: "none",
      model: "cached-model",
      promptTokens: 6_400,
      cachedTokens: 4_800
    })
  )
  // In the week before.
  store.add(entry({ at: slowSince - 9 * 24 * hourLength, key: idOf("team b"), model: "earlier", cost: euros(3_000) }))
  store.add(entry({ at: slowSince, key: idOf("team a"), model: "upstream-reasoner", cost: euros(90) }))
  // Two days ago: outside of the day that pages show. Many values are equal, and some unknown.
  models.forEach((model, i) => {
    for (let requests = 0; requests <= i % 3; requests++) {
      store.add(entry({
        at: slowSince - 48 * hourLength,
        key: "direct",
        account: "none",
        model,
        outcome: i % 4 === 0 ? "failed" : i % 5 === 0 ? "left" : "succeeded",
        promptTokens: 10 * (i % 7),
        completionTokens: 5 * (i % 4),
        cost: i % 3 === 0 ? undefined : euros(i % 11),
        attempts: i % 3,
        queued: 100 * (i % 5),
        duration: 4000 + 1000 * (i % 6),
        firstEvent: i % 5 === 0 ? undefined : 200 * (i % 8)
      }))
    }
  })
  watched = await openSignedIn(browser(), gateway.url)
  page = watched.page
})
afterAll(async () => {
  await watched.close()
  await gateway.stop()
})

const { act } = controls(() => page)
const usage = () => page.getByRole("table", { name: "Usage" })

/** Counts what is pressed. */
const clicks = () => {
  let count = 0
  return {
    click: async (target: Locator) => {
      count++
      await target.click()
    },
    choose: async (target: Locator, option: string) => {
      count++
      await target.selectOption(option)
    },
    get count() {
      return count
    }
  }
}

const inNavigation = (name: string) =>
  page.getByRole("navigation", { name: "Main" }).getByRole("link", { name, exact: true })

/** The time of day of the page's zone. */
const timeOf = (time: number): Promise<string> =>
  page.evaluate((at) => new Date(at).toLocaleTimeString("en-GB", { timeStyle: "short" }), time)

describe("usage at the console", () => {
  it("shows why requests of a key are slow, and since which hour, within three clicks", async () => {
    const pressed = clicks()
    await pressed.click(inNavigation("Keys"))
    await pressed.click(page.getByRole("table", { name: "Keys" }).getByRole("link", { name: "team a" }))
    const since = await timeOf(slowSince)
    // Buckets of durations are within 5 percent.
    const text = new RegExp(
      `^Slow since ${since}: 95 of 100 requests take up to (19|20) s, and usually (9\\d\\d ms|1\\.0\\d s)\\. ` +
        "75 % of their time is the wait for a slot\\."
    )
    await page.getByText(text).waitFor()
    await pressed.click(page.getByRole("link", { name: "The slowest of them" }))
    await page.getByRole("heading", { level: 1, name: "Requests" }).waitFor()
    assert.match(page.url(), /sort=duration_ms&order=desc/)
    assert.isAtMost(pressed.count, 3)
  })

  it("says which model costs most, and how that has changed since the week before, within two clicks, and for whom with a third", async () => {
    await goTo(page, "Overview")
    const pressed = clicks()
    await pressed.click(inNavigation("Usage"))
    await usage().locator("[aria-sort=descending]").getByText("Cost").waitFor()
    await pressed.choose(page.getByRole("combobox", { name: "Range" }), "7 days")
    // 990 for the reasoner, 120 for chat, and what the models of two days ago cost; 3,000 nine days ago.
    await page.getByText(
      /^€2,\d\d\d\.00 in 7 days, 2\d % less than in the 7 days before\. 4\d % of it is upstream-reasoner\./
    )
      .waitFor()
    assert.strictEqual(pressed.count, 2)
    assert.strictEqual(await usage().locator("tbody th").first().textContent(), "upstream-reasoner")
    await page.getByText("the 7 days before", { exact: true }).waitFor()
    await pressed.click(usage().getByRole("link", { name: "upstream-reasoner" }))
    await usage().getByRole("row", { name: /^team b 900\.00/ }).waitFor()
    assert.deepStrictEqual(await usage().locator("tbody th").allTextContents(), ["team b", "team a", "All"])
    await page.goBack()
    await usage().getByRole("link", { name: "upstream-chat" }).waitFor()
  })

  it("says what share of prompts caches had, and why the others were not cached, within two clicks", async () => {
    await page.route(/\/admin\/requests\/facets\?/, async (route) => {
      const counted = await adminOf(() => gateway)("/admin/requests/facets") as { readonly facets?: object }
      const prompt_cache = [{ value: "expired", name: null, count: 3 }, { value: "changed", name: null, count: 1 }]
      await route.fulfill({ json: { ...counted, total: 4, facets: { ...counted.facets, prompt_cache } } })
    })
    await goTo(page, "Overview")
    const pressed = clicks()
    await pressed.click(inNavigation("Usage"))
    await page.getByText(/ 65 % of the tokens of prompts came from caches\.$/).waitFor()
    await usage().getByRole("row", { name: /^cached-model .* 75 % / }).waitFor()
    await pressed.choose(page.getByRole("combobox", { name: "Chart shows" }), "Prompts by cache")
    const reasons = page.getByRole("table", { name: "Why prompts were not cached" })
    await reasons.getByRole("row", { name: /^Expired 3 75 %$/ }).waitFor()
    await page.getByText(/^7,620 tokens of prompts in 24 hours\./).waitFor()
    assert.strictEqual(pressed.count, 2)
    await page.unrouteAll({ behavior: "ignoreErrors" })
  })

  it("leads from a row to its page, which has its day, where it is served, its price and its failures", async () => {
    await act("Its page", "upstream-reasoner", "Usage")
    await page.getByRole("heading", { level: 1, name: "upstream-reasoner" }).waitFor()
    await page.getByRole("link", { name: /^Cost €990\.00/ }).waitFor()
    await page.getByRole("link", { name: "team b" }).waitFor()
    await page.getByText("None of the kept requests failed.").waitFor()
    await page.getByRole("link", { name: "default/upstream-reasoner" }).waitFor()
    await goTo(page, "Models")
    await page.getByRole("table", { name: "Models" }).getByRole("link", { name: "upstream-reasoner" }).first().click()
    await page.getByRole("heading", { level: 1, name: "upstream-reasoner" }).waitFor()
  })

  it("isolates a part of the chart by a click in its legend, which has the totals, the largest first", async () => {
    await page.goto(`${gateway.url}/console/#/usage`)
    const legend = page.getByRole("group", { name: "Parts of the chart" })
    const [reasoner, chat] = [/^upstream-reasoner €990\.00$/, /^upstream-chat €120\.00$/].map((name) =>
      legend.getByRole("button", { name })
    ) as [Locator, Locator]
    await chat.waitFor()
    assert.deepStrictEqual((await legend.getByRole("button").allTextContents()).map((text) => text.split(" ")[0]), [
      "upstream-reasoner",
      "upstream-chat",
      "cached-model"
    ])
    await chat.click()
    assert.strictEqual(await chat.getAttribute("aria-pressed"), "true")
    assert.strictEqual(await reasoner.getAttribute("aria-pressed"), "false")
    await chat.click()
    assert.strictEqual(await chat.getAttribute("aria-pressed"), "false")
    // Lines of percentiles have the percentile of the whole time.
    await page.getByRole("combobox", { name: "Chart shows" }).selectOption("Duration p95")
    await legend.getByRole("button", { name: /^upstream-chat (9\d\d ms|1\.0\d s)$/ }).waitFor()
  })

  it("is sorted by each head in both directions, over pages, and by a reload, Back and a link the same", async () => {
    const admin = adminOf(() => gateway)
    const [from, to] = [slowSince - 48 * hourLength, slowSince - 47 * hourLength].map((at) =>
      new Date(at).toISOString()
    )
    const time = { from: from!, to: to! }
    const { rows } = await admin(`/admin/usage?${new URLSearchParams({ ...time, by: "model" })}`) as {
      readonly rows: ReadonlyArray<Readonly<Record<string, number | string | null>>>
    }
    assert.lengthOf(rows, models.length)
    /** The models in an order: unknown values last, equal ones in the order of the list. */
    const expected = (sort: string, order: "asc" | "desc") =>
      rows.map((row, place) => ({ name: row["model"], place, value: row[sort] ?? null }))
        .toSorted((a, b) => {
          if (a.value === b.value) return a.place - b.place
          if (a.value === null || b.value === null) return a.value === null ? 1 : -1
          return (Number(a.value) - Number(b.value)) * (order === "asc" ? 1 : -1)
        }).map(({ name }) => name)
    const shows = (names: ReadonlyArray<unknown>) => showsRows(page, "Usage", [...names, "All"])
    const heads = {
      "Cost in EUR": "cost",
      Requests: "requests",
      Failed: "failed",
      Cancelled: "left",
      Prompt: "prompt_tokens",
      Completion: "completion_tokens",
      "From cache": "prompt_cache_hit_rate",
      "First p50": "first_event_p50_ms",
      "First p95": "first_event_p95_ms",
      "Duration p95": "duration_p95_ms",
      "Wait p95": "queue_p95_ms",
      "Tokens/s": "tokens_per_second_p50",
      Attempts: "attempts"
    }
    await page.goto(`${gateway.url}/console/#/usage?${new URLSearchParams(time)}`)
    await shows(expected("cost", "desc").slice(0, 100))
    for (const [name, sort] of Object.entries(heads)) {
      const head = usage().getByRole("columnheader", { name, exact: true }).getByRole("button")
      // The list's own order is already that of costs, the largest first.
      for (const order of sort === "cost" ? ["asc"] as const : ["desc", "asc"] as const) {
        await head.click()
        await shows(expected(sort, order).slice(0, 100))
        await page.getByRole("button", { name: "Next page", exact: true }).click()
        await shows(expected(sort, order).slice(100))
      }
    }
    const last = expected("attempts", "asc").slice(100)
    await page.reload()
    await shows(last)
    await act("Its requests", String(last[0]), "Usage")
    await page.getByRole("heading", { level: 1, name: "Requests" }).waitFor()
    await page.goBack()
    await shows(last)
    const copied = await watched.context.newPage()
    await copied.goto(page.url())
    await copied.getByRole("table", { name: "Usage" }).getByRole("rowheader", { name: String(last[0]) }).waitFor()
    assert.deepStrictEqual(
      await copied.getByRole("table", { name: "Usage" }).locator("tbody th").allTextContents(),
      [...last, "All"]
    )
  })
})

it("usage: lines have their colours by their figures of the whole time, whichever reply comes first", async () => {
  Context.get(gateway.services, UsageStore).add(
    entry({ at: slowSince, key: idOf("team b"), model: "slow-model", firstEvent: 90_000 })
  )
  const { close, page } = await openSignedIn(browser(), gateway.url)
  const release = Promise.withResolvers<void>()
  await page.route(
    (url) => url.pathname === "/admin/usage" && url.searchParams.get("by") === "model",
    async (route) => {
      await release.promise
      await route.continue()
    }
  )
  const read = page.waitForResponse((response) => /\/admin\/usage\?.*by=hour/.test(response.url()))
  await page.goto(`${gateway.url}/console/#/usage?measure=first_event_p95_ms`)
  await (await read).finished()
  release.resolve()
  const parts = page.getByRole("group", { name: "Parts of the chart" }).getByRole("button")
  await parts.filter({ hasText: "slow-model" }).waitFor()
  const colours = await parts.evaluateAll((buttons) =>
    buttons.map((button) => [
      button.textContent.split(" ")[0],
      button.querySelector(".swatch")?.getAttribute("style")?.match(/--part-\d/)?.[0]
    ])
  )
  assert.deepStrictEqual(colours.slice(0, 2), [["slow-model", "--part-1"], ["upstream-chat", "--part-2"]])
  await close()
})

it("usage: the chart is drawn in a browser whose language is no language tag", async () => {
  const { close, page } = await openSignedIn(browser(), gateway.url)
  // Chromium on a machine without a locale.
  await page.addInitScript(`Object.defineProperty(navigator, "language", { value: "en-US@posix", configurable: true })`)
  await page.reload()
  await goTo(page, "Usage")
  await page.locator("canvas").first().waitFor()
  await close()
})
