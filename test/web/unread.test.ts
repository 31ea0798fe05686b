/**
 * The console when the gateway, or a proxy before it, does not answer a read, in Chromium.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { controls, goTo, open, signIn, useBrowser } from "./support.ts"

const browser = useBrowser()
let gateway: RunningGateway

beforeAll(async () => {
  gateway = await startGateway({ accounts: [{ email: "ada@example.com", password: "p" }] })
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
    await page.getByRole("main").getByRole("alert").getByText(late).waitFor()
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

  it("of the session shows the form to sign in", async () => {
    const { close, first, page } = await openUnanswered("overview", /\/admin\/session$/)
    await first
    await page.clock.fastForward(15_000)
    await page.getByRole("textbox", { name: "Admin key or password" }).waitFor()
    await close()
  })
})
