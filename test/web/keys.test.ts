/**
 * The list of keys and the form of a key, in Chromium.
 */
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { adminOf, controls, findings, openSignedIn, result, useBrowser, type Watched } from "./support.ts"

const browser = useBrowser()
const keys = [businessKey, "a-key-with-two-limits", "a-key-that-ends", "a-plain-key"]
const [first = "", two = "", ends = "", plain = ""] = keys.map((key) => keyId(key, sha256Hex))
let gateway: RunningGateway
let watched: Watched
let page: Page

beforeAll(async () => {
  gateway = await startGateway({
    keys,
    key_records: {
      [first]: { name: "Mobile app", note: "Owner: platform team", limits: [{ window: "day", requests: 5 }] },
      [two]: {
        name: "Website",
        limits: [{ window: "month", requests: 12_345_678, strict: true, fallback: "upstream-chat" }, {
          window: "day",
          tokens: 90_000_000
        }]
      },
      [ends]: { name: "Workshop", expires_at: new Date(Date.now() + 40 * 86_400_000).toISOString() },
      [plain]: { name: "Plain" }
    },
    accounts: []
  })
})
beforeEach(async () => {
  watched = await openSignedIn(browser(), gateway.url, "keys", { viewport: { width: 1440, height: 900 } })
  ;({ page } = watched)
  return () => watched.close()
})
afterAll(() => gateway.stop())

const { act, button, dialog } = controls(() => page)
const table = () => page.getByRole("table", { name: "Keys" })
const row = (name: string) => table().getByRole("row").filter({ has: page.getByRole("link", { name, exact: true }) })

describe("the list of keys", () => {
  it("has rows of one height and meters of one width, whose words say what else there is", async () => {
    await row("Website").getByText("1 more limit").waitFor()
    const sizes = (selector: string, side: "height" | "width") =>
      page.evaluate<ReadonlyArray<number>>(
        `[...document.querySelectorAll("main ${selector}")].map((each) => each.getBoundingClientRect().${side})`
      )
    for (const [layout, width, most] of [["lines", 1024, 54], ["wide", 1440, 33]] as const) {
      await page.setViewportSize({ width, height: 900 })
      await page.locator(`main .table-box.${layout}`).waitFor()
      // The last row has no line below it.
      const heights = (await sizes("tbody tr", "height")).slice(0, -1)
      assert.isAtMost(heights[0]!, most)
      assert.strictEqual(new Set(heights).size, 1, layout)
      const meters = await sizes(".meter", "width")
      assert.strictEqual(meters.length, 2)
      assert.strictEqual(new Set(meters).size, 1, layout)
    }
    await row("Mobile app").getByText("0 of 5 requests/day").waitFor()
    await row("Mobile app").getByText("Owner: platform team").waitFor()
    // The day of an end without its year, as that is plain.
    await row("Workshop").getByText(/^until \d+ [A-Z][a-z]{2,3}$/).waitFor()
    assert.deepStrictEqual(await findings(page), [])
  })
})

describe("Hash all", () => {
  it("is offered for keys that a hash hides, says what it means and what it leaves, and keys serve after it", async () => {
    const admin = adminOf(() => gateway)
    await row("Plain").waitFor()
    assert.strictEqual(await button("Hash all").count(), 0)
    const { key, preview } = await admin("/admin/keys", { method: "POST", body: `{"generate":true,"name":"Robot"}` })
    await page.reload()
    await button("Hash all").click()
    const asked = dialog("Hash all")
    await asked.getByText(/^The configuration keeps 1 key as a hash\. .*This cannot be undone\.$/).waitFor()
    await asked.getByText("4 keys stay as texts").waitFor()
    assert.deepStrictEqual(
      await asked.getByRole("link").evaluateAll((links) => links.map((each) => each.getAttribute("href"))),
      [first, two, ends, plain].map((id) => `#/keys/${id}`)
    )
    assert.deepStrictEqual(await findings(page, "dialog"), [])
    await asked.getByRole("button", { name: "Hash all" }).click()
    await result(page).getByText("1 key is kept as a hash; 4 keys stay as texts, which hashes do not hide.").waitFor()
    assert.strictEqual(await button("Hash all").count(), 0)
    await row("Robot").getByText(String(preview)).waitFor()
    await page.getByRole("button", { name: "Actions Robot", exact: true }).click()
    assert.isTrue(await page.getByRole("menuitem", { name: "Copy", exact: true }).isDisabled())
    const models = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${String(key)}` } })
    assert.strictEqual(models.status, 200)
    // The page of the key says why it cannot be copied.
    await page.keyboard.press("Escape")
    await page.getByRole("link", { name: "Robot", exact: true }).click()
    const why = "The gateway does not show this key to you, so it cannot be copied."
    await page.getByText(why, { exact: true }).waitFor()
    assert.strictEqual(await button("Copy").and(page.locator("[aria-disabled=true]")).getAttribute("title"), why)
  })
})

describe("the form of a key", () => {
  it("says limits as sentences, which change what they limit and keep what follows, with models and an end to choose", async () => {
    await button("New key").click()
    const made = dialog("New key")
    const [amount, unit, time] = ["Requests, per day", "What is limited: Requests, per day", "Tokens, per day"]
    await made.getByRole("textbox", { name: "Name", exact: true }).fill("Evaluation")
    await made.getByRole("checkbox", { name: "upstream-chat", exact: true }).check()
    await made.getByText("1 model chosen.").waitFor()
    await button("Add a limit").click()
    await made.getByRole("textbox", { name: amount }).and(page.locator(":focus")).fill("20")
    await made.getByRole("combobox", { name: "Fallback, per day" }).selectOption("use upstream-reasoner")
    await button("Add a limit").click()
    await made.getByRole("textbox", { name: time }).fill("1,000")
    // Sentences stand below each other, from one edge on, and the button that adds one has the size of a button.
    const boxes = await Promise.all(
      [made.locator(".limit").first(), made.locator(".limit").last(), button("Add a limit")].map((each) =>
        each.evaluate((element) => {
          const { bottom, height, left, top } = element.getBoundingClientRect()
          return { bottom, height, left, top }
        })
      )
    )
    assert.strictEqual(new Set(boxes.map(({ left }) => left)).size, 1)
    assert.deepStrictEqual(boxes.slice(1).filter(({ top }, index) => top < boxes[index]!.bottom), [])
    assert.strictEqual(boxes.at(-1)!.height, 32)
    // What one sentence limits, the other cannot.
    const taken = made.getByRole("combobox", { name: unit }).getByRole("option", { name: "tokens" })
    assert.isTrue(await taken.isDisabled())
    assert.deepStrictEqual(await findings(page, "dialog"), [])
    await button("Delete Tokens, per day").click()
    await button("Add a limit").and(page.locator(":focus")).waitFor()
    await made.getByRole("combobox", { name: `Time of the limit: ${amount}` }).selectOption("per month")
    await made.getByRole("combobox", { name: "Expires" }).selectOption("In 30 days")
    await button("Create key").click()
    await dialog("Evaluation is ready").getByRole("button", { name: "Close" }).click()

    const of = async () => {
      const { items } = await adminOf(() => gateway)("/admin/keys?q=Evaluation")
      return (items as readonly [Readonly<Record<string, unknown>>])[0]
    }
    const item = await of()
    assert.deepStrictEqual(item["models"], ["upstream-chat"])
    assert.deepInclude((item["limits"] as readonly [object])[0], {
      window: "month",
      requests: 20,
      tokens: null,
      fallback: "upstream-reasoner"
    })
    const days = (Date.parse(String(item["expires_at"])) - Date.now()) / 86_400_000
    assert.strictEqual(Math.round(days), 30)

    await act("Edit", "Evaluation", "Keys")
    await dialog("Edit Evaluation").getByRole("combobox", { name: "Expires" }).selectOption("Never")
    await button("Delete Requests, per month").click()
    await button("Save").click()
    await row("Evaluation").getByText("No limits").waitFor()
    assert.deepInclude(await of(), { limits: [], expires_at: null })
  })
})
