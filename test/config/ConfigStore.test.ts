import { assert, describe, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import { rmSync } from "node:fs"
import type { ConfigStore } from "../../src/config/ConfigStore.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { setField } from "../../src/config/rawConfig.ts"
import { addKey, collectLogs, configFile, folder, NodeServices, readJson, startStore } from "./support.ts"

const setInflight = (store: ConfigStore["Service"], value: number) =>
  store.update((raw) => Effect.succeed(setField(raw, ["runtime", "account_max_inflight"], value)))

layer(NodeServices.layer)("ConfigStore", (it) => {
  describe("the start of the configuration store", () => {
    it.effect("without a configuration generates a business key and an admin key, and saves neither", () =>
      Effect.gen(function*() {
        const fs = yield* FileSystem.FileSystem
        const path = yield* configFile()
        const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
        const config = yield* store.current
        assert.match(config.generated_key ?? "", /^gw-[\w-]{32}$/)
        assert.deepStrictEqual(config.keys, [config.generated_key ?? "none"])
        assert.deepStrictEqual(config.configured_keys, [])
        assert.isTrue(store.adminKeyGenerated)
        assert.isTrue(store.isAdminKey(Redacted.value(store.adminKey)))
        assert.isFalse(store.isAdminKey("admin"))
        assert.deepStrictEqual(yield* fs.readDirectory(path.replace("/config.json", "")), [])

        yield* addKey(store, "first")
        assert.deepStrictEqual((yield* store.current).keys, ["first"])
        assert.deepStrictEqual((yield* store.current).configured_keys, ["first"])
        assert.deepStrictEqual(yield* readJson(path), { keys: ["first"] })
      }))

    it.effect("uses the configured keys and generates none", () =>
      Effect.gen(function*() {
        const path = yield* configFile({ keys: ["k"] })
        const store = yield* startStore({ GATEWAY_CONFIG_PATH: path, GATEWAY_ADMIN_KEY: "root" })
        assert.deepStrictEqual((yield* store.current).keys, ["k"])
        assert.strictEqual((yield* store.current).generated_key, undefined)
        assert.isFalse(store.adminKeyGenerated)
        assert.isTrue(store.isAdminKey("root"))
        assert.deepStrictEqual(store.source, {
          env_backed: false,
          env_source_present: false,
          env_writeback_enabled: false,
          env_locked: false,
          config_path: path
        })
      }))

    it.effect("rejects an invalid file with its name and every field, without values", () =>
      Effect.gen(function*() {
        const refusal = Effect.fnUntraced(function*(content: RawConfig | string) {
          const path = yield* configFile(content)
          const error = yield* Effect.flip(startStore({ GATEWAY_CONFIG_PATH: path }))
          return error.message.replace(path, "FILE")
        })
        assert.strictEqual(
          yield* refusal({ runtime: { account_max_inflight: 0 }, keys: "hunter2" }),
          "FILE: keys must be an array; runtime.account_max_inflight must be between 1 and 256"
        )
        assert.strictEqual(
          yield* refusal("{\n  \"keys\": [\"hunter2\" \"hunter3\"]\n}"),
          "FILE: the configuration is not valid JSON (line 2, column 22)"
        )
        assert.strictEqual(yield* refusal("[]"), "FILE: the configuration must be a JSON object")
        assert.strictEqual(yield* refusal(""), "FILE: the configuration is not valid JSON")
      }))

    it.effect("reports a path that is a folder", () =>
      Effect.gen(function*() {
        const path = yield* folder
        const error = yield* Effect.flip(startStore({ GATEWAY_CONFIG_PATH: path }))
        assert.strictEqual(error.message, `${path} is a folder, not a file`)
      }))

    it.effect("reports a path that is a pipe, without reading it", () =>
      Effect.gen(function*() {
        const path = `${yield* folder}/pipe.json`
        execFileSync("mkfifo", [path])
        const error = yield* Effect.flip(startStore({ GATEWAY_CONFIG_PATH: path }))
        assert.strictEqual(
          error.message,
          `${path} is not a regular file: supply the configuration in a file, or in GATEWAY_CONFIG_JSON`
        )
      }))

    it.effect("a change fails if a pipe has replaced the file", () =>
      Effect.gen(function*() {
        const path = yield* configFile({ keys: ["first"] })
        const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
        rmSync(path)
        execFileSync("mkfifo", [path])
        const error = yield* Effect.flip(store.update((raw) => Effect.succeed({ ...raw, keys: ["second"] })))
        assert.include(error.message, "is not a regular file")
      }))

    it.effect("drops repeated accounts of a file with a warning", () => {
      const logs: Array<string> = []
      return Effect.gen(function*() {
        const path = yield* configFile({
          keys: ["k"],
          accounts: [{ mobile: "13800138000" }, { mobile: "+8613800138000" }]
        })
        const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
        assert.lengthOf((yield* store.current).accounts, 1)
        assert.include(logs[0], "accounts[1] is the same account as accounts[0] and is left out")
      }).pipe(Effect.provide(collectLogs(logs)))
    })

    it.effect("removes old temporary files of a crashed process", () =>
      Effect.gen(function*() {
        const fs = yield* FileSystem.FileSystem
        const path = yield* configFile({ keys: ["k"] })
        const old = path.replace("config.json", ".config.json.0011.tmp")
        yield* fs.writeFileString(old, "half")
        yield* fs.utimes(old, new Date(0), new Date(-120_000))
        const fresh = path.replace("config.json", ".config.json.0022.tmp")
        yield* fs.writeFileString(fresh, "half")
        yield* startStore({ GATEWAY_CONFIG_PATH: path })
        assert.isFalse(yield* fs.exists(old))
        assert.isTrue(yield* fs.exists(fresh))
      }))
  })

  describe("a save of the configuration", () => {
    it.effect("keeps unknown fields at every level, in a file that only its owner can read", () =>
      Effect.gen(function*() {
        const fs = yield* FileSystem.FileSystem
        const raw = {
          keys: ["k"],
          accounts: [{ email: "a", note: "mine", nested: { x: [1, { y: null }] } }],
          runtime: { account_max_inflight: 3, future: true },
          upstream: { timeouts: { later: 1 }, models: { m: { model: "n", extra: 1 } } },
          unknown: { deep: { deeper: [] } }
        }
        const path = yield* configFile(raw)
        const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
        const saved = yield* setInflight(store, 4)
        assert.strictEqual(saved.config.runtime.account_max_inflight, 4)
        assert.isTrue(saved.config_writable)
        assert.isFalse(saved.needs_host_sync)
        assert.deepStrictEqual(yield* readJson(path), { ...raw, runtime: { account_max_inflight: 4, future: true } })
        assert.strictEqual((yield* fs.stat(path)).mode & 0o777, 0o600)
        assert.deepStrictEqual(yield* fs.readDirectory(path.replace("/config.json", "")), ["config.json"])
        const again = yield* startStore({ GATEWAY_CONFIG_PATH: path })
        assert.deepStrictEqual(yield* again.currentRaw, yield* store.currentRaw)
      }))

    it.effect("runs after the previous one, so that none of fifty concurrent changes is lost", () =>
      Effect.gen(function*() {
        const path = yield* configFile({ keys: ["first"] })
        const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
        const keys = Array.from({ length: 50 }, (_, index) => `key-${index}`)
        yield* Effect.forEach(keys, (key) => addKey(store, key), { concurrency: "unbounded" })
        assert.sameMembers([...(yield* store.current).keys], ["first", ...keys])
        const again = yield* startStore({ GATEWAY_CONFIG_PATH: path })
        assert.sameMembers([...(yield* again.current).keys], ["first", ...keys])
      }))

    it.effect("is published to subscribers, after the configuration at the start", () =>
      Effect.gen(function*() {
        const path = yield* configFile({ keys: ["a"] })
        const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
        const seen = yield* Effect.forkChild(store.changes.pipe(Stream.take(3), Stream.runCollect), {
          startImmediately: true
        })
        yield* addKey(store, "b")
        yield* addKey(store, "c")
        const configs = yield* Fiber.join(seen)
        assert.deepStrictEqual(Array.from(configs, (config) => config.keys.length), [1, 2, 3])
      }))

    it.effect("rejects an invalid change and changes nothing", () =>
      Effect.gen(function*() {
        const path = yield* configFile({ keys: ["a"] })
        const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
        const error = yield* Effect.flip(setInflight(store, 300))
        assert.strictEqual(error._tag, "ConfigInvalid")
        assert.strictEqual(error.message, "runtime.account_max_inflight must be between 1 and 256")
        assert.strictEqual((yield* Effect.flip(addKey(store, "a"))).message, "keys[1] is listed twice")
        assert.strictEqual(yield* Effect.flip(store.update(() => Effect.fail("not found"))), "not found")
        assert.strictEqual((yield* store.current).runtime.account_max_inflight, 2)
        assert.deepStrictEqual(yield* readJson(path), { keys: ["a"] })
      }))

    it.effect("creates the folder of a missing file", () =>
      Effect.gen(function*() {
        const path = `${yield* folder}/a/b/config.json`
        const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
        const saved = yield* addKey(store, "k")
        assert.isTrue(saved.config_writable)
        assert.deepStrictEqual(yield* readJson(path), { keys: ["k"] })
      }))

    it.effect("replaces the target of a symbolic link and keeps the link", () =>
      Effect.gen(function*() {
        const fs = yield* FileSystem.FileSystem
        const target = yield* configFile({ keys: ["k"] })
        const link = `${yield* folder}/linked.json`
        yield* fs.symlink(target, link)
        const store = yield* startStore({ GATEWAY_CONFIG_PATH: link })
        yield* addKey(store, "l")
        assert.strictEqual(yield* fs.readLink(link), target)
        assert.deepStrictEqual(yield* readJson(target), { keys: ["k", "l"] })
      }))

    it.effect("fails and changes nothing when the file cannot be written", () =>
      Effect.gen(function*() {
        const fs = yield* FileSystem.FileSystem
        const blocked = `${yield* folder}/plain`
        const path = `${blocked}/config.json`
        const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
        yield* fs.writeFileString(blocked, "a file where the folder should be")
        const error = yield* Effect.flip(addKey(store, "k"))
        assert.strictEqual(error._tag, "ConfigFileError")
        assert.match(error.message, /^.*config\.json cannot be (read|saved) \(\w+\)$/)
        assert.deepStrictEqual((yield* store.current).configured_keys, [])
        assert.isFalse(yield* store.configWritable)
        yield* fs.remove(blocked)
        assert.isTrue((yield* addKey(store, "k")).config_writable)
      }))
  })
})
