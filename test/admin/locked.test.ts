/** A locked configuration: what the admin API refuses, what it still does, and how the lock ends. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Layer } from "effect"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { Environment } from "../../src/config/Environment.ts"
import { type RawConfig, sha256Hex } from "../../src/config/json.ts"
import { tokenIdentifier } from "../../src/domain/identity.ts"
import { withVariables } from "../config/support.ts"
import { adminKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { untilHolds } from "../support/until.ts"
import { caller } from "./support.ts"

let gateway: RunningGateway
let folder: string
let file: string
const call = caller(() => gateway)
afterEach(async () => {
  await gateway.stop()
  rmSync(folder, { recursive: true })
})

const strong = "sk-gw-Zk3vQ9xT1mB7cR5nW8yL2pD6sF4hJ0aGuEiOtUqXrVw"
const config: RawConfig = {
  keys: ["a-key", strong],
  upstream: { driver: "embedded" },
  upstreams: { gpu: { driver: "openai", base_url: "http://127.0.0.1:9/v1", models: { m: "m" } } },
  accounts: [{ upstream: "gpu", token: "an-account" }]
}
const account = encodeURIComponent(tokenIdentifier("an-account", sha256Hex))

const start = async (raw: RawConfig, variables: Readonly<Record<string, string>> = {}) => {
  folder = mkdtempSync(path.join(tmpdir(), "locked-"))
  file = path.join(folder, "config.json")
  writeFileSync(file, JSON.stringify(raw))
  const environment = { GATEWAY_CONFIG_PATH: file, GATEWAY_ADMIN_KEY: adminKey, ...variables }
  gateway = await startGateway({}, {
    store: ConfigStore.layer.pipe(
      Layer.provide(Environment.layer),
      Layer.provide(withVariables(environment)),
      Layer.provide(NodeServices.layer)
    ),
    environment
  })
}

const secret = `whsec_${Buffer.alloc(32, 1).toString("base64")}`
const webhook = { name: "pager", url: "http://127.0.0.1:9/hook", secret }

/** Changes of every kind of entry. */
const changes: ReadonlyArray<readonly [method: string, path: string, body?: unknown]> = [
  ["POST", "/admin/config", { keys: ["other"] }],
  ["POST", "/admin/config/import", { config: { keys: ["other"] } }],
  ["POST", "/admin/keys", { generate: true }],
  ["POST", "/admin/keys/hash"],
  ["DELETE", "/admin/keys/a-key"],
  ["PUT", "/admin/settings", { runtime: { account_max_queue: 3 } }],
  ["PUT", "/admin/prices", { prices: { any: { input: 1 } } }],
  ["PUT", "/admin/routes", { routes: { any: ["default/upstream-chat"] } }],
  ["POST", "/admin/accounts", { token: "another-account", upstream: "gpu" }],
  ["POST", "/admin/accounts/batch", { action: "disable", identifiers: [decodeURIComponent(account)] }],
  ["PATCH", `/admin/accounts/${account}`, { note: "changed" }],
  ["DELETE", `/admin/accounts/${account}`],
  ["POST", "/admin/upstreams", { name: "other", driver: "openai", base_url: "http://127.0.0.1:9/v1" }],
  ["PATCH", "/admin/upstreams/gpu", { enabled: false }],
  ["DELETE", "/admin/upstreams/gpu?force=true"],
  ["PUT", "/admin/webhooks", { webhooks: [webhook] }],
  ["POST", "/admin/tokens", { name: "dashboard", role: "viewer" }],
  ["POST", "/admin/settings/password", { new_password: "a long password" }]
]

describe("a locked configuration", () => {
  it("is changed by its file alone: the admin API reads, tests and signs out, and names the file in each refusal", async () => {
    const locked = { ...config, admin: { locked: true } }
    await start(locked)
    const written = readFileSync(file, "utf8")
    for (const [method, path, body] of changes) {
      const refused = await call(method, path, body === undefined ? {} : { body })
      assert.strictEqual(refused.status, 409, `${method} ${path}: ${refused.text}`)
      assert.strictEqual(
        refused.detail,
        `the configuration is locked (admin.locked): change it in ${file}, not by the admin API`,
        path
      )
    }
    assert.strictEqual(readFileSync(file, "utf8"), written)
    assert.strictEqual((await call("GET", "/admin/config")).json["locked"], true)
    const trial = await call("POST", "/admin/config/import?dry_run=true", { body: { config: { keys: ["other"] } } })
    assert.strictEqual(trial.status, 200, trial.text)
    const session = await call("POST", "/admin/session", {
      bearer: null,
      body: { admin_key: adminKey },
      headers: { "sec-fetch-site": "same-origin" }
    })
    const headers = { "sec-fetch-site": "same-origin", cookie: session.headers.get("set-cookie") ?? "" }
    const signedOut = await call("DELETE", "/admin/session", { bearer: null, headers })
    assert.deepEqual([session.status, signedOut.status], [200, 200], signedOut.text)
    assert.strictEqual((await call("DELETE", "/admin/dev/captures")).status, 200)
    writeFileSync(file, JSON.stringify(config))
    await untilHolds(async () => (await call("GET", "/admin/config")).json["locked"] === false)
    assert.strictEqual((await call("POST", "/admin/keys", { body: { generate: true } })).status, 200)
  })

  it("is locked by GATEWAY_LOCKED too, and an edit of the file applies", async () => {
    await start(config, { GATEWAY_LOCKED: "yes" })
    const refused = await call("POST", "/admin/keys", { body: { generate: true } })
    assert.deepEqual([refused.status, refused.detail], [
      409,
      `the configuration is locked (GATEWAY_LOCKED): change it in ${file}, not by the admin API`
    ])
    writeFileSync(file, JSON.stringify({ ...config, keys: ["a-key", "edited"] }))
    await untilHolds(async () => JSON.stringify((await call("GET", "/admin/config")).json["keys"]).includes("edited"))
  })
})
