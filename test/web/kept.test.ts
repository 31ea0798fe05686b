/**
 * What is kept at the console when something else changes, in Chromium: forms, chosen rows, and lists whose next view cannot be read.
 */
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { isLookedAt } from "../support/effort.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { untilValue } from "../support/until.ts"
import { adminOf, controls, goTo, open, openSignedIn, signIn, useBrowser, type Watched } from "./support.ts"

const browser = useBrowser()
const key = "a-key-that-is-deleted"
const id = keyId(key, sha256Hex)
const server = { driver: "openai", base_url: "http://127.0.0.1:9/v1", models: { qwen3: "a" } }
let gateway: RunningGateway
let watched: Watched
let page: Page

beforeAll(async () => {
  gateway = await startGateway({
    upstream: { driver: "embedded" },
    upstreams: { gpu: server, hosted: { ...server, models: { llama: "b" } } },
    keys: [businessKey, key],
    key_records: { [id]: { name: "Team" } },
    accounts: [{ upstream: "gpu", token: "secret", email: "ada@example.com" }],
    routes: { fast: { targets: ["default/upstream-chat"], wait: 2 } },
    webhooks: [{
      name: "ops",
      url: "https://hooks.example/gateway",
      secret: `whsec_${btoa("of the webhook, 32 bytes or more.")}`
    }],
    admin: { tokens: [{ id: "t1", name: "dashboard", role: "viewer", hash: sha256Hex("dashboard") }] }
  })
})
beforeEach(() => async () => {
  await page.unrouteAll({ behavior: "ignoreErrors" })
  await watched.close()
})
afterAll(() => gateway.stop())

const admin = adminOf(() => gateway)
const { button } = controls(() => page)
const start = async (route: string) => {
  watched = await openSignedIn(browser(), gateway.url, route)
  ;({ page } = watched)
}

/** The forms, each by its page, what opens it, and a field of it. */
const forms = [
  { page: "keys", opens: ["New key"], field: "Name" },
  { page: `keys/${keyId(businessKey, sha256Hex)}`, opens: ["Edit"], field: "Name" },
  { page: "accounts", opens: ["Add accounts"], field: "Accounts, one per line" },
  { page: "upstreams", opens: ["Add upstream"], field: "Base URL" },
  { page: "upstreams", opens: ["Actions default", "Edit"], field: "Models, one per line" },
  { page: "models", opens: ["Actions upstream-chat", "Set price"], field: "Input per 1M" },
  { page: "routes", opens: ["Add route"], field: "Name" },
  { page: "webhooks", opens: ["Add webhook"], field: "URL" },
  { page: "settings", opens: ["New token"], field: "Name" },
  { page: "settings", opens: [], field: /^Queue length/ },
  { page: "transfer", opens: [], field: "Configuration to import" },
  { page: "samples", opens: [], field: "Message" }
]

describe("a form", () => {
  it.each([
    { page: `keys/${id}`, opens: "Edit", field: "Name", deletes: `/admin/keys/${id}` },
    {
      page: "accounts/gpu%2Fada%40example.com",
      opens: "Note",
      field: "Note",
      deletes: "/admin/accounts/gpu%2Fada%40example.com"
    },
    {
      page: "models/llama",
      opens: "Set price",
      field: "Input per 1M",
      deletes: "/admin/upstreams/hosted?force=true"
    },
    { page: "upstreams/gpu", opens: "Edit", field: "Base URL", deletes: "/admin/upstreams/gpu?force=true" }
  ])("of $page stays with what was typed when that is deleted elsewhere, and says so", async (each) => {
    await start(each.page)
    if (each.opens === "Note") {
      await page.getByRole("button", { name: /^Actions / }).click()
      await page.getByRole("menuitem", { name: "Note" }).click()
    } else await button(each.opens).click()
    const typed = page.getByRole("dialog").getByRole("textbox", { name: each.field, exact: true })
    await typed.fill("half typed")
    await admin(each.deletes, { method: "DELETE" })
    await page.getByRole("dialog").getByRole("alert").getByText("does not exist").waitFor()
    assert.strictEqual(await typed.inputValue(), "half typed")
    await page.keyboard.press("Escape")
    await page.getByRole("dialog").waitFor({ state: "detached" })
    await page.getByRole("main").getByText("does not exist").waitFor()
  })

  it.each(
    [
      {
        name: "route",
        page: "routes",
        opens: "fast",
        field: "Wait for the first target (s)",
        deletes: ["PUT", "/admin/routes", { routes: {} }]
      },
      {
        name: "webhook",
        page: "webhooks",
        opens: "ops",
        field: "URL",
        deletes: ["PUT", "/admin/webhooks", { webhooks: [] }]
      }
    ] as const
  )("of a $name that is deleted elsewhere stays with what was typed, and is refused in words", async (each) => {
    await start(each.page)
    await page.getByRole("button", { name: `Actions ${each.opens}` }).click()
    await page.getByRole("menuitem", { name: "Edit" }).click()
    const form = page.getByRole("dialog", { name: /^Edit / })
    const typed = form.getByRole("textbox", { name: each.field, exact: true })
    await typed.fill("7")
    const [method, path, body] = each.deletes
    await admin(path, { method, body: JSON.stringify(body) })
    await page.getByRole("button", { name: `Actions ${each.opens}`, includeHidden: true }).waitFor({
      state: "detached"
    })
    assert.strictEqual(await typed.inputValue(), "7")
    await form.getByRole("button", { name: "Save" }).click()
    await form.getByRole("alert").waitFor()
    assert.strictEqual(await typed.inputValue(), "7")
  })

  it("a question about a token that is deleted elsewhere is answered in words", async () => {
    await start("settings")
    await button("Delete dashboard").click()
    const question = page.getByRole("dialog", { name: "Delete dashboard" })
    const { tokens } = await admin("/admin/tokens") as { readonly tokens: ReadonlyArray<{ readonly id: string }> }
    await admin(`/admin/tokens/${tokens[0]!.id}`, { method: "DELETE" })
    await question.getByRole("button", { name: "Delete" }).click()
    await page.getByRole("alert").getByText("No such token is configured").waitFor()
  })

  it("of each kind keeps what was typed when the session ends, and goes on after another sign-in", async () => {
    await start("keys")
    const ended = page.getByRole("dialog", { name: "Sign in" })
    for (const { field, opens, page: route } of forms.filter((_, index) => isLookedAt(index, 3))) {
      await page.goto(`${gateway.url}/console/#/${route}`)
      for (const name of opens) {
        const item = page.getByRole("menuitem", { name, exact: true })
        await item.or(page.getByRole("main").getByRole("button", { name, exact: true })).first().click()
      }
      const typed = page.getByLabel(field, { exact: true }).last()
      await typed.waitFor()
      const before = await typed.inputValue()
      await typed.fill("7")
      await page.evaluate(`fetch("/admin/session", { method: "DELETE" })`)
      await ended.waitFor()
      await signIn(page)
      await ended.waitFor({ state: "detached" })
      assert.strictEqual(await typed.inputValue(), "7", route)
      if (await page.getByRole("dialog").count() > 0) await page.keyboard.press("Escape")
      else {
        await typed.fill(before)
        // A page knows by the second frame that nothing is unsaved.
        await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
      }
    }
  })

  it("whose fields are still being read holds its place, and does not open later over something else", async () => {
    const read = Promise.withResolvers<void>()
    watched = await open(browser(), `${gateway.url}/console/#/settings`)
    ;({ page } = watched)
    await page.route("**/admin/settings/fields", async (route) => {
      await read.promise
      await route.continue()
    })
    await signIn(page)
    await goTo(page, "Keys")
    await button("New key").click()
    const dialog = page.getByRole("dialog", { name: "New key" })
    await dialog.getByText("Loading…").waitFor()
    await page.keyboard.press("Escape")
    await dialog.waitFor({ state: "detached" })
    await button("New key").click()
    await dialog.getByText("Loading…").waitFor()
    read.resolve()
    await dialog.getByRole("textbox", { name: "Name", exact: true }).and(page.locator(":focus")).waitFor()
    assert.strictEqual(await page.getByRole("dialog").count(), 1)
  })
})

/** Waits until an expression has a value on the page, whose policy forbids the browser to wait itself. */
const becomes = (expression: string, value: unknown) =>
  untilValue(`${expression} is ${String(value)}`, () => page.evaluate(expression), (now) => now === value)

const askOften = async () => {
  for (let asked = 0; asked < 40; asked++) {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}` },
      body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "!say hello" }] })
    })
    assert.strictEqual(response.status, 200)
  }
}

it.each([
  { width: 1150, scroller: "document.scrollingElement" },
  { width: 900, scroller: "document.querySelector('main .table-box')" }
])(
  "Back returns to where a list of $width px was scrolled, and a link begins at the top",
  async ({ scroller, width }) => {
    await askOften()
    await start("requests")
    // Without room for a drawer, a request has its own page.
    await page.setViewportSize({ width, height: 500 })
    const links = page.getByRole("table", { name: "Requests" }).locator(".row-link")
    await links.nth(39).waitFor()
    await links.nth(20).focus()
    const place = Number(await page.evaluate(`${scroller}.scrollTop`))
    assert.isAbove(place, 100)
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { level: 1, name: /^Request / }).waitFor()
    await becomes("scrollY", 0)
    await page.goBack()
    await becomes(`${scroller}?.scrollTop`, place)
  }
)

describe("a list", () => {
  it("of requests stays where it is when the bars above it have been read", async () => {
    await askOften()
    await start("overview")
    const read = Promise.withResolvers<void>()
    await page.route(/\/admin\/requests\/histogram/, async (route) => {
      await read.promise
      await route.continue()
    })
    await page.getByRole("link", { name: "Requests", exact: true }).click()
    const first = page.getByRole("table", { name: "Requests" }).locator(".row-link").first()
    await first.waitFor()
    const topOf = async () => (await first.boundingBox())?.y
    const before = await topOf()
    read.resolve()
    await page.getByRole("group", { name: /requests from/ }).waitFor()
    assert.strictEqual(await topOf(), before)
  })

  it("of requests keeps the chosen row in sight when the drawer opens", async () => {
    await askOften()
    await start("requests")
    await page.setViewportSize({ width: 1440, height: 900 })
    const links = page.getByRole("table", { name: "Requests" }).locator(".row-link")
    await links.nth(39).waitFor()
    // The last row that is wholly in the window.
    const last = await page.evaluate<number>(
      `[...document.querySelectorAll(".row-link")].findLastIndex((link) => link.getBoundingClientRect().bottom < innerHeight - 20)`
    )
    assert.isAbove(last, 10)
    await links.nth(last).click()
    await page.getByRole("complementary").waitFor()
    await becomes(
      `(() => {
        const { bottom, top } = document.querySelector(".row-link[aria-current]").getBoundingClientRect()
        return top >= 0 && bottom <= innerHeight
      })()`,
      true
    )
  })

  it("stays when another order of it cannot be read, with why", async () => {
    await start("keys")
    const rows = page.getByRole("table", { name: "Keys" }).getByRole("row")
    await rows.nth(1).waitFor()
    const shown = await rows.count()
    await page.route(/\/admin\/keys\?.*sort=name/, (route) => route.fulfill({ status: 502 }))
    await page.getByRole("columnheader", { name: "Key", exact: true }).getByRole("button").click()
    await page.getByRole("alert").getByText("The gateway answered with status 502.").waitFor()
    assert.strictEqual(await rows.count(), shown)
    await page.unrouteAll({ behavior: "ignoreErrors" })
    await button("Try again").click()
    await page.getByRole("alert").waitFor({ state: "detached" })
  })
})
