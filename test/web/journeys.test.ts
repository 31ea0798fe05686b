/**
 * Journeys at the console, from end to end, in Chromium.
 */
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import type { Locator, Page } from "playwright-core"
import { keyPreview } from "../../src/domain/identity.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { untilHolds, untilValue } from "../support/until.ts"
import {
  adminOf,
  controls,
  findings,
  goTo,
  open,
  openPreferences,
  openSignedIn,
  result,
  savedBy,
  signIn,
  useBrowser,
  type Watched
} from "./support.ts"

const browser = useBrowser()
let gateway: RunningGateway
let watched: Watched
let page: Page

beforeEach(async () => {
  gateway = await startGateway({ accounts: [{ email: "ada@example.com", password: "p" }] })
})
afterEach(async () => {
  await watched.close()
  await gateway.stop()
})

const signedIn = async (route: string) => {
  watched = await openSignedIn(browser(), gateway.url, route)
  page = watched.page
}

const admin = adminOf(() => gateway)
const { act, button, dialog } = controls(() => page)

describe("journeys at the console", () => {
  it("sign-in and sign-out: the browser stores nothing readable, and a copied cookie is no longer valid", async () => {
    watched = await open(browser(), `${gateway.url}/console/`)
    ;({ page } = watched)
    await page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor()
    assert.strictEqual(await page.title(), "Sign in – Model Gateway")
    await page.getByRole("textbox", { name: "Admin key or password" }).fill("wrong")
    await button("Sign in").click()
    await page.getByRole("alert").waitFor()
    await signIn(page)
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor()
    await page.reload()
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor()
    const kept = await page.evaluate(`JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])`)
    assert.strictEqual(kept, `[{},{},""]`)
    const [cookie] = await watched.context.cookies(`${gateway.url}/admin/`)
    assert.isTrue(cookie?.httpOnly)
    await openPreferences(page)
    await button("Sign out").click()
    await page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor()
    await watched.context.addCookies([cookie!])
    await page.reload()
    await page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor()
  })

  it("an ended session asks above the page, which keeps what was typed, and goes on", async () => {
    await signedIn("keys")
    await button("New key").click()
    await dialog("New key").getByRole("textbox", { name: "Name", exact: true }).fill("half typed")
    await admin("/admin/settings/password", { method: "POST", body: JSON.stringify({ new_password: "long enough" }) })
    await dialog("Sign in").getByText("The session has ended.").waitFor()
    for (const _ of [1, 2, 3, 4]) await page.keyboard.press("Escape")
    await dialog("Sign in").waitFor()
    await signIn(page, "long enough")
    await dialog("Sign in").waitFor({ state: "detached" })
    assert.strictEqual(
      await dialog("New key").getByRole("textbox", { name: "Name", exact: true }).inputValue(),
      "half typed"
    )
    await button("Create key").click()
    await page.getByRole("dialog", { name: "half typed is ready" }).waitFor()
    // What the page shows is read and updated again.
    await page.getByRole("status", { name: "Connection" }).getByText("Live", { exact: true }).waitFor()
  })

  it("accounts: an account is added after a preview, noted, disabled, searched, tested and deleted", async () => {
    await signedIn("accounts")
    await button("Add accounts").click()
    await page.getByRole("textbox", { name: "Accounts, one per line" })
      .fill(
        "bob@example.com secret\n13800138000----pw\n\n# none\nada@example.com: again\nwhat is this\na-token-of-someone"
      )
    await button("Preview").click()
    const preview = page.getByRole("table", { name: "Preview" })
    await preview.getByRole("row", { name: "5 ada@example.com" }).getByText("Already there").waitFor()
    await preview.getByRole("row", { name: "6" }).getByText("Not understood").waitFor()
    assert.strictEqual((await admin("/admin/accounts"))["total"], 1)
    await button("Add 3 accounts").click()
    const results = page.getByRole("table", { name: "Results" })
    await results.waitFor()
    assert.strictEqual(await results.getByRole("cell", { name: "Added", exact: true }).count(), 3)
    await button("Close").click()
    await result(page).getByText("3 accounts added.").waitFor()
    const accounts = page.getByRole("table", { name: "Accounts" })
    await accounts.getByRole("rowheader", { name: "bob@example.com" }).waitFor()

    await act("Note", "bob@example.com", "Accounts")
    await page.getByRole("textbox", { name: "Note" }).fill("the second one")
    await button("Save").click()
    const note = accounts.getByRole("button", { name: "Note: the second one", exact: true })
    await note.waitFor()
    assert.strictEqual(await note.getAttribute("title"), "the second one")
    assert.strictEqual(await note.textContent(), "")
    const whole = page.locator(".whole:popover-open")
    for (const width of [390, 1280]) {
      await page.setViewportSize({ width, height: 720 })
      const box = (await untilValue("the note", () => note.boundingBox(), (shown) => shown !== null))!
      assert.isAtLeast(Math.min(box.width, box.height), 24, `at ${width}`)
      assert.isAtMost(box.x + box.width, width)
      await accounts.getByRole("link", { name: "bob@example.com" }).focus()
      await page.keyboard.press("Tab")
      await note.and(page.locator(":focus-visible")).waitFor()
      await whole.filter({ hasText: /^the second one$/ }).waitFor()
      await page.keyboard.press("Escape")
      await whole.waitFor({ state: "hidden" })
    }
    await page.keyboard.press("Enter")
    await dialog("Note of bob@example.com").getByRole("button", { name: "Cancel" }).click()

    await act("Disable", "bob@example.com", "Accounts")
    await result(page).getByText("bob@example.com is disabled: it receives no more requests.").waitFor()
    // The outcome stands beside the page, above no row.
    const [toast, main] = await Promise.all([result(page).boundingBox(), page.locator("main").boundingBox()])
    assert.isAtMost(toast!.x + toast!.width, main!.x)
    await button("Undo").click()
    await result(page).getByText("bob@example.com is enabled.").waitFor()
    assert.strictEqual((await admin("/admin/accounts?state=disabled"))["total"], 0)
    await act("Disable", "bob@example.com", "Accounts")
    await accounts.getByRole("row", { name: /bob@example/ }).getByText("Disabled").waitFor()
    const { items } = await admin("/admin/accounts?state=disabled")
    assert.deepInclude((items as ReadonlyArray<object>)[0], { identifier: "bob@example.com", note: "the second one" })
    const show = page.getByRole("group", { name: "Show" })
    await show.getByRole("button", { name: "Disabled 1" }).click()
    await accounts.getByRole("rowheader", { name: "13800138000" }).waitFor({ state: "detached" })
    assert.include(page.url(), "state=disabled")
    await page.reload()
    await accounts.getByRole("rowheader", { name: "bob@example.com" }).waitFor()
    assert.strictEqual(await accounts.getByRole("rowheader").count(), 1)
    await show.getByRole("button", { name: "All 4" }).click()

    await page.getByRole("textbox", { name: "Search accounts" }).fill("1380013")
    await accounts.getByRole("rowheader", { name: "bob@example.com" }).waitFor({ state: "detached" })
    await page.getByRole("textbox", { name: "Search accounts" }).fill("")
    await accounts.getByRole("rowheader", { name: "bob@example.com" }).waitFor()

    await button("Test all").click()
    await result(page).getByText("4 accounts tested: 4 passed, 0 failed.").waitFor()

    await page.getByRole("checkbox", { name: "Select bob@example.com" }).check()
    await page.getByRole("checkbox", { name: "Select 13800138000" }).check()
    await button("Delete 2").click()
    await dialog("Delete 2 accounts").waitFor()
    assert.sameMembers(await dialog("Delete 2 accounts").getByRole("listitem").allTextContents(), [
      "13800138000",
      "bob@example.com"
    ])
    await dialog("Delete 2 accounts").getByRole("button", { name: "Cancel" }).click()
    assert.strictEqual((await admin("/admin/accounts"))["total"], 4)
    await act("Clear sessions", "ada@example.com", "Accounts")
    await dialog("Clear sessions of ada@example.com").getByText("at its provider").waitFor()
    await dialog("Clear sessions of ada@example.com").getByRole("button", { name: "Clear sessions" }).click()
    await result(page).getByText("The sessions of ada@example.com were cleared.").waitFor()
    await act("Delete", "ada@example.com", "Accounts")
    await dialog("Delete ada@example.com").getByRole("button", { name: "Delete" }).click()
    await result(page).getByText("1 account deleted.").waitFor()
    assert.isTrue(await page.getByRole("checkbox", { name: "Select bob@example.com" }).isChecked())
    assert.isTrue(await page.getByRole("checkbox", { name: "Select 13800138000" }).isChecked())
    await button("Delete 2").click()
    await dialog("Delete 2 accounts").getByRole("button", { name: "Delete" }).click()
    await result(page).getByText("2 accounts deleted.").waitFor()
    assert.strictEqual((await admin("/admin/accounts"))["total"], 1)
  })

  /** Makes a key in the dialog, and returns the key as the dialog shows it. */
  const makeKey = async (fields: Readonly<Record<string, string>>): Promise<string> => {
    await button("New key").click()
    await dialog("New key").getByText("Note, concurrent requests, own key").click()
    for (const [name, value] of Object.entries(fields)) {
      await dialog("New key").getByRole("textbox", { name, exact: true }).fill(value)
    }
    await button("Create key").click()
    const ready = page.getByRole("dialog", { name: /is ready$/ })
    const key = await ready.getByRole("definition").first().locator("code").textContent() ?? ""
    await ready.getByRole("button", { name: "Close" }).click()
    return key
  }
  const keyMenu = async (name: string, action: string) => {
    await button(`Actions ${name}`).click()
    await page.getByRole("menuitem", { name: action, exact: true }).click()
  }

  it("keys: a key is generated, shown, limited and deleted, with immediate effect for callers", async () => {
    await signedIn("keys")
    const keys = page.getByRole("table", { name: "Keys" })
    const key = await makeKey({ Name: "team a" })
    assert.match(key, /^sk-gw-[\w-]{43}$/)
    await keys.getByText(keyPreview(key), { exact: true }).waitFor()
    await keyMenu("team a", "Show")
    await keys.getByText(key).waitFor()
    const asCaller = async () =>
      (await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}` },
        body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "Hello" }] })
      })).status
    assert.strictEqual(await asCaller(), 200)
    await keyMenu("team a", "Edit")
    await dialog("Edit team a").getByRole("textbox", { name: "Name" }).fill("team b")
    await dialog("Edit team a").getByRole("button", { name: "Add a limit" }).click()
    await dialog("Edit team a").getByRole("textbox", { name: "Requests, per day" }).fill("1")
    await button("Save").click()
    await keys.getByText("team b").waitFor()
    await keys.getByText("1 of 1 requests/day").waitFor()
    assert.strictEqual(await asCaller(), 429)
    await keyMenu("team b", "Delete")
    await dialog("Delete team b").getByText(/0 requests running, 1 today\. Last used: .*ago/).waitFor()
    await dialog("Delete team b").getByRole("button", { name: "Delete" }).click()
    await result(page).getByText("team b was deleted.").waitFor()
    await keys.getByText("team b").waitFor({ state: "detached" })
  })

  it("keys: a key with the same preview as a deleted one does not show the deleted key", async () => {
    await signedIn("keys")
    const keys = page.getByRole("table", { name: "Keys" })
    await makeKey({ "Own key": "sk-team-of-the-first-floor" })
    await keyMenu("sk-team-...", "Show")
    await keys.getByText("sk-team-of-the-first-floor").waitFor()
    // From now on the page keeps the old configuration, while its list of keys is current.
    await page.route("**/admin/config?*", (route) => route.fulfill({ status: 503, json: { detail: "Busy" } }))
    await admin("/admin/keys/sk-team-of-the-first-floor", { method: "DELETE" })
    await admin("/admin/keys", { method: "POST", body: JSON.stringify({ key: "sk-team-of-the-second-floor" }) })
    await makeKey({ "Own key": "sk-team-of-the-third-floor" })
    const menus = button("Actions sk-team-...")
    await untilHolds(async () => await menus.count() === 2)
    for (const menu of await menus.all()) {
      await menu.click()
      assert.isTrue(await page.getByRole("menuitem", { name: "Show" }).isDisabled())
      await page.keyboard.press("Escape")
    }
    assert.strictEqual(await keys.getByText("sk-team-of-the-first-floor").count(), 0)
  })

  it("accounts: signing out cancels running tests", async () => {
    await signedIn("accounts")
    // The tests stay unanswered.
    await page.route("**/admin/accounts/test", () => undefined)
    const asked = page.waitForRequest("**/admin/accounts/test")
    await button("Test all").click()
    await asked
    const ended = page.waitForEvent("requestfailed", (request) => request.url().endsWith("/admin/accounts/test"))
    await openPreferences(page)
    await button("Sign out").click()
    await page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor()
    await ended
    await signIn(page)
    await page.getByRole("heading", { level: 1, name: "Accounts" }).waitFor()
    assert.isFalse(await button("Stop tests").isVisible())
  })

  it("keys: a double click adds a key once", async () => {
    await signedIn("keys")
    await button("New key").click()
    await dialog("New key").getByRole("textbox", { name: "Name" }).fill("team c")
    const posted: Array<string> = []
    page.on("request", (request) => {
      if (request.method() === "POST") posted.push(request.url())
    })
    await button("Create key").dblclick()
    await dialog("team c is ready").waitFor()
    assert.deepStrictEqual(posted, [`${gateway.url}/admin/keys`])
  })

  it("accounts: a rejected note stays in its dialog, with the reason", async () => {
    await signedIn("accounts")
    await act("Note", "ada@example.com", "Accounts")
    const note = dialog("Note of ada@example.com")
    await note.getByRole("textbox", { name: "Note" }).fill("on holiday")
    await admin("/admin/accounts/ada@example.com", { method: "DELETE" })
    await note.getByRole("button", { name: "Save" }).click()
    await note.getByRole("alert").waitFor()
    assert.strictEqual(await note.getByRole("textbox", { name: "Note" }).inputValue(), "on holiday")
  })

  it("accounts: those of a server with the Responses API get an organisation, and lose it", async () => {
    const change = (method: string, path: string, body: object) => admin(path, { method, body: JSON.stringify(body) })
    await change("POST", "/admin/upstreams", { name: "server", driver: "responses", base_url: "http://127.0.0.1:9/v1" })
    await change("POST", "/admin/accounts", { upstream: "server", token: "sk-first", note: "first" })
    await signedIn("accounts")
    const accounts = page.getByRole("table", { name: "Accounts" })
    const text = await accounts.getByRole("rowheader", { name: "first" }).innerText()
    const name = `server/${text.split(/\s/)[0]!}`
    await act("Organization", name, "Accounts")
    await page.getByRole("textbox", { name: "Organization" }).fill("team-a")
    await button("Save").click()
    await accounts.getByText("team-a").waitFor()
    const { items } = await admin("/admin/accounts?upstream=server")
    assert.deepInclude((items as ReadonlyArray<object>)[0], { organization: "team-a" })
    await act("Organization", name, "Accounts")
    await page.getByRole("textbox", { name: "Organization" }).fill("")
    await button("Save").click()
    await accounts.getByText("team-a").waitFor({ state: "detached" })
    await button("Actions ada@example.com").click()
    assert.isFalse(await page.getByRole("menuitem", { name: "Organization" }).isVisible())
  })

  it("keys: renaming a key keeps a concurrent change, and its expiry to the second", async () => {
    const body = JSON.stringify({ generate: true, expires_at: "2035-01-01T10:20:30Z" })
    const { id, preview } = await admin("/admin/keys", { method: "POST", body })
    await signedIn("keys")
    await keyMenu(String(preview), "Edit")
    await dialog(`Edit ${preview}`).getByRole("textbox", { name: "Name" }).fill("team b")
    await admin(`/admin/keys/${id}`, { method: "PATCH", body: JSON.stringify({ disabled: true }) })
    await button("Save").click()
    await page.getByRole("table", { name: "Keys" }).getByText("team b").waitFor()
    const { key } = await admin(`/admin/keys/${id}`, { method: "PATCH", body: "{}" })
    assert.deepInclude(key, { name: "team b", disabled: true, expires_at: "2035-01-01T10:20:30Z" })
  })

  it("settings: an error is shown at its field, and a concurrent change is not overwritten", async () => {
    await signedIn("settings")
    const field = page.getByRole("textbox", { name: "Requests per account" })
    await field.fill("100000")
    // The range is checked while one types.
    await page.getByText("Must be between 1 and 256.").waitFor()
    assert.strictEqual(await field.getAttribute("aria-invalid"), "true")
    await field.fill("3")
    await page.getByText("Must be between 1 and 256.").waitFor({ state: "detached" })
    // Another refusal comes from the gateway.
    await page.getByRole("textbox", { name: "Fast model" }).fill("no-such-model")
    await button("Review changes").click()
    const changes = dialog("Review changes").getByRole("table", { name: "Changes" })
    await changes.getByRole("row", { name: /Requests per account runtime\.account_max_inflight Not set 3/ }).waitFor()
    await button("Save").click()
    await page.getByRole("alert").waitFor()
    const fast = page.getByRole("textbox", { name: "Fast model" })
    assert.strictEqual(await fast.getAttribute("aria-invalid"), "true")
    await fast.fill("upstream-chat")

    await admin("/admin/settings", { method: "PUT", body: JSON.stringify({ responses: { store_ttl_seconds: 60 } }) })
    await button("Review changes").click()
    await button("Save").click()
    await page.getByRole("alert").getByText("was changed meanwhile").waitFor()
    const stored = page.getByRole("textbox", { name: "Response retention (seconds)" })
    await page.waitForFunction((name) => {
      const { document } = globalThis as unknown as {
        readonly document: { readonly getElementById: (id: string) => { readonly value: string } | null }
      }
      return document.getElementById(name)?.value === "60"
    }, await stored.getAttribute("id") ?? "")
    await button("Review changes").click()
    await button("Save").click()
    await result(page).getByText("The settings were saved.").waitFor()
    const { responses, runtime } = await admin("/admin/settings")
    assert.deepInclude(runtime as object, { account_max_inflight: 3 })
    assert.deepInclude(responses as object, { store_ttl_seconds: 60 })
  })

  it("settings: a viewer's token is shown once, signs in without seeing exports, and ends when it is deleted", async () => {
    await signedIn("settings")
    await button("New token").click()
    await dialog("New token").getByRole("textbox", { name: "Name" }).fill("dashboard")
    await button("Create token").click()
    const secret = await dialog("New token").getByText(/^mga-/).textContent() ?? ""
    await button("Close").click()
    const tokens = page.getByRole("table", { name: "Tokens for the admin API" })
    await tokens.getByRole("row", { name: /dashboard Viewer/ }).waitFor()
    assert.strictEqual(await page.getByText(secret).count(), 0)
    const asViewer = (path: string) => fetch(gateway.url + path, { headers: { authorization: `Bearer ${secret}` } })
    assert.strictEqual((await asViewer("/admin/keys")).status, 200)
    assert.strictEqual((await asViewer("/admin/config/export")).status, 403)
    await button("Delete dashboard").click()
    await dialog("Delete dashboard").getByRole("button", { name: "Delete", exact: true }).click()
    await page.getByText("There are no tokens.").waitFor()
    assert.strictEqual((await asViewer("/admin/keys")).status, 401)
  })

  it("settings: unsaved changes are asked about before the page is left", async () => {
    await signedIn("settings")
    const field = page.getByRole("textbox", { name: "Requests per account" })
    await field.fill("5")
    await page.getByRole("navigation").getByRole("link", { name: "Usage" }).click()
    await dialog("Unsaved changes").getByRole("button", { name: "Stay" }).click()
    assert.strictEqual(await field.inputValue(), "5")
    await page.getByRole("navigation").getByRole("link", { name: "Usage" }).click()
    await dialog("Unsaved changes").getByRole("button", { name: "Discard and leave" }).click()
    await page.getByRole("heading", { level: 1, name: "Usage" }).waitFor()
    await page.goBack()
    assert.strictEqual(await field.inputValue(), "")
  })

  it("playground: local tools work in every style, streamed and whole, and the inspector shows the request", async () => {
    await signedIn("playground")
    const log = page.getByRole("log", { name: "Conversation" })
    await page.getByRole("checkbox", { name: "Local tools" }).check()
    for (const style of ["Chat Completions", "Responses", "Messages", "Gemini"]) {
      await page.getByRole("combobox", { name: "API" }).selectOption(style)
      for (const streamed of [true, false]) {
        await page.getByRole("checkbox", { name: "Stream" }).setChecked(streamed)
        await page.getByRole("textbox", { name: "Message" }).fill("use get_weather for Oslo")
        await button("Send").click()
        await log.getByText("get_weather answered: “").waitFor()
        await log.getByText(`{"city":"Oslo","temperature_c":21,"sky":"clear"}`, { exact: true }).waitFor()
        await button("New conversation").click()
        await log.getByText("get_weather answered: “").waitFor({ state: "detached" })
      }
    }
    await page.getByRole("combobox", { name: "Model" }).fill("upstream-reasoner")
    await page.getByRole("checkbox", { name: "Stream" }).check()
    await page.getByRole("textbox", { name: "System" }).fill("Be brief.")
    await page.getByRole("textbox", { name: "Message" }).fill("!think I think\n!say I say")
    await button("Send").click()
    await log.getByText("I say", { exact: true }).waitFor()
    await page.getByRole("region", { name: "Reasoning" }).getByText("I think").waitFor()
    assert.isAbove(await page.getByRole("region", { name: "Raw frames" }).getByRole("row").count(), 3)
    await button("Code").click()
    const curl = await page.getByRole("region", { name: "curl" }).textContent() ?? ""
    assert.include(curl, "$GATEWAY_KEY")
    assert.notInclude(curl, businessKey)
    await page.getByRole("region", { name: "SDK" }).getByText("GoogleGenAI").first().waitFor()

    await page.getByRole("link", { name: "Inspect the request" }).click()
    await page.getByRole("heading", { level: 1, name: /^Request / }).waitFor()
    for (
      const name of [
        "Client request",
        "Conversation",
        "Upstream rounds",
        "Client reply",
        "Timeline",
        "Frames",
        "Summary",
        "What happened"
      ]
    ) await page.getByRole("region", { name, exact: true }).waitFor()
    await page.getByRole("region", { name: "Conversation" }).getByText("Be brief.").waitFor()
    const conversation = page.getByRole("region", { name: "Conversation" })
    await conversation.getByText("Reasoning, 7 characters").click()
    await conversation.getByText("I think", { exact: true }).waitFor()
    await conversation.getByText("ended: stop").waitFor()
    for (const side of ["Upstream frames", "Client frames"]) {
      await page.getByRole("table", { name: side }).getByRole("button", { name: `reasoning "I` }).waitFor()
    }
    await conversation.getByRole("button", { name: "JSON" }).click()
    await conversation.getByText(`"finish": "stop"`).waitFor()
    await button("Open in playground").click()
    await page.getByRole("heading", { level: 1, name: "Playground" }).waitFor()
    assert.strictEqual(await page.getByRole("textbox", { name: "System" }).inputValue(), "Be brief.")
    assert.match(await page.getByRole("textbox", { name: "Message" }).inputValue(), /!think I think/)
  })

  it("keys: the generated key of a start without keys serves the playground until a key is added", async () => {
    await gateway.stop()
    gateway = await startGateway({ keys: [], accounts: [{ email: "ada@example.com", password: "p" }] })
    await signedIn("playground")
    await page.getByRole("textbox", { name: "Message" }).fill("!say I serve")
    await button("Send").click()
    await page.getByRole("log").getByText("I serve", { exact: true }).waitFor()
    await goTo(page, "Keys")
    const generated = page.getByText("Generated at startup. It becomes invalid when a key is added.")
    await generated.waitFor()
    await makeKey({ "Own key": "a-new-key" })
    await generated.waitFor({ state: "detached" })
    assert.lengthOf((await admin("/admin/keys"))["items"] as ReadonlyArray<unknown>, 1)
  })

  it("playground: a stopped reply is a cancelled request in the list", async () => {
    await signedIn("playground")
    await page.getByRole("textbox", { name: "Message" }).fill("!pace 50ms\n!count 2000")
    await button("Send").click()
    await page.getByRole("log").getByText(/^1 2 3/).waitFor()
    await button("Stop").click()
    await page.getByRole("log").getByText("Stopped.").waitFor()
    await goTo(page, "Requests")
    await page.getByRole("table", { name: "Requests" }).getByText("Cancelled").waitFor()
    await page.getByRole("group", { name: "Filters" }).getByRole("button", { name: "Outcome", exact: true }).click()
    await page.getByRole("button", { name: "Cancelled 1" }).click()
    await button("Outcome: Cancelled").waitFor()
    await page.getByRole("table", { name: "Requests" }).getByRole("link", { name: /req_/ }).click()
    await page.getByRole("link", { name: /^Request req_/ }).click()
    await page.getByRole("heading", { level: 1, name: /^Request req_/ }).waitFor()
  })

  it("requests: the list and the inspector update while a request runs", async () => {
    await signedIn("requests")
    await page.getByText(/^No requests yet\./).waitFor()
    const leaving = new AbortController()
    const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      signal: leaving.signal,
      headers: { authorization: `Bearer ${businessKey}` },
      body: JSON.stringify({
        model: "upstream-chat",
        stream: true,
        messages: [{ role: "user", content: "!pace 50ms\n!count 5000" }]
      })
    })
    const requests = page.getByRole("table", { name: "Requests" })
    await requests.getByText("Streaming").waitFor()
    await requests.getByRole("link", { name: /req_/ }).click()
    await page.getByRole("table", { name: "Client frames" }).getByText("\" 20\"").waitFor()
    await page.getByRole("region", { name: "What happened" }).getByText(/^Streaming for \d/).waitFor()
    leaving.abort()
    await reply.text().catch(() => "")
    const happened = page.getByRole("region", { name: "What happened" })
    await happened.getByText("Cancelled").waitFor()
    await happened.getByText(/^The client left after .*, during the reply\.$/).waitFor()
  })

  it("requests: the next page begins with the first request that newer ones pushed off the list", async () => {
    const ask = async (times: number) => {
      for (let i = 0; i < times; i++) {
        const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
          method: "POST",
          headers: { authorization: `Bearer ${businessKey}` },
          body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "Hello" }] })
        })
        assert.strictEqual(reply.status, 200)
      }
    }
    await signedIn("requests")
    await page.getByText(/^No requests yet\./).waitFor()
    const rows = page.getByRole("table", { name: "Requests" }).locator("tbody th a")
    const shown = async () => (await rows.allTextContents()).length
    await ask(1)
    const first = await rows.first().textContent()
    // The list holds still under the pointer.
    await page.getByRole("heading", { level: 1 }).hover()
    await ask(54)
    await page.getByRole("link", { name: first ?? "" }).waitFor({ state: "detached" })
    assert.strictEqual(await shown(), 50)
    await button("Older").click()
    await page.getByRole("link", { name: first ?? "" }).waitFor()
    assert.strictEqual(await shown(), 5)
  })

  it("transfer: a configuration is exported, previewed and imported", async () => {
    await signedIn("transfer")
    const exported = await savedBy(page, "Download")
    await result(page).getByText(`The configuration was exported as ${exported.name}.`).waitFor()
    assert.deepInclude(JSON.parse(exported.content), { keys: [businessKey] })
    const field = page.getByRole("textbox", { name: "Configuration to import" })
    await field.fill(`{"runtime":{"account_max_inflight":0}}`)
    await button("Preview import").click()
    await page.getByRole("alert").getByText("must be between 1 and 256").waitFor()
    await field.fill(`{"keys":["another-key"]}`)
    // The import comes with its preview.
    assert.strictEqual(await button("Import").count(), 0)
    await button("Preview import").click()
    const preview = page.getByRole("status", { name: "Preview import" })
    await preview.getByRole("row", { name: "Keys +1 0 0 2" }).waitFor()
    assert.deepInclude(await admin("/admin/config"), { keys: [businessKey] })
    await button("Import").click()
    await result(page).getByText("1 key and 0 accounts were imported.").waitFor()
    assert.deepInclude(await admin("/admin/config"), { keys: [businessKey, "another-key"] })

    // A replacing import of a file shows what goes and what changes, and asks for a typed word.
    await page.getByRole("combobox", { name: "Mode" }).selectOption("Replace")
    const file = `{"keys":["a-third-key"],"runtime":{"account_max_inflight":7}}`
    await page.locator("input[type=file]").setInputFiles({
      name: "gateway.json",
      mimeType: "application/json",
      buffer: Buffer.from(file)
    })
    await untilHolds(async () => await field.inputValue() === file)
    await preview.getByRole("listitem").filter({ hasText: /^runtime\.account_max_inflight.*7$/ }).waitFor()
    await button("Replace everything").click()
    const asked = dialog("Replace keys, accounts and settings")
    await asked.getByRole("row", { name: "Keys +1 −2 0 1" }).waitFor()
    const replace = asked.getByRole("button", { name: "Replace everything" })
    assert.isTrue(await replace.isDisabled())
    assert.deepInclude(await admin("/admin/config"), { keys: [businessKey, "another-key"] })
    await asked.getByRole("textbox", { name: "Type replace to confirm" }).fill("replace")
    await replace.click()
    await result(page).getByText(/^2 keys and \d+ accounts? (?:was|were) removed\./).waitFor()
    assert.deepInclude(await admin("/admin/config"), { keys: ["a-third-key"] })
    await admin("/admin/config", { method: "POST", body: JSON.stringify({ keys: [businessKey] }) })
  })

  it("usage: the table groups requests by hour, model and day", async () => {
    await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}` },
      body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "Hello" }] })
    }).then((response) => response.text())
    await signedIn("usage?by=hour")
    const usage = page.getByRole("table", { name: "Usage" })
    await usage.getByRole("row", { name: /^All 1 0 0 \d/ }).waitFor()
    await page.getByRole("combobox", { name: "Group by" }).selectOption("Model")
    await usage.getByRole("row", { name: /^upstream-chat 1 0 0 \d/ }).waitFor()

    // A row leads to its requests; Back and a reload keep what was chosen.
    await usage.getByRole("button", { name: "Actions upstream-chat" }).click()
    await page.getByRole("menuitem", { name: "Its requests" }).click()
    await page.getByRole("heading", { level: 1, name: "Requests" }).waitFor()
    await page.goBack()
    await usage.getByRole("row", { name: /^upstream-chat 1 0 0 \d/ }).waitFor()
    await page.reload()
    await usage.getByRole("row", { name: /^upstream-chat 1 0 0 \d/ }).waitFor()

    // Rows keep their names until the next group arrives, and look busy.
    const names = await usage.locator("th").allTextContents()
    const held = Promise.withResolvers<void>()
    await page.route("**/admin/usage?*", async (route) => {
      await held.promise
      await route.continue()
    })
    const asked = page.waitForRequest(/\/admin\/usage\?.*by=day/)
    await page.getByRole("combobox", { name: "Group by" }).selectOption("Day")
    await asked
    assert.deepStrictEqual(await usage.locator("th").allTextContents(), names)
    assert.isAbove(await page.locator("[aria-busy=true]").count(), 0)
    held.resolve()
    await usage.getByRole("row", { name: /^\d{1,2} \w{3} \d{4} 1 0 0 \d/ }).waitFor()
  })

  it("sessions: one is found and read with three clicks: its models and times, its agents, its turns with their tools; the list is sorted and saved", async () => {
    for (const agent of [undefined, "explorer"]) {
      await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${businessKey}`,
          "user-agent": "claude-cli/2.1",
          "x-claude-code-session-id": "the-session",
          ...(agent === undefined ? {} : { "x-claude-code-agent-id": agent })
        },
        body: JSON.stringify({
          model: "upstream-chat",
          messages: [{ role: "user", content: agent === undefined ? `!call echo {"text":"hi"}` : "Hello" }],
          tools: [{ type: "function", function: { name: "echo", parameters: { type: "object" } } }]
        })
      }).then((response) => response.text())
    }
    await signedIn("overview")
    let clicks = 0
    const press = async (target: Locator) => {
      clicks++
      await target.click()
    }
    await press(page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Sessions" }))
    await page.getByRole("heading", { level: 1, name: "Sessions" }).waitFor()
    const sessions = page.getByRole("table", { name: "Sessions" })
    const row = sessions.getByRole("row", {
      name: /^the-session claude-code .* upstream-chat .*\d\d:\d\d [\d.]+ m?s 2 0 \d+/
    })
    await row.waitFor()
    await row.getByTitle(/\d\d:\d\d:\d\d .* – .*\d\d:\d\d:\d\d/).first().waitFor()
    await sessions.getByRole("row", { name: /^explorer agent .*1 0 \d+/ }).waitFor()
    const search = page.getByRole("textbox", { name: "Search sessions, apps and keys" })
    await press(search)
    await search.fill("CLAUDE")
    await row.waitFor()
    await press(sessions.getByRole("link", { name: "the-session" }))
    await page.getByRole("heading", { level: 1, name: "Session the-session" }).waitFor()
    assert.strictEqual(clicks, 3)
    const turns = page.getByRole("table", { name: "Turns" })
    await turns.getByRole("row", { name: /upstream-chat echo .*OK/ }).waitFor()
    assert.deepStrictEqual(await turns.locator("tbody tr").count(), 2)
    const agents = page.getByRole("table", { name: "Agents" })
    await agents.getByRole("row", { name: /^explorer 1 0/ }).waitFor()
    assert.deepStrictEqual(await findings(page), [])
    // The name of an agent leads to its turns.
    await agents.getByRole("link", { name: "main loop" }).click()
    await turns.getByRole("row", { name: /explorer/ }).waitFor({ state: "detached" })
    await turns.getByRole("row", { name: /upstream-chat echo .*OK/ }).waitFor()
    await page.getByRole("button", { name: "Remove the filter Agent" }).click()
    await turns.getByRole("row", { name: /explorer/ }).waitFor()
    await page.getByRole("link", { name: "Its requests" }).click()
    await page.getByRole("button", { name: /Session: the-session/ }).waitFor()
    await page.goBack()
    await page.getByRole("main").getByRole("link", { name: "Sessions" }).click()
    await sessions.getByRole("link", { name: "explorer" }).click()
    await page.getByRole("button", { name: "Remove the filter Agent" }).waitFor()
    await turns.getByRole("row", { name: /explorer/ }).waitFor()
    assert.strictEqual(await turns.locator("tbody tr").count(), 1)
    await page.getByRole("main").getByRole("link", { name: "Sessions" }).click()
    await sessions.getByRole("button", { name: "Requests" }).click()
    await sessions.getByRole("columnheader", { name: "Requests" }).and(page.locator("[aria-sort=descending]")).waitFor()
    // By start and by length the page sorts itself.
    for (const name of ["Start", "Length"]) {
      await sessions.getByRole("button", { name }).click()
      await sessions.getByRole("columnheader", { name }).and(page.locator("[aria-sort=descending]")).waitFor()
      await row.waitFor()
    }
    await search.fill("another")
    await page.getByText("No session matches.").waitFor()
    await search.fill("the-session")
    await row.waitFor()
    const { content, name } = await savedBy(page, "Download CSV")
    assert.strictEqual(name, "sessions-range-day-q-the-session.csv")
    const [head, line, rest] = content.split("\r\n")
    assert.match(head ?? "", /^session,app,key,key_name,models,from,to,requests,failed/)
    assert.match(line ?? "", /^the-session,claude-code,[^,]+,[^,]*,upstream-chat,\d{4}-.*Z,\d{4}-.*Z,2,0,/)
    assert.strictEqual(rest, "")
  })

  it("changes: a change by the admin API is listed with who made it and what it was", async () => {
    await admin("/admin/settings", { method: "PUT", body: JSON.stringify({ responses: { store_ttl_seconds: 60 } }) })
    await signedIn("changes")
    const changes = page.getByRole("table", { name: "Changes" })
    await changes.getByRole("row", { name: /Admin key.*responses\.store_ttl_seconds not set\s+60/ }).waitFor()
    const { content, name } = await savedBy(page, "Download CSV")
    assert.strictEqual(name, "changes.csv")
    assert.match(content, /^at,who,name,address,node,action,fields\r\n[^]*responses\.store_ttl_seconds: – → 60/)
  })
})
