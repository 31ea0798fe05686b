import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as TestClock from "effect/testing/TestClock"
import { closeSync, openSync, writeSync } from "node:fs"
import { dirname } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { collectLogs, entry, everything, NodeServices, sqliteStore, start, usageFile } from "./support.ts"

/** Writes into a file in place. */
const overwrite = (file: string, bytes: Uint8Array): void => {
  const handle = openSync(file, "r+")
  writeSync(handle, bytes)
  closeSync(handle)
}

describe("a usage file that is damaged while it is in use", () => {
  it.effect("is renamed, and unwritten entries go into a new file", () => {
    const logs: Array<string> = []
    return Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const fs = yield* FileSystem.FileSystem
      const file = yield* usageFile
      yield* Effect.scoped(Effect.gen(function*() {
        const store = yield* sqliteStore({
          file,
          connect: (path, options) => {
            const db = new DatabaseSync(path, options)
            // Without a page cache the damage is found at once.
            db.exec("PRAGMA cache_size = 0")
            return db
          }
        })
        for (let i = 0; i < 2000; i++) store.add(entry({ model: `model ${i}` }))
        yield* TestClock.adjust("1 second")
        const other = new DatabaseSync(file)
        other.exec("PRAGMA wal_checkpoint(TRUNCATE)")
        other.close()
        const bytes = yield* fs.readFile(file)
        // The header stays, but its pages are gone.
        overwrite(file, bytes.fill(7, 4096))
        store.add(entry({ model: "after" }))
        yield* TestClock.adjust("1 second")
        for (;;) {
          const names = yield* fs.readDirectory(dirname(file))
          if (names.some((name) => name.includes(".corrupt-"))) break
          yield* Effect.yieldNow
        }
      }))
      const store = yield* sqliteStore({ file })
      const { rows } = yield* store.query({ ...everything, by: ["model"] })
      assert.deepStrictEqual(rows.map(({ model }) => model), ["after"])
      assert.lengthOf(logs.filter((line) => line.includes("is damaged: moved to")), 1)
    }).pipe(Effect.provide([NodeServices.layer, collectLogs(logs)]))
  })
})
