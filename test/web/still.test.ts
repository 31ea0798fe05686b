/**
 * Filters, legends and charts under the hand while requests go on, in Chromium.
 */
import { afterAll, assert, beforeEach, describe, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { adminOf, controls, open, openSignedIn, result, signIn, useBrowser, type Watched } from "./support.ts"

const browser = useBrowser()
let gateway: RunningGateway | undefined
let watched: Watched
let page: Page

const ask = async (model: string) => {
  const response = await fetch(`${gateway?.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}` },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "!say hello" }] })
  })
  assert.strictEqual(response.status, 200)
}

/** Two requests for one model and one for another; the time of the page can be moved. */
const openAfterRequests = async (route: string) => {
  gateway = await startGateway({ upstream: { driver: "embedded" }, accounts: [] })
  for (const model of ["upstream-chat", "upstream-chat", "upstream-reasoner"]) await ask(model)
  watched = await open(browser(), `${gateway.url}/console/#/${route}`)
  ;({ page } = watched)
  await page.clock.install()
  await page.reload()
  await signIn(page)
}

beforeEach(() => async () => {
  await watched.close()
  await gateway?.stop()
  gateway = undefined
})
afterAll(() => gateway?.stop())

/** Now the other model has the most requests. */
const askMore = async () => {
  for (const _ of [1, 2]) await ask("upstream-reasoner")
}
const readAgain = () => page.clock.fastForward(5_000)

it("an offer to take something back stays under the pointer, on other pages and beside the next outcome", async () => {
  gateway = await startGateway({
    accounts: ["ada", "bob"].map((name) => ({ email: `${name}@example.com`, password: "p" }))
  })
  watched = await open(browser(), `${gateway.url}/console/#/accounts`)
  ;({ page } = watched)
  await page.clock.install()
  await page.reload()
  await signIn(page)
  const { act, button } = controls(() => page)
  await act("Disable", "ada@example.com", "Accounts")
  const offered = result(page).getByText("ada@example.com is disabled: it receives no more requests.")
  await offered.hover()
  await page.clock.fastForward(10_000)
  // By keyboard: the pointer stays.
  await button("Actions bob@example.com").press("Enter")
  await page.getByRole("menuitem", { name: "Disable" }).press("Enter")
  await result(page).getByText("bob@example.com is disabled").waitFor()
  await page.keyboard.press("g")
  await page.keyboard.press("k")
  await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor()
  assert.isTrue(await offered.isVisible())
  await result(page).getByRole("paragraph").filter({ hasText: "ada@example.com" }).getByRole("button", { name: "Undo" })
    .click()
  await result(page).getByText("ada@example.com is enabled.").waitFor()
})

it("the accounts of a cause stay unfolded when one of two is well again", async () => {
  gateway = await startGateway({
    accounts: ["ada", "bob"].map((name) => ({ email: `${name}@example.com`, password: "p" }))
  })
  const admin = adminOf(() => gateway!)
  const test = (identifier: string, message: string) =>
    admin("/admin/accounts/test", { method: "POST", body: JSON.stringify({ identifier, message }) })
  for (const name of ["ada", "bob"]) await test(`${name}@example.com`, "!fault suspended")
  watched = await openSignedIn(browser(), gateway.url, "overview")
  ;({ page } = watched)
  const attention = page.getByRole("region", { name: "Needs attention" })
  await attention.getByText("Which ones").click()
  const named = attention.getByRole("group").getByRole("link")
  await named.nth(1).waitFor()
  await test("bob@example.com", "Hello")
  await attention.getByRole("link", { name: "2 accounts" }).waitFor({ state: "detached" })
  assert.deepStrictEqual(await named.allTextContents(), ["ada@example.com"])
  await attention.getByText("Which ones").click()
  await attention.getByText("Which ones").waitFor({ state: "detached" })
})

describe("while requests go on", () => {
  it("the values of a filter keep their order under the pointer, with their newest counts", async () => {
    await openAfterRequests("requests")
    await page.getByRole("button", { name: "Model", exact: true }).click()
    const values = page.getByRole("group", { name: "Model", exact: true }).getByRole("listitem")
    const value = (text: string) => values.filter({ hasText: text })
    await value("upstream-reasoner1").hover()
    await askMore()
    await page.getByRole("table", { name: "Requests" }).getByRole("row").nth(5).waitFor()
    await readAgain()
    await value("upstream-reasoner3").waitFor()
    assert.deepStrictEqual(await values.allTextContents(), ["upstream-chat2", "upstream-reasoner3"])
    await page.getByRole("textbox", { name: "Model contains" }).hover()
    await values.first().filter({ hasText: "upstream-reasoner3" }).waitFor()
  })

  it("a filter stays while its values go from under its pop-up", async () => {
    await openAfterRequests("requests")
    let has = true
    await page.route(/\/admin\/requests\/facets/, async (route) => {
      const json = await adminOf(() => gateway!)("/admin/requests/facets")
      const session = has ? [{ value: "session-1", name: null, count: 1 }] : []
      await route.fulfill({ json: { ...json, facets: { ...json["facets"] as object, session } } })
    })
    await askMore()
    await page.getByRole("table", { name: "Requests" }).getByRole("row").nth(5).waitFor()
    await readAgain()
    const chip = page.getByRole("button", { name: "Session", exact: true })
    await chip.click()
    const values = page.getByRole("group", { name: "Session", exact: true })
    await values.getByRole("button", { name: "session-1" }).waitFor()
    has = false
    await askMore()
    await page.getByRole("table", { name: "Requests" }).getByRole("row").nth(7).waitFor()
    await readAgain()
    await values.getByText("No value matches.").waitFor()
    await page.keyboard.press("Escape")
    await page.getByRole("heading", { level: 1 }).click()
    await chip.waitFor({ state: "detached" })
    await page.unrouteAll({ behavior: "ignoreErrors" })
  })

  it("a letter that is typed while a filter comes back stays", async () => {
    await openAfterRequests("requests")
    await page.getByRole("button", { name: "Model", exact: true }).click()
    const typed = page.getByRole("textbox", { name: "Model contains" })
    // A busy page takes up its address late.
    await page.evaluate(`{
      const hold = (event) => event.stopImmediatePropagation()
      globalThis.letGo = () => {
        removeEventListener("hashchange", hold, true)
        dispatchEvent(new HashChangeEvent("hashchange"))
      }
      addEventListener("hashchange", hold, true)
    }`)
    await typed.pressSequentially("reas")
    await page.clock.fastForward(300)
    await page.waitForURL(/model=reas$/)
    await typed.press("o")
    await page.evaluate("letGo()")
    await page.getByRole("button", { name: "Model: contains “reas”" }).waitFor()
    assert.strictEqual(await typed.inputValue(), "reaso")
    await page.clock.fastForward(300)
    await page.getByRole("button", { name: "Model: contains “reaso”" }).waitFor()
  })

  it("the legend of usage keeps its order under the pointer, with its newest values", async () => {
    await openAfterRequests("usage")
    const legend = page.getByRole("group", { name: "Parts of the chart" }).getByRole("button")
    await legend.filter({ hasText: "upstream-reasoner 1" }).hover()
    await askMore()
    await readAgain()
    await legend.filter({ hasText: "upstream-reasoner 3" }).waitFor()
    assert.deepStrictEqual(await legend.allTextContents(), ["upstream-chat 2", "upstream-reasoner 3"])
    await page.getByRole("heading", { level: 1 }).hover()
    await legend.first().filter({ hasText: "upstream-reasoner 3" }).waitFor()
  })

  it("a range of usage can be dragged", async () => {
    await openAfterRequests("usage")
    const { height, width, x, y } = (await page.locator(".u-over").boundingBox())!
    const point = (share: number) => [x + share * width, y + height / 2] as const
    await page.mouse.move(...point(0.3))
    await page.mouse.down()
    await page.mouse.move(...point(0.5))
    await askMore()
    await readAgain()
    await page.getByRole("group", { name: "Parts of the chart" }).getByRole("button", { name: "upstream-chat" })
      .waitFor()
    await page.getByRole("table", { name: "Usage" }).getByRole("row", { name: /upstream-reasoner 3/ }).waitFor()
    await page.mouse.move(...point(0.7))
    await page.mouse.up()
    await page.waitForURL(/[?&]from=.*[?&]to=/)
  })
})
