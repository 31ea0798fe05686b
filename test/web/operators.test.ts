/**
 * What an operator reads in passing, in Chromium: names, places, units and counts at the edges of pages.
 */
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { goTo, openPreferences, openSignedIn, settled, useBrowser, type Watched } from "./support.ts"

const browser = useBrowser()
let gateway: RunningGateway
let watched: Watched
let page: Page

beforeAll(async () => {
  gateway = await startGateway({
    auth: { direct_tokens: true },
    upstream: { driver: "embedded" },
    upstreams: { spare: { driver: "openai", base_url: "http://127.0.0.1:1/v1", models: { m: { model: "m" } } } },
    accounts: [{ upstream: "spare", token: "t", disabled: true }]
  })
  watched = await openSignedIn(browser(), gateway.url, "overview", { viewport: { width: 1440, height: 900 } })
  ;({ page } = watched)
})
afterAll(async () => {
  await watched.close()
  await gateway.stop()
})

it("the zone stands in the heading of the hour, and no tick runs into it", async () => {
  const hour = page.getByRole("region", { name: "Last 60 minutes" })
  await hour.locator(".legend .zone").waitFor()
  assert.strictEqual(await hour.locator(".ticks .zone").count(), 0)
})

it("an upstream that is left out is counted beside its page, and one that needs no account says so", async () => {
  await page.getByRole("navigation").getByText("1 upstream needs attention").waitFor({ state: "attached" })
  await goTo(page, "Upstreams")
  const table = page.getByRole("table", { name: "Upstreams" })
  await table.getByRole("row").filter({ hasText: "default" }).getByText("None needed").waitFor()
})

it("what bars show stays chosen while it loads, also without a currency", async () => {
  await page.goto(`${gateway.url}/console/#/usage?measure=cost`)
  const bars = page.getByRole("combobox", { name: "Chart shows" })
  await bars.waitFor()
  assert.strictEqual(await bars.inputValue(), "cost")
})

it("days are in the chosen zone", async () => {
  const asked: Array<string> = []
  page.on("request", (request) => {
    const { pathname, searchParams } = new URL(request.url())
    if (pathname === "/admin/usage" && searchParams.has("from")) asked.push(searchParams.get("zone") ?? "")
  })
  await openPreferences(page)
  await page.getByRole("combobox", { name: "Times" }).selectOption("utc")
  await page.getByText("Times and days are in UTC.").waitFor()
  await page.getByRole("combobox", { name: "Range" }).selectOption("month")
  await settled(page)
  assert.deepStrictEqual([...new Set(asked)], ["UTC"])
  await page.getByRole("combobox", { name: "Times" }).selectOption("local")
})

it("a wrong key is not called somebody's token, and a missing setting leads to where it is set", async () => {
  const ask = async (path: string, key: string, body: object): Promise<string> => {
    const reply = await fetch(`${gateway.url}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify(body)
    })
    await reply.text()
    return reply.headers.get("x-request-id") ?? ""
  }
  await ask("/v1/chat/completions", "wrong", { model: "upstream-chat", messages: [{ role: "user", content: "Hi" }] })
  await page.goto(`${gateway.url}/console/#/requests`)
  await page.getByRole("button", { name: "Direct token or unknown key" }).first().waitFor()
  const id = await ask("/v1/embeddings", businessKey, { model: "e", input: "x" })
  await page.goto(`${gateway.url}/console/#/requests/${id}`)
  await page.getByRole("region", { name: "What happened" }).getByRole("link", { name: "Upstreams" }).waitFor()
})

it("durations and reasons are Chinese in Chinese", async () => {
  await openPreferences(page)
  await page.getByRole("combobox", { name: "Language" }).selectOption("中文")
  await page.locator("html[lang=zh]").waitFor()
  await page.locator("h1").waitFor()
  await settled(page)
  const text = (await page.locator("main dl").allTextContents()).join()
  assert.match(text, /\d 毫秒/)
  assert.notMatch(text, /\d ms/)
})
