/**
 * What an operator does often, from one page of the console to its end, in Chromium: how many clicks it takes is counted by the page.
 */
import { assert, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { accounts, admin, chat, emailOf, startSite } from "../gateway/support.ts"
import { startGateway } from "../support/gateway.ts"
import { openSignedIn, useBrowser } from "./support.ts"

const browser = useBrowser()

/** Counts the clicks of a hand from now on. The returned function has their number. */
const countClicks = async (page: Page): Promise<() => Promise<number>> => {
  await page.evaluate(`globalThis.clicks = 0
    addEventListener("click", ({ detail, isTrusted }) => { if (isTrusted && detail > 0) globalThis.clicks++ }, true)`)
  return () => page.evaluate<number>("clicks")
}

const link = (page: Page, name: string) => page.getByRole("link", { name, exact: true })
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true })

it("two clicks lead to why a key is slow since an hour", async () => {
  const gateway = await startGateway()
  await admin(gateway.url, "POST", "/admin/keys", { key: "of-the-website", name: "Website chat" })
  const { close, page } = await openSignedIn(browser(), gateway.url)
  const hour = 3_600_000
  const end = Math.ceil(Date.now() / hour) * hour
  await page.route(/\/admin\/usage\?.*by=hour/, async (route) => {
    const { pathname, search } = new URL(route.request().url())
    const reply = await admin(gateway.url, "GET", pathname + search) as { readonly totals: object }
    // The last hour is ten times as slow, by the wait for a slot.
    const rows = Array.from({ length: 24 }, (_, place) => {
      const isSlow = place === 23
      return {
        ...reply.totals,
        hour: new Date(end - (24 - place) * hour).toISOString(),
        requests: 10,
        duration_ms: isSlow ? 90_000 : 9_000,
        queue_ms: isSlow ? 80_000 : 0,
        upstream_ms: 5_000,
        duration_p95_ms: isSlow ? 10_000 : 1_000
      }
    })
    await route.fulfill({ json: { ...reply, rows } })
  })
  const clicks = await countClicks(page)
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Keys" }).click()
  await link(page, "Website chat").click()
  await page.getByText(/^Slow since .* usually 1\.00 s\. 89 % of their time is the wait for a slot\./).waitFor()
  assert.strictEqual(await clicks(), 2)
  // The hour stands out in the chart of the same day, on an axis, and says its numbers.
  const last = page.getByRole("group", { name: "Requests of each hour" }).getByRole("link").last()
  await last.focus()
  await page.getByRole("paragraph").getByText(/: 10 requests, 0 failed; 95 of 100 within 10 s$/).waitFor()
  await page.unrouteAll({ behavior: "ignoreErrors" })
  await close()
  await gateway.stop()
})

it("a new person gets a key and everything to begin with after four clicks", async () => {
  const gateway = await startGateway()
  const { close, context, page } = await openSignedIn(browser(), gateway.url)
  await context.grantPermissions(["clipboard-read", "clipboard-write"])
  const clicks = await countClicks(page)
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Keys" }).click()
  await button(page, "New key").click()
  await page.getByRole("dialog").getByRole("textbox", { name: "Name" }).fill("Grace")
  await button(page, "Create key").click()
  await button(page, "Copy as message").click()
  await page.getByText("The message was copied.").waitFor()
  assert.strictEqual(await clicks(), 4)
  const message = await page.evaluate<string>("navigator.clipboard.readText()")
  const key = /^API key: (\S+)$/m.exec(message)?.[1] ?? ""
  assert.include(message, `Base URL: ${gateway.url}/v1\n`)
  assert.lengthOf(message.match(/^(?:export|curl) .*$/gm)!, 3)
  const models = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })
  assert.strictEqual(models.status, 200)
  await button(page, "Close").click()

  // Who leaves gets another key: the old one serves for a time that is chosen.
  await link(page, "Grace").click()
  await button(page, "Actions Grace").click()
  await page.getByRole("menuitem", { name: "Rotate" }).click()
  const rotating = page.getByRole("dialog", { name: "Rotate Grace" })
  await rotating.getByRole("combobox", { name: "The old key serves for" }).selectOption("an hour")
  await rotating.getByRole("button", { name: "Rotate" }).click()
  const made = page.getByRole("dialog", { name: "Grace is ready" })
  const next = await made.getByRole("definition").first().locator("code").textContent()
  assert.notStrictEqual(next, key)
  await made.getByRole("button", { name: "Close" }).click()
  await page.getByRole("definition").getByText(/^until /).waitFor()
  for (const each of [key, next]) {
    const reply = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${each}` } })
    assert.strictEqual(reply.status, 200)
  }
  await close()
  await gateway.stop()
})

it("an account that died is mended after four clicks, with its note and in its place", async () => {
  const [ada, grace] = accounts("ada", "grace")
  const known = [{ ...ada!, password: "right" }, grace!]
  const site = await startSite({ accounts: [ada!, grace!] }, { reference: { accounts: known } })
  await admin(site.url, "PATCH", `/admin/accounts/${emailOf("ada")}`, { note: "of the first floor" })
  await chat(site.url, "!say one", { target: emailOf("ada") })
  const { close, page } = await openSignedIn(browser(), site.url, "about")
  const clicks = await countClicks(page)
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Overview" }).click()
  const attention = page.getByRole("region", { name: "Needs attention" })
  await attention.getByText(/^since \d\d:\d\d$/).first().waitFor()
  await attention.getByRole("link", { name: emailOf("ada") }).click()
  await page.getByRole("definition").getByText("Out of rotation").waitFor()
  await button(page, "Set password").click()
  await page.getByRole("textbox", { name: "New password" }).fill("right")
  await button(page, "Save").click()
  await page.getByRole("definition").getByText("Ready").waitFor()
  assert.strictEqual(await clicks(), 4)
  await page.getByRole("definition").getByText("of the first floor").waitFor()
  const { items } = await admin(site.url, "GET", "/admin/accounts")
  assert.deepStrictEqual(
    (items as ReadonlyArray<{ readonly email: string }>).map(({ email }) => email),
    [emailOf("grace"), emailOf("ada")]
  )
  assert.include(JSON.stringify(await chat(site.url, "!say back", { target: emailOf("ada") })), "back")
  await close()
  await site.stop()
})

it("an account whose token comes from a program says whom it stands for and until when, and gets a new one on a press", async () => {
  const credential = { from: "command", run: ["/bin/echo", "a-token"], for: 3_600 }
  const gateway = await startGateway({
    upstreams: { corp: { driver: "openai", base_url: "http://127.0.0.1:9/v1", models: { large: "large" } } },
    accounts: [{ upstream: "corp", credential }]
  })
  const viewport = { width: 1440, height: 900 }
  const { close, page } = await openSignedIn(browser(), gateway.url, "accounts", { viewport })
  const rows = page.getByRole("table", { name: "Accounts" })
  await rows.getByText("command · /bin/echo").waitFor()
  await rows.getByRole("link", { name: /^corp\/command:|^command:/ }).click()
  const facts = page.getByRole("definition")
  await facts.getByText("command · /bin/echo").waitFor()
  assert.strictEqual(await page.getByText("Token ends", { exact: true }).count(), 0)
  // Its token comes from the source alone.
  assert.strictEqual(await button(page, "Set token").count(), 0)
  await button(page, "Renew now").click()
  await page.getByText(/^corp\/command:\w+ has a new token\.$/).waitFor()
  await page.getByText("Token ends", { exact: true }).waitFor()
  await close()
  await gateway.stop()
})
