/**
 * The overview and the keys, in Chromium: what an operator sees of the last hour, and how somebody gets access.
 */
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import type { Browser } from "playwright-core"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { findings, launch, openSignedIn, result } from "./support.ts"

let browser: Browser
let gateway: RunningGateway

beforeAll(async () => {
  ;[browser, gateway] = await Promise.all([
    launch(),
    startGateway({
      accounts: ["ada", "grace", "hedy"].map((name) => ({ email: `${name}@example.com`, password: "p" }))
    })
  ])
})
afterAll(async () => {
  await browser.close()
  await gateway.stop()
})

const admin = async (path: string, method = "GET", body?: object): Promise<Readonly<Record<string, unknown>>> => {
  const response = await fetch(gateway.url + path, {
    method,
    headers: { authorization: `Bearer ${adminKey}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
  assert.strictEqual(response.status, 200)
  return await response.json() as Readonly<Record<string, unknown>>
}

const ask = async (content: string, key = businessKey, model = "upstream-chat"): Promise<number> => {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model, messages: [{ role: "user", content }] })
  })
  await response.text()
  return response.status
}

it("overview: it names settings that do nothing, with their places and what to do", async () => {
  const { close, page } = await openSignedIn(browser, gateway.url)
  await page.getByText("Nothing needs attention.").waitFor()
  await admin("/admin/keys", "POST", { key: "costly", limits: [{ window: "day", cost: "5" }] })
  await page.reload()
  const attention = page.getByRole("region", { name: "Needs attention" })
  const row = attention.getByRole("listitem").filter({ hasText: "key_records." })
  await row.getByText("Warning").waitFor()
  await row.getByText(/^A cost limit without any price refuses every request of the key: set prices\.$/).waitFor()
  assert.strictEqual(await row.getByRole("link").first().getAttribute("href"), "#/settings")
  await row.getByRole("link").first().click()
  const listed = page.getByRole("region", { name: "Warnings" }).getByRole("listitem")
  await listed.filter({ hasText: /^key_records\..+: set prices$/ }).waitFor()
  await page.goto(`${gateway.url}/console/#/overview`)
  await admin("/admin/keys/costly", "DELETE")
  await page.reload()
  await page.getByText("Nothing needs attention.").waitFor()
  await close()
})

it("overview: it is calm until something fails, and every figure leads to what it counts", async () => {
  const { close, page } = await openSignedIn(browser, gateway.url)
  await page.getByText("Nothing needs attention.").waitFor()
  await page.getByText("No request is waiting.").waitFor()
  const state = page.getByRole("status", { name: "State of the gateway" })
  await state.getByText("All is well: 3 of 3 accounts ready.").waitFor()

  assert.strictEqual(await ask("!say Hello"), 200)
  assert.strictEqual(await ask("Hello", businessKey, "no-such-model"), 400)
  await admin("/admin/accounts/test", "POST", { identifier: "hedy@example.com", message: "!fault suspended" })
  await page.reload()

  const attention = page.getByRole("region", { name: "Needs attention" })
  const failing = attention.getByRole("listitem").filter({ hasText: "hedy@example.com" })
  await failing.getByText("Test failed").waitFor()
  await failing.getByText(/suspended/).waitFor()
  const error = attention.getByRole("link", { name: "model_not_found", exact: true })
  assert.strictEqual(await error.getAttribute("href"), "#/requests?range=1h&code=%22model_not_found%22")
  // What callers are at fault for stands at the end, in a group of its own.
  const last = attention.getByRole("list").first().locator(":scope > li").last()
  await last.getByText("Clients", { exact: true }).waitFor()
  await last.getByText("– 1 time").waitFor()
  // One row for each upstream, which leads to its page.
  const upstream = page.getByRole("region", { name: "Upstreams" }).getByRole("row").nth(1)
  await upstream.getByRole("group", { name: "Attempts of default in the last hour" }).waitFor()
  assert.strictEqual(
    await upstream.getByRole("rowheader").getByRole("link").getAttribute("href"),
    "#/upstreams/default"
  )
  // Accounts of the same cause are one row, which unfolds.
  await admin("/admin/accounts/test", "POST", { identifier: "grace@example.com", message: "!fault suspended" })
  await page.reload()
  const cause = attention.getByRole("listitem").filter({ has: page.getByRole("link", { name: "2 accounts" }) }).first()
  await cause.getByText("Which ones").click()
  await cause.getByRole("link", { name: "grace@example.com" }).click()
  await page.getByRole("heading", { level: 1, name: "grace@example.com" }).waitFor()
  await page.goto(`${gateway.url}/console/#/overview`)
  assert.strictEqual(await ask("!say Hello"), 200)
  await page.getByRole("link", { name: /accounts? needs? attention/ }).or(page.getByText("2 accounts need attention"))
    .first().waitFor()

  // The sentence under the title counts it too, without what clients do wrong.
  await state.getByText("2 things need you:").waitFor()
  await state.getByText("2 accounts failed the last test.").waitFor()

  const pool = page.getByRole("region", { name: "Pool" })
  const failed = pool.getByRole("link", { name: "2 Test failed" })
  assert.strictEqual(await failed.getAttribute("href"), "#/accounts?state=failed")
  // The states add up to all accounts: a failed test is none of them.
  for (const state of ["3 Ready", "0 Cooling down", "0 Out of rotation", "0 Disabled"]) {
    await pool.getByRole("link", { name: state }).waitFor()
  }

  // Cells name their account under the pointer and with the focus; the arrow keys move between them.
  const cells = pool.getByRole("group", { name: "Accounts" }).getByRole("link")
  assert.strictEqual(await cells.count(), 3)
  await cells.first().focus()
  await page.keyboard.press("ArrowRight")
  assert.strictEqual(
    await cells.nth(1).evaluate((cell) => cell === cell.ownerDocument.activeElement),
    true
  )
  const name = (await cells.nth(2).getAttribute("aria-label"))?.split(":")[0] ?? ""
  await cells.nth(2).hover()
  await pool.getByRole("link", { name, exact: true }).waitFor()

  const share = page.getByRole("link", { name: "Succeeded" })
  assert.strictEqual(await share.getAttribute("href"), "#/requests?range=1h&outcome=ok")
  await share.getByText("0 failed · 1 refused").waitFor()
  await close()
})

it("overview: a minute shows its values under the pointer and leads to its requests", async () => {
  const { close, page } = await openSignedIn(browser, gateway.url)
  const minutes = page.getByRole("group", { name: "Minutes" }).getByRole("link")
  await minutes.first().waitFor()
  assert.strictEqual(await minutes.count(), 60)
  const hour = page.getByRole("region", { name: "Last 60 minutes" })
  // How to see values is said under the pointer alone.
  const hint = hour.getByText("Each column is one minute.")
  await hint.waitFor({ state: "hidden" })
  await hour.locator(".scales").hover()
  await hint.waitFor()
  const busy = page.getByRole("group", { name: "Minutes" }).getByRole("link", {
    name: /: [1-9]\d* requests?, 1 failed/
  })
    .first()
  await busy.hover()
  await hour.getByRole("paragraph").getByText("1 failed", { exact: true }).waitFor()
  await minutes.last().focus()
  await page.keyboard.press("ArrowLeft")
  await page.keyboard.press("Home")
  assert.strictEqual(await minutes.first().evaluate((minute) => minute === minute.ownerDocument.activeElement), true)
  // The gateway did not run then: the minute is unknown, not empty.
  await hour.getByRole("paragraph").getByText(/^Not counted: the gateway started at /).waitFor()
  const [, from = "", to = ""] = /from=([^&]+)&to=([^&]+)/.exec(await busy.getAttribute("href") ?? "") ?? []
  assert.strictEqual(Date.parse(decodeURIComponent(to)) - Date.parse(decodeURIComponent(from)), 60_000)
  await busy.click()
  await page.getByRole("heading", { level: 1, name: "Requests" }).waitFor()
  await close()
})

it("keys: one dialog makes a key with its limits, shows it with snippets, and sees its first request arrive", async () => {
  const { close, page } = await openSignedIn(browser, gateway.url, "keys")
  const keys = page.getByRole("table", { name: "Keys" })
  await page.getByRole("button", { name: "New key" }).click()
  const form = page.getByRole("dialog", { name: "New key" })
  await form.getByRole("textbox", { name: "Name" }).fill("Mobile app")
  await form.getByRole("checkbox", { name: "upstream-chat", exact: true }).check()
  // Numbers are accepted with separators of thousands, and shown with them.
  const tokens = form.getByRole("textbox", { name: "Tokens, per day" })
  for (const _ of [1, 2]) await form.getByRole("button", { name: "Add a limit" }).click()
  await tokens.fill("5000000")
  await form.getByRole("textbox", { name: "Requests, per day" }).fill("20,000")
  assert.strictEqual(await tokens.inputValue(), "5,000,000")
  await form.getByRole("button", { name: "Create key" }).click()

  const ready = page.getByRole("dialog", { name: "Mobile app is ready" })
  await ready.getByText(/Copy the key now/).waitFor()
  const key = await ready.getByRole("definition").first().locator("code").textContent() ?? ""
  const snippet = ready.getByRole("tabpanel")
  for (const client of ["curl", "OpenAI SDK", "codex", "Claude Code", "pi"]) {
    await ready.getByRole("tab", { name: client, exact: true }).click()
    await snippet.getByText(key).waitFor()
    assert.include(await snippet.textContent(), gateway.url)
  }
  await ready.getByText("Waiting for its first request…").waitFor()
  assert.strictEqual(await ask("!say Hello", key), 200)
  await ready.getByRole("status", { name: "First request" }).getByText("Works: request").waitFor()
  await ready.getByRole("status", { name: "First request" }).getByRole("link").waitFor()
  await ready.getByRole("button", { name: "Close" }).click()

  // What the key does is read again while the page is shown.
  const row = keys.getByRole("row").filter({ hasText: "Mobile app" })
  await row.getByText("1 of 20,000 requests/day").waitFor()
  assert.strictEqual(await ask("!say Again", key), 200)
  await row.getByText("2 of 20,000 requests/day").waitFor()
  await row.getByText(/ago$/).waitFor()

  // A number of a form is shown with all its digits.
  await page.getByRole("button", { name: "Actions Mobile app" }).click()
  await page.getByRole("menuitem", { name: "Edit" }).click()
  const edited = page.getByRole("dialog", { name: "Edit Mobile app" }).getByRole("textbox", { name: "Tokens, per day" })
  assert.strictEqual(await edited.inputValue(), "5,000,000")
  for (const width of [1440, 1024, 390]) {
    await page.setViewportSize({ width, height: 900 })
    assert.isAtLeast(await edited.evaluate((field) => field.clientWidth - field.scrollWidth), 0, String(width))
  }
  await page.setViewportSize({ width: 1280, height: 720 })
  await page.keyboard.press("Escape")

  // The search and the state are in the address; a link to a key shows that key.
  await page.getByRole("textbox", { name: "Search keys" }).fill("mobile")
  await keys.getByText("te...", { exact: true }).waitFor({ state: "detached" })
  assert.match(page.url(), /#\/keys\?q=mobile$/)
  await page.getByRole("button", { name: "Actions Mobile app" }).click()
  await page.getByRole("menuitem", { name: "Disable" }).click()
  await row.getByText("Disabled").waitFor()
  await result(page).getByRole("button", { name: "Undo" }).click()
  await row.getByText("Active").waitFor()
  await page.getByRole("combobox", { name: "State" }).selectOption("Disabled")
  await page.getByText("No key matches.").waitFor()
  const { items } = await admin("/admin/keys?q=mobile")
  const [{ id }] = items as readonly [{ readonly id: string }]
  await page.goto(`${gateway.url}/console/#/keys/${id}`)
  // The page of a key has its limits, its day and how to use it.
  await page.getByRole("heading", { level: 1, name: "Mobile app" }).waitFor()
  const limits = page.getByRole("region", { name: "Limits" })
  await limits.getByText(/^2 of 20,000 requests\/day, resets /).waitFor()
  await limits.getByText(/of 5,000,000 tokens\/day/).waitFor()
  const day = page.getByRole("region", { name: "Last 24 hours" })
  await day.getByRole("link", { name: /^Requests 2 / }).waitFor()
  await day.getByRole("group", { name: "Requests of each hour" }).waitFor()
  await page.getByRole("table", { name: "Models" }).getByRole("link", { name: "upstream-chat" }).waitFor()
  await page.getByText("None of the kept requests failed.").waitFor()
  // Its text is folded away, and a key that is used waits for no first request.
  assert.isFalse(await page.getByRole("main").getByText(key).first().isVisible())
  await page.getByText("How to use it").click()
  await page.getByRole("main").getByText(key).first().waitFor()
  assert.strictEqual(await page.getByRole("status", { name: "First request" }).count(), 0)
  assert.strictEqual(await ask("Hello", key, "no-such-model"), 400)
  await page.reload()
  const failures = page.getByRole("table", { name: "Last failures" })
  await failures.getByRole("row").nth(1).getByText("model_not_found").waitFor()
  assert.deepStrictEqual(await findings(page), [])
  for (const [action, state] of [["Disable", "Disabled"], ["Enable", "Active"]] as const) {
    await page.getByRole("button", { name: "Actions Mobile app" }).click()
    await page.getByRole("menuitem", { name: action }).click()
    await page.getByRole("definition").getByText(state).waitFor()
  }
  await page.getByRole("button", { name: "Actions Mobile app" }).click()
  await page.getByRole("menuitem", { name: "Delete" }).click()
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click()
  // The dialog says it too until it closes.
  await page.getByRole("dialog").waitFor({ state: "hidden" })
  await page.getByText("This does not exist, or no longer.").waitFor()
  await page.getByRole("main").getByRole("link", { name: "Keys" }).first().click()
  await keys.getByRole("row").nth(1).waitFor()
  await close()
})

it("a fresh gateway begins with the key of its start, and says when the first request has arrived", async () => {
  const fresh = await startGateway({ keys: [] })
  const { close, page } = await openSignedIn(browser, fresh.url)
  const first = page.getByRole("region", { name: "Send the first request" })
  await first.getByText("Waiting for its first request…").waitFor()
  const key = await first.getByRole("definition").first().locator("code").textContent() ?? ""
  assert.include(await first.getByRole("tabpanel").textContent(), key)
  const reply = await fetch(`${fresh.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "Hello" }] })
  })
  assert.strictEqual(reply.status, 200)
  await first.getByText("Works: request").waitFor()
  await first.getByRole("status", { name: "First request" }).getByRole("link").click()
  await page.getByRole("heading", { level: 1, name: /^Request / }).waitFor()
  await close()
  await fresh.stop()
})
