/**
 * The console after a lost connection or incomplete events, in Chromium.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { Browser } from "playwright-core"
import type { AdminEvent } from "../../src/api.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { launch, open, signIn, type Watched } from "./support.ts"

let browser: Browser
let gateway: RunningGateway

beforeAll(async () => {
  ;[browser, gateway] = await Promise.all([
    launch(),
    startGateway({ accounts: [{ email: "ada@example.com", password: "p" }] })
  ])
})
afterAll(async () => {
  await browser.close()
  await gateway.stop()
})

type LiveEvent = typeof AdminEvent.Type

/** The page has the list of requests, so that another question for it is a reload. */
const hasList = (page: Watched["page"]) =>
  page.waitForResponse((response) => response.url().includes("/admin/requests?"))

/**
 * Opens a page whose first connection for events gets this text once it is `ready`, and then ends; the next connection is to the gateway. All
 * connections pass the same handler: a browser that stops to hand them over loses requests that are under way.
 */
const openWithEvents = async (
  route: string,
  text: string,
  ready: (page: Watched["page"]) => Promise<unknown> = () => Promise.resolve()
): Promise<Watched> => {
  const watched = await open(browser, `${gateway.url}/console/#/${route}`)
  const { page } = watched
  const isReady = ready(page)
  let connections = 0
  await page.route("**/admin/events", async (asked) => {
    connections++
    if (connections > 1) return asked.continue()
    await isReady
    return asked.fulfill({ contentType: "text/event-stream", body: text })
  })
  return {
    ...watched,
    close: async () => {
      await page.unrouteAll({ behavior: "ignoreErrors" })
      await watched.close()
    }
  }
}

/** The text of events without their ids. */
const textOf = (events: ReadonlyArray<LiveEvent>): string =>
  events.map(({ data, event }) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`).join("")

describe("the console after a reconnection", () => {
  it("drops accounts that are no longer in use", async () => {
    const account = {
      identifier: "ada@example.com",
      email: "ada@example.com",
      mobile: "",
      has_password: true,
      has_token: false,
      token_preview: "",
      hash: "a-hash",
      slots: 2,
      in_use: 2,
      health: "ready",
      health_reason: null,
      recovery_seconds: null,
      test_status: "",
      disabled: false,
      note: ""
    } as const
    const pool = {
      total: 1,
      available: 0,
      in_use: 2,
      cooling: 0,
      out: 0,
      disabled: 0,
      failed_tests: 0,
      max_inflight_per_account: 2,
      global_max_inflight: 2,
      changed: [account],
      more: false
    }
    const { close, page } = await openWithEvents(
      "overview",
      textOf([{ event: "pool", id: "1", data: pool }])
    )
    let asked = 0
    const again = page.waitForResponse((response) => response.url().endsWith("/admin/events") && ++asked === 2)
    await signIn(page)
    assert.strictEqual((await again).status(), 200)
    await page.getByRole("link", { name: "ada@example.com: Ready, 0 of 2" }).waitFor()
    await close()
  })

  it("reloads the list of requests after an incomplete event", async () => {
    const { close, page } = await openWithEvents(
      "requests",
      textOf([{ event: "requests", id: "1", data: { items: [], more: true } }]),
      hasList
    )
    let asked = 0
    const again = page.waitForRequest((request) => request.url().includes("/admin/requests?") && ++asked === 2)
    await signIn(page)
    await again
    await close()
  })

  it("reloads the list of requests after an event that it does not understand", async () => {
    const { close, page } = await openWithEvents(
      "requests",
      "event: requests\ndata: {\"items\":[{\"id\":1}],\"more\":false}\n\n",
      hasList
    )
    let asked = 0
    const again = page.waitForRequest((request) => request.url().includes("/admin/requests?") && ++asked === 2)
    await signIn(page)
    await again
    await close()
  })
})
