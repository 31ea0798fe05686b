/**
 * What is saved at the console is shown, in Chromium: the report waits for the lists in sight, and rows and menus stay while lists
 * arrive.
 */
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import type { Page, Route } from "playwright-core"
import type { RawConfig } from "../../src/config/json.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { adminOf, controls, openSignedIn, result, useBrowser, type Watched } from "./support.ts"

const browser = useBrowser()
const implied = "Models of several upstreams without a route"
const server = { driver: "openai", base_url: "http://127.0.0.1:9/v1", models: { qwen3: "a", llama: "b" } }
let gateway: RunningGateway
let watched: Watched
let page: Page

beforeAll(async () => {
  gateway = await startGateway({
    upstream: { driver: "embedded" },
    upstreams: { gpu: server, hosted: server },
    accounts: []
  })
})
beforeEach(async () => {
  await setRoutes({})
  watched = await openSignedIn(browser(), gateway.url, "routes")
  ;({ page } = watched)
  await rowOf(implied, "qwen3").waitFor()
  return async () => {
    await page.unrouteAll({ behavior: "ignoreErrors" })
    await watched.close()
  }
})
afterAll(() => gateway.stop())

const admin = adminOf(() => gateway)
const setRoutes = (routes: RawConfig) => admin("/admin/routes", { method: "PUT", body: JSON.stringify({ routes }) })
const { act, button, dialog } = controls(() => page)
const tableOf = (name: string) => page.getByRole("table", { name, exact: true })
const rowOf = (table: string, name: string) =>
  tableOf(table).getByRole("row").filter({ has: page.getByRole("rowheader", { name }) })

/** Holds the replies of all reads of the routes that follow a change of them, until they are let go. */
const holdRoutes = async () => {
  const held: Array<Route> = []
  let isChanged = false
  let asked = () => {}
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve
  })
  await page.route("**/admin/routes", async (route) => {
    isChanged ||= route.request().method() === "PUT"
    if (!isChanged || route.request().method() !== "GET") return route.continue()
    held.push(route)
    return asked()
  })
  return {
    isAsked,
    letGo: () => {
      isChanged = false
      return Promise.all(held.splice(0).map((route) => route.continue()))
    }
  }
}

/** Timers of a length never end on the page. */
const stopTimers = (milliseconds: number): Promise<unknown> =>
  page.evaluate(`{
    const plain = setTimeout
    globalThis.setTimeout = (work, after, ...rest) => after === ${milliseconds} ? 0 : plain(work, after, ...rest)
  }`)

describe("what is saved at the console", () => {
  it("is reported, and its dialog closes, when the lists in sight have it", async () => {
    await stopTimers(1_000)
    const routes = await holdRoutes()
    await act("Add route", "qwen3", implied)
    await button("Save").click()
    await routes.isAsked
    assert.isTrue(await dialog("Add route").isVisible())
    assert.strictEqual(await result(page).textContent(), "")
    await routes.letGo()
    await result(page).getByText("The route qwen3 was added.").waitFor()
    assert.strictEqual(await rowOf("Routes", "qwen3").count(), 1)
    await dialog("Add route").waitFor({ state: "detached" })
  })

  it("is reported without lists that do not arrive; a row stays under the hand, and its menu acts, when they do", async () => {
    const routes = await holdRoutes()
    await act("Add route", "qwen3", implied)
    await button("Save").click()
    await result(page).getByText("The route qwen3 was added.").waitFor()
    // The row is still among those without a route; its menu is opened there.
    await rowOf(implied, "qwen3").getByRole("button", { name: "Actions qwen3" }).click()
    await page.getByRole("menuitem", { name: "Rehearse" }).waitFor()
    await routes.letGo()
    await rowOf("Routes", "qwen3").waitFor()
    await button("1 change").waitFor()
    assert.strictEqual(await rowOf(implied, "qwen3").count(), 1)
    await page.getByRole("menuitem", { name: "Rehearse" }).click()
    await dialog("Rehearse qwen3").getByRole("button", { name: "Close" }).or(
      dialog("Rehearse qwen3").getByRole("button", { name: "Cancel" })
    ).click()
    await page.getByRole("heading", { level: 1 }).hover()
    await rowOf(implied, "qwen3").waitFor({ state: "detached" })
  })
})

describe("a change by somebody else", () => {
  it("moves no row under the pointer, and is shown when the pointer leaves", async () => {
    await rowOf(implied, "llama").hover()
    await setRoutes({ qwen3: ["gpu/qwen3", "hosted/qwen3"] })
    await rowOf("Routes", "qwen3").waitFor()
    await button("1 change").waitFor()
    assert.deepStrictEqual(await tableOf(implied).getByRole("rowheader").allTextContents(), ["qwen3", "llama"])
    await page.getByRole("heading", { level: 1 }).hover()
    await rowOf(implied, "qwen3").waitFor({ state: "detached" })
  })

  it("that takes the table away closes its menu, and gives the focus to the page's heading", async () => {
    await rowOf(implied, "llama").getByRole("button", { name: "Actions llama" }).click()
    await page.getByRole("menuitem", { name: "Rehearse" }).waitFor()
    await setRoutes({ qwen3: ["gpu/qwen3"], llama: ["gpu/llama"] })
    await page.getByRole("menu").waitFor({ state: "hidden" })
    await page.getByRole("heading", { level: 1, name: "Routes" }).and(page.locator(":focus")).waitFor()
  })
})
