/**
 * The store that the configuration asks for: in a file, in memory, or without a history. When the configuration asks for
 * another one, the old store writes its entries and is closed.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type ConfigOrigin, dataFolder } from "../config/ConfigOrigin.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { Environment } from "../config/Environment.ts"
import { makeMemoryStore } from "./memoryStore.ts"
import { makeSqliteStore } from "./sqliteStore.ts"
import type { UsageStoreShape } from "./UsageStoreShape.ts"

/** Why usage is in memory without a data folder: no fault, but announced at the start. */
export const noDataFolder = "there is no data folder: set GATEWAY_DATA_DIR, or keep the configuration in a file"

/** Makes the store that `usage` asks for, and follows its changes. */
export const makeConfiguredStore = Effect.gen(function*(): Effect.fn.Return<
  Required<UsageStoreShape>,
  never,
  ConfigOrigin | ConfigStore | Environment | FileSystem.FileSystem | Path.Path | Scope.Scope
> {
  const config = yield* ConfigStore
  const path = yield* Path.Path
  const fs = yield* FileSystem.FileSystem
  const folder = yield* dataFolder
  const days = {
    keepDays: () => config.now().usage.keep_days,
    sessionDays: () => config.now().usage.session_days
  }

  const open = Effect.fnUntraced(function*({ enabled, file }: { readonly enabled: boolean; readonly file: string }) {
    if (!enabled) return yield* makeMemoryStore({ history: false })
    const name = file.trim()
    if (path.isAbsolute(name)) return yield* makeSqliteStore({ file: name, ...days })
    if (folder !== undefined) return yield* makeSqliteStore({ file: path.join(folder, name), ...days })
    return yield* makeMemoryStore({ detail: noDataFolder, ...days })
  }, Effect.provideService(FileSystem.FileSystem, fs))

  const scope = yield* Effect.scope
  let asked = config.now().usage
  let own = yield* Scope.fork(scope)
  let current = yield* Scope.provide(open(asked), own)

  const follow = Effect.fnUntraced(function*(usage: typeof asked) {
    if (usage.enabled === asked.enabled && usage.file === asked.file) return
    asked = usage
    const before = own
    own = yield* Scope.fork(scope)
    current = yield* Scope.provide(open(usage), own)
    yield* Scope.close(before, Exit.void)
  })
  yield* Effect.forkScoped(Stream.runForEach(config.changes, ({ usage }) => Effect.uninterruptible(follow(usage))))

  return {
    changes: {
      record: (change) => Effect.suspend(() => current.changes.record(change)),
      read: (before, limit) => Effect.suspend(() => current.changes.read(before, limit))
    },
    accounts: {
      count: (subject, at, tokens, cost) => current.accounts.count(subject, at, tokens, cost),
      counters: (subject, now) => current.accounts.counters(subject, now),
      changed: (account, read) => current.accounts.changed(account, read),
      states: (now) => Effect.suspend(() => current.accounts.states(now))
    },
    add: (entry) => current.add(entry),
    query: (query) => Effect.suspend(() => current.query(query)),
    counters: (key, now) => Effect.suspend(() => current.counters(key, now)),
    compact: Effect.suspend(() => current.compact),
    status: Effect.suspend(() => current.status)
  }
})
