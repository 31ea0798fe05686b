import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { execFileSync } from "node:child_process"
import { parseVariable } from "../../src/config/sources.ts"
import { addKey, collectLogs, configFile, failing, NodeServices, readJson, startStore } from "./support.ts"

const equal = (a: Redacted.Redacted<Uint8Array>, b: Redacted.Redacted<Uint8Array>): boolean =>
  Buffer.compare(Redacted.value(a), Redacted.value(b)) === 0

const quiet = Layer.merge(NodeServices.layer, collectLogs([]))

describe("GATEWAY_CONFIG_JSON", () => {
  // The text differs in every alphabet and padding of Base64.
  const raw = { keys: ["k?>~ü", "ÿÿÿ"], pad: "" }

  it.effect("is raw JSON, or Base64 of either alphabet, padded or not, wrapped or not", () =>
    Effect.gen(function*() {
      for (const pad of ["", "1", "12"]) {
        const value = { ...raw, pad }
        const json = JSON.stringify(value)
        const base64 = Buffer.from(json).toString("base64")
        const url = base64.replaceAll("+", "-").replaceAll("/", "_")
        const spellings = [
          json,
          ` ${json}\n`,
          base64,
          url,
          base64.replaceAll("=", ""),
          url.replaceAll("=", ""),
          base64.replaceAll(/(.{20})/g, "$1\n")
        ]
        for (const text of spellings) assert.deepStrictEqual(yield* parseVariable(text), value)
      }
    }))

  it.effect("that is invalid is rejected with its name and without its value", () =>
    Effect.gen(function*() {
      const bad = [
        "hunter2",
        "[]",
        "{\"keys\": hunter2}",
        Buffer.from("[\"hunter2\"]").toString("base64"),
        "ey!hunter2"
      ]
      for (const text of bad) {
        const error = yield* Effect.flip(startStore({ GATEWAY_CONFIG_JSON: text }))
        assert.match(error.message, /^GATEWAY_CONFIG_JSON: /)
        assert.notInclude(error.message, "hunter2")
      }
      const error = yield* Effect.flip(startStore({ GATEWAY_CONFIG_JSON: `{"captures": {"limit": 99}}` }))
      assert.strictEqual(error.message, "GATEWAY_CONFIG_JSON: captures.limit must be between 1 and 50")
    }).pipe(Effect.provide(quiet)))

  it.effect("without write-back is the source: the file is neither read nor written, and changes report it", () =>
    Effect.gen(function*() {
      const path = yield* configFile({ keys: ["file"] })
      const store = yield* startStore({ GATEWAY_CONFIG_PATH: path, GATEWAY_CONFIG_JSON: `{"keys": ["env"]}` })
      assert.deepStrictEqual((yield* store.current).keys, ["env"])
      assert.deepStrictEqual(store.source, {
        env_backed: true,
        env_source_present: true,
        env_writeback_enabled: false,
        env_locked: false,
        config_path: path
      })
      assert.isFalse(yield* store.needsHostSync)
      const saved = yield* addKey(store, "more")
      assert.deepStrictEqual(saved.config.keys, ["env", "more"])
      assert.isFalse(saved.config_writable)
      assert.isTrue(saved.needs_host_sync)
      assert.deepStrictEqual(yield* readJson(path), { keys: ["file"] })

      // After a sync, nothing remains to be synced.
      const hash = yield* store.configHash
      const synced = yield* store.update((raw) => Effect.succeed({ ...raw, host: { last_synced_hash: hash } }))
      assert.isFalse(synced.needs_host_sync)
      assert.isTrue((yield* addKey(store, "later")).needs_host_sync)
    }).pipe(Effect.provide(quiet)))

  it.effect("with write-back yields to a valid file", () =>
    Effect.gen(function*() {
      const path = yield* configFile({ keys: ["file"] })
      const store = yield* startStore({
        GATEWAY_CONFIG_PATH: path,
        GATEWAY_CONFIG_JSON: `{"keys": ["env"]}`,
        GATEWAY_CONFIG_WRITEBACK: "1"
      })
      assert.deepStrictEqual((yield* store.current).keys, ["file"])
      assert.isFalse(store.source.env_backed)
      assert.isTrue(store.source.env_source_present)
      assert.isTrue(store.source.env_writeback_enabled)
    }).pipe(Effect.provide(quiet)))

  it.effect("with write-back is written to a missing file, which then receives every change", () =>
    Effect.gen(function*() {
      const path = yield* configFile()
      const variables = {
        GATEWAY_CONFIG_PATH: path,
        GATEWAY_CONFIG_JSON: `{"keys": ["env"], "unknown": 1}`,
        GATEWAY_CONFIG_WRITEBACK: "true"
      }
      const store = yield* startStore(variables)
      assert.isFalse(store.source.env_backed)
      assert.deepStrictEqual(yield* readJson(path), { keys: ["env"], unknown: 1 })
      const saved = yield* addKey(store, "more")
      assert.isTrue(saved.config_writable)
      assert.isFalse(saved.needs_host_sync)
      assert.deepStrictEqual((yield* (yield* startStore(variables)).current).keys, ["env", "more"])
    }).pipe(Effect.provide(quiet)))

  it.effect("with write-back replaces an invalid file, which is renamed", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const path = yield* configFile("{ broken")
      yield* startStore({
        GATEWAY_CONFIG_PATH: path,
        GATEWAY_CONFIG_JSON: `{"keys": ["env"]}`,
        GATEWAY_CONFIG_WRITEBACK: "true"
      })
      assert.deepStrictEqual(yield* readJson(path), { keys: ["env"] })
      assert.strictEqual(yield* fs.readFileString(`${path}.invalid`), "{ broken")
    }).pipe(Effect.provide(quiet)))

  it.effect("with write-back stays the source if the file is not writable", () =>
    Effect.gen(function*() {
      const path = yield* configFile()
      const store = yield* startStore({
        GATEWAY_CONFIG_PATH: path,
        GATEWAY_CONFIG_JSON: `{"keys": ["env"]}`,
        GATEWAY_CONFIG_WRITEBACK: "true"
      }, failing("open", "EROFS"))
      assert.isTrue(store.source.env_backed)
      assert.isTrue((yield* addKey(store, "more")).needs_host_sync)
    }).pipe(Effect.provide(quiet)))
})

describe("the secret of admin JWTs", () => {
  it.effect("survives the process in a separate file that only its owner can read", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const path = yield* configFile({ keys: ["k"] })
      const variables = { GATEWAY_CONFIG_PATH: path, GATEWAY_ADMIN_KEY: "root" }
      const first = yield* startStore(variables)
      const second = yield* startStore(variables)
      assert.isTrue(equal(first.jwtSecret, second.jwtSecret))
      assert.strictEqual((yield* fs.stat(`${path}.jwt-secret`)).mode & 0o777, 0o600)
      const exported = yield* first.exportConfig
      const text = yield* fs.readFileString(`${path}.jwt-secret`)
      assert.notInclude(exported.json, text.trim())

      yield* fs.writeFileString(`${path}.jwt-secret`, "too short")
      const third = yield* startStore(variables)
      assert.isFalse(equal(first.jwtSecret, third.jwtSecret))
      assert.isTrue(equal(third.jwtSecret, (yield* startStore(variables)).jwtSecret))
    }).pipe(Effect.provide(quiet)))

  it.effect("replaces a pipe in its place, which no start reads", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const path = yield* configFile({ keys: ["k"] })
      execFileSync("mkfifo", [`${path}.jwt-secret`])
      yield* startStore({ GATEWAY_CONFIG_PATH: path, GATEWAY_ADMIN_KEY: "root" })
      assert.strictEqual((yield* fs.stat(`${path}.jwt-secret`)).type, "File")
    }).pipe(Effect.provide(quiet)))

  it.effect("ends with the process if the admin key is generated or the file is not writable", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const path = yield* configFile({ keys: ["k"] })
      const generated = yield* startStore({ GATEWAY_CONFIG_PATH: path })
      const backed = yield* startStore({
        GATEWAY_CONFIG_PATH: path,
        GATEWAY_ADMIN_KEY: "root",
        GATEWAY_CONFIG_JSON: "{}"
      })
      assert.isFalse(equal(generated.jwtSecret, backed.jwtSecret))
      assert.isFalse(yield* fs.exists(`${path}.jwt-secret`))
    }).pipe(Effect.provide(quiet)))
})

describe("GATEWAY_CONFIG_PATH", () => {
  const startLogs = (variables: Readonly<Record<string, string>>) => {
    const logs: Array<string> = []
    return Effect.map(startStore(variables), ({ advice }) => ({ advice, logs })).pipe(
      Effect.provide(collectLogs(logs))
    )
  }

  it.effect("that names a missing file is a warning of the start, as is a short admin key", () =>
    Effect.gen(function*() {
      const missing = yield* configFile()
      const { advice, logs } = yield* startLogs({ GATEWAY_CONFIG_PATH: missing, GATEWAY_ADMIN_KEY: "short" })
      assert.lengthOf(advice, 2)
      assert.deepStrictEqual(logs, [...advice])
      assert.isTrue(advice[0]?.startsWith(`GATEWAY_CONFIG_PATH names ${missing}, which does not exist: `), advice[0])
      const path = yield* configFile({ keys: ["a"] })
      const well = yield* startLogs({ GATEWAY_CONFIG_PATH: path, GATEWAY_ADMIN_KEY: "long-enough-to-stay" })
      assert.deepStrictEqual(well, { advice: [], logs: [] })
    }).pipe(Effect.provide(NodeServices.layer)))
})
