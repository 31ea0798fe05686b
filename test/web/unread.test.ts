/**
 * The console when the gateway, or a proxy before it, does not answer a read, in Chromium.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { Page, Route } from "playwright-core"
import { sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { inTurn } from "../support/effort.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { adminOf, controls, goTo, open, settled, signIn, useBrowser } from "./support.ts"

const browser = useBrowser()
let gateway: RunningGateway

beforeAll(async () => {
  gateway = await startGateway({ accounts: [{ email: "ada@example.com", password: "p" }] })
  const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${businessKey}`,
      "user-agent": "claude-cli/2.1",
      "x-claude-code-session-id": "the-session"
    },
    body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "Hello" }] })
  })
  assert.strictEqual(reply.status, 200)
})
afterAll(() => gateway.stop())

/** Opens the console signed in; of the reads that match, none is answered until they are let through. The page's time can be moved. */
const openUnanswered = async (route: string, path: RegExp) => {
  const watched = await open(browser(), `${gateway.url}/console/#/${route}`)
  const { page } = watched
  await page.clock.install()
  let isLost = true
  let asked = 0
  let isAsked = () => {}
  const first = new Promise<void>((resolve) => {
    isAsked = resolve
  })
  await page.route(path, (request) => {
    asked++
    isAsked()
    return isLost ? undefined : request.continue()
  })
  await page.reload()
  return {
    page,
    asked: () => asked,
    /** The page has begun the read: its time runs. */
    first,
    letThrough: () => {
      isLost = false
    },
    close: async () => {
      await page.unrouteAll({ behavior: "ignoreErrors" })
      await watched.close()
    }
  }
}

const admin = adminOf(() => gateway)

/** The page of the newest request. */
const aRequest = async (): Promise<string> => {
  const { items } = await admin("/admin/requests") as { readonly items: ReadonlyArray<{ readonly id: string }> }
  return `requests/${items[0]!.id}`
}

/**
 * What no page shows: whether there is a first request, which the notice of a first start alone asks (and the minutes, which it asks before
 * the page does); the session, which the form to sign in waits for, and the stream of events.
 */
const unseen = new Set(["overview /admin/requests", "overview /admin/minutes", "/admin/session", "/admin/events"])

const late = "The gateway did not answer within 15 seconds."
const section = (page: Page, name: string) => page.getByRole("region", { name, exact: true })
const connection = (page: Page) => page.getByRole("status", { name: "Connection" })

describe("a read without an answer", () => {
  it("ends after 15 s: each card that shows it says so, none looks good, and it is tried again after 5 s", async () => {
    const { asked, close, letThrough, page } = await openUnanswered("overview", /\/admin\/upstreams$/)
    await signIn(page)
    await connection(page).getByText("Live", { exact: true }).waitFor()
    await section(page, "Pool").getByText("Loading…").waitFor()
    assert.strictEqual(asked(), 1)
    await page.clock.fastForward(15_000)
    for (const card of ["Pool", "Needs attention", "Upstreams"]) {
      await section(page, card).getByRole("alert").getByText(late).waitFor()
    }
    assert.strictEqual(await page.getByText("Nothing needs attention.").count(), 0)
    await connection(page).getByText("Live in part").waitFor()

    letThrough()
    await page.clock.fastForward(5_000)
    await section(page, "Pool").getByRole("link", { name: "ada@example.com: Ready, 0 of 2" }).waitFor()
    await page.getByText(late).first().waitFor({ state: "detached" })
    await page.getByText("Nothing needs attention.").waitFor()
    await connection(page).getByText("Live", { exact: true }).waitFor()
    await close()
  })

  it("is tried again immediately on a press", async () => {
    const { close, first, letThrough, page } = await openUnanswered("keys", /\/admin\/keys\?/)
    await signIn(page)
    await goTo(page, "Keys")
    await first
    await page.clock.fastForward(15_000)
    await page.getByRole("main").getByRole("alert").getByText(late).waitFor()
    letThrough()
    await controls(() => page).button("Try again").click()
    await page.getByRole("table", { name: "Keys" }).waitFor()
    await close()
  })

  it("of the list of requests is a failure too, and the list comes by itself", async () => {
    const { close, first, letThrough, page } = await openUnanswered("requests", /\/admin\/requests\?/)
    await signIn(page)
    await first
    await page.clock.fastForward(15_000)
    await page.getByRole("main").getByRole("alert").getByText(late).waitFor()
    letThrough()
    await page.clock.fastForward(5_000)
    await page.getByRole("table", { name: "Requests" }).waitFor()
    await close()
  })

  it("of the times of sessions and of the turns of one says so, and both come by themselves", async () => {
    const { close, first, letThrough, page } = await openUnanswered("sessions", /\/admin\/requests(\/sessions)?\?/)
    await signIn(page)
    await goTo(page, "Sessions")
    await first
    await page.clock.fastForward(15_000)
    await page.getByRole("main").getByRole("alert").getByText(late).first().waitFor()
    await page.evaluate("location.hash = '#/sessions/one'")
    await section(page, "Turns").getByText("Loading…").waitFor()
    await page.clock.fastForward(15_000)
    await section(page, "Turns").getByRole("alert").getByText(late).waitFor()
    letThrough()
    await page.clock.fastForward(5_000)
    await page.getByRole("table", { name: "Turns" }).waitFor()
    await page.getByText(late).first().waitFor({ state: "detached" })
    await close()
  })

  it("of the requests to compare with is a failure in the dialog, and tried again on a press", async () => {
    const { close, first, letThrough, page } = await openUnanswered(await aRequest(), /\/admin\/requests\?.*limit=9/)
    await signIn(page)
    await controls(() => page).button("Compare with…").click()
    await first
    await page.clock.fastForward(15_000)
    const dialog = page.getByRole("dialog")
    await dialog.getByRole("alert").getByText(late).waitFor()
    letThrough()
    await dialog.getByRole("button", { name: "Try again" }).click()
    await dialog.getByRole("alert").waitFor({ state: "detached" })
    await close()
  })

  it("of the session shows the form to sign in", async () => {
    const { close, first, page } = await openUnanswered("overview", /\/admin\/session$/)
    await first
    await page.clock.fastForward(15_000)
    await page.getByRole("textbox", { name: "Admin key or password" }).waitFor()
    await close()
  })
})

/** The pages, each by its address; that of a request is known when it was answered. */
const pages: ReadonlyArray<string | (() => Promise<string>)> = [
  "overview",
  "requests",
  aRequest,
  "usage",
  "sessions",
  "sessions/the-session",
  "keys",
  `keys/${keyId(businessKey, sha256Hex)}`,
  "models",
  "models/upstream-chat",
  "accounts",
  "accounts/ada%40example.com",
  "upstreams",
  "upstreams/default",
  "routes",
  "settings",
  "webhooks",
  "changes",
  "samples",
  "about"
]

it.each(pages.map((route, index) => ({ route, index })))(
  "each read of page $index that has no answer is seen, and recovers",
  async ({ index, route }) => {
    const address = typeof route === "string" ? route : await route()
    const watched = await open(browser(), `${gateway.url}/console/#/${address}`)
    const { page } = watched
    await page.clock.install()
    await page.reload()
    await signIn(page)
    const reads = new Set<string>()
    page.on("request", (request) => {
      const { pathname } = new URL(request.url())
      if (pathname.startsWith("/admin/") && !unseen.has(pathname) && !unseen.has(`${address} ${pathname}`)) {
        reads.add(pathname)
      }
    })
    await page.reload()
    await connection(page).getByText("Live", { exact: true }).waitFor()
    await settled(page)
    for (const path of inTurn([...reads].toSorted(), index)) {
      const held: Array<Route> = []
      let isLost = true
      await page.route(({ pathname }) => pathname === path, (request) => {
        if (!isLost) return request.continue()
        held.push(request)
        return undefined
      })
      const asked = page.waitForRequest((request) => new URL(request.url()).pathname === path)
      await page.reload()
      await asked
      await page.clock.fastForward(15_000)
      const alert = page.getByRole("main").getByRole("alert").getByText(late)
      await alert.or(connection(page).getByText("Live in part")).first().waitFor()
      isLost = false
      // What was asked again meanwhile is answered now; the page has given up the first one.
      await Promise.allSettled(held.map((request) => request.continue()))
      await page.clock.fastForward(5_000)
      await connection(page).getByText("Live", { exact: true }).waitFor()
      await alert.first().waitFor({ state: "detached" })
      await page.unrouteAll({ behavior: "ignoreErrors" })
    }
    await watched.close()
  }
)
