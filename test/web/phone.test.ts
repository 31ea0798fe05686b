/**
 * The console on a phone: 390 pixels, by touch alone, through the pages that one opens on the way.
 */
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { findings, openSignedIn, settled, sideways, useBrowser, type Watched } from "./support.ts"
import { lowControls, smallTargets } from "./targets.ts"

const browser = useBrowser()
let gateway: RunningGateway
let watched: Watched
let page: Page

beforeAll(async () => {
  gateway = await startGateway({ upstream: { driver: "embedded" }, accounts: [] })
  for (const content of ["Hello", "!fail 400"]) {
    const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}` },
      body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content }] })
    })
    await reply.text()
  }
  watched = await openSignedIn(browser(), gateway.url, "overview", {
    viewport: { width: 390, height: 844 },
    hasTouch: true,
    isMobile: true
  })
  ;({ page } = watched)
})
afterAll(async () => {
  await watched.close()
  await gateway.stop()
})

/** The page fits, and what is on it can be touched. */
const isFit = async (where: string): Promise<void> => {
  await settled(page)
  assert.isAtMost(await sideways(page), 0, where)
  assert.deepStrictEqual(await smallTargets(page), [], where)
  assert.deepStrictEqual(await lowControls(page), [], where)
  assert.deepStrictEqual(await findings(page), [], where)
}

/** Goes to a page through the menu. */
const goTo = async (name: string): Promise<void> => {
  await page.getByRole("button", { name: "Menu" }).tap()
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name, exact: true }).tap()
  await page.getByRole("heading", { level: 1, name, exact: true }).waitFor()
}

it("the overview, the requests, one request and the playground work by touch, and a touch shows what a title says", async () => {
  await isFit("Overview")
  // Each row of the strip has its name.
  assert.strictEqual(await page.locator(".hour .scales p:visible").count(), 4)
  await goTo("Requests")
  await isFit("Requests")
  await page.locator(".histogram .bins > span").last().tap()
  assert.match(await page.locator(".whole:popover-open").textContent() ?? "", /\d requests?/)
  await page.getByRole("table", { name: "Requests" }).locator(".row-link").first().tap()
  await page.getByRole("heading", { level: 1, name: /^Request / }).waitFor()
  await isFit("one request")
  const titled = page.locator("main :is(span, time)[title]:not(:is(a, button) *)").first()
  const title = await titled.getAttribute("title")
  await titled.tap()
  assert.strictEqual(await page.locator(".whole:popover-open").textContent(), title)
  await page.locator(".crumb a").tap()
  await page.getByRole("heading", { level: 1, name: "Requests", exact: true }).waitFor()

  await goTo("Playground")
  await isFit("Playground")
  await page.getByRole("textbox", { name: "Message", exact: true }).fill("Hello from a phone")
  await page.getByRole("button", { name: "Send", exact: true }).tap()
  await page.getByRole("log").getByText("You said: “Hello from a phone”").waitFor()
})
