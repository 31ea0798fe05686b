/**
 * Samples at the console, in Chromium: capture a reply, find the reply of a caller, save it, replay it in every style, and
 * delete it.
 */
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import type { Browser } from "playwright-core"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { controls, launch, openSignedIn, result } from "./support.ts"

const home = mkdtempSync(path.join(tmpdir(), "console-samples-"))
const dir = path.join(home, "samples")
let browser: Browser
let gateway: RunningGateway

beforeAll(async () => {
  ;[browser, gateway] = await Promise.all([launch(), startGateway({ samples: { dir } })])
})
afterAll(async () => {
  await browser.close()
  await gateway.stop()
  rmSync(home, { recursive: true })
})

it("console: samples are captured, found, saved, replayed in every style and deleted", async () => {
  const { close, page } = await openSignedIn(browser, gateway.url, "samples")
  const { act } = controls(() => page)
  const captured = page.getByRole("table", { name: "Captured replies" })
  const saved = page.getByRole("table", { name: "Saved samples" })
  await captured.getByText(/^No reply has been captured yet\./).waitFor()
  await saved.getByText(/^No sample has been saved yet\./).waitFor()

  const capture = page.getByRole("button", { name: "Capture", exact: true })
  assert.isTrue(await capture.isDisabled())
  await page.getByRole("textbox", { name: "Message" }).fill("!say From the page.")
  await capture.click()
  await result(page).getByText(/^The reply was captured as /).waitFor()
  await saved.getByRole("row").nth(1).getByRole("rowheader").waitFor()
  const first = await saved.getByRole("rowheader").textContent() ?? ""
  assert.deepStrictEqual(readdirSync(dir), [first])

  // Requests of callers are captured too.
  for (const said of ["Apples and pears.", "Nothing of the kind."]) {
    const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}` },
      body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: `!say ${said}` }] })
    })
    assert.include(await reply.text(), said)
  }
  const search = page.getByRole("textbox", { name: "Search captures" })
  await search.fill("in no reply at all")
  await captured.getByText("No captured reply contains this text.").waitFor()
  await search.fill("Apples and pears")
  await captured.getByRole("row", { name: /Apples and pears.* 200 / }).waitFor()
  await captured.getByRole("row", { name: /Nothing of the kind/ }).waitFor({ state: "detached" })
  await captured.getByRole("button", { name: /^Save / }).click()
  await result(page).getByText(/^The sample was saved as /).waitFor()
  await saved.getByRole("row").nth(2).waitFor()
  // The newest is on top.
  const second = await saved.getByRole("rowheader").first().textContent() ?? ""
  assert.notStrictEqual(second, first)

  const replay = page.getByRole("region", { name: "Replay" })
  for (
    const [style, event] of [
      ["Chat Completions", "chat.completion.chunk"],
      ["Responses", "response.completed"],
      ["Messages", "message_stop"],
      ["Gemini", "candidates"]
    ] as const
  ) {
    await page.getByRole("combobox", { name: "API" }).selectOption(style)
    await act("Replay", second, "Saved samples")
    await replay.getByText(event).waitFor()
    // In frames, one word each, as a caller receives it.
    for (const word of ["Apples", "and", "pears"]) assert.include(await replay.textContent() ?? "", word)
  }

  await act("Delete", second, "Saved samples")
  const dialog = page.getByRole("dialog", { name: `Delete ${second}` })
  await dialog.getByRole("button", { name: "Cancel" }).click()
  assert.strictEqual(readdirSync(dir).length, 2)
  await act("Delete", second, "Saved samples")
  await dialog.getByRole("button", { name: "Delete" }).click()
  await result(page).getByText(second).waitFor()
  await saved.getByRole("rowheader", { name: second }).waitFor({ state: "detached" })
  assert.deepStrictEqual(readdirSync(dir), [first])
  await close()
})
