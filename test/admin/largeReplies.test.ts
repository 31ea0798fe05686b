/** Large replies of the admin API are refused before they are made when memory for replies is short. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Context } from "effect"
import { CurrentBufferedBytes } from "../../src/config/limits.ts"
import { defaultLimits } from "../../src/domain/limits.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { untilHolds } from "../support/until.ts"
import { caller } from "./support.ts"

let gateway: RunningGateway
let viewer: string
let requestId: string
const call = caller(() => gateway)

beforeAll(async () => {
  gateway = await startGateway({
    captures: { max_body_bytes: 1024 * 1024 },
    requests: { bodies: true, max_body_bytes: 1024 * 1024 }
  })
  viewer = String((await call("POST", "/admin/tokens", { body: { name: "dashboard", role: "viewer" } })).json["secret"])
  const asked = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}` },
    body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "word ".repeat(80_000) }] })
  })
  await asked.arrayBuffer()
  requestId = asked.headers.get("x-request-id") ?? ""
})
afterAll(() => gateway.stop())

describe("without room for large replies", () => {
  const sum = () => Context.get(gateway.services, CurrentBufferedBytes)
  const without = async <A>(run: () => Promise<A>) => {
    const taken = defaultLimits.buffered_bytes - 100_000
    sum().used += taken
    try {
      return await run()
    } finally {
      sum().used -= taken
    }
  }

  it("the configuration is refused with its accounts, as its export is, and shown without them", async () => {
    const accounts = Array.from({ length: 400 }, (_, i) => ({ email: `u${i}@example.com`, password: "p" }))
    assert.strictEqual((await call("POST", "/admin/config", { body: { accounts } })).status, 200)
    await without(async () => {
      assert.strictEqual((await call("GET", "/admin/config")).status, 429)
      assert.strictEqual((await call("GET", "/admin/config/export")).status, 429)
      assert.strictEqual((await call("GET", "/admin/config?accounts=false")).status, 200)
    })
    const { json, status } = await call("GET", "/admin/config")
    assert.deepStrictEqual([status, (json["accounts"] as ReadonlyArray<unknown>).length], [200, accounts.length])
    await untilHolds(() => sum().used === 0)
  })

  it("captures with bodies are refused, and those without are listed", async () => {
    await without(async () => {
      const refused = await call("GET", "/admin/dev/captures")
      assert.strictEqual(refused.status, 429)
      const { json, status } = await call("GET", "/admin/dev/captures?summary=true")
      assert.strictEqual(status, 200)
      const [{ id }] = json["items"] as readonly [{ readonly id: string }]
      assert.strictEqual((await call("GET", `/admin/dev/captures/${id}`)).status, 429)
      assert.strictEqual((await call("GET", "/admin/dev/raw-samples/query?q=word")).status, 429)
    })
    assert.strictEqual((await call("GET", "/admin/dev/captures")).status, 200)
    await untilHolds(() => sum().used === 0)
  })

  it("a record is refused to an admin, and a viewer gets it without its bodies", async () => {
    await without(async () => {
      assert.strictEqual((await call("GET", `/admin/requests/${requestId}`)).status, 429)
      const { json, status } = await call("GET", `/admin/requests/${requestId}`, { bearer: viewer })
      assert.strictEqual(status, 200)
      assert.deepInclude(json["request"], { body: "" })
    })
    assert.strictEqual((await call("GET", `/admin/requests/${requestId}`)).status, 200)
  })
})
