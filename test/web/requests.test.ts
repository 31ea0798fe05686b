/**
 * The list of requests in Chromium: filters, the drawer, keys, rows that hold still, pages.
 */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { untilHolds, untilValue } from "../support/until.ts"
import { findings, goTo, launch, openSignedIn, savedBy, settled, sideways, type Watched } from "./support.ts"

const keyId = createHash("sha256").update(businessKey).digest("hex").slice(0, 16)

let browser: Browser
let gateway: RunningGateway
let watched: Watched
let page: Page

const ask = async (id: string, content = "Hello", model = "upstream-chat", key = businessKey) => {
  const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "x-request-id": id },
    body: JSON.stringify({ model, messages: [{ role: "user", content }] })
  })
  await reply.text()
}

beforeAll(async () => {
  ;[browser, gateway] = await Promise.all([
    launch(),
    startGateway({
      keys: [businessKey, "second-key"],
      key_records: { [keyId]: { name: "Mobile app (production)" } },
      accounts: [{ email: "ada@example.com", password: "p" }]
    })
  ])
  for (let i = 1; i <= 60; i++) await ask(`early-${i}`)
  await ask("searched", "Where is the pelican?", "upstream-reasoner", "second-key")
  for (let i = 1; i <= 3; i++) await ask(`missing-${i}`, "Hello", "no-such-model")
})
afterAll(async () => {
  await browser.close()
  await gateway.stop()
})
afterEach(() => watched.close())

const start = async (route = "requests", options: BrowserContextOptions = {}) => {
  watched = await openSignedIn(browser, gateway.url, route, { viewport: { width: 1440, height: 900 }, ...options })
  page = watched.page
  await page.getByRole("heading", { level: 1 }).waitFor()
  await settled(page)
}

const button = (name: string) => page.getByRole("button", { name, exact: true })
const table = () => page.getByRole("table", { name: "Requests" })
const link = (id: string) => table().locator(`.row-link[title="${id}"]`)
const drawer = () => page.getByRole("complementary", { name: "Chosen request" })
const ids = () => table().locator(".row-link").evaluateAll((links) => links.map((each) => each.getAttribute("title")))
/** Waits until the list has this many rows. */
const rows = async (count: number) => {
  const links = table().locator(".row-link")
  await links.nth(count - 1).waitFor()
  await links.nth(count).waitFor({ state: "detached" })
}
const focused = () => page.locator(":focus").getAttribute("title")

/** The texts of the list that are cut where neither dots nor their endings show it. */
const cutWithoutSign = `[...document.querySelectorAll("main table *:not(.sr-only)")].filter((each) => {
  const { overflowX, textOverflow } = getComputedStyle(each)
  return each.checkVisibility() && each.clientWidth > 1 && each.scrollWidth > each.clientWidth + 1 &&
    overflowX !== "visible" && textOverflow !== "ellipsis"
}).map((each) => each.className + ": " + each.textContent)`

describe("the list of requests", () => {
  it("is narrowed by counted values, and Back, a reload and a link restore what was chosen", async () => {
    await start()
    await rows(50)
    await button("Error").click()
    await page.getByRole("group", { name: "Error", exact: true }).getByRole("button", { name: "model_not_found 3" })
      .click()
    await rows(3)
    await page.getByText("1–3 of 3").waitFor()
    const address = page.url()
    await link("missing-2").click()
    await drawer().getByRole("link", { name: "Request missing-2" }).click()
    await page.getByRole("heading", { level: 1, name: "Request missing-2" }).waitFor()
    await page.goBack()
    await rows(3)
    await drawer().getByRole("link", { name: "Request missing-2" }).waitFor()
    await page.reload()
    await rows(3)
    await drawer().getByRole("link", { name: "Request missing-2" }).waitFor()
    await drawer().getByRole("button", { name: "Close" }).click()
    assert.strictEqual(page.url(), address)
    await button("Remove the filter Error").click()
    await rows(50)
  })

  it("is narrowed by parts of names, by a click on a value, by texts and by time", async () => {
    await start()
    await button("Key").click()
    await page.getByRole("textbox", { name: "Key contains" }).fill("mobile APP")
    await button("Key: contains “mobile APP”").waitFor()
    await page.getByText("1–50 of 63").waitFor()
    assert.notInclude(await ids(), "searched")
    assert.deepStrictEqual(await findings(page), [])
    await page.keyboard.press("Escape")
    // The key is a link to its page.
    const key = table().getByRole("link", { name: "Mobile app (production)" }).first()
    assert.strictEqual(await key.getAttribute("title"), keyId)
    assert.strictEqual(await key.getAttribute("href"), `#/keys/${keyId}`)
    await button("Remove all filters").click()
    await page.keyboard.press("/")
    await page.keyboard.type("PELICAN")
    await rows(1)
    assert.deepStrictEqual(await ids(), ["searched"])
    const model = table().getByRole("link", { name: "upstream-reasoner" })
    assert.strictEqual(await model.getAttribute("href"), "#/models/upstream-reasoner")
    await table().getByRole("button", { name: "OK" }).click()
    await button("Outcome: OK").waitFor()
    await page.getByRole("group", { name: "Filters" }).getByRole("button", { name: "Time" }).click()
    await button("Last hour").click()
    await rows(1)
    await button("Time: Last hour").click()
    await page.getByLabel(/^From/).fill("2020-01-01T00:00:00")
    await page.getByLabel(/^Until/).fill("2020-01-02T00:00:00")
    await button("Apply").click()
    await page.getByText("No request matches. Remove a filter to see more.").waitFor()
    assert.match(page.url(), /from=\d+&to=\d+/)
  })

  it("has a menu for each request: its id and its curl are copied, it is opened in the playground, and its key filters", async () => {
    await start("requests", { permissions: ["clipboard-read", "clipboard-write"] })
    const choose = async (name: string) => {
      await table().getByRole("button", { name: "Actions searched", exact: true }).click()
      await page.getByRole("menuitem", { name, exact: true }).click()
    }
    const copied = () => page.evaluate<string>("navigator.clipboard.readText()")
    assert.strictEqual(await table().getByRole("button", { name: /^Copy/ }).count(), 0)
    await choose("Copy id")
    await page.getByText("searched was copied.").waitFor()
    assert.strictEqual(await copied(), "searched")
    await choose("Copy as curl")
    await page.getByText("The request as curl was copied.").waitFor()
    const line = await copied()
    assert.include(line, `curl ${gateway.url}/v1/chat/completions`)
    assert.include(line, `-H "Authorization: Bearer $GATEWAY_KEY"`)
    assert.notInclude(line, "second-key")
    const sent = execFileSync("sh", ["-c", `curl() { printf '%s\\0' "$@"; }\n${line}`], {
      encoding: "utf8",
      env: { GATEWAY_KEY: "second-key" }
    }).split("\0")
    assert.include(sent, "Authorization: Bearer second-key")
    assert.include(sent, "x-request-id: searched")
    assert.deepStrictEqual(JSON.parse(sent[sent.indexOf("--data-raw") + 1]!), {
      model: "upstream-reasoner",
      messages: [{ role: "user", content: "Where is the pelican?" }]
    })
    await choose("Only this key")
    await rows(1)
    await link("searched").waitFor()
    await choose("Open in playground")
    await page.getByRole("heading", { level: 1, name: "Playground" }).waitFor()
    assert.strictEqual(await page.getByRole("textbox", { name: "Message" }).inputValue(), "Where is the pelican?")
  })

  it("compares a request with another one: facts, bodies line by line, replies, chosen in the list or by id", async () => {
    await start("requests?open=missing-1")
    await drawer().getByRole("link", { name: "Request missing-1" }).waitFor()
    await table().getByRole("button", { name: "Actions searched", exact: true }).click()
    await page.getByRole("menuitem", { name: "Compare with missing-1", exact: true }).click()
    await page.getByRole("heading", { level: 1, name: "Compare two requests" }).waitFor()
    const facts = page.getByRole("table", { name: "Facts" })
    const fact = (name: string) =>
      facts.getByRole("row", { name: new RegExp(`^${name}`) }).getByRole("cell").allTextContents()
    await facts.getByRole("columnheader", { name: "missing-1" }).waitFor()
    assert.deepStrictEqual((await fact("Outcome")).map((text) => text.replace(/\s+/g, " ").trim()), [
      "Failed 400",
      "OK 200",
      ""
    ])
    assert.deepStrictEqual((await fact("API")).slice(0, 2), ["Chat Completions, whole", "Chat Completions, whole"])
    const lines = () => page.getByRole("group", { name: "Body", exact: true }).locator("> *").allTextContents()
    assert.deepStrictEqual(
      await lines(),
      [
        "  {",
        `-   "model": "no-such-model",`,
        `+   "model": "upstream-reasoner",`,
        `    "messages": [`,
        "      {",
        `        "role": "user",`,
        `-       "content": "Hello"`,
        `+       "content": "Where is the pelican?"`,
        "      }",
        "    ]",
        "  }"
      ].map((line) => line.replace(/^-/, "−"))
    )
    await page.getByRole("group", { name: "Reply" }).locator("ins").waitFor()
    assert.deepStrictEqual(await findings(page), [])
    await button("Swap").click()
    await page.waitForURL(/requests\/searched|with=/)
    await facts.getByRole("columnheader").nth(1).getByText("searched").waitFor()
    await page.getByRole("link", { name: "Request searched" }).click()
    // What went well is one line.
    const happened = page.getByRole("region", { name: "What happened" })
    await happened.getByText(/^Answered in .* by ada@example\.com\. Status 200$/).waitFor()
    assert.isBelow((await happened.boundingBox())!.height, 30)
    await button("Compare with…").click()
    await page.getByRole("dialog").getByRole("textbox", { name: "Request id" }).fill("early-1")
    await page.getByRole("dialog").getByRole("button", { name: "Compare", exact: true }).click()
    await facts.getByRole("columnheader", { name: "early-1" }).waitFor()
  })

  it("is saved as lines of JSON, as it is narrowed, with the filter in the name of the file", async () => {
    await start()
    await rows(50)
    const save = async () => {
      const { content, name } = await savedBy(page, "Download JSONL")
      const lines = content.trimEnd().split("\n")
      return [name, lines.map((line) => (JSON.parse(line) as { request_id: string }).request_id)] as const
    }
    const [all, ids] = await save()
    assert.strictEqual(all, "requests.jsonl")
    // All pages, and not the shown one alone.
    assert.isAtLeast(ids.length, 64)
    assert.strictEqual(ids.at(-1), "early-1")
    await page.goto(`${gateway.url}/console/#/requests?code=${encodeURIComponent(`"model_not_found"`)}`)
    await rows(3)
    const [narrowed, missing] = await save()
    assert.strictEqual(narrowed, "requests-code-model_not_found.jsonl")
    assert.deepStrictEqual(missing, ["missing-3", "missing-2", "missing-1"])
    await page.getByText("3 rows saved as requests-code-model_not_found.jsonl.").waitFor()
  })

  it("is walked through by J and K; Enter opens the drawer, and then the page", async () => {
    await start()
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await page.keyboard.press("k")
    await page.keyboard.press("j")
    assert.strictEqual(await focused(), "missing-2")
    await page.keyboard.press("Enter")
    await drawer().getByRole("link", { name: "Request missing-2" }).waitFor()
    assert.deepStrictEqual(await findings(page), [])
    await page.keyboard.press("j")
    await drawer().getByRole("link", { name: "Request missing-1" }).waitFor()
    await page.keyboard.press("Escape")
    await drawer().waitFor({ state: "detached" })
    assert.strictEqual(await focused(), "missing-1")
    await page.keyboard.press("Enter")
    await drawer().waitFor()
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { level: 1, name: "Request missing-1" }).waitFor()
  })

  it("opens a request by a pasted id, on a page of its own where there is no room for a drawer", async () => {
    await start("requests", { viewport: { width: 390, height: 800 } })
    await page.getByRole("textbox", { name: "Open a request by its id" }).fill("x-request-id: early-7")
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { level: 1, name: "Request early-7" }).waitFor()
    await page.goBack()
    await button("Filters").click()
    await button("Outcome").click()
    await page.getByRole("button", { name: "Failed 3" }).click()
    await rows(3)
    assert.isAtMost(await sideways(page), 0)
    assert.deepStrictEqual(await findings(page), [])
  })

  it("turns to older requests from their top, and back", async () => {
    await start()
    await rows(50)
    await button("Older").click()
    await page.getByText("51–64 of 64").waitFor()
    assert.strictEqual(await page.evaluate("scrollY"), 0)
    await rows(14)
    assert.strictEqual((await ids()).at(-1), "early-1")
    await button("Newer").click()
    await page.getByText("1–50 of 64").waitFor()
    await rows(50)
    await page.goBack()
    await rows(14)
  })

  it("has rows of one height and no column that is cut, and a denser form with 25 rows in 900 pixels", async () => {
    await start()
    // In the narrower window each row has a second line.
    for (const [width, height] of [[1440, 32], [1024, 52]] as const) {
      await page.setViewportSize({ width, height: 900 })
      // The table follows the window once the page has heard of it.
      await untilValue(
        "the height of rows",
        () =>
          page.evaluate<number>(`Math.round(document.querySelector("main tbody tr").getBoundingClientRect().height)`),
        (shown) => shown === height
      )
      const shape = await table().evaluate((element) => {
        const box = element.parentElement!
        return [
          box.scrollWidth - box.clientWidth,
          ...new Set(
            [...element.querySelectorAll("tbody tr")].map((row) => Math.round(row.getBoundingClientRect().height))
          )
        ]
      })
      assert.deepStrictEqual(shape, [0, height], String(width))
    }
    await page.setViewportSize({ width: 1440, height: 900 })
    await button("Compact").click()
    await table().locator("tbody tr").nth(24).waitFor()
    assert.isAtMost(
      await table().locator("tbody tr").nth(24).evaluate((row) => row.getBoundingClientRect().bottom),
      900
    )
  })

  it("holds still under the pointer and while it is paused, and shows what is new on demand", async () => {
    await start()
    await link("missing-3").hover()
    const before = await ids()
    await ask("late-1")
    await button("1 new").waitFor()
    assert.deepStrictEqual(await ids(), before)
    await button("1 new").click()
    await link("late-1").waitFor()
    await page.getByRole("heading", { level: 1 }).hover()
    await ask("late-2")
    await link("late-2").waitFor()

    await button("Pause").click()
    await ask("late-3")
    await button("1 new").waitFor()
    assert.strictEqual(await link("late-3").count(), 0)
    // Filters work on.
    await button("Outcome").click()
    await page.getByRole("group", { name: "Outcome", exact: true }).getByRole("button", { name: /^Failed/ }).click()
    await rows(3)
    await button("Remove the filter Outcome").click()
    await link("late-3").waitFor()
    await ask("late-4")
    await button("1 new").waitFor()
    await button("Resume").click()
    await link("late-4").waitFor()
  })

  it("is sorted by its heads, with more columns from the menu, and a range is dragged over the histogram", async () => {
    await start("requests?sort=duration_ms&order=asc")
    await table().locator("th[aria-sort=ascending]", { hasText: "Duration" }).waitFor()
    const exact = (name: string) =>
      table().locator("tbody tr").evaluateAll(
        (all, at) => all.map((row) => row.children[at]!.querySelector("[title]")?.getAttribute("title") ?? ""),
        name === "Duration" ? 6 : 5
      )
    const durations = (await exact("Duration")).map((text) => Number.parseInt(text.replace(/\D/g, ""), 10))
    assert.strictEqual(durations.length, 50)
    assert.deepStrictEqual(durations, durations.toSorted((a, b) => a - b))
    assert.deepStrictEqual(
      await table().getByRole("columnheader").allTextContents(),
      ["Time", "Outcome", "Model", "Key", "Answered by", "First", "Duration↑", "In", "Out", "Actions"]
    )
    await button("Columns").click()
    await page.getByRole("menuitemcheckbox", { name: "Attempts" }).click()
    await table().getByRole("columnheader", { name: "Attempts" }).waitFor()
    assert.match(page.url(), /columns=tries/)
    // Answered requests have their sign alone, failed ones their code and status.
    await table().getByRole("columnheader", { name: "Duration" }).getByRole("button").click()
    await table().locator("th[aria-sort=descending]").waitFor()
    const first = table().locator("tbody tr").first().getByRole("cell").first()
    assert.strictEqual(await first.locator(".sr-only").textContent(), "OK")
    assert.strictEqual(await first.locator(".badge").evaluate((badge) => badge.firstElementChild?.tagName), "svg")

    const bars = page.getByRole("group", { name: /^\d+ requests from .*, 3 of them failed, at most \d+ in one bar/ })
    const { height, width, x, y } = (await bars.boundingBox())!
    await page.mouse.move(x + 1, y + height / 2)
    await page.mouse.down()
    await page.mouse.move(x + width - 1, y + height / 2, { steps: 3 })
    await page.mouse.up()
    await page.waitForURL(/from=\d+&to=\d+/)
    await page.getByRole("button", { name: /^Time: / }).waitFor()
    // What is read again is pale meanwhile.
    await settled(page)
    assert.deepStrictEqual(await findings(page), [])
  })
  it("shows whole error codes and the account, rows of one line beside a request, and cards of two lines", async () => {
    const code = "context_length_exceeded"
    await start("overview")
    // A code of the longest kind, and an answer of the only upstream.
    await page.route(/\/admin\/requests\?/, async (route) => {
      const query = new URL(route.request().url()).search
      const reply = await fetch(`${gateway.url}/admin/requests${query}`, {
        headers: { authorization: `Bearer ${adminKey}` }
      })
      const json = await reply.json() as { readonly items: ReadonlyArray<{ readonly outcome: string }> }
      const items = json.items.map((item) =>
        item.outcome === "failed"
          ? { ...item, error: code, target: "default/upstream-chat", account: "default/ada@example.com" }
          : item
      )
      await route.fulfill({ json: { ...json, items } })
    })
    await goTo(page, "Requests")
    const row = table().getByRole("row").filter({ has: page.locator(`.row-link[title="missing-2"]`) })
    const isWhole = () =>
      row.getByText(code).evaluate(({ clientWidth, scrollWidth }) => clientWidth > 100 && scrollWidth <= clientWidth)
    const height = async () => (await row.boundingBox())!.height
    await row.getByRole("link", { name: "ada@example.com" }).waitFor()
    await untilHolds(isWhole)
    assert.strictEqual(await height(), 32)
    // In a window that is less wide it is the tokens that go.
    await page.setViewportSize({ width: 1280, height: 900 })
    await table().getByRole("columnheader", { name: "Out", exact: true }).waitFor({ state: "detached" })
    await untilHolds(isWhole)
    assert.isAbove((await row.getByRole("link", { name: "ada@example.com" }).boundingBox())!.width, 100)
    await page.setViewportSize({ width: 1440, height: 900 })

    await link("missing-2").click()
    await drawer().waitFor()
    await untilHolds(isWhole)
    assert.strictEqual(await height(), 32)
    await drawer().getByRole("button", { name: "Close" }).click()

    await page.setViewportSize({ width: 390, height: 900 })
    await settled(page)
    await untilHolds(isWhole)
    assert.isBelow(await height(), 60)
    await row.getByText("upstream-chat").or(row.getByText("no-such-model")).first().waitFor()
    assert.deepStrictEqual(await findings(page), [])
    await page.unrouteAll({ behavior: "ignoreErrors" })
  })

  it("cuts no text without a sign: it ends with dots, or is cut in its middle, also of a request that waits", async () => {
    const leaving = new AbortController()
    const waiting = fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}` },
      body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "!wait 100s" }] }),
      signal: leaving.signal
    }).catch(() => undefined)
    await start()
    await table().getByText("Waiting for the upstream").first().waitFor()
    for (const width of [1440, 1024, 390]) {
      await page.setViewportSize({ width, height: 900 })
      await settled(page)
      assert.deepStrictEqual(await page.evaluate(cutWithoutSign), [], String(width))
    }
    // Beside a request the list is narrow.
    await page.setViewportSize({ width: 1440, height: 900 })
    await link("missing-1").click()
    await drawer().waitFor()
    assert.deepStrictEqual(await page.evaluate(cutWithoutSign), [], "beside a request")
    leaving.abort()
    await waiting
  })
})
