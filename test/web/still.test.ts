/**
 * The filters of the list of requests under the hand, in Chromium.
 */
import { assert, it } from "@effect/vitest"
import { businessKey, startGateway } from "../support/gateway.ts"
import { open, signIn, useBrowser } from "./support.ts"

const browser = useBrowser()

it("the values of a filter keep their order under the pointer, with their newest counts", async () => {
  const gateway = await startGateway({ upstream: { driver: "embedded" }, accounts: [] })
  const ask = async (model: string) => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}` },
      body: JSON.stringify({ model, messages: [{ role: "user", content: "!say hello" }] })
    })
    assert.strictEqual(response.status, 200)
  }
  for (const model of ["upstream-chat", "upstream-chat", "upstream-reasoner"]) await ask(model)
  const { close, page } = await open(browser(), `${gateway.url}/console/#/requests`)
  await page.clock.install()
  await page.reload()
  await signIn(page)
  await page.getByRole("button", { name: "Model", exact: true }).click()
  const values = page.getByRole("group", { name: "Model", exact: true }).getByRole("listitem")
  const value = (model: string, count: number) => values.filter({ hasText: `${model}${count}` })
  await value("upstream-reasoner", 1).hover()
  for (const _ of [1, 2]) await ask("upstream-reasoner")
  await page.getByRole("table", { name: "Requests" }).getByRole("row").nth(5).waitFor()
  await page.clock.fastForward(5_000)
  await value("upstream-reasoner", 3).waitFor()
  assert.deepStrictEqual(await values.allTextContents(), ["upstream-chat2", "upstream-reasoner3"])
  await page.getByRole("heading", { level: 1 }).hover()
  await values.first().filter({ hasText: "upstream-reasoner3" }).waitFor()
  await close()
  await gateway.stop()
})
