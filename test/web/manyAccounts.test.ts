/**
 * The console over a pool of 10,000 accounts, in Chromium.
 */
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import type { Browser } from "playwright-core"
import { Accounts } from "../../src/accounts/Accounts.ts"
import { adminKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { launch, openSignedIn, result } from "./support.ts"

const count = 10_000
const emailOf = (i: number): string => `account-${String(i).padStart(5, "0")}@example.com`

let browser: Browser
let gateway: RunningGateway

beforeAll(async () => {
  ;[browser, gateway] = await Promise.all([launch(), startGateway()])
})
afterAll(async () => {
  await browser.close()
  await gateway.stop()
})

const admin = async (path: string, body?: object): Promise<Readonly<Record<string, unknown>>> => {
  const response = await fetch(gateway.url + path, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${adminKey}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
  assert.strictEqual(response.status, 200)
  return await response.json() as Readonly<Record<string, unknown>>
}

it("console: 10,000 accounts are paged, searched, selected and changed", async () => {
  const added = await admin("/admin/accounts/batch", {
    action: "add",
    accounts: Array.from({ length: count }, (_, i) => ({ email: emailOf(i), mobile: "", password: "p", token: "" }))
  })
  assert.deepInclude(added, { changed: count, failed: 0 })

  const { close, page } = await openSignedIn(browser, gateway.url, "accounts")
  const accounts = page.getByRole("table", { name: "Accounts" })
  const rows = accounts.locator("tbody tr")
  const button = (name: string) => page.getByRole("button", { name, exact: true })
  await page.getByText(/10,?000 accounts/).waitFor()
  assert.strictEqual(await rows.count(), 50)
  assert.isAtMost(await page.locator("*").count(), 2_000)

  // A selection is of what is shown: it ends when another page is shown.
  await page.getByRole("checkbox", { name: "Select this page" }).check()
  await button("Delete 50").waitFor()
  const firstOfPage = await rows.first().getByRole("rowheader").textContent()
  await button("Next page").click()
  await accounts.getByRole("rowheader", { name: firstOfPage ?? "" }).waitFor({ state: "detached" })
  await button("Delete 50").waitFor({ state: "detached" })
  assert.match(page.url(), /page=2/)
  await page.getByRole("checkbox", { name: "Select this page" }).check()
  await page.getByText("50 selected").waitFor()
  assert.strictEqual(await rows.count(), 50)
  await button("Disable 50").click()
  await result(page).getByText(/^50 accounts disabled/).waitFor()
  await page.getByText("50 selected").waitFor({ state: "detached" })
  const disabled = async () => (await admin("/admin/accounts?state=disabled&page_size=1"))["total"]
  assert.strictEqual(await disabled(), 50)
  await button("Undo").click()
  await result(page).getByText(/^50 accounts enabled/).waitFor()
  assert.strictEqual(await disabled(), 0)
  await page.getByRole("checkbox", { name: "Select this page" }).check()
  await button("Disable 50").click()
  await result(page).getByText(/^50 accounts disabled/).waitFor()

  await page.getByRole("textbox", { name: "Search accounts" }).fill("account-07345")
  await accounts.getByRole("rowheader", { name: emailOf(7_345) }).waitFor()
  assert.strictEqual(await rows.count(), 1)
  await page.getByRole("textbox", { name: "Search accounts" }).fill("")
  await page.getByRole("group", { name: "Show" }).getByRole("button", { name: "Disabled 50" }).click()
  await page.getByText(/· 50 accounts/).waitFor()
  const names = await rows.getByRole("rowheader").allTextContents()
  await page.getByRole("checkbox", { name: "Select this page" }).check()
  await button("Delete 50").click()
  const asked = page.getByRole("dialog", { name: "Delete 50 accounts" })
  await asked.getByRole("listitem").last().waitFor()
  assert.deepStrictEqual(await asked.getByRole("listitem").allTextContents(), [...names.slice(0, 12), "and 38 more"])
  await asked.getByText(/^No request runs on them now\. New requests no longer use the accounts\./).waitFor()
  assert.isTrue(await asked.getByRole("button", { name: "Delete" }).isDisabled())
  await asked.getByRole("textbox", { name: "Type 50 to confirm" }).fill("50")
  await asked.getByRole("button", { name: "Delete" }).click()
  await result(page).getByText("50 accounts deleted.").waitFor()
  assert.strictEqual((await admin("/admin/accounts?page_size=1"))["total"], count - 50)

  // The overview counts the causes of all accounts, also of those that no event has named, and agrees with the pool.
  await page.close()
  const states = [["suspended", 110, "Out of rotation"], ["rate_limited", 30, "Cooling down"]] as const
  const pool = Context.get(gateway.services, Accounts)
  for (const [place, [health, of]] of states.entries()) {
    for (let i = 0; i < of; i++) {
      const access = await Effect.runPromise(pool.access(emailOf(9_000 - place * 1_000 - i)))
      await Effect.runPromise(access.report(health, 600))
    }
  }
  const { page: later } = await openSignedIn(browser, gateway.url)
  await later.getByRole("status", { name: "State of the gateway" }).getByText(
    /110 accounts are out of rotation, 30 accounts cool down/
  ).waitFor()
  const attention = later.getByRole("region", { name: "Needs attention" })
  for (const [, of] of states) await attention.getByRole("link", { name: `${of} accounts` }).waitFor()
  assert.strictEqual(await attention.getByRole("link", { name: /more$/ }).count(), 0)
  const shown = later.getByRole("region", { name: "Pool" })
  for (const [, of, state] of states) await shown.getByRole("link", { name: `${of} ${state}` }).waitFor()
  // Those that are idle are one bar.
  await shown.getByRole("link", { name: "9,810 idle" }).waitFor()
  assert.isAtMost(await shown.getByRole("group", { name: "Accounts" }).getByRole("link").count(), 180)
  await later.context().close()
  await close()
})
