/** A locked configuration at the console, in Chromium: each page says so, and nothing that would change it can be pressed. */
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import type { Locator } from "playwright-core"
import { sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { openSignedIn, useBrowser, type Watched } from "./support.ts"

const browser = useBrowser()
let gateway: RunningGateway
let watched: Watched

beforeAll(async () => {
  gateway = await startGateway({
    admin: { locked: true },
    upstream: { driver: "embedded" },
    upstreams: { gpu: { driver: "openai", base_url: "http://127.0.0.1:9/v1", models: { llama: "llama" } } },
    accounts: [{ email: "ada@example.com", password: "p" }],
    webhooks: [{ name: "ops", url: "https://hooks.example/gateway", secret: "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz" }]
  })
  watched = await openSignedIn(browser(), gateway.url)
})
afterAll(async () => {
  await watched.close()
  await gateway.stop()
})

const reason = /^The configuration is locked: change /

const saysWhy = async (control: Locator): Promise<void> =>
  assert.match(await control.getAttribute("title") ?? "", reason)

/** What changes the configuration on a page: its buttons, and the choices of a menu. */
const pages: ReadonlyArray<{
  readonly route: string
  readonly buttons: ReadonlyArray<string>
  /** What the name of a menu begins with, and its choices. */
  readonly menu?: readonly [of: string, choices: ReadonlyArray<string>]
}> = [
  { route: "keys", buttons: ["New key"], menu: ["", ["Edit", "Rotate", "Disable", "Delete"]] },
  { route: `keys/${keyId(businessKey, sha256Hex)}`, buttons: ["Edit"], menu: ["", ["Rotate", "Disable", "Delete"]] },
  {
    route: "accounts",
    buttons: ["Add accounts"],
    menu: ["ada@example.com", ["Disable", "Set password", "Note", "Delete"]]
  },
  {
    route: "accounts/ada%40example.com",
    buttons: ["Set password"],
    menu: ["ada@example.com", ["Disable", "Note", "Delete"]]
  },
  { route: "upstreams", buttons: ["Add upstream"], menu: ["gpu", ["Disable", "Edit", "Delete"]] },
  { route: "upstreams/gpu", buttons: ["Edit"], menu: ["gpu", ["Disable", "Delete"]] },
  { route: "models", buttons: [], menu: ["llama", ["Set price"]] },
  { route: "models/llama", buttons: ["Set price"] },
  { route: "routes", buttons: ["Add route"] },
  { route: "settings", buttons: ["New token"] },
  { route: "webhooks", buttons: ["Add webhook"], menu: ["ops", ["Edit", "Delete"]] },
  { route: "transfer", buttons: [] }
]

it.each(pages)(
  "$route says that it is locked, and why each change cannot be made",
  async ({ buttons, menu, route }) => {
    const { page } = watched
    await page.goto(`${gateway.url}/console/#/${route}`)
    const main = page.getByRole("main")
    await main.getByText(reason).waitFor()
    for (const name of buttons) {
      const button = main.getByRole("button", { name, exact: true })
      await button.and(page.locator("[aria-disabled=true]")).waitFor()
      await saysWhy(button)
      await button.press("Enter")
    }
    if (menu !== undefined) {
      const [of, choices] = menu
      await main.getByRole("button", { name: `Actions ${of}` }).first().click()
      for (const name of choices) await saysWhy(page.getByRole("menuitem", { name, exact: true, disabled: true }))
      await page.keyboard.press("Escape")
    }
    assert.strictEqual(await page.getByRole("dialog").count(), 0)
  }
)
