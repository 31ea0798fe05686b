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
          small: { model: "vendor-small", context_window: 32_768, efforts: [], hidden: true, display_name: "Small" },
          dated: { model: "vendor-dated" }
        }
      }
    },
    model_facts: { "vendor-*": { input: ["text", "image"], tools: true } },
    routes: { fast: ["gpu/small"] },
    model_aliases: { quick: "fast" },
    currency: "EUR",
    prices: {
      "vendor-small": { input: "0.10" },
      "vendor-dated": [{ input: 1, output: 2 }, { from: "2100-01-01", input: 3, output: 4 }],
      gone: { output: 1 }
    }
  })
  // Every column has room.
  watched = await openSignedIn(browser(), gateway.url, "models", { viewport: { width: 1440, height: 900 } })
  page = watched.page
})
afterAll(async () => {
  await watched.close()
  await gateway.stop()
})

const prices = async () => (await adminOf(() => gateway)("/admin/prices"))["prices"] as RawConfig

const { act, button, dialog } = controls(() => page)
const models = () => page.getByRole("table", { name: "Models" })
const rowOf = (name: string) =>
  models().getByRole("row").filter({ has: page.getByRole("rowheader").getByText(name, { exact: true }) })
const cellsOf = async (name: string) => (await rowOf(name).getByRole("cell").allTextContents()).slice(0, -1)
const names = async () => (await models().getByRole("rowheader").locator("code").allTextContents())

describe("the models at the console", () => {
  it("have what serves them, their prices with the entry, and their last day", async () => {
    await rowOf("quick").waitFor()
    const target = "gpu/smallPrice of vendor-small"
    const price = ["0.1", "–", " missing"]
    assert.deepStrictEqual(await cellsOf("small"), ["Model", "32.8k", target, ...price, "0", "0.00", "–"])
    assert.deepStrictEqual(await cellsOf("fast"), ["Route", "32.8k", target, ...price, "0", "0.00", "–"])
    assert.deepStrictEqual(await cellsOf("quick"), ["Alias of fast", "32.8k", target, ...price, "–", "–", "–"])
    // A price by its dates says what follows.
    assert.deepStrictEqual(
      (await cellsOf("dated")).slice(2, 6),
      ["gpu/datedPrice of vendor-dated · from 1 Jan 2100: 3 in · 4 out", "1", "–", "2"]
    )
    await page.getByRole("group", { name: "Prices that no model uses" }).getByText("gone").waitFor()
  })

  it("are sorted by their heads, and narrowed by kind and to those without a price", async () => {
    await models().getByRole("columnheader", { name: "Model" }).getByRole("button").click()
    await models().locator("[aria-sort=ascending]").waitFor()
    // The rows of before stay until those of the new order are there.
    await models().locator("tbody tr").first().filter({ hasText: "dated" }).waitFor()
    assert.deepStrictEqual(await names(), ["dated", "fast", "quick", "small"])
    assert.match(page.url(), /sort=id&order=asc/)
    await page.getByRole("combobox", { name: "Kind" }).selectOption("Route")
    await rowOf("small").waitFor({ state: "detached" })
    assert.deepStrictEqual(await names(), ["fast"])
    await page.getByRole("combobox", { name: "Kind" }).selectOption("All")
    await page.getByRole("checkbox", { name: "Only models with a missing price (2)" }).check()
    await rowOf("dated").waitFor({ state: "detached" })
    assert.deepStrictEqual(await names(), ["fast", "small"])
    await page.getByRole("checkbox", { name: "Only models with a missing price (2)" }).uncheck()
    await rowOf("dated").waitFor()
  })

  it("show prices by their dates, which the file changes", async () => {
    await act("Set price", "dated", "Models")
    await dialog("Price of vendor-dated gpu/dated").waitFor()
    const rows = dialog("Price of vendor-dated gpu/dated").getByRole("row")
    assert.deepStrictEqual(await rows.nth(1).locator("th, td").allTextContents(), [
      "from the beginning counts now",
      "1",
      "–",
      "2",
      "–"
    ])
    assert.match((await rows.nth(2).textContent()) ?? "", /^1 Jan 2100, \d\d:\d\d:\d\d3–4–$/)
    await button("Close").click()
  })

  it("have what is known of them with where it is from: the window in the list, and all on the page of each", async () => {
    assert.strictEqual((await cellsOf("small"))[1], "32.8k")
    await page.getByRole("link", { name: "fast", exact: true }).click()
    await page.getByRole("heading", { level: 1, name: "fast" }).waitFor()
    await page.locator(".facts dt").filter({ hasText: "Window" }).waitFor()
    const facts = await page.locator(".facts > *").allTextContents()
    const of = (name: string) => facts[facts.indexOf(name) + 1]
    assert.deepStrictEqual(["Window", "Reads", "Efforts", "Tools"].map(of), [
      "32,768 of the configuration",
      "text, image of model_facts",
      "none of the configuration",
      "yes of model_facts"
    ])
    assert.notInclude(facts, "Longest reply")
    await page.goBack()
    await rowOf("small").getByText("not in lists").waitFor()
  })

  it("get a price under one of their names", async () => {
    await act("Set price", "fast", "Models")
    await page.getByRole("combobox", { name: "Price of" }).selectOption("fast")
    await page.getByRole("textbox", { name: "Input per 1M", exact: true }).fill("0.5")
    await page.getByRole("textbox", { name: "Output per 1M", exact: true }).fill("1.50")
    await button("Save").click()
    await result(page).getByText("The price of fast was changed.").waitFor()
    assert.deepStrictEqual((await prices())["fast"], { input: 0.5, output: "1.50" })
    await rowOf("fast").getByRole("cell", { name: "1.5", exact: true }).waitFor()
    assert.deepStrictEqual((await cellsOf("fast")).slice(3, 6), ["0.5", "–", "1.5"])
    assert.deepStrictEqual(await cellsOf("small"), [
      "Model",
      "32.8k",
      "gpu/smallPrice of vendor-small",
      "0.1",
      "–",
      " missing",
      "0",
      "0.00",
      "–"
    ])
  })

  it("show why a price is refused", async () => {
    await button("Set price gone").click()
    await page.getByRole("textbox", { name: "Output per 1M", exact: true }).fill("cheap")
    await button("Save").click()
    assert.match(await page.getByRole("alert").innerText(), /prices\.gone\.output must be/)
  })

  it("lose a price without any number", async () => {
    await page.getByRole("textbox", { name: "Output per 1M", exact: true }).fill("")
    // Other units are folded away, and the button says what it does.
    await page.getByRole("textbox", { name: "Per image", exact: true }).waitFor({ state: "hidden" })
    await button("Delete price").click()
    await result(page).getByText("The price of gone was changed.").waitFor()
    assert.deepStrictEqual(Object.keys(await prices()), ["vendor-small", "vendor-dated", "fast"])
  })
  it("are found by their names in the palette, and lead from their upstream's page to their own", async () => {
    await page.goto(`${gateway.url}/console/#/upstreams/gpu`)
    const link = page.getByRole("definition").getByRole("link", { name: "dated", exact: true })
    assert.strictEqual(await link.getAttribute("href"), "#/models/dated")
    await page.keyboard.press("Control+k")
    await dialog("Go to…").getByRole("combobox").fill("small")
    await page.getByRole("option", { name: /^small Model$/ }).click()
    await page.getByRole("heading", { level: 1, name: "small", exact: true }).waitFor()
  })
})
