import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as TestClock from "effect/testing/TestClock"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { dirname } from "node:path"
import { DatabaseSync } from "node:sqlite"
import type { StoreStatus, UsageStoreShape } from "../../src/usage/UsageStoreShape.ts"
import { dayLength } from "../../src/usage/windows.ts"
import { collectLogs, entry, everything, NodeServices, sqliteStore, start, usageFile } from "./support.ts"

const modelsOf = (store: UsageStoreShape) =>
  Effect.map(store.query({ ...everything, by: ["model"] }), ({ rows }) => rows.map(({ model }) => model).sort())

const until = <E>(done: Effect.Effect<boolean, E>): Effect.Effect<void, E> =>
  Effect.flatMap(done, (is) => is ? Effect.void : Effect.andThen(Effect.yieldNow, until(done)))

/** Lets the store write, and waits for a log line with the text. */
const logged = (logs: ReadonlyArray<string>, text: string) =>
  Effect.andThen(
    TestClock.adjust("1 second"),
    until(Effect.sync(() => logs.some((line) => line.includes(text))))
  )

/** What another process reads from the file; nothing if the file is missing or has no tables yet. */
const written = (file: string): ReadonlyArray<string> => {
  if (!existsSync(file)) return []
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    const made = db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'usage'").get() !== undefined
    return !made ? [] : db.prepare("SELECT model FROM usage ORDER BY model").all().map(({ model }) => String(model))
  } finally {
    db.close()
  }
}

const well: StoreStatus = { kind: "sqlite", persistent: true, detail: null }

const losses: ReadonlyArray<readonly [string, (file: string) => ReadonlyArray<string>]> = [
  ["is removed with SQLite's other files", (file) => [file, `${file}-wal`, `${file}-shm`]],
  ["is removed alone", (file) => [file]],
  ["is removed with its folder", (file) => [dirname(file)]]
]

describe("a usage file that is lost while it is in use", () => {
  for (const [what, gone] of losses) {
    it.effect(`${what}: a new file begins with the unwritten entries, with a log line`, () => {
      const logs: Array<string> = []
      return Effect.gen(function*() {
        yield* TestClock.setTime(start)
        const fs = yield* FileSystem.FileSystem
        const file = yield* usageFile
        yield* Effect.scoped(Effect.gen(function*() {
          const store = yield* sqliteStore({ file })
          store.add(entry({ model: "before" }))
          yield* TestClock.adjust("1 second")
          yield* until(Effect.sync(() => written(file).length === 1))
          store.add(entry({ model: "waiting" }))
          yield* Effect.forEach(gone(file), (path) => fs.remove(path, { recursive: true }))
          yield* logged(logs, "was removed while it was in use: a new history begins")
          yield* until(Effect.sync(() => written(file).includes("waiting")))
          store.add(entry({ model: "last" }))
          assert.deepStrictEqual(yield* modelsOf(store), ["last", "waiting"])
          assert.deepStrictEqual(yield* store.status, well)
        }))
        assert.deepStrictEqual(written(file), ["last", "waiting"])
        assert.lengthOf(logs, 1)
      }).pipe(Effect.provide([NodeServices.layer, collectLogs(logs)]))
    })
  }

  it.effect("is replaced immediately by a query and by the end of the service", () => {
    const logs: Array<string> = []
    return Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const fs = yield* FileSystem.FileSystem
      const file = yield* usageFile
      yield* Effect.scoped(Effect.gen(function*() {
        const store = yield* sqliteStore({ file })
        yield* fs.remove(file)
        store.add(entry({ model: "asked for" }))
        assert.deepStrictEqual(yield* modelsOf(store), ["asked for"])
        assert.deepStrictEqual(written(file), ["asked for"])
        yield* fs.remove(dirname(file), { recursive: true })
        store.add(entry({ model: "at the end" }))
      }))
      assert.deepStrictEqual(written(file), ["at the end"])
      assert.lengthOf(logs, 2)
    }).pipe(Effect.provide([NodeServices.layer, collectLogs(logs)]))
  })

  it.effect("is replaced although another process keeps the removed file open", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const fs = yield* FileSystem.FileSystem
      const file = yield* usageFile
      const store = yield* sqliteStore({ file })
      const held = `
        const { DatabaseSync } = require("node:sqlite")
        const db = new DatabaseSync(process.argv[1])
        db.exec("CREATE TABLE of_mine (n); INSERT INTO of_mine VALUES (1)")
        process.stdin.on("end", () => db.close()).resume()
        console.log("open")
      `
      const child = yield* Effect.acquireRelease(
        Effect.sync(() => spawn(process.execPath, ["-e", held, file], { stdio: ["pipe", "pipe", "inherit"] })),
        (child) => Effect.sync(() => child.stdin.end())
      )
      yield* Effect.promise(() => once(child.stdout, "data"))
      yield* fs.remove(file)
      store.add(entry())
      assert.lengthOf(yield* modelsOf(store), 1)
      assert.deepStrictEqual(yield* store.status, well)
      assert.lengthOf(written(file), 1)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))

  it.effect("is continued in a file that takes its place", () => {
    const logs: Array<string> = []
    return Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const fs = yield* FileSystem.FileSystem
      const [file, kept] = [yield* usageFile, yield* usageFile]
      yield* Effect.scoped(Effect.map(sqliteStore({ file: kept }), (store) => store.add(entry({ model: "kept" }))))
      const store = yield* sqliteStore({ file })
      store.add(entry({ model: "new" }))
      yield* fs.rename(kept, file)
      yield* logged(logs, "was replaced while it was in use: usage continues in the new file")
      yield* until(Effect.sync(() => written(file).length === 2))
      assert.deepStrictEqual(yield* modelsOf(store), ["kept", "new"])
      assert.deepStrictEqual(yield* store.status, well)
    }).pipe(Effect.scoped, Effect.provide([NodeServices.layer, collectLogs(logs)]))
  })

  it.effect("leaves usage in memory while a database of another program has its name", () => {
    const logs: Array<string> = []
    return Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const fs = yield* FileSystem.FileSystem
      const [file, foreign] = [yield* usageFile, yield* usageFile]
      yield* fs.makeDirectory(dirname(foreign))
      const db = new DatabaseSync(foreign)
      db.exec("CREATE TABLE notes (text)")
      db.close()
      const bytes = yield* fs.readFile(foreign)
      yield* Effect.scoped(Effect.gen(function*() {
        const store = yield* sqliteStore({ file })
        yield* fs.rename(foreign, file)
        store.add(entry())
        yield* logged(logs, "Usage is kept in memory for now")
        const detail = `${file} is a database of another program`
        assert.deepStrictEqual(yield* store.status, { kind: "memory", persistent: false, detail })
        assert.lengthOf(yield* modelsOf(store), 1)
        yield* fs.rename(file, foreign)
        yield* logged(logs, "Usage is written to its file again")
        assert.deepStrictEqual(yield* store.status, well)
      }))
      assert.lengthOf(written(file), 1)
      assert.deepStrictEqual(yield* fs.readFile(foreign), bytes)
      assert.lengthOf(logs, 3)
    }).pipe(Effect.provide([NodeServices.layer, collectLogs(logs)]))
  })
})

describe("a usage file that cannot be written", () => {
  it.effect("leaves usage in memory, reports it as not persistent, and receives it when writing works again", () => {
    const logs: Array<string> = []
    let denied = false
    return Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const file = yield* usageFile
      const opened: Array<DatabaseSync> = []
      const restrict = (db: DatabaseSync) => db.exec(`PRAGMA query_only = ${denied ? 1 : 0}`)
      yield* Effect.scoped(Effect.gen(function*() {
        const store = yield* sqliteStore({
          file,
          connect: (path, options) => {
            const db = new DatabaseSync(path, options)
            restrict(db)
            opened.push(db)
            return db
          }
        })
        denied = true
        opened.forEach(restrict)
        store.add(entry())
        yield* logged(logs, "is read-only")
        const { detail, persistent } = yield* store.status
        assert.deepStrictEqual([persistent, detail], [false, `${file} is read-only`])
        assert.lengthOf(yield* modelsOf(store), 1)
        denied = false
        yield* logged(logs, "Usage is written to its file again")
        assert.deepStrictEqual(yield* store.status, well)
      }))
      assert.lengthOf(written(file), 1)
      assert.lengthOf(logs.filter((line) => line.includes("Usage is")), 2)
    }).pipe(Effect.provide([NodeServices.layer, collectLogs(logs)]))
  })

  it.effect("that could not be created at the start receives the entries in memory once it can", () => {
    const logs: Array<string> = []
    return Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const fs = yield* FileSystem.FileSystem
      const file = yield* usageFile
      yield* fs.writeFileString(dirname(file), "a file in the folder's place")
      yield* Effect.scoped(Effect.gen(function*() {
        const store = yield* sqliteStore({ file })
        store.add(entry())
        assert.deepInclude(yield* store.status, { kind: "memory", persistent: false })
        yield* fs.remove(dirname(file))
        yield* logged(logs, "Usage is written to its file again")
        assert.deepStrictEqual(yield* store.status, well)
      }))
      assert.lengthOf(written(file), 1)
    }).pipe(Effect.provide([NodeServices.layer, collectLogs(logs)]))
  })

  it.effect("leaves usage in memory to be compacted: old hours become days", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const fs = yield* FileSystem.FileSystem
      const file = yield* usageFile
      yield* fs.writeFileString(dirname(file), "a file in the folder's place")
      const store = yield* sqliteStore({ file })
      store.add(entry())
      store.add(entry({ at: start - 500 * dayLength }))
      const recent = [97, 98, 99].map((days) => start + days * dayLength)
      for (const at of recent) store.add(entry({ at }))
      yield* TestClock.setTime(start + 100 * dayLength)
      yield* store.compact
      const { rows } = yield* store.query({ ...everything, by: ["hour"] })
      assert.deepStrictEqual(rows.map(({ time }) => time), [Date.UTC(2026, 1, 28), ...recent])
    }).pipe(Effect.provide(NodeServices.layer)))
})
