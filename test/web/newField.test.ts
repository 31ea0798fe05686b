/**
 * A field that is added to an entry of the configuration is in the entry's form at the console, with its text and its range, without code
 * of the console.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import type * as Support from "../support/gateway.ts"
import { replacing } from "../support/replaced.ts"
import { controls, openSignedIn, settled, useBrowser, type Watched } from "./support.ts"

const modules = replacing({ "src/config/schema.ts": "test/config/toy/entries.ts" })

const browser = useBrowser()
let gateway: Support.RunningGateway
let watched: Watched
let page: Page

beforeAll(async () => {
  const support = await modules.load<typeof Support>("test/support/gateway.ts")
  gateway = await support.startGateway({
    upstreams: { gpu: { driver: "openai", base_url: "http://127.0.0.1:9/v1", models: { small: "small" } } },
    routes: { fast: ["gpu/small"] }
  })
  watched = await openSignedIn(browser(), gateway.url)
  page = watched.page
})
afterAll(async () => {
  await watched.close()
  await gateway.stop()
  modules.end()
})

const { button } = controls(() => page)

describe("a field that is added to an entry of the configuration", () => {
  it.each([
    ["an upstream", "upstreams", "Add upstream", "Save"],
    ["a key", "keys", "New key", "Create key"],
    ["a route", "routes", "Add route", "Save"],
    ["a price", "models", ["small", "Set price"], "Save"],
    ["a token", "settings", "New token", "Create token"]
  ])("is in the form of %s, and is refused outside of its range", async (_, route, open, save) => {
    await page.goto(`${gateway.url}/console/#/${route}`)
    await settled(page)
    const [row, action] = typeof open === "string" ? [] : open
    if (row === undefined) await button(open as string).first().click()
    else {
      await button(`Actions ${row}`).click()
      await page.getByRole("menuitem", { name: action!, exact: true }).click()
    }
    const dialog = page.getByRole("dialog")
    await dialog.waitFor()
    for (const folded of await dialog.locator("summary").all()) await folded.click()
    const field = dialog.getByRole("textbox", { name: "Toy count", exact: true })
    const about = () =>
      field.evaluate((input) => {
        const id = input.getAttribute("aria-describedby") ?? ""
        return input.ownerDocument.getElementById(id)?.textContent ?? ""
      })
    assert.strictEqual(await about(), "How many toys there are. · 1 to 9")
    const choice = dialog.getByRole("combobox", { name: "Toy kind", exact: true })
    assert.includeMembers(await choice.getByRole("option").allTextContents(), ["doll", "train"])
    await field.fill("10")
    assert.include(await about(), "Must be between 1 and 9.")
    for (const name of ["Name", "Base URL"]) {
      const needed = dialog.getByRole("textbox", { name, exact: true })
      if (await needed.count() > 0) await needed.fill("http://127.0.0.1:9")
    }
    await button(save).click()
    await dialog.getByRole("alert").getByText("The form contains errors.").waitFor()
    await button("Cancel").click()
  })
})
