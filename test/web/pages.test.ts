/**
 * Every page in Chromium: loads without errors, passes axe in light and dark, fits into 360 pixels, and works by keyboard.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { Browser } from "playwright-core"
import { isWhole } from "../support/effort.ts"
import { adminKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { untilValue } from "../support/until.ts"
import {
  findings,
  goTo,
  launch,
  open,
  openPreferences,
  openSignedIn,
  settled,
  sideways,
  signIn,
  type Watched
} from "./support.ts"
import { smallTargets } from "./targets.ts"

const names = [
  "Overview",
  "Requests",
  "Playground",
  "Keys",
  "Models",
  "Accounts",
  "Upstreams",
  "Routes",
  "Settings",
  "Webhooks",
  "Usage",
  "Sessions",
  "Samples",
  "Import and export",
  "About"
]

const accounts = [
  { email: "ada@example.com", password: "p" },
  {
    email: "a.very.long.account.name.that.goes.on.and.on@subdomain.some-quite-long-company-name.example.com",
    password: "p"
  },
  { token: "token-of-nobody-in-particular" }
]

let browser: Browser
let gateway: RunningGateway
let watched: Watched

/** The pictures of the pages let axe search them in light. */
const themes = isWhole ? ["Light", "Dark"] : ["Dark"]

beforeAll(async () => {
  ;[browser, gateway] = await Promise.all([launch(), startGateway({ accounts })])
  watched = await openSignedIn(browser, gateway.url)
})

afterAll(async () => {
  await watched.close()
  await browser.close()
  await gateway.stop()
})

describe("the console's pages", () => {
  it.each(names)("%s: the title and the focus follow the navigation", async (name) => {
    const { page } = watched
    await goTo(page, name === "About" ? "Overview" : "About")
    await goTo(page, name)
    // Title and focus are set after the heading is drawn.
    await page.locator("h1:focus", { hasText: name }).waitFor()
    await untilValue("the title", () => page.title(), (title) => title === `${name} – Model Gateway`)
    assert.strictEqual(await page.getByRole("heading", { level: 1 }).count(), 1)
    assert.strictEqual(await page.locator("h1:focus").textContent(), name)
    assert.strictEqual(await page.locator("nav a[aria-current=page]").textContent(), name)
    assert.strictEqual(await page.locator("main").count(), 1)
  })

  it.each(["overview", "keys"])(
    "%s: the heading has the focus after sign-in, and not after a reload",
    async (route) => {
      const signing = await openSignedIn(browser, gateway.url, route)
      const { page } = signing
      await page.locator("h1:focus", { hasText: new RegExp(route, "i") }).waitFor()
      await page.reload()
      await page.locator("h1", { hasText: new RegExp(route, "i") }).waitFor()
      await settled(page)
      assert.strictEqual(await page.locator("h1:focus").count(), 0)
      await signing.close()
    }
  )

  it.each(names)(
    "%s: axe finds nothing, and the page fits into 360 pixels",
    async (name) => {
      const { page } = watched
      await goTo(page, name)
      await settled(page)
      await openPreferences(page)
      for (const theme of themes) {
        await page.getByRole("combobox", { name: "Theme" }).selectOption(theme)
        assert.deepStrictEqual(await findings(page), [], theme)
      }
      await page.setViewportSize({ width: 360, height: 740 })
      assert.isAtMost(await sideways(page), 0)
      await page.setViewportSize({ width: 1280, height: 800 })
    }
  )

  it("narrow windows have the navigation behind a menu button", async () => {
    const narrow = await openSignedIn(browser, gateway.url, "overview", { viewport: { width: 360, height: 740 } })
    const { page } = narrow
    const accountsLink = page.getByRole("link", { name: "Accounts", exact: true })
    assert.isFalse(await accountsLink.isVisible())
    await page.getByRole("button", { name: "Menu" }).click()
    assert.deepStrictEqual(await smallTargets(page), [])
    await accountsLink.click()
    await page.getByRole("heading", { level: 1, name: "Accounts" }).waitFor()
    assert.isFalse(await accountsLink.isVisible())
    await narrow.close()
  })

  it("the chosen language remains after a reload", async () => {
    const chinese = await openSignedIn(browser, gateway.url)
    const { page } = chinese
    await openPreferences(page)
    await page.getByRole("combobox", { name: "Language" }).selectOption("中文")
    await page.locator("html[lang=zh]").waitFor()
    await page.reload()
    await page.locator("html[lang=zh] h1").waitFor()
    assert.match(await page.locator("h1").textContent() ?? "", /\p{Script=Han}/u)
    for (const link of await page.locator("nav a").allTextContents()) assert.match(link, /\p{Script=Han}/u)
    assert.deepStrictEqual(await findings(page), [])
    await chinese.close()
  })

  it("the keyboard alone reaches everything", async () => {
    const keys = await open(browser, `${gateway.url}/console/`)
    const { page } = keys
    // The form focuses its field.
    await page.locator("input:focus").waitFor()
    await page.keyboard.type(adminKey)
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor()
    const focusOn = async (name: string, key = "Tab") => {
      for (let i = 0; i < 60; i++) {
        if (await page.locator(":focus").filter({ hasText: name }).count() > 0) return
        await page.keyboard.press(key)
      }
      assert.fail(`${name} is not reached by ${key}`)
    }
    // From the page's heading back to the navigation.
    await page.locator("h1:focus").waitFor()
    await focusOn("Accounts", "Shift+Tab")
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { level: 1, name: "Accounts" }).waitFor()
    await focusOn("Add accounts")
    await page.keyboard.press("Enter")
    await page.getByRole("dialog", { name: "Add accounts" }).waitFor()
    // In the dialog's first field.
    await page.locator("dialog textarea:focus").waitFor()
    await page.keyboard.type("by-keyboard@example.com password")
    await focusOn("Preview")
    await page.keyboard.press("Enter")
    await page.getByRole("button", { name: "Add 1 account" }).waitFor()
    await page.keyboard.press("Escape")
    await page.getByRole("dialog").waitFor({ state: "detached" })
    // The focus returns to its origin.
    assert.strictEqual(await page.locator(":focus").textContent(), "Add accounts")
    await keys.close()
  })

  it("the skip link jumps over the navigation", async () => {
    const skipping = await open(browser, `${gateway.url}/console/`)
    await skipping.page.locator("input:focus").waitFor()
    assert.deepStrictEqual(await findings(skipping.page), [])
    await signIn(skipping.page)
    const link = skipping.page.getByRole("link", { name: "Skip to content" })
    await link.focus()
    await skipping.page.keyboard.press("Enter")
    assert.strictEqual(await skipping.page.locator("h1:focus").textContent(), "Overview")
    await skipping.close()
  })
})
