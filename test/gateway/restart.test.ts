/** A restarted gateway still knows what must never go upstream: removed keys and the admin password. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Exit, Layer, Scope } from "effect"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { Environment } from "../../src/config/Environment.ts"
import { make } from "../../src/testing/Reference.ts"
import { adminKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { admin, chat } from "./support.ts"

const scope = Scope.makeUnsafe()
const folder = mkdtempSync(path.join(tmpdir(), "restart-"))
const file = path.join(folder, "config.json")
let gateway: RunningGateway
afterEach(async () => {
  await gateway.stop()
  await Effect.runPromise(Scope.close(scope, Exit.void))
  rmSync(folder, { recursive: true })
})

const start = async () => {
  const store = ConfigStore.layer.pipe(
    Layer.provide(Environment.layer),
    Layer.provide(
      ConfigProvider.layer(
        ConfigProvider.fromEnvRecord({ GATEWAY_CONFIG_PATH: file, GATEWAY_ADMIN_KEY: adminKey })
      )
    )
  )
  gateway = await startGateway({}, { store })
}

const restart = async () => {
  await gateway.stop()
  await start()
}

describe("a restarted gateway", () => {
  it("never sends removed keys or the admin password upstream", async () => {
    const reference = await Effect.runPromise(make())
    const base_url = await Effect.runPromise(Scope.provide(reference.listen(), scope))
    writeFileSync(
      file,
      JSON.stringify({
        keys: ["stays", "taken-by-hand"],
        accounts: [{ email: "a@x.org", password: "pw" }],
        upstream: { driver: "session", base_url }
      })
    )
    await start()
    await admin(gateway.url, "POST", "/admin/keys", { key: "taken-by-admin" })
    await admin(gateway.url, "DELETE", "/admin/keys/taken-by-admin")
    const { keys: _keys, ...rest }: Record<string, unknown> = JSON.parse(readFileSync(file, "utf8"))
    writeFileSync(file, JSON.stringify({ keys: ["stays"], ...rest }))
    // The change applies the edit if the watcher has not done so yet.
    await admin(gateway.url, "POST", "/admin/settings/password", { password: "the-admin-password" })
    const secrets = ["taken-by-admin", "taken-by-hand", "the-admin-password", adminKey]
    for (const again of [false, true]) {
      if (again) await restart()
      for (const key of secrets) {
        const said = await chat(gateway.url, "!say no", { key })
        assert.deepInclude(said, { status: 401 }, `${key} ${again}`)
        assert.strictEqual(said.error?.code, "authentication_failed")
      }
      assert.strictEqual((await Effect.runPromise(reference.report)).calls.create, 0)
    }
    assert.strictEqual((await chat(gateway.url, "!say hello", { key: "stays" })).text, "hello")
    assert.strictEqual((await chat(gateway.url, "!say hello", { key: "a-token-of-my-own" })).text, "hello")
    const kept = readFileSync(file, "utf8")
    for (const secret of secrets) assert.notInclude(kept, secret)
  })
})
