import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { ConfigTransfer } from "../../src/config/ConfigTransfer.ts"
import { type RawConfig, sha256Hex } from "../../src/config/json.ts"
import { transferJson } from "../support/configServices.ts"

const [hash1, hash2] = ["scrypt$2$1$1$AA$AA", "scrypt$2$1$1$AQ$AQ"] as const

const current = {
  keys: ["k1"],
  accounts: [
    { email: "a@x", password: "pa", note: "kept" },
    { mobile: "13800138000", password: "pm" },
    { token: "bare" }
  ],
  msgcompat_model_mapping: { slow: "upstream-chat" },
  model_aliases: { old: "upstream-chat" },
  admin: { password_hash: hash1, generation: 4, jwt_valid_after_unix: 100, jwt_expire_hours: 12, extra: 1 },
  runtime: { account_max_inflight: 3, account_max_queue: 8 },
  compat: { strip_reference_markers: false },
  embeddings: { provider: "mock" },
  auto_delete: { mode: "single" },
  captures: { limit: 7 },
  host: { token: "host-token" },
  unknown: { kept: true }
} satisfies RawConfig

const withoutOldMapping = ({ msgcompat_model_mapping: _mapping, ...rest }: RawConfig): RawConfig => rest

/** Imports into `current` and returns the result. */
const importing = (incoming: unknown, mode: "merge" | "replace", raw: RawConfig = current) =>
  Effect.gen(function*() {
    const store = yield* ConfigStore
    const transfer = yield* ConfigTransfer
    const result = yield* transfer.importConfig(incoming, mode)
    return { ...result, raw: yield* store.currentRaw }
  }).pipe(Effect.provide(transferJson(raw)))

describe("an import of a configuration", () => {
  it.effect("takes its own format, and refuses another one", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual((yield* importing({ format: 1, keys: ["k1"] }, "merge")).warnings, [])
      assert.include((yield* Effect.flip(importing({ format: 2, keys: ["k1"] }, "merge"))).message, "format must be 1")
    }))

  it.effect("with merge adds new entries, updates known accounts, and keeps the rest", () =>
    Effect.gen(function*() {
      const { imported_accounts, imported_keys, raw } = yield* importing({
        keys: ["k1", "k2", "k3"],
        accounts: [
          { email: "A@X", password: "new", token: "" },
          { mobile: "+86 138 0013 8000", password: "pm" },
          { token: " bare " },
          { email: "b@x", password: "pb", unknown: 1 }
        ],
        msgcompat_model_mapping: { fast: "upstream-chat-search" },
        model_aliases: { fresh: "upstream-reasoner" },
        runtime: { account_max_inflight: 4, future: 1 },
        responses: { store_ttl_seconds: 60 }
      }, "merge")
      assert.strictEqual(imported_keys, 2)
      assert.deepStrictEqual(raw, {
        ...withoutOldMapping(current),
        keys: ["k1", "k2", "k3"],
        accounts: [
          { email: "a@x", password: "new", note: "kept" },
          { mobile: "13800138000", password: "pm" },
          { token: "bare" },
          { email: "b@x", password: "pb", unknown: 1 }
        ],
        msgcompat_mapping: { slow: "upstream-chat", fast: "upstream-chat-search" },
        model_aliases: { old: "upstream-chat", fresh: "upstream-reasoner" },
        runtime: { account_max_inflight: 4, account_max_queue: 8, future: 1 },
        responses: { store_ttl_seconds: 60 }
      })
      // The second and third are known accounts in another spelling.
      assert.strictEqual(imported_accounts, 2)
    }))

  it.effect("leaves out upstreams, routes and accounts of upstreams that are not there, and says so", () =>
    Effect.gen(function*() {
      const server = { driver: "openai", base_url: "https://hosted.example/v1", models: { m: "m" } }
      const raw: RawConfig = {
        upstream: { driver: "embedded" },
        upstreams: { hosted: server },
        routes: { smart: ["hosted/m"] },
        accounts: [{ upstream: "hosted", token: "a", note: "kept" }]
      }
      const incoming = {
        upstreams: { hosted: { ...server, base_url: "https://elsewhere.example" }, gpu: server },
        routes: { other: ["gpu/m"] },
        model_aliases: { best: "smart" },
        accounts: [
          { upstream: "gpu", token: "b" },
          { upstream: "hosted", token: "a" },
          { upstream: "gpu", token: "c" },
          { upstream: "hosted", token: "d" }
        ]
      }
      const merged = yield* importing(incoming, "merge", raw)
      assert.strictEqual(merged.imported_accounts, 1)
      assert.deepStrictEqual(merged.raw, {
        ...raw,
        keys: [],
        accounts: [{ upstream: "hosted", token: "a", note: "kept" }, { upstream: "hosted", token: "d" }],
        model_aliases: { best: "smart" }
      })
      assert.deepStrictEqual(merged.warnings, [
        "upstreams is left out: an import does not take it, it is set by /admin/upstreams or in the configuration file",
        "routes is left out: an import does not take it, it is set by /admin/routes or in the configuration file",
        "accounts of the upstream gpu are left out (2): the configuration has no upstream of this name"
      ])
      const replaced = yield* importing(incoming, "replace", raw)
      assert.deepStrictEqual(replaced.raw["accounts"], [
        { upstream: "hosted", token: "a" },
        { upstream: "hosted", token: "d" }
      ])
      assert.deepStrictEqual(replaced.raw["upstreams"], raw["upstreams"])
      const alone = { upstreams: { hosted: server } }
      const strays = yield* importing({ accounts: [{ email: "a@x", password: "p" }] }, "merge", alone)
      assert.deepStrictEqual(strays.warnings, [
        "accounts of the upstream default are left out (1): the configuration has no upstream of this name"
      ])
    }))

  it.effect("with merge of existing entries changes nothing", () =>
    Effect.gen(function*() {
      const { imported_accounts, imported_keys, raw } = yield* importing(
        { keys: current["keys"], accounts: current["accounts"] },
        "merge"
      )
      assert.deepStrictEqual([imported_keys, imported_accounts], [0, 0])
      assert.deepStrictEqual(raw, current)
    }))

  it.effect("with replace replaces every importable group and keeps the others", () =>
    Effect.gen(function*() {
      const { config, imported_accounts, imported_keys, raw } = yield* importing({
        keys: ["n1", "n2"],
        accounts: [{ email: "n@x" }],
        runtime: { global_max_inflight: 9 },
        auto_delete: { sessions: true }
      }, "replace")
      assert.deepStrictEqual([imported_keys, imported_accounts], [2, 1])
      assert.deepStrictEqual(raw, {
        keys: ["n1", "n2"],
        accounts: [{ email: "n@x" }],
        runtime: { global_max_inflight: 9 },
        auto_delete: { mode: "all" },
        admin: current["admin"],
        compat: current["compat"],
        captures: current["captures"],
        host: current["host"],
        unknown: current["unknown"],
        auth: { removed_keys: [sha256Hex("k1")] }
      })
      assert.strictEqual(config.msgcompat_mapping.slow, "upstream-reasoner")
    }))

  it.effect("ignores compat, upstream, captures, auth, the tool-call policy and unknown fields", () =>
    Effect.gen(function*() {
      for (const mode of ["merge", "replace"] as const) {
        const ignored = {
          compat: { strip_reference_markers: 7 },
          upstream: { driver: "openai", base_url: "http://elsewhere.test" },
          captures: { limit: 50 },
          auth: { direct_tokens: false },
          host: { token: "other" },
          toolcall: { mode: "off" },
          unknown: 1
        }
        const { raw } = yield* importing({ keys: ["k1"], ...ignored }, mode)
        for (const name of Object.keys(ignored)) assert.deepStrictEqual(raw[name], (current as RawConfig)[name], name)
      }
    }))

  it.effect("converts the older flag for session deletion although a mode is set", () =>
    Effect.gen(function*() {
      const { config } = yield* importing({ auto_delete: { sessions: true } }, "merge")
      assert.strictEqual(config.auto_delete.mode, "all")
    }))

  it.effect("never removes the admin password or decreases its generation", () =>
    Effect.gen(function*() {
      for (const mode of ["merge", "replace"] as const) {
        const { config } = yield* importing(
          { admin: { password_hash: "", generation: 1, jwt_valid_after_unix: 0, jwt_expire_hours: 5 } },
          mode
        )
        assert.strictEqual(config.admin.jwt_expire_hours, 5)
        assert.deepStrictEqual([config.admin.generation, config.admin.jwt_valid_after_unix], [4, 100])
        assert.isDefined(config.admin.password_hash)
        assert.isDefined((yield* importing({ keys: ["x"] }, mode)).config.admin.password_hash)
      }
    }))

  it.effect("of another admin password ends every login, as a password change does", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1_760_000_000_500)
      const { config, raw } = yield* importing({ admin: { password_hash: hash2, generation: 0 } }, "merge")
      assert.deepStrictEqual(raw["admin"], {
        password_hash: hash2,
        generation: 5,
        jwt_valid_after_unix: 1_760_000_000,
        jwt_expire_hours: 12,
        extra: 1
      })
      assert.strictEqual(config.admin.generation, 5)
      const same = yield* importing({ admin: { password_hash: hash1 } }, "merge")
      assert.strictEqual(same.config.admin.generation, 4)
    }))

  it.effect("of a malformed password hash is rejected, because it would lock out every admin", () =>
    Effect.gen(function*() {
      for (
        const password_hash of [
          "a password",
          `sha256:${sha256Hex("a password")}`,
          "scrypt$2$1$1$AA",
          "scrypt$3$1$1$AA$AA",
          "scrypt$1048576$1024$1$AA$AA",
          "scrypt$2$1$1$AA$AA$AA"
        ]
      ) {
        for (const mode of ["merge", "replace"] as const) {
          const error = yield* Effect.flip(importing({ admin: { password_hash } }, mode))
          assert.strictEqual(
            error.message,
            "admin.password_hash must be a hash that the gateway made of a password: scrypt$N$r$p$salt$hash"
          )
        }
      }
    }))

  it.effect("is rejected as a whole for any fault, with its place in the import", () =>
    Effect.gen(function*() {
      const store = yield* ConfigStore
      const transfer = yield* ConfigTransfer
      const before = yield* store.currentRaw
      const refusals: ReadonlyArray<readonly [unknown, string]> = [
        [null, "the configuration must be a JSON object"],
        [["k"], "the configuration must be a JSON object"],
        ["{}", "the configuration must be a JSON object"],
        [{ keys: ["n", 1] }, "keys[1] must be a string"],
        [{ keys: ["n", "n"] }, "keys[1] is listed twice"],
        [{ keys: null }, "keys must be an array"],
        [
          { keys: ["n"], accounts: [{ email: "n" }, { password: "p" }] },
          "accounts[1] must have an email, a mobile, a token or a credential"
        ],
        [{ accounts: [{ email: "n" }, { email: "N " }] }, "accounts[1] is the same account as accounts[0]"],
        [
          { accounts: [{ email: "new" }, { email: "a@x", mobile: "13800138000" }] },
          "accounts[1] names two accounts that are configured apart"
        ],
        [
          { keys: ["n"], runtime: { account_max_inflight: 257 } },
          "runtime.account_max_inflight must be between 1 and 256"
        ],
        [{ responses: { store_ttl_seconds: 29 } }, "responses.store_ttl_seconds must be between 30 and 86400"],
        [
          { model_aliases: { x: "y" } },
          "model_aliases.x must name a model, a route or a target (upstream/model)"
        ],
        [
          { msgcompat_model_mapping: { fast: "y" } },
          "msgcompat_mapping.fast must name a model, a route or a target (upstream/model)"
        ],
        [{ admin: [] }, "admin must be an object"]
      ]
      for (const [incoming, message] of refusals) {
        const error = yield* Effect.flip(transfer.importConfig(incoming, "merge"))
        assert.strictEqual(error.message, message)
        assert.strictEqual(yield* store.currentRaw, before)
      }
    }).pipe(Effect.provide(transferJson(current))))

  it.effect("restores an export, without the state of the host sync", () =>
    Effect.gen(function*() {
      const transfer = yield* ConfigTransfer
      const exported = yield* transfer.exportConfig
      const { host: _host, ...rest } = current
      assert.deepStrictEqual(exported.config, rest)
      assert.deepStrictEqual(JSON.parse(exported.json), rest)
      assert.strictEqual(Buffer.from(exported.base64, "base64").toString(), exported.json)
      const { raw } = yield* importing(JSON.parse(exported.json), "replace", {})
      for (const name of ["keys", "accounts", "model_aliases", "runtime", "embeddings", "auto_delete"]) {
        assert.deepStrictEqual(raw[name], (current as RawConfig)[name])
      }
    }).pipe(Effect.provide(transferJson(current))))
})

describe("the configuration's hash", () => {
  it.effect("depends on content, not on the order of fields or the state of the host sync", () =>
    Effect.gen(function*() {
      const transfer = yield* ConfigTransfer
      const hash = yield* transfer.configHash
      assert.match(hash, /^[0-9a-f]{64}$/)
      const turned = Object.fromEntries(Object.entries(current).reverse())
      assert.strictEqual(yield* transfer.hashOf({ ...turned, host: { last_synced_hash: hash } }), hash)
      assert.strictEqual(
        yield* transfer.hashOf({ ...current, runtime: { account_max_queue: 8, account_max_inflight: 3 } }),
        hash
      )
      assert.notStrictEqual(yield* transfer.hashOf({ ...current, keys: ["k2"] }), hash)
      // The order of upstreams has a meaning.
      assert.notStrictEqual(
        yield* transfer.hashOf({ upstreams: { a: {}, b: {} } }),
        yield* transfer.hashOf({ upstreams: { b: {}, a: {} } })
      )
      assert.notStrictEqual(yield* transfer.hashOf({ ...current, unknown: { kept: false } }), hash)
      // Canonical JSON can be computed without the gateway.
      assert.strictEqual(
        yield* transfer.hashOf({ b: [1, { d: 1, c: "x" }], a: {} }),
        "e5ba18b541fd5ec6564e759007f13e80303d27cde6295b120d18164f7abece47"
      )
    }).pipe(Effect.provide(transferJson(current))))
})
