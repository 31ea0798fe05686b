/**
 * Invalid store settings stop a node's start with one line each, without credentials.
 */
import { assert, describe, it } from "@effect/vitest"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { run } from "../server/cli/process.ts"

const rows: ReadonlyArray<{
  readonly about: string
  readonly env: Readonly<Record<string, string>>
  readonly file?: object
  readonly says: string
}> = [
  {
    about: "a malformed address",
    env: { GATEWAY_STORE_URL: "http://user:hidden@host", GATEWAY_ADMIN_KEY: "admin" },
    says: "GATEWAY_STORE_URL must be redis://"
  },
  { about: "no key", env: { GATEWAY_STORE_URL: "redis://user:hidden@127.0.0.1:1" }, says: "needs GATEWAY_STORE_KEY" },
  {
    about: "a short key",
    env: { GATEWAY_STORE_URL: "redis://user:hidden@127.0.0.1:1", GATEWAY_STORE_KEY: "hidden" },
    says: "GATEWAY_STORE_KEY must have at least 16 characters"
  },
  {
    about: "a short previous key",
    env: { GATEWAY_STORE_URL: "redis://127.0.0.1:1", GATEWAY_ADMIN_KEY: "admin", GATEWAY_STORE_KEY_PREVIOUS: "hidden" },
    says: "GATEWAY_STORE_KEY_PREVIOUS must be derived or have at least 16 characters"
  },
  {
    about: "a derived previous key without an admin key",
    env: {
      GATEWAY_STORE_URL: "redis://127.0.0.1:1",
      GATEWAY_STORE_KEY: "a key of one's own",
      GATEWAY_STORE_KEY_PREVIOUS: "derived"
    },
    says: "GATEWAY_STORE_KEY_PREVIOUS=derived needs GATEWAY_ADMIN_KEY_PREVIOUS"
  },
  {
    about: "an invalid node id",
    env: { GATEWAY_STORE_URL: "redis://127.0.0.1:1", GATEWAY_ADMIN_KEY: "admin", GATEWAY_NODE_ID: "a b" },
    says: "GATEWAY_NODE_ID must be 1 to 64"
  },
  {
    about: "a timeout that exceeds the lifetime of a silent node",
    env: {
      GATEWAY_STORE_URL: "redis://127.0.0.1:1",
      GATEWAY_ADMIN_KEY: "a long admin key",
      GATEWAY_STORE_TIMEOUT_MS: "5000"
    },
    says: "GATEWAY_STORE_TIMEOUT_MS must be 50 to 1500"
  },
  {
    about: "an unknown value of store.on_loss",
    env: { GATEWAY_ADMIN_KEY: "admin" },
    file: { store: { url: "redis://user:hidden@127.0.0.1:1", on_loss: "open" } },
    says: "store.on_loss must be closed"
  },
  {
    about: "an unknown value of store.on_loss beside a variable with the address",
    env: { GATEWAY_ADMIN_KEY: "admin", GATEWAY_STORE_URL: "redis://user:hidden@127.0.0.1:1" },
    file: { store: { on_loss: "open" } },
    says: "store.on_loss must be closed"
  }
]

describe("a node's start is rejected with", () => {
  it.each(rows)("$about", async ({ env, file, says }) => {
    const folder = mkdtempSync(path.join(tmpdir(), "store-settings-"))
    const config = path.join(folder, "config.json")
    if (file !== undefined) writeFileSync(config, JSON.stringify(file))
    const ended = await run([], { env: { PORT: "0", GATEWAY_CONFIG_PATH: config, GATEWAY_DATA_DIR: folder, ...env } })
    rmSync(folder, { recursive: true, force: true })
    assert.strictEqual(ended.code, 1, ended.stdout)
    assert.include(ended.stderr, says)
    assert.notInclude(ended.stdout + ended.stderr, "hidden")
  })
})

it("check-config rejects an unknown value of store.on_loss", async () => {
  const checked = await run(["check-config"], {
    env: { GATEWAY_CONFIG_JSON: JSON.stringify({ store: { url: "redis://user:hidden@127.0.0.1:1", on_loss: "open" } }) }
  })
  assert.strictEqual(checked.code, 1, checked.stdout)
  assert.include(checked.stderr, "GATEWAY_CONFIG_JSON: store.on_loss must be closed")
  assert.notInclude(checked.stdout + checked.stderr, "hidden")
})
