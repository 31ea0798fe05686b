import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { ConfigStore } from "../../src/config/ConfigStore.ts"
import type { GatewayConfig } from "../../src/config/GatewayConfig.ts"
import { type RawConfig, sha256Hex } from "../../src/config/json.ts"
import { setField } from "../../src/config/rawConfig.ts"
import { until } from "../support/until.ts"
import { addKey, collectLogs, configFile, failing, NodeServices, readJson, startStore } from "./support.ts"

/** The services of the platform, without log output. */
const quiet = Layer.merge(NodeServices.layer, collectLogs([]))

const edit = Effect.fnUntraced(function*(path: string, content: RawConfig | string) {
  const fs = yield* FileSystem.FileSystem
  yield* fs.writeFileString(path, typeof content === "string" ? content : JSON.stringify(content))
})

const set = (store: ConfigStore["Service"], field: readonly [string, ...Array<string>], value: RawConfig[string]) =>
  store.update((raw) => Effect.succeed(setField(raw, field, value)))

/** Waits until the configuration in effect `holds`. */
const untilConfig = (store: ConfigStore["Service"], holds: (config: GatewayConfig) => boolean) =>
  store.changes.pipe(Stream.filter(holds), Stream.take(1), Stream.runDrain)

describe("edits of the configuration file", () => {
  it.live("are noticed and applied without a restart", () =>
    Effect.gen(function*() {
      const path = yield* configFile({ keys: ["a"] })
      const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
      yield* edit(path, { keys: ["a", "b"], extra: 1 })
      yield* untilConfig(store, (config) => config.keys.length === 2)
      yield* addKey(store, "c")
      assert.deepStrictEqual(yield* readJson(path), { keys: ["a", "b", "c"], extra: 1 })
      yield* edit(path, { keys: ["d"] })
      yield* untilConfig(store, (config) => config.keys[0] === "d")
    }).pipe(Effect.provide(quiet)))

  it.live("are noticed when the file is replaced, and when it is created after the start", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const path = yield* configFile()
      const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
      for (const key of ["one", "two"]) {
        yield* edit(`${path}.new`, { keys: [key] })
        yield* fs.rename(`${path}.new`, path)
        yield* untilConfig(store, (config) => config.keys[0] === key)
        // The generated key ends with the first edit.
        assert.deepInclude(yield* store.current, { keys: [key], generated_key: undefined })
      }
    }).pipe(Effect.provide(quiet)))

  it.live("that remove a key record its digest, like a removal in the admin API", () =>
    Effect.gen(function*() {
      const path = yield* configFile({ keys: ["a", "b"], unknown: 1 })
      const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
      yield* edit(path, { keys: ["b"], unknown: 2 })
      yield* untilConfig(store, (config) => config.keys.length === 1)
      yield* store.update(Effect.succeed)
      assert.deepStrictEqual(yield* readJson(path), {
        keys: ["b"],
        unknown: 2,
        auth: { removed_keys: [sha256Hex("a")] }
      })
      assert.deepStrictEqual((yield* store.current).auth.removed_keys, [sha256Hex("a")])
    }).pipe(Effect.provide(quiet)))

  it.live("in another encoding than UTF-8 are rejected and never overwritten", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const path = yield* configFile({ keys: ["a"] })
      const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
      const latin = Buffer.from(`{"keys": ["a", "schlüssel"]}`, "latin1")
      yield* fs.writeFile(path, latin)
      const error = yield* Effect.flip(addKey(store, "b"))
      assert.strictEqual(error._tag, "ConfigFileError")
      assert.include(error.message, "is not UTF-8 text")
      assert.deepStrictEqual(Buffer.from(yield* fs.readFile(path)), latin)
      assert.deepStrictEqual((yield* store.current).keys, ["a"])
      const start = yield* Effect.flip(startStore({ GATEWAY_CONFIG_PATH: path }))
      assert.include(start.message, "is not UTF-8 text")
      yield* edit(path, { keys: ["a", "schlüssel"] })
      yield* addKey(store, "b")
      assert.deepStrictEqual((yield* store.current).keys, ["a", "schlüssel", "b"])
    }).pipe(Effect.provide(quiet)))

  it.live("that are invalid are rejected with a log line and never overwritten", () => {
    const logs: Array<string> = []
    return Effect.gen(function*() {
      const path = yield* configFile({ keys: ["a"] })
      const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
      const broken = `{"keys": ["hunter2"], "runtime": {"account_max_inflight": 0}}`
      yield* edit(path, broken)
      const error = yield* Effect.flip(addKey(store, "b"))
      assert.strictEqual(error._tag, "ConfigConflict")
      assert.include(error.message, "runtime.account_max_inflight must be between 1 and 256")
      assert.notInclude(error.message, "hunter2")
      assert.deepStrictEqual((yield* store.current).keys, ["a"])
      assert.deepStrictEqual(yield* readJson(path), JSON.parse(broken))

      yield* edit(path, { keys: ["a", "c"] })
      yield* untilConfig(store, (config) => config.keys.length === 2)
      yield* addKey(store, "b")
      assert.deepStrictEqual((yield* store.current).keys, ["a", "c", "b"])
    }).pipe(Effect.provide([NodeServices.layer, collectLogs(logs)]))
  })

  it.live("that nest deeper than a configuration may are rejected like other invalid ones", () =>
    Effect.gen(function*() {
      const path = yield* configFile({ keys: ["a"] })
      const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
      yield* edit(path, `{"keys":["a"],"x":${"[".repeat(100_000)}${"]".repeat(100_000)}}`)
      const error = yield* Effect.flip(addKey(store, "b"))
      assert.strictEqual(error._tag, "ConfigConflict")
      assert.include(error.message, "x nests deeper than 1000 levels")
    }).pipe(Effect.provide(quiet)))

  it.live("that are invalid are logged by the watcher", () => {
    const logs: Array<string> = []
    return Effect.gen(function*() {
      const path = yield* configFile({ keys: ["a"] })
      const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
      yield* edit(path, "{ broken")
      yield* until(() => logs.length > 0)
      assert.match(logs.join("\n"), /The edit is not applied: .*config\.json was edited and the edit is invalid/)
      assert.deepStrictEqual((yield* store.current).keys, ["a"])
    }).pipe(Effect.provide([NodeServices.layer, collectLogs(logs)]))
  })

  it.effect("and changes through the admin API are logged with the warnings that are new", () => {
    const logs: Array<string> = []
    return Effect.gen(function*() {
      const path = yield* configFile({ keys: ["a"], prices: { "gpt-9": { input: 1 } } })
      const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
      assert.match(logs.join("\n"), /config\.json: prices\.gpt-9 is a price of no known model/)
      logs.length = 0
      yield* addKey(store, "b")
      assert.deepStrictEqual(logs, [])
      yield* set(store, ["prices"], { "gpt-9": { input: 1 }, "gpt-10": { input: 1 } })
      assert.match(logs.join("\n"), /^\S+config\.json: prices has 2 prices of no known model [^\n]+$/)
    }).pipe(Effect.provide([NodeServices.layer, collectLogs(logs)]))
  })

  it.effect("are merged with a concurrent change of other fields", () =>
    Effect.gen(function*() {
      const path = yield* configFile({
        keys: ["a", "b"],
        accounts: [{ email: "x", password: "1" }, { email: "y" }],
        runtime: { account_max_inflight: 2 }
      })
      const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
      yield* edit(path, {
        keys: ["b", "by-hand"],
        accounts: [{ email: "x", password: "1", note: "by hand" }, { mobile: "13800138000" }, { email: "y" }],
        runtime: { account_max_inflight: 2, account_max_queue: 7 },
        extra: true
      })
      yield* store.update((raw) =>
        Effect.succeed({
          ...raw,
          keys: ["a", "b", "by-admin"],
          accounts: [{ email: "x", password: "2" }],
          runtime: { account_max_inflight: 5 }
        })
      )
      assert.deepStrictEqual(yield* readJson(path), {
        keys: ["b", "by-hand", "by-admin"],
        accounts: [{ email: "x", password: "2", note: "by hand" }, { mobile: "13800138000" }],
        runtime: { account_max_inflight: 5, account_max_queue: 7 },
        extra: true,
        auth: { removed_keys: [sha256Hex("a")] }
      })
      assert.strictEqual((yield* store.current).runtime.account_max_queue, 7)
    }).pipe(Effect.provide(quiet)))

  it.effect("win over a concurrent change of the same field, and a retry of the change succeeds", () =>
    Effect.gen(function*() {
      const path = yield* configFile({ keys: ["a"], accounts: [{ email: "x", password: "1" }] })
      const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
      yield* edit(path, {
        keys: ["a"],
        accounts: [{ email: "x", password: "2" }],
        runtime: { account_max_inflight: 5 }
      })
      const error = yield* Effect.flip(set(store, ["runtime", "account_max_inflight"], 7))
      assert.strictEqual(error._tag, "ConfigConflict")
      assert.include(error.message, "runtime")
      assert.strictEqual((yield* store.current).runtime.account_max_inflight, 5)
      yield* set(store, ["runtime", "account_max_inflight"], 7)
      assert.deepStrictEqual(yield* readJson(path), {
        keys: ["a"],
        accounts: [{ email: "x", password: "2" }],
        runtime: { account_max_inflight: 7 }
      })

      yield* edit(path, { keys: ["a"], accounts: [{ email: "x", password: "3" }] })
      const again = yield* Effect.flip(set(store, ["accounts"], [{ email: "x", password: "4" }]))
      assert.strictEqual(
        again.message,
        "the configuration was changed elsewhere at the same time: accounts[x].password"
      )
    }).pipe(Effect.provide(quiet)))

  it.effect("that remove the file are undone by the next save", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const path = yield* configFile({ keys: ["a"] })
      const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
      yield* fs.remove(path)
      yield* addKey(store, "b")
      assert.deepStrictEqual(yield* readJson(path), { keys: ["a", "b"] })
    }).pipe(Effect.provide(quiet)))
})

describe("a configuration file that cannot be replaced", () => {
  for (
    const [method, code, remedy] of [
      ["rename", "EBUSY", "is mounted as a single file: mount its folder instead"],
      ["rename", "EXDEV", "is mounted as a single file: mount its folder instead"],
      ["open", "EROFS", "its folder may not be written to (EROFS)"],
      ["open", "EACCES", "its folder may not be written to (EACCES)"],
      ["open", "ENOSPC", "no space is left on its disk (ENOSPC)"]
    ] as const
  ) {
    it.effect(`for ${code} is unchanged, without leftover files, and the error names the remedy`, () =>
      Effect.gen(function*() {
        const fs = yield* FileSystem.FileSystem
        const path = yield* configFile({ keys: ["a"] })
        const store = yield* startStore({ GATEWAY_CONFIG_PATH: path }, failing(method, code))
        const error = yield* Effect.flip(addKey(store, "b"))
        assert.strictEqual(error._tag, "ConfigFileError")
        assert.include(error.message, remedy)
        assert.isFalse(yield* store.configWritable)
        assert.deepStrictEqual((yield* store.current).keys, ["a"])
        assert.deepStrictEqual(yield* readJson(path), { keys: ["a"] })
        assert.deepStrictEqual(yield* fs.readDirectory(path.replace("/config.json", "")), ["config.json"])
      }).pipe(Effect.provide(quiet)))
  }
})
