/** Models and their prices at the console, in Chromium: what is missing is marked, and prices are set, changed and deleted. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import type { RawConfig } from "../../src/config/json.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { adminOf, controls, openSignedIn, result, useBrowser, type Watched } from "./support.ts"

const browser = useBrowser()
let gateway: RunningGateway
let watched: Watched
let page: Page

beforeAll(async () => {
  gateway = await startGateway({
    upstreams: {
      gpu: {
        driver: "openai",
        base_url: "http://127.0.0.1:9/v1",
        models: {
          small: { model: "vendor-small", context_window: 32_768, efforts: [], hidden: true, display_name: "Small" }
        }
      }
    },
    model_facts: { "vendor-*": { input: ["text", "image"], tools: true } },
    routes: { fast: ["gpu/small"] },
    currency: "EUR",
    prices: { "vendor-small": { input: "0.10" }, gone: { output: 1 } }
  })
  watched = await openSignedIn(browser(), gateway.url, "models")
  page = watched.page
})
afterAll(async () => {
  await watched.close()
  await gateway.stop()
})

const prices = async () => (await adminOf(() => gateway)("/admin/prices"))["prices"] as RawConfig

const { button } = controls(() => page)
const cellsOf = (name: string, target: string) =>
  page.getByRole("row").filter({ has: page.getByRole("rowheader", { name, exact: true }) })
    .filter({ hasText: target }).getByRole("cell").allTextContents()

describe("the models at the console", () => {
  it("have their prices beside them, and what is missing is marked", async () => {
    await page.getByText("Prices are in EUR.").waitFor()
    const missing = "! missing"
    const cells = ["gpu/smallAt the server: vendor-smallPrice of vendor-small", "0.10", "–", missing, "–"]
    for (const name of ["small", "fast"]) {
      assert.deepStrictEqual((await cellsOf(name, "gpu/small")).slice(0, 5), cells)
    }
    await page.getByRole("group", { name: "Prices of no known model" }).getByText("gone").waitFor()
  })

  it("have what is known of them with where it is from", async () => {
    const known = page.getByRole("table", { name: "What is known" })
    const row = (name: string) =>
      known.getByRole("row").filter({ has: page.getByRole("rowheader").getByText(name, { exact: true }) })
        .getByRole("cell").allTextContents()
    await known.waitFor()
    const shared = ["–", "text, imageof model_facts", "–", "noneof the configuration", "yesof model_facts"]
    assert.deepStrictEqual(await row("small"), ["32,768of the configuration", ...shared])
    assert.deepStrictEqual(await row("fast"), ["32,768of the configuration", ...shared])
    assert.include(await known.getByRole("rowheader").allTextContents(), "small– not in listsSmall")
  })

  it("get a price under one of their names", async () => {
    await button("Set price fast, gpu/small").click()
    await page.getByRole("combobox", { name: "Price of" }).selectOption("fast")
    await page.getByRole("textbox", { name: "Input per 1M", exact: true }).fill("0.5")
    await page.getByRole("textbox", { name: "Output per 1M", exact: true }).fill("1.50")
    await button("Save").click()
    await result(page).getByText("The price of fast was changed.").waitFor()
    assert.deepStrictEqual((await prices())["fast"], { input: 0.5, output: "1.50" })
    await page.getByRole("rowheader", { name: "fast", exact: true }).first().waitFor()
    await page.getByRole("cell", { name: "1.50", exact: true }).waitFor()
  })

  it("show why a price is refused", async () => {
    await button("Set price gone").click()
    await page.getByRole("textbox", { name: "Output per 1M", exact: true }).fill("cheap")
    await button("Save").click()
    assert.match(await page.getByRole("alert").innerText(), /prices\.gone\.output must be/)
  })

  it("lose a price without any number", async () => {
    await page.getByRole("textbox", { name: "Output per 1M", exact: true }).fill("")
    await button("Save").click()
    await result(page).getByText("The price of gone was changed.").waitFor()
    assert.deepStrictEqual(Object.keys(await prices()), ["vendor-small", "fast"])
  })
})
