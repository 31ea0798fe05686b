/**
 * Keeps usage: its history, and what each key has used of its windows.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Path from "effect/Path"
import { Store } from "../cluster/store/Store.ts"
import type { ConfigOrigin } from "../config/ConfigOrigin.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { Environment } from "../config/Environment.ts"
import { makeConfiguredStore } from "./configuredStore.ts"
import { makeMemoryStore } from "./memoryStore.ts"
import { makeSqliteStore, type SqliteOptions } from "./sqliteStore.ts"
import type { UsageStoreShape } from "./UsageStoreShape.ts"

/** Usage of keys, models, accounts and styles. */
export class UsageStore extends Context.Service<UsageStore, UsageStoreShape>()("model-gateway/usage/UsageStore") {
  /** Kept in memory: the history begins with the process. */
  static readonly layerMemory: Layer.Layer<UsageStore> = Layer.effect(UsageStore, makeMemoryStore())

  /**
   * Kept in a SQLite file, whose folder is made if missing. While the file cannot be used, usage is kept in memory; `status`
   * and one log line say so.
   */
  static readonly layerSqlite = (options: SqliteOptions): Layer.Layer<UsageStore, never, FileSystem.FileSystem> =>
    Layer.effect(UsageStore, makeSqliteStore(options))

  /** Kept as the configuration's `usage` asks, in the data folder. */
  static readonly layer: Layer.Layer<
    UsageStore,
    never,
    ConfigOrigin | ConfigStore | Environment | FileSystem.FileSystem | Path.Path
  > = Layer.effect(UsageStore, makeConfiguredStore)

  /** Kept in the store that nodes share, as the configuration's `usage` asks. Use it with `KeyLimits.layerShared`. */
  static readonly layerShared: Layer.Layer<UsageStore, never, ConfigStore | Store> = Layer.effect(
    UsageStore,
    Effect.gen(function*() {
      const config = yield* ConfigStore
      const { makeRedisStore } = yield* Effect.promise(() => import("./redisStore.ts"))
      return yield* makeRedisStore(yield* Store, {
        enabled: () => config.now().usage.enabled,
        keepDays: () => config.now().usage.keep_days,
        sessionDays: () => config.now().usage.session_days
      })
    })
  )

  /** The store of the context; without one, memory. */
  static readonly layerOrMemory: Layer.Layer<UsageStore> = Layer.unwrap(
    Effect.map(
      Effect.serviceOption(UsageStore),
      Option.match({
        onNone: () => UsageStore.layerMemory,
        onSome: (store) => Layer.succeed(UsageStore, store)
      })
    )
  )
}
