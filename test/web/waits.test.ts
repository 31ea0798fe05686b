/** A wait for a page that ends without what it waits for says what was there instead. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { open, useBrowser, type Watched } from "./support.ts"

const browser = useBrowser()
let gateway: RunningGateway
let watched: Watched
beforeAll(async () => {
  gateway = await startGateway()
  watched = await open(browser(), `${gateway.url}/console/`)
  await watched.page.getByRole("button", { name: "Sign in" }).waitFor()
})
afterAll(async () => {
  await watched.close()
  await gateway.stop()
})

/** The message of a wait that fails. */
const failureOf = (wait: Promise<unknown>): Promise<string> =>
  wait.then(() => assert.fail("the wait succeeds"), (reason: Error) => reason.message)

describe("a wait for what does not come", () => {
  it("says the address, the roles in sight, the last line of the console and the last requests", async () => {
    const { page } = watched
    await page.evaluate("console.info('a line of the page')")
    const failure = await failureOf(
      page.getByRole("main").getByRole("button").filter({ hasText: "absent" }).first().click({ timeout: 1 })
    )
    assert.include(failure, `address: ${gateway.url}/console/`)
    assert.match(failure, /roles in sight:[^]*button "Sign in"/)
    assert.match(failure, /last lines of the console:[^]*info: a line of the page/)
    assert.match(failure, /last requests:[^]*GET http\S+ \d{3}/)
  })

  it("leaves other failures as they are", async () => {
    const failure = await failureOf(watched.page.evaluate("nothing.there"))
    assert.include(failure, "nothing is not defined")
    assert.notInclude(failure, "roles in sight")
  })
})
