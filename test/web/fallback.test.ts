/**
 * A walk at the console, in Chromium: a second upstream becomes the fallback of the first one, and is proved to be it.
 */
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import type { RawConfig } from "../../src/config/json.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { modelList, type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"
import { adminOf, controls, openSignedIn, result, useBrowser, type Watched } from "./support.ts"

const browser = useBrowser()
let first: OpenAiServer
let second: OpenAiServer
let gateway: RunningGateway
let watched: Watched
let page: Page

beforeAll(async () => {
  ;[first, second] = await Promise.all([startOpenAiServer(), startOpenAiServer()])
  for (const server of [first, second]) server.list(() => modelList("Qwen/Qwen3-8B"))
  first.answer(() => streamed({ content: "From the first" }))
  second.answer(() => streamed({ content: "From the second" }))
  gateway = await startGateway({
    upstream: { driver: "embedded" },
    upstreams: { gpu: { driver: "openai", base_url: first.baseUrl, models: { qwen3: "Qwen/Qwen3-8B" } } },
    accounts: []
  })
  watched = await openSignedIn(browser(), gateway.url)
  ;({ page } = watched)
})
afterAll(async () => {
  await watched.close()
  await gateway.stop()
  await Promise.all([first.stop(), second.stop()])
})

const admin = adminOf(() => gateway)
const { act, button, dialog, field } = controls(() => page)

/** Counts the clicks of a pointer from now on. */
const countClicks = () =>
  page.evaluate(
    `globalThis.clicks = 0; addEventListener("click", (e) => { if (e.detail > 0) globalThis.clicks++ }, true)`
  )

it("adding a second upstream as the fallback of a healthy one, and proving it, takes at most 9 clicks", async () => {
  await countClicks()
  const navigate = (name: string) =>
    page.getByRole("navigation", { name: "Main" }).getByRole("link", { name, exact: true }).click()
  const rehearsed = async (name: string, table: string) => {
    await act("Rehearse", name, table)
    await dialog(`Rehearse ${name}`).getByRole("button", { name: "Open the playground" }).click()
    await page.getByRole("status", { name: "Rehearsal", exact: true }).getByText(/in which gpu\/qwen3 fails/).waitFor()
    await field("Message").fill("Hello")
    await button("Send").click()
    await page.getByRole("log").getByText("From the second").waitFor()
    const { items } = await admin("/admin/requests") as { readonly items: ReadonlyArray<RawConfig> }
    assert.deepInclude(items[0], { rehearsal: true, target: "hosted/qwen3", outcome: "ok" })
    assert.lengthOf(first.requests, 0)
  }
  await navigate("Upstreams")
  await button("Add upstream").click()
  await field("Name").fill("hosted")
  await field("Base URL").fill(second.baseUrl)
  await field("API key").fill("sk-hosted")
  await field("Models, one per line").fill("qwen3 = Qwen/Qwen3-8B")
  await button("Save").click()
  await result(page).getByText("hosted was added.").waitFor()

  // A model of two upstreams has both without a route of its own.
  await navigate("Routes")
  await rehearsed("qwen3", "Models of several upstreams without a route")
  assert.isAtMost(Number(await page.evaluate("globalThis.clicks")), 9)

  await navigate("Routes")
  await act("Add route", "qwen3", "Models of several upstreams without a route")
  await dialog("Add route").getByRole("button", { name: "Save" }).click()
  await result(page).getByText("The route qwen3 was added.").waitFor()
  await rehearsed("qwen3", "Routes")
})
