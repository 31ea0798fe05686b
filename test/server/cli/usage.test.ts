/**
 * The usage history and the remaining limits of keys survive a kill of the service.
 */
import { assert, describe, it } from "@effect/vitest"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { DatabaseSync } from "node:sqlite"
import { sha256Hex } from "../../../src/config/json.ts"
import { keyId } from "../../../src/domain/identity.ts"
import { type Running, start } from "./process.ts"

const id = keyId("key", sha256Hex)

const urlOf = async (gateway: Running): Promise<string> => (await gateway.printed(/listens on (http:\/\/\S+)\n/))[1]!

const chat = (url: string) =>
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: "Bearer key" },
    body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "Hello" }] })
  })

const admin = async (url: string, route: string) => {
  const response = await fetch(`${url}${route}`, { headers: { authorization: "Bearer admin" } })
  return await response.json() as Record<string, unknown>
}

describe("the service, killed", () => {
  it("restores usage after a restart, and enforces key limits with it", async () => {
    const home = mkdtempSync(path.join(tmpdir(), "usage-"))
    const config = path.join(home, "config.json")
    writeFileSync(
      config,
      JSON.stringify({
        keys: ["key"],
        key_records: { [id]: { name: "team", limits: [{ window: "month", requests: 4 }] } }
      })
    )
    const variables = { PORT: "0", GATEWAY_CONFIG_PATH: config, GATEWAY_ADMIN_KEY: "admin" }
    const first = start([], variables)
    const url = await urlOf(first)
    for (let i = 0; i < 3; i++) assert.strictEqual((await chat(url)).status, 200)
    const file = new DatabaseSync(path.join(home, "data/usage.sqlite"), { readOnly: true, timeout: 5000 })
    const written = file.prepare("SELECT sum(requests) AS requests FROM usage")
    while (written.get()?.["requests"] !== 3) await new Promise(setImmediate)
    file.close()
    first.child.kill("SIGKILL")
    await first.ended

    const second = start([], variables)
    const again = await urlOf(second)
    const usage = await admin(again, "/admin/usage?by=key")
    assert.deepInclude(usage["totals"], { requests: 3, counted_requests: 3 })
    assert.deepInclude(usage["store"], { kind: "sqlite", persistent: true, detail: null })
    const statuses = [(await chat(again)).status, (await chat(again)).status]
    assert.deepStrictEqual(statuses, [200, 429])
    const { items } = await admin(again, "/admin/keys") as {
      items: ReadonlyArray<{ usage: { windows: ReadonlyArray<{ requests: unknown }> } }>
    }
    assert.deepStrictEqual(items[0]?.usage.windows[0]?.requests, { limit: 4, used: 4, remaining: 0 })
    // Pending usage is written at a regular stop.
    second.child.kill("SIGTERM")
    assert.strictEqual((await second.ended).code, 0)
    const left = new DatabaseSync(path.join(home, "data/usage.sqlite"), { readOnly: true })
    assert.strictEqual(left.prepare("SELECT sum(requests) AS requests FROM usage").get()?.["requests"], 5)
    left.close()
    rmSync(home, { recursive: true })
    // Two starts, one after the other.
  })
})
