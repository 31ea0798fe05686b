/** The wall clock jumps an hour forward or back while requests run: nothing ends, and nothing lasts longer. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { adminKey, businessKey } from "../support/gateway.ts"
import { makeWallClock, type WallClock } from "../support/wallClock.ts"
import { accounts, admin, chat, hold, queueOf, send, type Site, startSite, textOf } from "./support.ts"

let site: Site
let clock: WallClock
afterEach(() => site.stop())

const start = async () => {
  clock = makeWallClock()
  site = await startSite({ accounts: accounts("a", "b"), captures: { limit: 5 } }, { clock })
}

const millisOf = (timing: string | null) =>
  [...(timing ?? "").matchAll(/dur=(\d+)/g)].map(([, millis]) => Number(millis))

/** The sum of the durations of chat requests in this process, in seconds. */
const chatSeconds = async (): Promise<number> => {
  const metrics = await fetch(`${site.url}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } })
  const sums = (await metrics.text()).matchAll(
    /^gen_ai_server_request_duration_seconds_sum\{.*style="chat".*\} (\S+)$/mg
  )
  return [...sums].reduce((sum, [, seconds]) => sum + Number(seconds), 0)
}

for (const hours of [1, -1]) {
  describe(`a wall clock that jumps by ${hours} h`, () => {
    it("keeps running streams, leases, stored responses and upstream logins", async () => {
      await start()
      const stored = await fetch(`${site.url}/v1/responses`, {
        method: "POST",
        headers: { authorization: `Bearer ${businessKey}` },
        body: JSON.stringify({ model: "upstream-chat", input: "!say kept" })
      }).then((response) => response.json()) as { readonly id: string }
      const { end, response } = await hold(site)
      clock.offset = hours * 3_600_000

      assert.strictEqual((await queueOf(site))["in_use"], 1)
      assert.strictEqual(textOf(await chat(site.url, "!say two three")), "two three")
      const again = await fetch(`${site.url}/v1/responses/${stored.id}`, {
        headers: { authorization: `Bearer ${businessKey}` }
      })
      assert.strictEqual(again.status, 200)
      assert.strictEqual((await queueOf(site))["in_use"], 1)
      const { logins } = await site.report()
      for (const count of Object.values(logins)) assert.strictEqual(count, 1)

      end()
      await response.text().then(() => assert.fail("the stream was left"), () => undefined)
    })

    it("does not change the measured duration of a running request", async () => {
      await start()
      // Gateways of one process share their metrics.
      const before = await chatSeconds()
      const asked = send(site.url, "!wait 200ms\n!say late")
      await site.until((report) => report.streams === 1)
      clock.offset = hours * 3_600_000
      const response = await asked
      assert.strictEqual(response.status, 200)
      const millis = millisOf(response.headers.get("server-timing"))
      assert.lengthOf(millis, 3)
      for (const each of millis) assert.isBelow(each, 60_000)
      const lasted = await chatSeconds() - before
      assert.isAbove(lasted, 0)
      assert.isBelow(lasted, 60)
    })

    it("moves the end of an admin login, because its expiry is a calendar time", async () => {
      await start()
      const { token } = await admin(site.url, "POST", "/admin/login", { admin_key: adminKey, expire_hours: 1 })
      clock.offset = hours * 3_600_000
      const verified = await fetch(`${site.url}/admin/verify`, { headers: { authorization: `Bearer ${token}` } })
      assert.strictEqual(verified.status, hours > 0 ? 401 : 200)
    })
  })
}
