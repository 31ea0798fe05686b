/** The static configuration in the admin API: read, replace, import and export; on files where persistence matters. */
import { NodeServices } from "@effect/platform-node"
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { Layer } from "effect"
import { hash } from "node:crypto"
import * as fs from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { Environment } from "../../src/config/Environment.ts"
import { type RawConfig, sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { withVariables } from "../config/support.ts"
import { adminKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock, type MovedClock } from "../support/movedClock.ts"
import { caller } from "./support.ts"

const raw: RawConfig = {
  keys: ["first-key"],
  accounts: [
    { email: "a@x.org", password: "password-a", note: "kept" },
    { mobile: "13812345678", password: "password-b", token: "token-of-the-second-account" },
    { token: "token-of-the-third-account" }
  ],
  msgcompat_mapping: { fast: "upstream-chat", slow: "upstream-reasoner" },
  unknown_group: { kept: true }
}

let folder: string
let gateway: RunningGateway
const call = caller(() => gateway)

beforeAll(async () => {
  folder = await fs.mkdtemp(path.join(tmpdir(), "admin-config-"))
})
afterEach(() => gateway.stop())
afterAll(() => fs.rm(folder, { recursive: true }))

const fileStore = (variables: Readonly<Record<string, string>>) =>
  ConfigStore.layer.pipe(
    Layer.provide(Environment.layer),
    Layer.provide(withVariables({ GATEWAY_ADMIN_KEY: adminKey, ...variables })),
    Layer.provide(NodeServices.layer)
  )

let files = 0
/** Starts a gateway on its own configuration file. */
const onFile = async (content: RawConfig = raw, clock?: MovedClock) => {
  const file = path.join(folder, `${++files}.json`)
  await fs.writeFile(file, JSON.stringify(content))
  gateway = await startGateway({}, {
    store: fileStore({ GATEWAY_CONFIG_PATH: file }),
    ...(clock === undefined ? {} : { clock })
  })
  return { file, saved: async () => JSON.parse(await fs.readFile(file, "utf8")) as RawConfig }
}

const inMemory = async (content: RawConfig = raw) => {
  gateway = await startGateway(content)
}

const get = async (what: string) => (await call("GET", what)).json

describe("the configuration in the admin API", () => {
  it("shows every field, without passwords and complete tokens", async () => {
    const { file } = await onFile()
    assert.deepStrictEqual(await get("/admin/config"), {
      keys: ["first-key"],
      env_backed: false,
      env_source_present: false,
      env_writeback_enabled: false,
      env_locked: false,
      locked: false,
      config_path: file,
      config_writable: true,
      accounts: [
        {
          identifier: "a@x.org",
          email: "a@x.org",
          mobile: "",
          has_password: true,
          has_token: false,
          token_preview: ""
        },
        {
          identifier: "13812345678",
          email: "",
          mobile: "13812345678",
          has_password: true,
          has_token: true,
          token_preview: "token-of..."
        },
        {
          identifier: `token:${hash("sha256", "token-of-the-third-account").slice(0, 16)}`,
          email: "",
          mobile: "",
          has_password: false,
          has_token: true,
          token_preview: "token-of..."
        }
      ],
      msgcompat_mapping: { fast: "upstream-chat", slow: "upstream-reasoner" }
    })
  })

  it("does not list the key that was generated at a start without keys", async () => {
    await inMemory({ keys: [] })
    assert.deepStrictEqual((await get("/admin/config"))["keys"], [])
    const added = await call("POST", "/admin/keys", { body: { key: "one" } })
    assert.strictEqual(added.json["total_keys"], 1)
  })

  it("posted back as shown, it changes nothing", async () => {
    const { saved } = await onFile()
    const answer = await call("POST", "/admin/config", { body: await get("/admin/config") })
    assert.strictEqual(answer.status, 200, answer.text)
    const { message, ...facts } = answer.json
    assert.isString(message)
    assert.deepStrictEqual(facts, {
      success: true,
      total_keys: 1,
      total_accounts: 3,
      warnings: [],
      config_writable: true,
      needs_host_sync: false
    })
    assert.deepStrictEqual(await saved(), raw)
  })

  it("an import warns about ignored fields", async () => {
    await inMemory()
    const incoming = { runtime: { acount_max_inflight: 3 }, upstream: { driver: "embedded" } }
    for (const body of [{ ...incoming, mode: "merge" }, { config: incoming }]) {
      const imported = await call("POST", "/admin/config/import", { body })
      assert.deepStrictEqual(imported.json["warnings"], [
        "upstream is left out: an import does not take it, it is set in the configuration file",
        "runtime.acount_max_inflight is an unknown field: did you mean runtime.account_max_inflight?"
      ])
    }
  })

  it("lists are replaced one by one; known accounts keep the fields that are not given", async () => {
    const { saved } = await onFile()
    const answer = await call("POST", "/admin/config", {
      body: {
        accounts: [
          { email: "new@x.org", password: "password-new" },
          { mobile: "+86 138-1234-5678", password: "password-changed" },
          { email: "A@X.ORG", password: "", token: null }
        ],
        msgcompat_mapping: { slow: "upstream-reasoner-search" }
      }
    })
    assert.strictEqual(answer.status, 200, answer.text)
    assert.deepStrictEqual(await saved(), {
      ...raw,
      accounts: [
        { email: "new@x.org", password: "password-new" },
        { mobile: "+86 138-1234-5678", password: "password-changed", token: "token-of-the-second-account" },
        { email: "A@X.ORG", password: "password-a", note: "kept" }
      ],
      msgcompat_mapping: { fast: "upstream-chat", slow: "upstream-reasoner-search" }
    })
  })

  it("a body with one invalid part changes nothing", async () => {
    const { saved } = await onFile()
    for (
      const body of [
        { keys: ["x", "x"] },
        { keys: ["x"], accounts: [{ email: "b@x.org" }, { email: "B@x.org" }] },
        { keys: ["x"], accounts: [{}] },
        { keys: ["x"], runtime: { account_max_inflight: 9 } },
        { keys: ["x"], msgcompat_mapping: { fast: "no-such-model" } }
      ]
    ) {
      assert.strictEqual((await call("POST", "/admin/config", { body })).status, 400, JSON.stringify(body))
    }
    assert.deepStrictEqual(await saved(), raw)
  })

  it("a mapping under its older name is written under the current name", async () => {
    const { saved } = await onFile({
      msgcompat_model_mapping: { fast: "upstream-chat-search", slow: "upstream-chat" }
    })
    await call("POST", "/admin/config", { body: { msgcompat_mapping: { slow: "upstream-reasoner" } } })
    assert.deepStrictEqual(await saved(), {
      msgcompat_mapping: { fast: "upstream-chat-search", slow: "upstream-reasoner" }
    })
  })
})

describe("an import of a configuration", () => {
  const imported = { keys: ["second-key"], accounts: [{ email: "b@x.org", password: "password-b" }] }

  it("merges a bare configuration and a wrapped one", async () => {
    await inMemory()
    const direct = await call("POST", "/admin/config/import", { body: imported })
    assert.deepInclude(direct.json, { success: true, mode: "merge", imported_keys: 1, imported_accounts: 1 })
    const wrapped = await call("POST", "/admin/config/import", {
      body: { config: { ...imported, keys: ["third-key"] } }
    })
    assert.deepInclude(wrapped.json, { success: true, mode: "merge", imported_keys: 1, imported_accounts: 0 })
    assert.deepStrictEqual((await get("/admin/config"))["keys"], ["first-key", "second-key", "third-key"])
  })

  it("takes its mode from the query first, then from the body", async () => {
    await inMemory()
    const modeOf = async (query: string, body: unknown) =>
      (await call("POST", `/admin/config/import${query}`, { body })).json["mode"]
    assert.strictEqual(await modeOf("?mode=merge", { config: {}, mode: "replace" }), "merge")
    assert.strictEqual(await modeOf("?mode=", { keys: ["k"], mode: "Replace" }), "replace")
    assert.deepStrictEqual((await get("/admin/config"))["keys"], ["k"])
    assert.strictEqual(await modeOf("?mode=replace", imported), "replace")
    assert.deepStrictEqual((await get("/admin/config"))["keys"], ["second-key"])
    assert.strictEqual(await modeOf("", { config: {}, mode: null }), "merge")
  })

  it("restores a complete export in another gateway", async () => {
    await inMemory({ ...raw, model_aliases: { mine: "upstream-chat" }, runtime: { account_max_inflight: 7 } })
    const backup = await call("GET", "/admin/config/export")
    await gateway.stop()
    await inMemory({ keys: ["other"] })
    const answer = await call("POST", "/admin/config/import?mode=replace", { text: backup.text })
    assert.strictEqual(answer.status, 200, answer.text)
    const restored = (await get("/admin/export"))["config"]
    assert.deepInclude(restored, { keys: raw["keys"], accounts: raw["accounts"] })
    assert.deepInclude(restored, { model_aliases: { mine: "upstream-chat" }, runtime: { account_max_inflight: 7 } })
  })

  it("applies all or nothing", async () => {
    const { saved } = await onFile()
    for (
      const body of [
        { keys: ["new"], accounts: [{ email: "ok@x.org" }, { email: 5 }] },
        { keys: ["new"], runtime: { account_max_inflight: 0 } },
        { keys: ["new"], model_aliases: { mine: "no-such-model" } },
        { keys: ["new", "new"] }
      ]
    ) {
      for (const mode of ["merge", "replace"]) {
        const answer = await call("POST", `/admin/config/import?mode=${mode}`, { body })
        assert.strictEqual(answer.status, 400, answer.text)
      }
    }
    assert.deepStrictEqual(await saved(), raw)
  })

  it("POST /admin/import treats a null field of an account as absent", async () => {
    const { saved } = await onFile()
    const answer = await call("POST", "/admin/import", {
      body: {
        accounts: [{ email: "null@x.org", password: "p", mobile: null, token: null, note: null, disabled: null }]
      }
    })
    assert.strictEqual(answer.status, 200, answer.text)
    const { accounts } = await saved()
    assert.deepStrictEqual((accounts as ReadonlyArray<RawConfig>).at(-1), { email: "null@x.org", password: "p" })
  })

  it("POST /admin/import accepts only keys and accounts", async () => {
    const { saved } = await onFile()
    const refused = await call("POST", "/admin/import", {
      body: { ...imported, runtime: { account_max_inflight: 9 } }
    })
    assert.strictEqual(refused.status, 400)
    assert.strictEqual(refused.detail, "runtime is not taken here: it is set in the configuration file")
    assert.deepStrictEqual(await saved(), raw)
    const answer = await call("POST", "/admin/import", { body: imported })
    assert.deepStrictEqual(answer.json, {
      success: true,
      imported_keys: 1,
      imported_accounts: 1,
      warnings: [],
      config_writable: true,
      needs_host_sync: false
    })
    assert.deepStrictEqual(await saved(), {
      ...raw,
      keys: ["first-key", "second-key"],
      accounts: [...raw["accounts"] as ReadonlyArray<RawConfig>, ...imported.accounts]
    })
  })
})

describe("an export of the configuration", () => {
  it("both routes return the configuration, its text and its Base64", async () => {
    await inMemory()
    const long = await get("/admin/config/export")
    assert.deepStrictEqual(await get("/admin/export"), long)
    assert.deepStrictEqual(Object.keys(long), ["success", "config", "json", "base64"])
    assert.deepStrictEqual(long["config"], raw)
    assert.deepStrictEqual(JSON.parse(String(long["json"])), raw)
    assert.strictEqual(Buffer.from(String(long["base64"]), "base64").toString(), long["json"])
  })
})

describe("a concurrent edit of the configuration file", () => {
  it("is merged with a change in the admin API; a conflict or an invalid edit is rejected with 409", async () => {
    // On a clock that stands still the file is never old enough to be read before the change.
    const { file, saved } = await onFile(raw, makeMovedClock({ still: true }))
    await fs.writeFile(
      file,
      JSON.stringify({ ...raw, keys: ["first-key", "by-hand"], responses: { store_ttl_seconds: 60 } })
    )
    const added = await call("POST", "/admin/keys", { body: { key: "by-api" } })
    assert.strictEqual(added.status, 200, added.text)
    assert.deepStrictEqual((await saved())["keys"], ["first-key", "by-hand", "by-api"])

    await fs.writeFile(file, JSON.stringify({ ...raw, responses: { store_ttl_seconds: 120 } }))
    const collides = await call("PUT", "/admin/settings", { body: { responses: { store_ttl_seconds: 90 } } })
    assert.strictEqual(collides.status, 409)
    assert.include(collides.detail, "responses.store_ttl_seconds")

    await fs.writeFile(file, "{")
    assert.strictEqual((await call("POST", "/admin/keys", { body: { key: "k" } })).status, 409)
    assert.strictEqual(await fs.readFile(file, "utf8"), "{")
  })
})

describe("an edit of the configuration file before a change in the admin API", () => {
  it("is applied first, so that the change can refer to it", async () => {
    const { file, saved } = await onFile()
    await fs.writeFile(file, JSON.stringify({ ...raw, keys: ["first-key", "by-hand"] }))
    const id = keyId("by-hand", sha256Hex)
    const named = await call("PATCH", `/admin/keys/${id}`, { body: { name: "team a" } })
    assert.strictEqual(named.status, 200, named.text)
    assert.deepInclude((await saved())["key_records"], { [id]: { name: "team a" } })

    await fs.writeFile(file, JSON.stringify({ ...await saved(), keys: ["first-key", "by-hand", "another"] }))
    const removed = await call("DELETE", "/admin/keys/another")
    assert.strictEqual(removed.status, 200, removed.text)
    assert.deepStrictEqual((await saved())["keys"], ["first-key", "by-hand"])

    await fs.writeFile(file, JSON.stringify({ ...await saved(), keys: ["first-key"] }))
    assert.strictEqual((await call("POST", "/admin/keys", { body: { key: "by-hand" } })).status, 200)
    assert.strictEqual((await call("DELETE", "/admin/keys/none")).status, 404)
  })
})

describe("a change in the admin API that cannot be saved", () => {
  it("reports config_writable and needs_host_sync if the environment is the source", async () => {
    gateway = await startGateway({}, {
      store: fileStore({
        GATEWAY_CONFIG_JSON: JSON.stringify({ ...raw, unknown_group: undefined }),
        GATEWAY_CONFIG_PATH: path.join(folder, "unused.json")
      })
    })
    assert.deepInclude(await get("/admin/config"), {
      env_backed: true,
      env_source_present: true,
      env_writeback_enabled: false
    })
    assert.deepInclude(await get("/admin/settings"), { env_backed: true, needs_host_sync: false })
    const changes: ReadonlyArray<readonly [method: string, path: string, body?: unknown]> = [
      ["POST", "/admin/keys", { key: "k" }],
      ["POST", "/admin/accounts", { token: "another-token" }],
      ["DELETE", "/admin/accounts/a@x.org"],
      ["POST", "/admin/config", { keys: ["k2"] }],
      ["POST", "/admin/import", { keys: ["k3"] }],
      ["POST", "/admin/config/import", { keys: ["k4"] }],
      ["PUT", "/admin/settings", { runtime: { account_max_inflight: 3 } }],
      ["POST", "/admin/settings/password", { password: "long enough" }]
    ]
    // A change that is reverted needs no sync.
    await call("POST", "/admin/keys", { body: { key: "k" } })
    assert.deepInclude((await call("DELETE", "/admin/keys/k")).json, { config_writable: false, needs_host_sync: false })
    for (const [method, path, body] of changes) {
      const answer = await call(method, path, { body })
      assert.deepInclude(answer.json, { success: true, config_writable: false, needs_host_sync: true }, path)
    }
    assert.deepInclude((await call("GET", "/admin/settings", { bearer: "long enough" })).json, {
      needs_host_sync: true
    })
  })

  it("fails as a whole if the file cannot be replaced, and the error names the remedy", async () => {
    const { file } = await onFile()
    await fs.rm(file)
    await fs.mkdir(file)
    const answer = await call("POST", "/admin/keys", { body: { key: "k" } })
    assert.strictEqual(answer.status, 503)
    assert.include(answer.detail, file)
    assert.deepStrictEqual((await get("/admin/config"))["keys"], ["first-key"])
  })
})
