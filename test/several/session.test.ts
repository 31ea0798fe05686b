/** Routes whose first target is a chat provider with accounts that log in. */
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { accounts, admin, chat, type Site, startSite, textOf } from "../gateway/support.ts"
import { type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"

let server: OpenAiServer
let site: Site

beforeEach(async () => {
  server = await startOpenAiServer()
  server.answer(() => streamed({ content: "from the server" }))
})
afterEach(async () => {
  await site.stop()
  await server.stop()
})

const route = () => ({
  accounts: accounts("a", "b"),
  upstreams: { gpu: { driver: "openai", base_url: server.baseUrl, models: { m: "m" } } },
  routes: { "upstream-chat": ["default", "gpu/m"] }
})

const triesOf = async (): Promise<ReadonlyArray<Record<string, unknown>>> => {
  const { items } = await admin(site.url, "GET", "/admin/requests?limit=1")
  const [{ id }] = items as readonly [{ readonly id: string }]
  return (await admin(site.url, "GET", `/admin/requests/${id}`))["tries"] as ReadonlyArray<Record<string, unknown>>
}

describe("a provider with accounts in a route", () => {
  for (const stream of [false, true]) {
    it(`whose logins are all refused is left for the next target, ${stream ? "streamed" : "whole"}`, async () => {
      site = await startSite(route(), { reference: { accounts: [] } })
      assert.strictEqual(textOf(await chat(site.url, "hi", { stream })), "from the server")
      const tries = await triesOf()
      assert.deepStrictEqual(tries.map(({ cause, upstream }) => [upstream, cause]), [
        ["default", "login_refused"],
        ["default", "login_refused"],
        ["gpu", null]
      ])
      assert.lengthOf(server.requests, 1)
    })
  }

  it("answers after the refresh of a revoked token, which is a try of its own", async () => {
    site = await startSite({ ...route(), accounts: accounts("a") })
    assert.strictEqual(textOf(await chat(site.url, "!say first")), "first")
    await Effect.runPromise(site.reference.revoke())
    assert.strictEqual(textOf(await chat(site.url, "!say second")), "second")
    assert.deepStrictEqual((await triesOf()).map(({ cause, upstream }) => [upstream, cause]), [
      ["default", "token_refused"],
      ["default", null]
    ])
    assert.lengthOf(server.requests, 0)
  })
})
