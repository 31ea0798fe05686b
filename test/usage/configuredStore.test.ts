import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { Environment } from "../../src/config/Environment.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { UsageStore } from "../../src/usage/UsageStore.ts"
import type { UsageStoreShape } from "../../src/usage/UsageStoreShape.ts"
import { withVariables } from "../config/support.ts"
import { entry, everything, keyA, NodeServices, start } from "./support.ts"

const folder = Effect.flatMap(FileSystem.FileSystem, (fs) => fs.makeTempDirectoryScoped({ prefix: "usage-" }))

/** The store that the service has with these variables. */
const serviceStore = (variables: Readonly<Record<string, string>>) =>
  Effect.map(
    Layer.build(
      UsageStore.layer.pipe(
        Layer.provideMerge(ConfigStore.layer),
        Layer.provide(Environment.layer),
        Layer.provide(withVariables(variables)),
        Layer.provide(NodeServices.layer)
      )
    ),
    (context) => ({ config: Context.get(context, ConfigStore), usage: Context.get(context, UsageStore) })
  )

const requestsOf = (store: UsageStoreShape) =>
  Effect.map(store.query({ ...everything, by: [] }), ({ totals }) => totals.values[0])

const until = <E>(done: Effect.Effect<boolean, E>): Effect.Effect<void, E> =>
  Effect.flatMap(done, (is) => is ? Effect.void : Effect.andThen(Effect.yieldNow, until(done)))

const kindOf = (store: UsageStoreShape) => Effect.map(store.status, ({ kind }) => kind)

const configured = (config: RawConfig) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const home = yield* folder
    yield* fs.writeFileString(`${home}/config.json`, JSON.stringify(config))
    return { home, variables: { GATEWAY_CONFIG_PATH: `${home}/config.json` } }
  })

describe("the configured usage store", () => {
  it.effect("is a file in the data folder, by default the configuration file's folder", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const { home, variables } = yield* configured({})
      assert.strictEqual(yield* kindOf((yield* serviceStore(variables)).usage), "sqlite")
      assert.isTrue(yield* fs.exists(`${home}/data/usage.sqlite`))
      yield* serviceStore({ ...variables, GATEWAY_DATA_DIR: `${home}/elsewhere` })
      assert.isTrue(yield* fs.exists(`${home}/elsewhere/usage.sqlite`))
      const named = yield* configured({ usage: { file: `${home}/own/history.db` } })
      yield* serviceStore(named.variables)
      assert.isTrue(yield* fs.exists(`${home}/own/history.db`))
      assert.isFalse(yield* fs.exists(`${named.home}/data`))
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("is in memory without a data folder, with a log line", () =>
    Effect.gen(function*() {
      const home = yield* folder
      for (
        const variables of [
          { GATEWAY_CONFIG_PATH: `${home}/none.json` },
          { GATEWAY_CONFIG_JSON: "{}", GATEWAY_CONFIG_PATH: `${home}/none.json` }
        ]
      ) {
        const { usage } = yield* serviceStore(variables)
        const status = yield* usage.status
        assert.deepInclude(status, { kind: "memory", persistent: false })
        assert.include(status.detail, "set GATEWAY_DATA_DIR")
      }
      const { usage } = yield* serviceStore({ GATEWAY_CONFIG_JSON: "{}", GATEWAY_DATA_DIR: `${home}/data` })
      assert.strictEqual(yield* kindOf(usage), "sqlite")
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("keeps no history when it is off, and still counts for limits", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const { home, variables } = yield* configured({ usage: { enabled: false } })
      const { usage } = yield* serviceStore(variables)
      usage.add(entry())
      assert.deepStrictEqual(yield* usage.status, { kind: "off", persistent: false, detail: null })
      assert.strictEqual(yield* requestsOf(usage), 0)
      assert.strictEqual((yield* usage.counters(keyA, start)).windows.day.requests, 1)
      assert.isFalse(yield* fs.exists(`${home}/data`))
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("is the embedder's own store if provided, and memory by default", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const file = `${yield* folder}/own.sqlite`
      const own = UsageStore.layerSqlite({ file })
      for (
        const [kind, layer] of [["sqlite", Layer.provide(UsageStore.layerOrMemory, own)], [
          "memory",
          UsageStore.layerOrMemory
        ]] as const
      ) {
        const context = yield* Layer.build(Layer.provide(layer, NodeServices.layer))
        assert.strictEqual(yield* kindOf(Context.get(context, UsageStore)), kind)
      }
      assert.isTrue(yield* fs.exists(file))
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("follows the configuration: the old store writes its entries before the new one starts", () =>
    Effect.gen(function*() {
      const { variables } = yield* configured({})
      const { config, usage } = yield* serviceStore(variables)
      const change = (group: RawConfig) => config.update((raw) => Effect.succeed({ ...raw, usage: group }))
      usage.add(entry())
      yield* change({ enabled: false })
      yield* until(Effect.map(kindOf(usage), (kind) => kind === "off"))
      usage.add(entry())
      assert.strictEqual(yield* requestsOf(usage), 0)
      yield* change({ enabled: true, keep_days: 7 })
      yield* until(Effect.map(kindOf(usage), (kind) => kind === "sqlite"))
      assert.strictEqual(yield* requestsOf(usage), 1)
    }).pipe(Effect.provide(NodeServices.layer)))
})
