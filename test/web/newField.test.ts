/**
 * A field that is added to an entry of the configuration is in the entry's form at the console, with its text and its range, without code
 * of the console.
 */
import { afterAll, assert, beforeAll, describe, it, vi } from "@effect/vitest"
import { Schema } from "effect"
import type { Page } from "playwright-core"
import type * as Real from "../../src/config/schema.ts"
import type { RunningGateway } from "../support/gateway.ts"
import { controls, openSignedIn, settled, useBrowser, type Watched } from "./support.ts"

const added = {
  toy_count: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9 }, { message: "must be between 1 and 9" }))
      .annotate({ description: "How many toys there are." })
  ),
  toy_kind: Schema.optionalKey(Schema.Literals(["doll", "train"]).annotate({ description: "What is played with." }))
}

const schemaModule = "../../src/config/schema.ts"

const browser = useBrowser()
let gateway: RunningGateway
let watched: Watched
let page: Page

beforeAll(async () => {
  vi.resetModules()
  vi.doMock(schemaModule, async (original) => {
    const real = await original<typeof Real>()
    return {
      ...real,
      KeyRecordEntry: Schema.Struct({ ...real.KeyRecordEntry.fields, ...added }),
      UpstreamEntry: Schema.Struct({ ...real.UpstreamEntry.fields, ...added }),
      RouteEntry: Schema.Struct({ ...real.RouteEntry.fields, ...added }),
      PriceEntry: Schema.Struct({ ...real.PriceEntry.fields, ...added }),
      AdminTokenEntry: Schema.Struct({ ...real.AdminTokenEntry.fields, ...added })
    }
  })
  const support = await import("../support/gateway.ts")
  gateway = await support.startGateway({
    upstreams: { gpu: { driver: "openai", base_url: "http://127.0.0.1:9/v1", models: { small: "small" } } },
    routes: { fast: ["gpu/small"] }
  })
  watched = await openSignedIn(browser(), gateway.url)
  page = watched.page
})
afterAll(async () => {
  vi.doUnmock(schemaModule)
  vi.resetModules()
  await watched.close()
  await gateway.stop()
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
