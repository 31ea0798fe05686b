/**
 * Upstreams and routes at the console, in Chromium: adding, testing, changing and deleting them, and the tries of a request.
 */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import type { BrowserContextOptions, Page } from "playwright-core"
import type { RawConfig } from "../../src/config/json.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { json, modelList, type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"
import {
  adminOf,
  controls,
  findings,
  findingsOfThemes,
  goTo,
  openSignedIn,
  result,
  settled,
  sideways,
  useBrowser,
  type Watched
} from "./support.ts"

const browser = useBrowser()
let first: OpenAiServer
let second: OpenAiServer
let gateway: RunningGateway
let watched: Watched
let page: Page

beforeAll(async () => {
  ;[first, second] = await Promise.all([startOpenAiServer(), startOpenAiServer()])
  for (const server of [first, second]) server.list(() => modelList("Qwen/Qwen3-8B", "Qwen/Qwen3-32B"))
})
afterAll(() => Promise.all([first.stop(), second.stop()]))
afterEach(async () => {
  await watched.close()
  await gateway.stop()
})

const start = async (config: RawConfig, route: string, options: BrowserContextOptions = {}) => {
  gateway = await startGateway({ accounts: [{ email: "ada@example.com", password: "p" }], ...config })
  watched = await openSignedIn(browser(), gateway.url, route, options)
  page = watched.page
}

const upstreamAt = (server: OpenAiServer) => ({
  driver: "openai",
  base_url: server.baseUrl,
  models: { qwen3: "Qwen/Qwen3-8B" }
})

/** Two upstreams and a route over them. */
const several = (): RawConfig => ({
  upstream: { driver: "embedded" },
  upstreams: {
    gpu: { ...upstreamAt(first), headers: { "X-Title": "title-secret" } },
    hosted: upstreamAt(second)
  },
  accounts: [{ email: "ada@example.com", password: "p" }, { upstream: "hosted", token: "sk-1" }],
  routes: { qwen3: ["gpu", "hosted", "default/upstream-chat"], only: ["hosted/qwen3"] }
})

const admin = adminOf(() => gateway)

const ask = async (model: string, id = "asked") => {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "x-request-id": id },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] })
  })
  return { status: response.status, text: await response.text() }
}

const { act, button, dialog, field } = controls(() => page)
const table = (name: string) => page.getByRole("table", { name, exact: true })
const region = (name: string) => page.getByRole("region", { name, exact: true })
const row = (name: string) => page.getByRole("row", { name: new RegExp(`^${name}\\b`) })

/** The targets of the open dialog, in order. */
const targets = () => page.getByRole("list", { name: "Targets" }).locator("code").allTextContents()
const focused = () => page.locator(":focus").getAttribute("aria-label")

describe("upstreams at the console", () => {
  it("a mapped model that the server's list lacks needs attention, with what is meant", async () => {
    const gpu = { ...upstreamAt(first), models: { qwen3: "Qwen/Qwen3-8" } }
    await start({ upstreams: { gpu }, accounts: [] }, "upstreams")
    const sentence = `upstreams.gpu.models.qwen3 names "Qwen/Qwen3-8", which the server does not list; did you mean`
    await row("gpu").getByText(sentence).waitFor()
    await goTo(page, "Overview")
    await region("Needs attention").getByRole("listitem").filter({ hasText: "gpu" }).getByText(sentence).waitFor()
  })

  it("one is tested before it is saved, with models of its server, and answers callers", async () => {
    first.answer(() => streamed({ content: "From the new one" }))
    await start({}, "upstreams")
    await row("default").waitFor()
    await button("Add upstream").click()
    await field("Name").fill("gpu")
    await field("Base URL").fill("http://127.0.0.1:1/v1")
    await field("API key").fill("sk-new")
    await button("Save").click()
    await page.getByRole("alert").getByText("The test failed:").waitFor()
    await button("Save anyway").waitFor()
    assert.lengthOf((await admin("/admin/upstreams"))["upstreams"] as ReadonlyArray<unknown>, 1)

    await field("Base URL").fill(first.baseUrl)
    await button("Save anyway").waitFor({ state: "detached" })
    await button("Test").click()
    await page.getByText("The upstream answered in").waitFor()
    assert.strictEqual(first.lists.at(-1)?.key, "sk-new")
    await field("Models, one per line").fill("qwen3 = Qwen/Qwen3-8B")
    const picks = page.getByRole("group", { name: "Models of the server" }).last()
    assert.isTrue(await picks.getByRole("checkbox", { name: "Qwen/Qwen3-8B" }).isChecked())
    await picks.getByRole("checkbox", { name: "Qwen/Qwen3-32B" }).check()
    await button("Save").click()
    await result(page).getByText("gpu was added.").waitFor()
    await row("gpu").getByText("Ready", { exact: true }).waitFor()
    await row("gpu").getByText("2 models").waitFor()

    for (const model of ["qwen3", "gpu/Qwen/Qwen3-32B"]) {
      assert.include((await ask(model)).text, "From the new one")
      assert.strictEqual(first.requests.at(-1)?.key, "sk-new")
    }
  })

  it("a refused one stays in its dialog, with the reason", async () => {
    await start({}, "upstreams")
    await button("Add upstream").click()
    await field("Name").fill("Not a name")
    await button("Save").click()
    await page.getByRole("alert").getByText("base_url is required").waitFor()
    await field("Base URL").fill(first.baseUrl)
    await button("Save").click()
    await page.getByRole("alert").getByText("must have a name of a-z").waitFor()
    assert.strictEqual(await field("Name").inputValue(), "Not a name")
    await page.keyboard.press("Escape")
    await page.getByRole("dialog").waitFor({ state: "detached" })
    assert.strictEqual(await page.locator(":focus").textContent(), "Add upstream")
  })

  it("a change keeps secrets, which the page does not know, and other fields", async () => {
    await start(several(), "upstreams")
    await act("Edit", "gpu", "Upstreams")
    await page.getByText("Headers, proxy and TLS").click()
    assert.strictEqual(await field("Headers, one per line").inputValue(), "X-Title: ***")
    await field("Headers, one per line").fill("X-Title: ***\nX-Team: red")
    await page.getByText("Limits and tools").click()
    await field("Concurrent requests").fill("3")
    await button("Save").click()
    await result(page).getByText("gpu was changed.").waitFor()
    await row("gpu").getByText("0 of 3").waitFor()
    await ask("qwen3")
    assert.deepInclude(first.requests.at(-1)?.headers, { "x-title": "title-secret", "x-team": "red" })
  })

  it("one is disabled, enabled and tested in its row", async () => {
    await start(several(), "upstreams")
    await act("Disable", "gpu", "Upstreams")
    await row("gpu").getByText("Disabled", { exact: true }).waitFor()
    await button("Undo").click()
    await row("gpu").getByText("Ready", { exact: true }).waitFor()
    await act("Test", "gpu", "Upstreams")
    await result(page).getByText(/^gpu answered in/).waitFor()
    first.list(() => json(401, { error: { message: "bad key", code: "invalid_api_key" } }))
    await act("Test", "gpu", "Upstreams")
    await page.getByRole("alert").getByText("gpu failed:").waitFor()
    first.list(() => modelList("Qwen/Qwen3-8B", "Qwen/Qwen3-32B"))
  })

  it("deleting one says which accounts and routes go with it", async () => {
    await start(several(), "upstreams")
    await button("Actions default").click()
    assert.isTrue(await page.getByRole("menuitem", { name: "Delete" }).isDisabled())
    await page.keyboard.press("Escape")
    await act("Delete", "hosted", "Upstreams")
    await dialog("Delete hosted").getByText("1 account is deleted with it:").waitFor()
    await dialog("Delete hosted").getByRole("listitem").getByText(/^hosted\/token:/).waitFor()
    await dialog("Delete hosted").getByText("The route qwen3 keeps its other targets.").waitFor()
    await dialog("Delete hosted").getByText("The route only has no other target and is deleted.").waitFor()
    await button("Delete with all of this").click()
    await result(page).getByText("hosted was deleted with 1 account and 2 targets and the route only.").waitFor()
    await row("hosted").waitFor({ state: "detached" })
    assert.deepStrictEqual(Object.keys((await admin("/admin/routes"))["routes"] as object), ["qwen3"])
  })
})

describe("routes at the console", () => {
  it("targets are ordered by keyboard: the focus stays, and the place is announced", async () => {
    await start(several(), "routes")
    await row("qwen3").getByText("Uses gpu: the first target with a free slot.").waitFor()
    await act("Edit", "qwen3", "Routes")
    assert.deepStrictEqual(await targets(), ["gpu", "hosted", "default/upstream-chat"])
    const said = page.getByRole("status", { name: "Order of targets" })
    await button("Move hosted up").focus()
    await page.keyboard.press("Enter")
    await said.getByText("hosted is target 1 of 3 now.").waitFor()
    assert.deepStrictEqual(await targets(), ["hosted", "gpu", "default/upstream-chat"])
    assert.strictEqual(await focused(), "Move hosted up")
    await page.keyboard.press("Enter")
    await said.getByText("hosted stays target 1 of 3.").waitFor()
    assert.strictEqual(await focused(), "Move hosted up")
    await page.keyboard.press("End")
    await said.getByText("hosted is target 3 of 3 now.").waitFor()
    assert.strictEqual(await focused(), "Move hosted down")
    await page.keyboard.press("ArrowUp")
    assert.deepStrictEqual(await targets(), ["gpu", "hosted", "default/upstream-chat"])
    await page.keyboard.press("Home")
    assert.deepStrictEqual(await targets(), ["hosted", "gpu", "default/upstream-chat"])
    await page.getByText("Uses hosted: the first target with a free slot.").waitFor()
    await button("Remove gpu").focus()
    await page.keyboard.press("Enter")
    assert.strictEqual(await focused(), "Move default/upstream-chat up")
    await button("Save").click()
    await result(page).getByText("The route qwen3 was changed.").waitFor()
    const { routes } = await admin("/admin/routes") as { readonly routes: Readonly<Record<string, RawConfig>> }
    assert.deepStrictEqual(Object.keys(routes), ["qwen3", "only"])
    assert.deepStrictEqual(routes["qwen3"]?.["targets"], ["hosted", "default/upstream-chat"])
    second.answer(() => streamed({ content: "From hosted" }))
    assert.include((await ask("qwen3")).text, "From hosted")
    // How the last hour was shared stands with the targets.
    await row("qwen3").getByText("100 % of the last hour (1)").waitFor()
    await row("qwen3").getByText("0 % of the last hour (0)", { exact: true }).waitFor()
  })

  it("targets are ordered by dragging", async () => {
    await start(several(), "routes")
    await act("Edit", "qwen3", "Routes")
    const handles = page.locator(".handle")
    const [from, to] = [await handles.nth(2).boundingBox(), await handles.nth(0).boundingBox()]
    await page.mouse.move(from!.x + 4, from!.y + 4)
    await page.mouse.down()
    await page.mouse.move(to!.x + 4, to!.y + 4, { steps: 8 })
    await page.mouse.up()
    await page.mouse.move(from!.x + 4, from!.y + 4)
    assert.deepStrictEqual(await targets(), ["default/upstream-chat", "gpu", "hosted"])
  })

  it("one is added, changed and deleted", async () => {
    await start(several(), "routes")
    await button("Add route").click()
    await field("Name").fill("fast")
    const target = page.getByRole("combobox", { name: "New target" })
    for (const each of ["hosted/qwen3", "gpu/qwen3"]) {
      await target.fill(each)
      await target.press("Enter")
    }
    await target.fill("gpu/qwen3")
    await button("Add target").click()
    await page.getByRole("alert").getByText("gpu/qwen3 is already a target.").waitFor()
    await page.getByRole("combobox", { name: "Target selection" }).selectOption("Each by its weight")
    await page.getByRole("spinbutton", { name: "Weight of hosted/qwen3" }).fill("3")
    // The order of targets keeps their weights.
    await button("Move hosted/qwen3 down").click()
    await field("Wait for the first target (s)").clear()
    await field("Wait for the first target (s)").pressSequentially("2.5")
    await page.getByRole("checkbox", { name: "Context too long" }).check()
    await button("Save").click()
    await result(page).getByText("The route fast was added.").waitFor()
    await row("fast").getByText("Waits 2.5 s for the first target").waitFor()
    const { routes } = await admin("/admin/routes") as { readonly routes: Readonly<Record<string, RawConfig>> }
    assert.deepStrictEqual(routes["fast"], {
      targets: ["gpu/qwen3", { target: "hosted/qwen3", weight: 3 }],
      wait: 2.5,
      also_on: ["context_length"],
      spread: "weighted",
      schemas: "preferred",
      sticky: "auto"
    })
    await act("Edit", "fast", "Routes")
    await target.fill("gpu/unknown")
    await button("Save").click()
    await page.getByRole("alert").getByText("routes.fast.targets[2]").waitFor()
    await button("Cancel").click()
    await act("Delete", "fast", "Routes")
    await dialog("Delete fast").getByRole("button", { name: "Delete" }).click()
    await result(page).getByText("The route fast was deleted.").waitFor()
    await row("fast").waitFor({ state: "detached" })
  })

  it("one is made of a model that several upstreams list", async () => {
    await start({ ...several(), routes: {} }, "routes")
    const implied = table("Models of several upstreams without a route")
    await implied.getByText("Uses gpu/qwen3: the first target with a free slot.").waitFor()
    await act("Add route", "qwen3", "Models of several upstreams without a route")
    assert.strictEqual(await field("Name").inputValue(), "qwen3")
    await button("Move hosted/qwen3 up").click()
    await button("Save").click()
    await table("Routes").getByText("Uses hosted/qwen3: the first target with a free slot.").waitFor()
    await implied.waitFor({ state: "detached" })
    assert.nestedProperty(await admin("/admin/routes"), "routes.qwen3")
  })

  it("a fallback is proved by a rehearsal in the playground, of which the first target sees nothing", async () => {
    await start(several(), "routes")
    second.answer(() => streamed({ content: "From hosted" }))
    const before = first.requests.length
    await act("Rehearse", "qwen3", "Routes")
    const asked = dialog("Rehearse qwen3")
    await asked.getByRole("checkbox", { name: "gpu", checked: true }).uncheck()
    await asked.getByRole("button", { name: "Open the playground" }).click()
    await asked.getByRole("alert").getByText("Choose at least one target that fails.").waitFor()
    await asked.getByRole("checkbox", { name: "gpu" }).check()
    await asked.getByRole("button", { name: "Open the playground" }).click()
    const notice = page.getByRole("status", { name: "Rehearsal", exact: true })
    await notice.getByText(/^The next request for qwen3 is a rehearsal, in which gpu fails\./).waitFor()
    assert.strictEqual(await page.getByRole("combobox", { name: "Model" }).inputValue(), "qwen3")
    await field("Message").fill("Hello")
    await button("Send").click()
    await page.getByRole("log").getByText("From hosted").waitFor()
    // The token is of one request.
    await notice.waitFor({ state: "detached" })
    assert.strictEqual(first.requests.length, before)
    const { items } = await admin("/admin/requests") as { readonly items: ReadonlyArray<RawConfig> }
    assert.deepInclude(items[0], { rehearsal: true, target: "hosted/qwen3", outcome: "ok" })
  })

  it("the next target is shown while the first one is disabled", async () => {
    await start(several(), "routes")
    await row("qwen3").getByText("Uses gpu").waitFor()
    await fetch(`${gateway.url}/admin/upstreams/gpu`, {
      method: "PATCH",
      headers: { authorization: `Bearer ${adminKey}` },
      body: JSON.stringify({ enabled: false })
    })
    await row("qwen3").getByText("Uses hosted: the first target with a free slot.").waitFor()
    // The record of a request says the same.
    second.answer(() => streamed({ content: "Hello" }))
    assert.strictEqual((await ask("qwen3", "passed")).status, 200)
    await page.setViewportSize({ width: 360, height: 700 })
    await page.goto(`${gateway.url}/console/#/requests`)
    await page.getByRole("link", { name: "passed" }).click()
    await region("What happened").getByText("Left out: gpu/qwen3 (disabled)").waitFor()
  })

  it("a target says of its upstream what the page of upstreams says: that it does not answer, is disabled, or has no account", async () => {
    const models = { m: "m" }
    await start({
      upstreams: {
        gone: { driver: "openai", base_url: "http://127.0.0.1:1/v1", models },
        off: { ...upstreamAt(first), models, enabled: false },
        bare: { driver: "session", base_url: first.baseUrl, models }
      },
      accounts: [{ upstream: "bare", token: "t", disabled: true }],
      routes: { all: ["gone/m", "off/m", "bare/m"] }
    }, "upstreams")
    const states = { gone: ["Does not answer"], off: ["Disabled"], bare: ["No account ready"] }
    for (const [name, texts] of Object.entries(states)) {
      for (const text of texts) await row(name).getByText(text).first().waitFor()
    }
    await goTo(page, "Routes")
    for (const [name, texts] of Object.entries(states)) {
      const target = row("all").getByRole("listitem").filter({ hasText: `${name}/m` })
      for (const text of texts) await target.getByText(text).first().waitFor()
    }
  })
})

describe("several upstreams elsewhere at the console", () => {
  it("the inspector shows the chain of tries, and the list the target that answered", async () => {
    first.answer(() => json(500, { error: { message: "broken" } }))
    second.answer(() => streamed({ content: "Hello" }))
    await start(several(), "requests")
    assert.strictEqual((await ask("qwen3", "tried")).status, 200)
    // Each name leads to its page; there is room for both in a wide window.
    await page.setViewportSize({ width: 1600, height: 900 })
    await table("Requests").getByRole("link", { name: "hosted/qwen3" }).click()
    await page.getByRole("heading", { level: 1, name: "hosted" }).waitFor()
    await page.goBack()
    // The only upstream that answered is not said again.
    const account = table("Requests").getByRole("link", { name: /^token:/ })
    const name = (await account.textContent())!
    await account.click()
    await page.getByRole("heading", { level: 1, name }).waitFor()
    await page.goBack()
    await page.getByRole("link", { name: "tried" }).click()
    const course = region("Timeline")
    const lanes = course.locator(".lane")
    await lanes.filter({ hasText: /gpu.*Server error 500/ }).waitFor()
    await lanes.filter({ hasText: /hosted\/token:.*Answered/ }).waitFor()
    await course.getByRole("button", { name: /^Attempt 1: Waiting for the first event, gpu: Server error 500\. / })
      .waitFor()
    await course.getByRole("button", { name: /^Attempt 2: Stream, hosted\/token:\w+: Answered\. / }).click()
    await table("Upstream frames").locator(":focus").waitFor()
    await settled(page)
    assert.deepStrictEqual(await findings(page), [])
  })

  it("the inspector says what failed, whose fault it is, what was tried and what to do, and fits into 360 pixels", async () => {
    first.answer(() => json(500, { error: { message: "broken" } }))
    await start(
      { ...several(), routes: { only: ["gpu/qwen3"] } },
      "requests",
      { colorScheme: "dark", viewport: { width: 360, height: 700 } }
    )
    assert.strictEqual((await ask("only", "broken")).status, 503)
    await page.getByRole("link", { name: "broken" }).click()
    const happened = region("What happened")
    await happened.getByText("At fault: the upstream").waitFor()
    const code = happened.getByRole("link", { name: "upstream_error" })
    assert.strictEqual(await code.getAttribute("href"), "../help/reference/errors#upstream_error")
    await happened.getByText("Status 503").waitFor()
    await happened.getByText(/route the model to another one/).waitFor()
    await region("Timeline").locator(".lane").filter({ hasText: "Server error 500" }).first().waitFor()
    const summary = region("Summary")
    await summary.getByText("only", { exact: true }).waitFor()
    await summary.getByRole("link", { name: "Key without a name" }).waitFor()
    await summary.getByRole("button", { name: "Copy Request id" }).waitFor()
    // What is unknown is left out.
    assert.strictEqual(await summary.getByText("–", { exact: true }).count(), 0)
    await settled(page)
    assert.deepStrictEqual(await findings(page), [])
    assert.strictEqual(await sideways(page), 0)
  })

  it("an upstream and its account have pages with their day, what they touch and their last failures", async () => {
    second.answer(() => streamed({ content: "From hosted" }))
    await start(several(), "upstreams")
    assert.strictEqual((await ask("only")).status, 200)
    second.answer(() => json(400, { error: { message: "no" } }))
    await ask("only", "refused")
    await row("hosted").getByRole("link", { name: "hosted", exact: true }).click()
    await page.getByRole("heading", { level: 1, name: "hosted" }).waitFor()
    const day = region("Last 24 hours")
    await day.getByRole("link", { name: /^Requests 2 / }).waitFor()
    await day.getByRole("link", { name: /^Errors 50 % 1 failed$/ }).waitFor()
    const facts = page.getByRole("definition")
    await facts.getByRole("link", { name: "only" }).waitFor()
    await facts.getByRole("link", { name: "qwen3", exact: true }).first().waitFor()
    await table("Last failures").getByRole("row").nth(1).getByRole("rowheader").getByRole("link").waitFor()
    assert.deepStrictEqual(await findings(page), [])
    for (const [action, state] of [["Disable", "Disabled"], ["Enable", "Ready"]] as const) {
      await button("Actions hosted").click()
      await page.getByRole("menuitem", { name: action }).click()
      await facts.getByText(state, { exact: true }).waitFor()
    }

    await table("Account").getByRole("link").click()
    await page.getByRole("heading", { level: 1, name: /^token:/ }).waitFor()
    await day.getByRole("link", { name: /^Requests 2 / }).waitFor()
    await table("Last failures").getByRole("row").nth(1).getByRole("rowheader").getByRole("link").waitFor()
    await page.getByRole("button", { name: /^Actions hosted\/token:/ }).click()
    await page.getByRole("menuitem", { name: "Note" }).click()
    await dialog("Note of hosted/").getByRole("textbox", { name: "Note" }).fill("of the first floor")
    await button("Save").click()
    await facts.getByText("of the first floor").waitFor()
    assert.deepStrictEqual(await findings(page), [])
    await facts.getByRole("link", { name: "hosted" }).click()
    await page.getByRole("heading", { level: 1, name: "hosted" }).waitFor()
    await page.goto(`${gateway.url}/console/#/upstreams/gone`)
    await page.getByText("This does not exist, or no longer.").waitFor()
  })

  it("what a server refuses is on the page of its upstream, with its words", async () => {
    const message = "Unsupported parameter: 'temperature' is not supported with this model."
    second.answer(({ body }) =>
      body["temperature"] === undefined ? streamed({ content: "Hi" }) : json(400, { error: { message } })
    )
    await start(several(), "upstreams/hosted")
    const facts = page.getByRole("definition")
    await facts.getByText("Ready", { exact: true }).waitFor()
    assert.strictEqual(await facts.getByText("temperature").count(), 0)
    const response = await fetch(`${gateway.url}/v1/messages`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}` },
      body: JSON.stringify({
        model: "only",
        max_tokens: 9,
        temperature: 0.5,
        messages: [{ role: "user", content: "Hello" }]
      })
    })
    assert.strictEqual(response.status, 200, await response.text())
    await page.reload()
    await facts.getByText("qwen3: temperature is not sent").waitFor()
    await facts.getByText(/^“Unsupported parameter: 'temperature'” · until /).waitFor()
    assert.deepStrictEqual(await findings(page), [])
  })

  it("usage is grouped by upstream and by target", async () => {
    first.answer(() => json(500, { error: { message: "broken" } }))
    second.answer(() => streamed({ content: "Hello" }))
    await start(several(), "usage")
    assert.strictEqual((await ask("qwen3")).status, 200)
    await page.getByRole("combobox", { name: "Group by" }).selectOption("Upstream")
    await table("Usage").getByRole("row", { name: /^hosted 1 0 0/ }).waitFor()
    await page.getByRole("combobox", { name: "Group by" }).selectOption("Target")
    await table("Usage").getByRole("row", { name: /^hosted\/qwen3 1 0 0/ }).waitFor()
  })

  it("accounts are shown, filtered and added by upstream", async () => {
    await start(several(), "upstreams")
    await page.getByRole("link", { name: "1 ready: accounts of hosted" }).click()
    await page.getByRole("heading", { level: 1, name: "Accounts" }).waitFor()
    await table("Accounts").getByRole("cell", { name: "hosted", exact: true }).waitFor()
    assert.strictEqual(await table("Accounts").getByText("ada@example.com").count(), 0)
    await button("Add accounts").click()
    assert.strictEqual(await dialog("Add accounts").getByRole("combobox", { name: "Upstream" }).inputValue(), "hosted")
    await field("Accounts, one per line").fill("sk-2\nsk-1")
    await button("Preview").click()
    await table("Preview").getByText("Already there").waitFor()
    await button("Add 1 account").click()
    await button("Close").click()
    assert.strictEqual((await admin("/admin/accounts?upstream=hosted"))["total"], 2)
    await page.getByRole("combobox", { name: "Upstream" }).selectOption("All")
    await table("Accounts").getByRole("rowheader", { name: "ada@example.com" }).waitFor()
    await page.getByRole("button", { name: /^Actions hosted\/token:/ }).first().click()
    await page.getByRole("menuitem", { name: "Disable" }).click()
    await result(page).getByText(/^hosted\/token:\w+ is disabled/).waitFor()
  })

  it("of a cloud has its parts beside its address, and a change of one is tested before it is saved", async () => {
    await start(several(), "upstreams")
    await act("Edit", "gpu", "Upstreams")
    const form = dialog("Edit gpu")
    await form.getByRole("combobox", { name: "Cloud" }).waitFor()
    assert.strictEqual(await form.getByRole("textbox", { name: "Region" }).count(), 0)
    await form.getByRole("combobox", { name: "Cloud" }).selectOption("azure")
    for (const name of ["Region", "Project"]) await form.getByRole("textbox", { name, exact: true }).waitFor()
    await form.getByRole("textbox", { name: "Resource" }).fill("our-resource")
    await form.getByText("Limits and tools").click()
    assert.strictEqual(await form.getByText("Resource", { exact: true }).count(), 1)
    const tested = page.waitForRequest(/\/admin\/upstreams\/gpu\/test$/)
    await button("Save").click()
    assert.deepInclude((await tested).postDataJSON(), { upstream: { vendor: "azure", resource: "our-resource" } })
    await form.getByRole("alert").waitFor()
  })

  it("accounts are added to the upstream that needs them most, and to a disabled one last", async () => {
    const server = upstreamAt(first)
    await start({
      upstream: { driver: "embedded" },
      upstreams: { off: { ...server, enabled: false }, open: server, bare: server, closed: server },
      accounts: [{ upstream: "closed", token: "sk-1" }, { upstream: "bare", token: "sk-2", disabled: true }]
    }, "accounts")
    await button("Add accounts").click()
    const { upstreams } = await admin("/admin/upstreams") as {
      readonly upstreams: ReadonlyArray<{ readonly name: string; readonly needs_accounts: boolean }>
    }
    const needy = upstreams.filter(({ needs_accounts }) => needs_accounts).map(({ name }) => name)
    assert.sameMembers(needy, ["bare", "closed"])
    const choices = dialog("Add accounts").getByRole("combobox", { name: "Upstream" }).locator("option")
    assert.deepStrictEqual(await choices.allTextContents(), ["bare", "closed", "default", "open", "off"])
  })

  it("a token of a login gets a notice of its owner: with a new upstream, and in place of another token", async () => {
    await start(several(), "upstreams")
    const notice = page.getByRole("dialog").getByText("A login's token is its owner's. The vendor may forbid sharing.")
    const showsNoticeAt = async (name: string): Promise<void> => {
      const token = page.getByRole("dialog").getByLabel(name, { exact: true })
      await token.fill("sk-ant-api03-abc")
      assert.strictEqual(await notice.count(), 0)
      await token.fill("sk-ant-oat01-abc")
      await notice.waitFor()
      await page.keyboard.press("Escape")
    }
    await button("Add upstream").click()
    await showsNoticeAt("API key")
    await goTo(page, "Accounts")
    await page.getByRole("button", { name: /^Actions hosted\/token:/ }).click()
    await page.getByRole("menuitem", { name: "Set token" }).click()
    await showsNoticeAt("New token")
  })

  it("a press that tests accounts keeps the focus while they are tested", async () => {
    const answer = Promise.withResolvers<void>()
    await start(several(), "accounts")
    await page.route("**/admin/accounts/test", async (route) => {
      await answer.promise
      await route.continue()
    })
    await button("Test all").press("Enter")
    const off = page.locator("button:focus[aria-disabled=true]")
    await off.getByText("Test all").waitFor()
    answer.resolve()
    await result(page).getByText(/^2 accounts tested/).waitFor()
    await table("Accounts").getByRole("link", { name: "ada@example.com" }).click()
    await page.getByRole("heading", { level: 1, name: "ada@example.com" }).waitFor()
    await button("Test").press("Enter")
    await result(page).getByText(/ada@example\.com/).waitFor()
    await page.locator("button:focus").getByText("Test").waitFor()
    await page.unrouteAll({ behavior: "ignoreErrors" })
  })

  it("a preview with a token of a login says whose it is, in place of one of keys and passwords", async () => {
    await start(several(), "accounts")
    await button("Add accounts").click()
    const notice = dialog("Add accounts").getByText("A login's token is its owner's. The vendor may forbid sharing.")
    const previewOf = async (lines: string): Promise<number> => {
      await field("Accounts, one per line").fill(lines)
      assert.strictEqual(await notice.count(), 0, "it waits for the preview")
      await button("Preview").click()
      await table("Preview").waitFor()
      return notice.count()
    }
    assert.strictEqual(await previewOf("sk-ant-api03-abc\nada@example.com secret"), 0)
    assert.strictEqual(await previewOf("sk-ant-api03-abc\nsk-ant-oat01-abc"), 1)
    assert.strictEqual(await previewOf("eyJhbGciOi.eyJzdWIi.c2ln"), 1)
  })

  it("an account that fails its test says why, and is listed and counted by itself", async () => {
    second.list(() => json(500, { error: { message: "broken" } }))
    await start(several(), "accounts")
    const show = page.getByRole("group", { name: "Show" })
    await show.getByRole("button", { name: "Ready 2" }).waitFor()
    await button("Test all").click()
    await result(page).getByText("2 accounts tested: 1 passed, 1 failed.").waitFor()
    const failed = page.getByRole("region", { name: "Failed tests" })
    await failed.getByRole("link", { name: /^hosted\/token:/ }).waitFor()
    const { items } = await admin("/admin/accounts?state=failed") as {
      readonly items: ReadonlyArray<{ readonly last_test: { readonly message: string } }>
    }
    const { message } = items[0]!.last_test
    await failed.getByText(message).waitFor()
    // It is a count of its own: the states still add up to all accounts.
    await show.getByRole("button", { name: "Ready 2" }).waitFor()
    await show.getByRole("button", { name: "Test failed 1" }).waitFor()
    await failed.getByRole("link", { name: "Show them in the list" }).click()
    const rows = table("Accounts").getByRole("row")
    await rows.getByText(/Test failed/).waitFor()
    await rows.getByTitle(message).waitFor()
    await rows.nth(2).waitFor({ state: "detached" })
    assert.strictEqual(await rows.count(), 2)
    await settled(page)
    assert.deepStrictEqual(await findings(page), [])
    second.list(() => modelList("Qwen/Qwen3-8B", "Qwen/Qwen3-32B"))
  })

  it("one upstream alone looks as before", async () => {
    await start({}, "accounts")
    await table("Accounts").getByRole("rowheader", { name: "ada@example.com" }).waitFor()
    await settled(page)
    assert.strictEqual(await page.getByText("Upstream", { exact: true }).count(), 0)
    assert.strictEqual((await ask("upstream-chat", "alone")).status, 200)
    await goTo(page, "Requests")
    await page.getByRole("link", { name: "alone" }).click()
    await region("What happened").getByText(/^Answered in .* by ada@example\.com\. Status 200$/).waitFor()
    assert.strictEqual(await region("What happened").getByRole("listitem").count(), 0)
    await goTo(page, "Usage")
    await settled(page)
    const groups = page.getByRole("combobox", { name: "Group by" }).locator("option")
    assert.deepStrictEqual(await groups.allTextContents(), [
      "Key",
      "Model",
      "Account",
      "API",
      "App",
      "Label",
      "Hour",
      "Day"
    ])
  })

  it.each(["Upstreams", "Routes"])(
    "%s: axe finds nothing with rows and in dialogs, light and dark, and all fits into 360 pixels",
    async (name) => {
      await start(several(), name.toLowerCase())
      await page.getByRole("heading", { level: 1, name }).waitFor()
      await settled(page)
      for (const isOpen of [false, true]) {
        if (isOpen) {
          if (name === "Upstreams") await act("Edit", "gpu", "Upstreams")
          else await act("Edit", "qwen3", "Routes")
          for (const summary of await page.locator("dialog summary").all()) await summary.click()
          if (name === "Upstreams") await page.getByRole("checkbox", { name: "Qwen/Qwen3-32B" }).waitFor()
        }
        assert.deepStrictEqual(await findingsOfThemes(page), [])
        await page.setViewportSize({ width: 360, height: 740 })
        assert.isAtMost(await sideways(page), 0)
        const wide = await page.evaluate(
          `(() => { const d = document.querySelector("dialog"); return d === null ? 0 : d.scrollWidth - d.clientWidth })()`
        )
        assert.strictEqual(wide, 0)
        await page.setViewportSize({ width: 1280, height: 800 })
      }
    }
  )
})
