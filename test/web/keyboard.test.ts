/**
 * The console without a mouse, in Chromium: the main task of each page, and the list of keys.
 */
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import type { Locator, Page } from "playwright-core"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { modelList, type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"
import { adminOf, controls, findings, openSignedIn, result, settled, useBrowser, type Watched } from "./support.ts"

const browser = useBrowser()
let server: OpenAiServer
let gateway: RunningGateway
let watched: Watched
let page: Page

beforeAll(async () => {
  server = await startOpenAiServer()
  server.list(() => modelList("Qwen/Qwen3-8B"))
  server.answer(() => streamed({ content: "From the server" }))
  gateway = await startGateway({ upstream: { driver: "embedded" }, accounts: [] })
  for (let i = 0; i < 3; i++) {
    const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${businessKey}`,
        "user-agent": "claude-cli/2.1",
        "x-claude-code-session-id": "by-keys"
      },
      body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "Hello" }] })
    })
    await reply.text()
  }
  watched = await openSignedIn(browser(), gateway.url, "overview", { viewport: { width: 1440, height: 900 } })
  ;({ page } = watched)
  // A mouse would be seen.
  await page.evaluate(`addEventListener("pointerdown", () => { globalThis.wasPressed = true }, true)`)
})
afterAll(async () => {
  await watched.close()
  await gateway.stop()
  await server.stop()
})

const admin = adminOf(() => gateway)
const { button, dialog, field } = controls(() => page)

const mostTabs = 150

/** Presses Tab until the element has the focus. */
const tabTo = async (wanted: Locator): Promise<void> => {
  await wanted.waitFor()
  for (let pressed = 0; pressed < mostTabs; pressed++) {
    if (await wanted.evaluate((element) => element === element.ownerDocument.activeElement)) return
    await page.keyboard.press("Tab")
  }
  assert.fail(`Tab does not reach ${String(wanted)}`)
}

const press = async (wanted: Locator): Promise<void> => {
  await tabTo(wanted)
  await page.keyboard.press("Enter")
}

const write = async (wanted: Locator, text: string): Promise<void> => {
  await tabTo(wanted)
  await page.keyboard.type(text)
}

/** Goes to a page by `g` and its letter. */
const goBy = async (letter: string, name: string): Promise<void> => {
  await page.keyboard.press("g")
  await page.keyboard.press(letter)
  await page.locator("h1:focus", { hasText: name }).waitFor()
  await settled(page)
}

it("the keys that do something on a page are listed by ?, and do what the list says", async () => {
  const list = async () => {
    await page.keyboard.press("?")
    const keys = dialog("Keys of this page")
    await keys.waitFor()
    const [terms, texts] = await Promise.all([
      keys.getByRole("term").allTextContents(),
      keys.getByRole("definition").allTextContents()
    ])
    assert.deepStrictEqual(await findings(page), [])
    await page.keyboard.press("Escape")
    await keys.waitFor({ state: "detached" })
    return terms.map((keys, i) => [keys, texts[i] ?? ""] as const)
  }
  const pages = (await list()).filter(([keys]) => keys.startsWith("g "))
  assert.lengthOf(pages, 16)
  assert.strictEqual(new Set(pages.map(([keys]) => keys)).size, 16)
  for (const [keys, text] of pages) {
    for (const key of keys.split(" ")) await page.keyboard.press(key)
    await page.getByRole("heading", { level: 1, name: text.replace("Go to ", ""), exact: true }).waitFor()
  }
  // A page adds its own, and only while it is shown.
  await goBy("r", "Requests")
  assert.includeMembers((await list()).map(([keys]) => keys), ["Ctrl K", "/", "?", "j", "k"])
  await goBy("o", "Overview")
  assert.notIncludeMembers((await list()).map(([keys]) => keys), ["j", "escape"])
  await page.keyboard.press("Control+k")
  await page.getByRole("dialog", { name: "Go to…" }).waitFor()
  // What is typed into a field goes nowhere.
  await page.keyboard.type("gk?")
  await page.keyboard.press("Escape")
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor()
})

it("the slowest request is found and opened", async () => {
  const { items } = await admin("/admin/requests?sort=duration_ms&order=desc") as {
    readonly items: ReadonlyArray<{ readonly request_id: string }>
  }
  await goBy("r", "Requests")
  await press(page.getByRole("table", { name: "Requests" }).getByRole("button", { name: "Duration" }))
  await page.waitForURL(/sort=duration_ms/)
  await settled(page)
  await page.keyboard.press("j")
  await page.keyboard.press("Enter")
  const name = `Request ${items[0]?.request_id}`
  await page.getByRole("complementary", { name: "Chosen request" }).getByRole("link", { name }).waitFor()
  await page.keyboard.press("Enter")
  await page.getByRole("heading", { level: 1, name }).waitFor()
})

it("a key with a budget is made", async () => {
  await goBy("k", "Keys")
  await press(button("New key"))
  const form = dialog("New key")
  await write(form.getByRole("textbox", { name: "Name" }), "By keyboard")
  await press(form.getByRole("button", { name: "Add a limit" }))
  await write(form.getByRole("textbox", { name: "Requests, per day" }), "100")
  await press(form.getByRole("button", { name: "Create key" }))
  await press(dialog("By keyboard is ready").getByRole("button", { name: "Close" }))
  const { items } = await admin("/admin/keys?q=by%20keyboard") as { readonly items: unknown }
  const [{ limits }] = items as readonly [{ readonly limits: ReadonlyArray<object> }]
  assert.deepInclude(limits[0], { window: "day", requests: 100 })
})

it("an upstream and a route to it are added, and the route is rehearsed", async () => {
  await goBy("s", "Upstreams")
  await press(button("Add upstream"))
  await write(field("Name"), "gpu")
  await write(field("Base URL"), server.baseUrl)
  await write(field("API key"), "sk-1")
  await write(field("Models, one per line"), "qwen3 = Qwen/Qwen3-8B")
  await press(button("Save"))
  await result(page).getByText("gpu was added.").waitFor()

  await goBy("t", "Routes")
  await press(button("Add route"))
  await write(field("Name"), "fast")
  for (const target of ["default/upstream-chat", "gpu/qwen3"]) {
    await write(page.getByRole("combobox", { name: "New target" }), target)
    await page.keyboard.press("Enter")
  }
  await press(button("Save"))
  await result(page).getByText("The route fast was added.").waitFor()

  await press(button("Actions fast"))
  await page.getByRole("menuitem", { name: "Rehearse" }).waitFor()
  await page.keyboard.press("ArrowDown")
  await page.locator(":focus", { hasText: "Rehearse" }).waitFor()
  await page.keyboard.press("Enter")
  await press(dialog("Rehearse fast").getByRole("button", { name: "Open the playground" }))
  await page.getByRole("heading", { level: 1, name: "Playground" }).waitFor()
  await write(field("Message"), "Hello")
  await press(button("Send"))
  await page.getByRole("log").getByText("From the server").waitFor()
})

/** Opens a menu by its button, and chooses an item by the arrows. */
const choose = async (menu: string, item: string): Promise<void> => {
  await press(button(menu))
  const wanted = page.getByRole("menuitem", { name: item, exact: true })
  await wanted.waitFor()
  for (let pressed = 0; pressed < 10; pressed++) {
    if (await wanted.evaluate((element) => element === element.ownerDocument.activeElement)) break
    await page.keyboard.press("ArrowDown")
  }
  await page.keyboard.press("Enter")
}

const table = (name: string) => page.getByRole("table", { name, exact: true })

/** The main task of each page that no test above has, by the name of the page. */
const tasks: ReadonlyArray<readonly [name: string, task: () => Promise<unknown>]> = [
  ["Overview", async () => {
    await press(page.getByRole("main").getByRole("link", { name: "upstream-chat" }).first())
    await page.getByRole("heading", { level: 1, name: "upstream-chat" }).waitFor()
  }],
  ["Usage", async () => {
    await tabTo(page.getByRole("combobox", { name: "Group by", exact: true }))
    await page.keyboard.type("App")
    await page.waitForURL(/by=app/)
    await tabTo(button("Reload"))
  }],
  ["Models", async () => {
    await choose("Actions qwen3", "Set price")
    await write(page.getByRole("dialog").getByRole("textbox").first(), "2")
    await press(page.getByRole("dialog").getByRole("button", { name: "Save" }))
    await page.getByRole("dialog").waitFor({ state: "detached" })
  }],
  ["Accounts", async () => {
    await press(button("Test all"))
    await result(page).getByText(/tested|test/i).first().waitFor()
  }],
  ["Settings", async () => {
    await write(page.getByRole("textbox", { name: "Requests per account" }), "3")
    await press(button("Review changes"))
    await press(dialog("Review changes").getByRole("button", { name: "Save" }))
    await result(page).getByText("The settings were saved.").waitFor()
  }],
  ["Webhooks", async () => {
    await press(button("Add webhook"))
    await write(field("Name"), "ops")
    await write(
      page.getByRole("dialog").getByRole("textbox", { name: /^(URL|Address)/ }),
      "https://hooks.example/gateway"
    )
    await press(page.getByRole("dialog").getByRole("button", { name: "Generate" }))
    await press(button("Save"))
    await result(page).getByText("ops was added.").waitFor()
  }],
  ["Import and export", async () => {
    await write(page.getByRole("textbox", { name: "Configuration to import" }), `{"keys":["another-key"]}`)
    await press(button("Preview import"))
    await press(button("Import"))
    await result(page).getByText("1 key and 0 accounts were imported.").waitFor()
  }],
  ["Changes", async () => {
    await table("Changes").getByRole("row").nth(2).waitFor()
    const saved = page.waitForEvent("download")
    await press(button("Download CSV"))
    assert.match((await saved).suggestedFilename(), /changes.*\.csv$/)
  }],
  ["Sessions", async () => {
    await write(field("Search sessions, apps and keys"), "by-k")
    await page.waitForURL(/q=by-k/)
    await press(table("Sessions").getByRole("link", { name: "by-keys" }))
    await page.getByRole("heading", { level: 1, name: "Session by-keys" }).waitFor()
  }],
  ["Samples", async () => {
    await write(field("Message"), "Hello")
    await press(button("Capture"))
    const saved = table("Saved samples").getByRole("rowheader")
    await saved.first().waitFor()
    await choose(`Actions ${await saved.first().textContent()}`, "Replay")
    await page.getByRole("region", { name: "Replay" }).waitFor()
  }],
  ["About", async () => {
    await press(button("Copy all of it"))
    await result(page).or(page.getByRole("alert")).getByText(/copied|does not allow/).waitFor()
  }]
]

it("the main task of every page is done by keys alone", async () => {
  const letters = new Map<string, string>()
  await page.keyboard.press("?")
  const keys = page.getByRole("dialog", { name: "Keys of this page" })
  await keys.waitFor()
  const terms = await keys.getByRole("term").allTextContents()
  const texts = await keys.getByRole("definition").allTextContents()
  terms.forEach((each, index) => letters.set(texts[index]!.replace("Go to ", ""), each.replace("g ", "")))
  await page.keyboard.press("Escape")
  await keys.waitFor({ state: "detached" })
  for (const [name, task] of tasks) {
    await goBy(letters.get(name)!, name)
    await task()
  }
  assert.isUndefined(await page.evaluate("globalThis.wasPressed"))
})
