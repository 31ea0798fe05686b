/** Webhooks at the console, in Chromium, and what the limits of a key do. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { isSignedBy, type Receiver, startReceiver } from "../server/webhooks/receiver.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { untilValue } from "../support/until.ts"
import { adminOf, controls, findings, goTo, openSignedIn, useBrowser, type Watched } from "./support.ts"

const browser = useBrowser()
let receiver: Receiver
let gateway: RunningGateway
let watched: Watched
let page: Page
beforeAll(async () => {
  receiver = await startReceiver()
})
afterAll(() => receiver.stop())
afterEach(async () => {
  await watched.close()
  await gateway.stop()
})

const admin = adminOf(() => gateway)
const { act, button, dialog, field } = controls(() => page)
const row = (name: string) => page.getByRole("row", { name: new RegExp(`^${name}\\b`) })

describe("the console", () => {
  it("adds a webhook, tests it, changes it without showing its secret, and deletes it", async () => {
    gateway = await startGateway({})
    watched = await openSignedIn(browser(), gateway.url, "webhooks")
    page = watched.page
    await button("Add webhook").click()
    await field("Name").fill("ops")
    await field("URL").fill(receiver.url)
    assert.strictEqual(await page.getByLabel("Previous secret").count(), 0)
    await button("Generate").click()
    const secret = await dialog("Add webhook").locator("code").textContent() ?? ""
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    await dialog("Add webhook").getByText("it is not shown again").waitFor()
    assert.deepStrictEqual(await findings(page, "dialog"), [])
    await button("Save").click()
    await row("ops").getByText("none yet").waitFor()
    await act("Test", "ops", "Webhooks")
    await row("ops").getByText("HTTP 204").waitFor()
    assert.isTrue(isSignedBy(secret, receiver.received[0]!))
    await act("Edit", "ops", "Webhooks")
    const event = (name: string) => dialog("Edit ops").getByRole("checkbox", { name, exact: true })
    await event("budget.*").check()
    await event("quota.low").check()
    // A group is all of its events: without one of them the others are left.
    await event("pool.empty").check()
    await event("pool.back").check()
    assert.isTrue(await event("pool.*").isChecked())
    await event("pool.*").uncheck()
    assert.isFalse(await event("pool.empty").isChecked())
    await button("Save").click()
    await row("ops").getByText("budget.*, quota.low").waitFor()
    await act("Test", "ops", "Webhooks")
    await untilValue("the second test", () => receiver.received.length, (count) => count === 2)
    assert.isTrue(isSignedBy(secret, receiver.received[1]!))
    assert.notInclude(await page.content(), secret)
    await act("Deliveries", "ops", "Webhooks")
    const deliveries = dialog("Deliveries to ops").getByRole("table", { name: "Deliveries to ops" })
    await deliveries.getByRole("row", { name: /webhook\.test HTTP 204/ }).nth(1).waitFor()
    await deliveries.getByRole("button", { name: "Send again webhook.test" }).last().click()
    // The list holds still under the pointer.
    await page.getByRole("heading", { level: 2, name: "Deliveries to ops" }).hover()
    await deliveries.locator("tbody tr").nth(2).waitFor()
    assert.strictEqual(receiver.received[2]!.text, receiver.received[0]!.text)
    assert.deepStrictEqual(await findings(page, "dialog"), [])
    await dialog("Deliveries to ops").getByRole("button", { name: "Close" }).click()
    await act("Delete", "ops", "Webhooks")
    await dialog("ops").getByRole("button", { name: "Delete" }).click()
    await page.getByText("There are no webhooks. Add one, and your own program hears").waitFor()
  })

  it("sets what a key's limit does, and its class, and shows both in the list", async () => {
    const id = keyId(businessKey, sha256Hex)
    gateway = await startGateway({ key_records: { [id]: { name: "Team", limits: [{ window: "day", requests: 5 }] } } })
    watched = await openSignedIn(browser(), gateway.url, "keys")
    page = watched.page
    await act("Edit", "Team", "Keys")
    await dialog("Team").getByRole("checkbox", { name: "Count ahead what requests may use" }).check()
    await dialog("Team").getByRole("combobox", { name: "Fallback, per day" }).selectOption("upstream-chat")
    await dialog("Team").getByLabel("Class").selectOption("background")
    await button("Save").click()
    await row("Team").getByText("per day: strict, then upstream-chat").waitFor()
    await row("Team").getByText("Background").waitFor()
    const [item] = (await admin("/admin/keys"))["items"] as [Record<string, unknown>]
    assert.strictEqual(item["class"], "background")
    assert.deepInclude((item["limits"] as [object])[0], { window: "day", strict: true, fallback: "upstream-chat" })
    await goTo(page, "Webhooks")
  })
})
