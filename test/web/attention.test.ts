/**
 * What needs attention, in Chromium: what errors are for, keys near their limits, and what today's use comes from.
 */
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { adminKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { json, modelList, type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"
import { adminOf, findings, goTo, openSignedIn, settled, sideways, useBrowser, type Watched } from "./support.ts"

const browser = useBrowser()
let server: OpenAiServer
let gateway: RunningGateway
let watched: Watched
let page: Page

beforeAll(async () => {
  server = await startOpenAiServer()
  server.list(() => modelList("m"))
  gateway = await startGateway({
    keys: ["spare"],
    currency: "USD",
    prices: { qwen3: { input: 1, output: 2 } },
    upstream: { driver: "embedded" },
    upstreams: { gpu: { driver: "openai", base_url: server.baseUrl, models: { qwen3: "m" } } },
    accounts: [{ email: "ada@example.com", password: "p" }]
  })
  watched = await openSignedIn(browser(), gateway.url, "overview", { viewport: { width: 1440, height: 900 } })
  ;({ page } = watched)
})
afterAll(async () => {
  await watched.close()
  await gateway.stop()
  await server.stop()
})

/** Adds a key with a limit of requests a day, and resolves to it. */
const addKey = async (name: string, requests?: number): Promise<string> => {
  const reply = await fetch(`${gateway.url}/admin/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${adminKey}` },
    body: JSON.stringify({
      name,
      generate: true,
      ...requests === undefined ? {} : { limits: [{ window: "day", requests }] }
    })
  })
  return (await reply.json() as { readonly key: string }).key
}

const ask = async (key: string, model: string): Promise<number> => {
  const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "!say Hello" }] })
  })
  await reply.text()
  return reply.status
}

const attention = () => page.getByRole("region", { name: "Needs attention" })
const rowOf = (text: string) => attention().getByRole("listitem").filter({ hasText: text })
const figure = (name: string) => page.getByRole("link", { name: new RegExp(`^${name}`) })

it("errors name what most of them are for, and callers' mistakes are refused, which stands muted at the end", async () => {
  const [red, blue] = [await addKey("Team red"), await addKey("Team blue")]
  server.answer(() => json(500, { error: { message: "broken" } }))
  assert.isAtLeast(await ask(red, "qwen3"), 500)
  for (const key of [red, red, blue, red, red]) assert.strictEqual(await ask(key, "no-such-model"), 400)
  await page.reload()
  const error = attention().getByRole("listitem").filter({ hasText: "1 time" })
  await error.getByText("at upstream").waitFor()
  assert.strictEqual(await error.getByRole("link", { name: "gpu" }).getAttribute("href"), "#/upstreams/gpu")
  const mistake = rowOf("model_not_found")
  await mistake.getByText("80 % of them for key").waitFor()
  await mistake.getByText("– 5 times").waitFor()
  const rows = attention().getByRole("list").first().locator(":scope > li")
  assert.include(await rows.last().textContent(), "model_not_found")
  assert.include(await rows.last().getAttribute("class"), "muted")
  // One request failed, and none succeeded: what callers did wrong counts for neither.
  const succeeded = figure("Succeeded")
  await succeeded.getByText("1 failed · 5 refused").waitFor()
  await succeeded.getByText("0 %").waitFor()
  await mistake.getByRole("link", { name: "Team red" }).click()
  await page.getByRole("heading", { level: 1, name: "Team red" }).waitFor()
})

it("a full queue is not taken for a limit of a key: it has its own advice", async () => {
  const hour = await adminOf(() => gateway)("/admin/minutes")
  const own = (hour["errors"] as ReadonlyArray<{ readonly fault: string }>).find(({ fault }) => fault !== "caller")
  const full = { ...own, code: "rate_limit_exceeded", fault: "gateway" }
  const json = { ...hour, errors: [full, { ...full, fault: "caller" }] }
  await page.route("**/admin/minutes", (route) => route.fulfill({ json }))
  await goTo(page, "Overview")
  await page.reload()
  const rows = attention().getByRole("listitem").filter({ hasText: "rate_limit_exceeded" })
  await rows.first().getByText(/^Too many requests wait for an account/).waitFor()
  assert.strictEqual(await rows.count(), 2)
  assert.include(await rows.last().getAttribute("class"), "muted")
  await page.unroute("**/admin/minutes")
})

it("the most used keys and models of today lead to their pages, and keys are sorted by what they cost today", async () => {
  const [little, much] = [await addKey("Little"), await addKey("Much")]
  server.answer(() => streamed({ content: "Hello" }))
  for (const key of [little, much, much, much]) await ask(key, "upstream-chat")
  await goTo(page, "Overview")
  await page.reload()
  const today = page.getByRole("region", { name: "Most used today" })
  const keys = today.getByRole("table", { name: "Keys" })
  await keys.getByRole("link", { name: "Much" }).waitFor()
  await figure("Cost today").waitFor()
  for (const width of [1440, 1024, 390]) {
    await page.setViewportSize({ width, height: 900 })
    await settled(page)
    assert.isAtMost(await sideways(page), 0, String(width))
  }
  await page.setViewportSize({ width: 1440, height: 900 })
  assert.deepStrictEqual(await findings(page), [])
  assert.strictEqual(
    await today.getByRole("table", { name: "Models" }).getByRole("link", { name: "upstream-chat" }).getAttribute(
      "href"
    ),
    "#/models/upstream-chat"
  )
  await keys.getByRole("link", { name: "Much" }).click()
  await page.getByRole("heading", { level: 1, name: "Much" }).waitFor()
  await goTo(page, "Keys")
  const list = page.getByRole("table", { name: "Keys" })
  await list.getByRole("button", { name: "Today, USD" }).click()
  await list.getByRole("columnheader", { name: "Today, USD" }).and(page.locator("[aria-sort=descending]")).waitFor()
})

it("a key that has used 80 % of a budget is counted beside the page of keys, and the rest of a kind stands with it", async () => {
  const near = await addKey("Near", 5)
  const names = Array.from({ length: 10 }, (_, i) => `Used up ${i}`)
  for (let i = 0; i < 3; i++) assert.strictEqual(await ask(near, "upstream-chat"), 200)
  await goTo(page, "Overview")
  await page.reload()
  await attention().waitFor()
  await settled(page)
  const navigation = page.getByRole("navigation")
  assert.strictEqual(await navigation.getByText(/near a limit/).count(), 0)
  assert.strictEqual(await ask(near, "upstream-chat"), 200)
  await page.reload()
  await navigation.getByText("1 key is near a limit").waitFor({ state: "attached" })
  for (const name of names) assert.strictEqual(await ask(await addKey(name, 1), "upstream-chat"), 200)
  await page.reload()
  await navigation.getByText("11 keys are near a limit").waitFor({ state: "attached" })
  // Eight keys, directly behind them those that have no room, and then the errors.
  await attention().getByRole("link", { name: "and 3 more" }).waitFor()
  // The errors come with the minutes of the hour, a read of their own that may end after the read of the keys.
  await attention().getByRole("listitem").filter({ hasText: /^(?:Error|Clients)/ }).first().waitFor()
  const rows = await attention().getByRole("list").first().locator(":scope > li").allTextContents()
  const more = rows.findIndex((text) => text.includes("and 3 more"))
  const first = rows.findIndex((text) => text.startsWith("Key"))
  assert.strictEqual(more - first, 8)
  assert.isTrue(rows.slice(first, more + 1).every((text) => text.startsWith("Key")))
  assert.isTrue(rows.slice(more + 1).some((text) => text.startsWith("Error") || text.startsWith("Clients")))
})
