/** Gateway keys that the configuration keeps as hashes. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { decodeConfig } from "../../src/config/decodeConfig.ts"
import { Environment } from "../../src/config/Environment.ts"
import { type RawConfig, sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { withVariables } from "../config/support.ts"
import { runHere } from "../server/cli/command.ts"
import { adminKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { untilHolds } from "../support/until.ts"
import { caller } from "./support.ts"

const folder = mkdtempSync(path.join(tmpdir(), "hashed-"))
const file = path.join(folder, "config.json")
const strong = "sk-gw-Zk3vQ9xT1mB7cR5nW8yL2pD6sF4hJ0aGuEiOtUqXrVw"
const weak = "team-a"
const hashed = { hash: `sha256:${sha256Hex(strong)}`, preview: "sk-gw-Zk3v...XrVw" }
const written = (): RawConfig => JSON.parse(readFileSync(file, "utf8")) as RawConfig

let gateway: RunningGateway
const call = caller(() => gateway)
beforeAll(async () => {
  writeFileSync(
    file,
    JSON.stringify({
      keys: [strong, weak],
      key_records: { [keyId(strong, sha256Hex)]: { name: "robot", limits: [{ window: "day", requests: 100 }] } },
      auth: { direct_tokens: false },
      upstream: { driver: "embedded" }
    })
  )
  const environment = { GATEWAY_CONFIG_PATH: file, GATEWAY_ADMIN_KEY: adminKey }
  gateway = await startGateway({}, {
    store: ConfigStore.layer.pipe(
      Layer.provide(Environment.layer),
      Layer.provide(withVariables(environment)),
      Layer.provide(NodeServices.layer)
    ),
    environment
  })
})
afterAll(async () => {
  await gateway.stop()
  rmSync(folder, { recursive: true })
})

const models = (bearer: string) => call("GET", "/v1/models", { bearer })
const chat = async (bearer: string) =>
  (await call("POST", "/v1/chat/completions", {
    bearer,
    body: { model: "upstream-chat", messages: [{ role: "user", content: "!say Hi" }] }
  })).status

describe("a key that is kept as a hash", () => {
  it("is accepted as before with its record, is never shown again, and is removed by the key itself", async () => {
    assert.strictEqual(await chat(strong), 200)
    const done = await call("POST", "/admin/keys/hash")
    assert.deepInclude(done.json, { success: true, hashed: 1, guessable: [keyId(weak, sha256Hex)], total_keys: 2 })
    assert.deepEqual(written()["keys"], [hashed, weak])
    assert.notInclude(readFileSync(file, "utf8"), strong)
    assert.deepEqual([await chat(strong), await chat(weak), await chat(hashed.hash)], [200, 200, 401])
    const { items } = (await call("GET", "/admin/keys")).json as {
      readonly items: ReadonlyArray<Record<string, unknown>>
    }
    assert.deepInclude(items[0], { id: keyId(strong, sha256Hex), preview: hashed.preview, name: "robot" })
    assert.strictEqual((items[0]!["usage"] as Record<string, unknown>)["requests_today"], 2)
    for (const where of ["/admin/config", "/admin/config/export", "/admin/changes", "/admin/keys"]) {
      assert.notInclude((await call("GET", where)).text, strong, where)
    }
    assert.match((await call("POST", "/admin/keys", { body: { key: strong } })).detail, /key already exists/)
    const exported = (await call("GET", "/admin/config/export")).json
    assert.strictEqual((await call("POST", "/admin/config/import", { body: exported })).status, 200)
    assert.deepEqual(written()["keys"], [hashed, weak])
    assert.strictEqual((await call("DELETE", `/admin/keys/${weak}`)).status, 200)
    assert.match(
      (await call("POST", "/admin/test", { body: {} })).detail,
      /api_key is required: the configured keys are kept as hashes/
    )
    assert.strictEqual((await models(strong)).status, 200)
    assert.strictEqual((await call("DELETE", `/admin/keys/${strong}`)).status, 200)
    assert.strictEqual(await chat(strong), 401)
    assert.notProperty(written(), "key_records")
  })

  it("is what auth.hash_keys makes of each added key", async () => {
    writeFileSync(file, JSON.stringify({ ...written(), keys: [weak], auth: { direct_tokens: false, hash_keys: true } }))
    await untilHolds(async () => (await call("GET", "/admin/config")).json["keys"]?.toString() === weak)
    const added = await call("POST", "/admin/keys", { body: { generate: true } })
    assert.strictEqual(added.status, 200)
    assert.notProperty(added.json, "warning")
    const key = String(added.json["key"])
    assert.deepEqual(written()["keys"], [weak, {
      hash: `sha256:${sha256Hex(key)}`,
      preview: String(added.json["preview"])
    }])
    assert.strictEqual(await chat(key), 200)
    const kept = await call("POST", "/admin/keys", { body: { key: "short" } })
    assert.strictEqual(
      kept.json["warning"],
      `the key ${
        keyId("short", sha256Hex)
      } can be guessed from a hash, so it stays as it is: replace it by a generated one`
    )
    assert.deepEqual((written()["keys"] as ReadonlyArray<unknown>).at(-1), "short")
  })

  it("is made by keys hash in a file, which names the keys that can be guessed", async () => {
    const other = path.join(folder, "other.json")
    writeFileSync(other, JSON.stringify({ keys: [weak, strong], note: "kept" }))
    const { code, stdout } = await runHere(["keys", "hash"], { env: { GATEWAY_CONFIG_PATH: other } })
    assert.deepEqual([code, stdout], [
      0,
      `warning: the key ${
        keyId(weak, sha256Hex)
      } can be guessed from a hash, so it stays as it is: replace it by a generated one\n` +
      `${other}: 1 key hashed, 1 kept as text\n`
    ])
    assert.deepEqual(JSON.parse(readFileSync(other, "utf8")), { keys: [weak, hashed], note: "kept" })
  })

  it("needs a hash of the right form", async () => {
    const raw = { keys: [{ hash: "md5:1", preview: 3 }, { preview: "a" }] }
    const { faults } = await Effect.runPromise(Effect.flip(decodeConfig(raw, { duplicates: "refuse" })))
    assert.deepEqual(faults.map(({ message }) => message), [
      "keys[0].hash must be sha256: and 64 hex digits",
      "keys[0].preview must be a string",
      "keys[1].hash is required"
    ])
  })
})
