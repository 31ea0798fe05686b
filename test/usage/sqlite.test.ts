import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { execFileSync } from "node:child_process"
import { dirname } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { CurrentSliceWatch } from "../../src/config/clock/cooperative.ts"
import { sliceItems, type SliceSize } from "../../src/domain/stream/cooperative.ts"
import { type AccountState, Batch } from "../../src/usage/Batch.ts"
import { openSqlite } from "../../src/usage/openSqlite.ts"
import { writeBatch } from "../../src/usage/sqliteFile.ts"
import { costsOf } from "../../src/usage/UsageEntry.ts"
import { mostSessionsKept } from "../../src/usage/UsageStoreShape.ts"
import type { UsageStoreShape } from "../../src/usage/UsageStoreShape.ts"
import { dayLength, dayOf, hourLength } from "../../src/usage/windows.ts"
import { sized } from "../support/effort.ts"
import { summedDays } from "./storeSuite.ts"
import {
  collectLogs,
  entry,
  everything,
  expectedReport,
  keyA,
  keyB,
  NodeServices,
  plain,
  sqliteStore,
  start,
  usageFile
} from "./support.ts"

const requestsOf = (store: UsageStoreShape) =>
  Effect.map(store.query({ ...everything, by: [] }), ({ totals }) => totals.values[0])

const until = (done: Effect.Effect<boolean>): Effect.Effect<void> =>
  Effect.flatMap(done, (is) => is ? Effect.void : Effect.andThen(Effect.yieldNow, until(done)))

const detailOf = (store: UsageStoreShape) => Effect.map(store.status, ({ detail }) => detail)

/** Lets the store write once, whether that works or not. */
const second = TestClock.adjust("1 second")

const inScope = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.scoped(effect)

describe("usage in a file", () => {
  it.effect("survives a restart; the folder has mode 0700 and the file 0600", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const fs = yield* FileSystem.FileSystem
      const file = yield* usageFile
      const recorded = [
        entry(),
        entry({ error: "upstream_error", outcome: "failed" }),
        entry({ at: start + hourLength })
      ]
      yield* inScope(Effect.map(sqliteStore({ file }), (store) => recorded.forEach(store.add)))
      const modes = yield* Effect.forEach([dirname(file), file], (path) => fs.stat(path))
      assert.deepStrictEqual(modes.map(({ mode }) => (mode & 0o777).toString(8)), ["700", "600"])
      const store = yield* sqliteStore({ file })
      assert.deepStrictEqual(plain(yield* store.query(everything)), expectedReport(recorded, everything))
      assert.deepStrictEqual(yield* store.status, { kind: "sqlite", persistent: true, detail: null })
      assert.strictEqual((yield* store.counters(keyA, start)).windows.hour.requests, 2)
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("leaves out a row that the file does not take, says so, and writes the others of its batch", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const file = yield* usageFile
      const logs: Array<string> = []
      yield* Effect.gen(function*() {
        const store = yield* sqliteStore({ file })
        store.add(entry())
        // No file has half an attempt.
        store.add(entry({ key: keyB, attempts: 1 / 2 }))
        yield* second
        store.add(entry())
        yield* second
        assert.strictEqual(yield* requestsOf(store), 2)
        assert.deepStrictEqual((yield* store.status).persistent, true)
        assert.deepStrictEqual((yield* store.counters(keyB, start)).windows.hour.requests, 1)
        assert.lengthOf(logs.filter((line) => line.includes("left out")), 1)
      }).pipe(Effect.provide(collectLogs(logs)), inScope)
      const again = yield* sqliteStore({ file })
      assert.strictEqual(yield* requestsOf(again), 2)
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("is read whatever it sums up to", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const file = yield* usageFile
      const store = yield* sqliteStore({ file })
      const absurd = { promptTokens: 2 ** 62, cost: 10n ** 300n }
      for (let i = 0; i < 3; i++) {
        store.add(entry(absurd))
        store.add(entry({ ...absurd, model: "other" }))
        yield* second
      }
      const { totals } = yield* store.query(everything)
      assert.deepStrictEqual([totals.values[0], costsOf(totals).cost], [6, String(2 ** 52)])
      assert.isTrue(totals.values.every((value) => Number.isSafeInteger(value)))
      assert.isTrue((yield* store.status).persistent)
      assert.isAtLeast(Number((yield* store.counters(keyA, start)).windows.month.cost), 2 ** 52)
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("is written within a second", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const file = yield* usageFile
      const store = yield* sqliteStore({ file })
      store.add(entry())
      const reader = yield* Effect.acquireRelease(
        Effect.sync(() => new DatabaseSync(file, { readOnly: true })),
        (db) => Effect.sync(() => db.close())
      )
      const written = () => reader.prepare("SELECT sum(requests) AS n FROM usage").get()?.["n"]
      assert.isNull(written())
      yield* second
      yield* until(Effect.sync(() => written() === 1))
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("is summed correctly by two processes over one file", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const file = yield* usageFile
      yield* inScope(Effect.gen(function*() {
        const one = yield* sqliteStore({ file })
        const other = yield* sqliteStore({ file })
        for (let i = 0; i < 20; i++) {
          one.add(entry())
          other.add(entry())
          yield* second
        }
      }))
      const store = yield* sqliteStore({ file })
      assert.strictEqual(yield* requestsOf(store), 40)
      assert.strictEqual((yield* store.counters(keyA, start)).windows.day.requests, 40)
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("continues in a new file when the file is unreadable, which is moved aside and logged once", () => {
    const logs: Array<string> = []
    return Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const fs = yield* FileSystem.FileSystem
      const file = yield* usageFile
      yield* fs.makeDirectory(dirname(file))
      yield* fs.writeFileString(file, "this is no database ".repeat(500))
      yield* inScope(Effect.gen(function*() {
        const store = yield* sqliteStore({ file })
        store.add(entry())
        assert.deepStrictEqual(yield* store.status, { kind: "sqlite", persistent: true, detail: null })
      }))
      const aside = `${file}.corrupt-${start / 1000}`
      assert.include(yield* fs.readFileString(aside), "this is no database")
      assert.deepStrictEqual(logs, [`Error ${file} is not a database: moved to ${aside}, a new history begins`])
      assert.strictEqual(yield* requestsOf(yield* sqliteStore({ file })), 1)
    }).pipe(Effect.provide([NodeServices.layer, collectLogs(logs)]))
  })

  it.effect("keeps the states of accounts until they are over, and what is used of budgets", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const file = yield* usageFile
      const window = {
        window: "5h",
        model: "m,;/%",
        used: 0.9,
        limit: 10,
        remaining: 1,
        resets_at: start + 60_000,
        status: "low",
        seen_at: start,
        room_at: start + 60_000
      } as const
      const paused = { pausedUntil: start + 120_000, windows: [] }
      yield* inScope(Effect.gen(function*() {
        const { accounts } = yield* sqliteStore({ file })
        let state: AccountState = paused
        accounts!.changed("a1", () => state)
        accounts!.changed("a2", () => paused)
        // What is written is what holds at the write.
        state = { pausedUntil: 0, windows: [window] }
        accounts!.count("@one", start, 15, 7n)
        yield* second
        accounts!.count("@one", start + 60_000, 5, 1n)
        assert.deepStrictEqual(accounts!.counters("@one", start).windows.hour, { requests: 2, tokens: 20, cost: 8n })
      }))
      const { accounts, compact } = yield* sqliteStore({ file })
      const { windows } = accounts!.counters("@one", start)
      assert.deepStrictEqual(windows.minute, { requests: 1, tokens: 15, cost: 7n })
      assert.deepStrictEqual(windows.month, { requests: 2, tokens: 20, cost: 8n })
      const states = (at: number) => Effect.map(accounts!.states(at), (found) => [...found])
      assert.deepStrictEqual(yield* states(start), [["a1", { pausedUntil: 0, windows: [window] }], ["a2", paused]])
      assert.deepStrictEqual(yield* states(start + 60_000), [["a2", paused]])
      yield* TestClock.setTime(start + 90_000)
      yield* compact
      assert.deepStrictEqual(yield* states(start), [["a2", paused]])
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("sums each day that is over once, and adds to its sums what ends later", () =>
    Effect.gen(function*() {
      const file = yield* usageFile
      const first = yield* Scope.make()
      const made = Effect.map(Scope.provide(sqliteStore({ file }), first), (store) => ({
        store,
        restarted: Effect.andThen(Scope.close(first, Exit.void), sqliteStore({ file }))
      }))
      yield* summedDays(made, (before) =>
        Effect.sync(() => {
          const db = new DatabaseSync(file)
          const summed = db.prepare("SELECT day FROM summed_days ORDER BY day").all().map(({ day }) => Number(day))
          db.exec(`DELETE FROM usage WHERE hour < ${before}`)
          db.close()
          return summed
        }))
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("does not change a file of another format or a database of another program", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      for (
        const [sql, detail] of [
          ...[6, 8].map((format) => [
            `PRAGMA user_version = ${format}`,
            `has format ${format}, and this version reads format 7: start the version that wrote it, or move the file away`
          ]),
          ["CREATE TABLE notes (text)", "is a database of another program"]
        ] as const
      ) {
        const file = yield* usageFile
        const logs: Array<string> = []
        yield* fs.makeDirectory(dirname(file))
        const db = new DatabaseSync(file)
        db.exec(sql)
        db.close()
        const before = yield* fs.readFile(file)
        yield* inScope(Effect.gen(function*() {
          const store = yield* sqliteStore({ file })
          store.add(entry())
          assert.strictEqual(yield* requestsOf(store), 1)
          assert.deepStrictEqual(yield* store.status, {
            kind: "memory",
            persistent: false,
            detail: `${file} ${detail}`
          })
        })).pipe(Effect.provide(collectLogs(logs)))
        assert.deepStrictEqual(yield* fs.readFile(file), before)
        assert.deepStrictEqual(logs, [`Warn Usage is kept in memory only: ${file} ${detail}`])
      }
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("stays in memory if its folder cannot be created", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const file = yield* usageFile
      yield* fs.writeFileString(dirname(file), "a file in the folder's place")
      const store = yield* sqliteStore({ file })
      store.add(entry())
      assert.strictEqual(yield* requestsOf(store), 1)
      const { detail, kind } = yield* store.status
      assert.strictEqual(kind, "memory")
      assert.include(detail, "cannot be made")
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("stays in memory if the path leads to a pipe or a device", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const file = yield* usageFile
      yield* fs.makeDirectory(dirname(file))
      execFileSync("mkfifo", [file])
      for (const path of [file, "/dev/null"]) {
        const store = yield* sqliteStore({ file: path })
        store.add(entry())
        assert.strictEqual(yield* requestsOf(store), 1)
        const { detail, kind } = yield* store.status
        assert.deepStrictEqual(
          [kind, detail?.includes(`${path} is not a regular file`)],
          ["memory", true],
          detail ?? ""
        )
      }
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("stays in memory while the disk is full, with one log line, and is written when there is space again", () => {
    const logs: Array<string> = []
    return Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const file = yield* usageFile
      let writer: DatabaseSync | undefined
      yield* inScope(Effect.gen(function*() {
        const store = yield* sqliteStore({
          file,
          connect: (path, options) => {
            const db = new DatabaseSync(path, options)
            if (!options.readOnly) writer = db
            return db
          }
        })
        const pages = Number(writer?.prepare("PRAGMA page_count").get()?.["page_count"])
        writer?.exec(`PRAGMA max_page_count = ${pages}`)
        for (let i = 0; i < 500; i++) store.add(entry({ model: `model ${i}` }))
        yield* second
        yield* until(Effect.map(detailOf(store), (detail) => detail?.includes("no space is left on its disk") === true))
        for (let i = 0; i < 500; i++) store.add(entry({ model: `model ${i}` }))
        for (let i = 0; i < 3; i++) yield* second
        assert.strictEqual(yield* requestsOf(store), 1000)
        assert.strictEqual((yield* store.counters(keyA, start)).windows.hour.requests, 1000)
        writer?.exec("PRAGMA max_page_count = 1000000")
        yield* second
        yield* until(Effect.map(detailOf(store), (detail) => detail === null))
        assert.strictEqual(yield* requestsOf(store), 1000)
      }))
      assert.deepStrictEqual(logs.map((line) => line.split(" ")[0]), ["Error", "Info"])
      assert.strictEqual(yield* requestsOf(yield* sqliteStore({ file })), 1000)
    }).pipe(Effect.provide([NodeServices.layer, collectLogs(logs)]))
  })

  it.effect("waits for another process that locks the file, with a log line after ten seconds", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const file = yield* usageFile
      yield* inScope(Effect.gen(function*() {
        const store = yield* sqliteStore({ file })
        const other = new DatabaseSync(file)
        other.exec("BEGIN IMMEDIATE")
        store.add(entry())
        yield* second
        assert.isNull(yield* detailOf(store))
        for (let i = 0; i < 12; i++) yield* second
        yield* until(Effect.map(detailOf(store), (detail) => detail?.includes("locked by another process") === true))
        assert.strictEqual(yield* requestsOf(store), 1)
        other.exec("COMMIT")
        other.close()
        yield* second
        yield* until(Effect.map(detailOf(store), (detail) => detail === null))
      }))
      assert.strictEqual(yield* requestsOf(yield* sqliteStore({ file })), 1)
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("is bounded in memory: the oldest entries are dropped, and the status reports it", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const file = yield* usageFile
      const store = yield* sqliteStore({ file, most: 10 })
      for (let i = 0; i < 13; i++) store.add(entry({ model: `model ${i}` }))
      const { rows } = yield* store.query({ ...everything, by: ["model"] })
      assert.deepStrictEqual(rows.map(({ model }) => Number(model.slice(6))).sort((a, b) => a - b), [
        3,
        4,
        5,
        6,
        7,
        8,
        9,
        10,
        11,
        12
      ])
      assert.strictEqual(yield* detailOf(store), "the history in memory is full: 3 of its oldest entries were dropped")
      assert.strictEqual((yield* store.counters(keyA, start)).windows.day.requests, 13)
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("is read and written in slices, however large it is", () => {
    const sizes: Array<SliceSize> = []
    const rows = 20_000
    return Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const file = yield* usageFile
      const store = yield* sqliteStore({ file })
      for (let i = 0; i < rows; i++) {
        store.add(
          entry({
            at: start - (i % 2000) * hourLength,
            model: `model ${i % 500}`,
            account: `a${i % 101}`,
            error: i % 2 === 0 ? "upstream_error" : undefined
          })
        )
      }
      yield* second
      yield* until(Effect.sync(() => sizes.reduce((sum, { items }) => sum + items, 0) >= rows))
      sizes.length = 0
      const { rows: days, totals } = yield* store.query({ ...everything, by: ["day", "model"] })
      assert.strictEqual(totals.values[0], rows)
      assert.strictEqual(totals.errors?.get("upstream_error"), rows / 2)
      assert.strictEqual(days.reduce((sum, { sums }) => sum + sums.values[0]!, 0), rows)
      // Two thousand hours of models, and as many days, a thousand at a time.
      assert.isAtLeast(sizes.length, 4)
      for (const { items } of sizes) assert.isAtMost(items, sliceItems)
    }).pipe(Effect.provide([NodeServices.layer]), Effect.provideService(CurrentSliceWatch, (size) => sizes.push(size)))
  })

  it.effect("is read in slices of a thousand from very many entries, and one day without reading the rest", () => {
    const sizes: Array<SliceSize> = []
    const looked = () => sizes.reduce((sum, { items }) => sum + items, 0)
    const [hours, rows] = [2000, sized(1_000_000)]
    return Effect.gen(function*() {
      const first = start - hours * hourLength
      // No day is over: none is summed.
      yield* TestClock.setTime(first)
      const file = yield* usageFile
      const { close, writer } = yield* openSqlite(file)
      writer.exec(`
        WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows - 1})
        INSERT INTO usage SELECT ${first} + (i / ${rows / hours}) * ${hourLength}, 'key ' || (i % 50), 'model',
          'account ' || (i % ${
        rows / hours
      }), 'chat', 'default', 'default/model', 'none', 1, 1, 0, 0, 1, 10, 5, 0, 0, 15, 0, 0, 1, 0, 0, 9,
          0, 0, 0, 0, 0, 0, 0, 0, NULL FROM n
      `)
      close()
      const store = yield* sqliteStore({ file })
      store.add(entry({ key: "key 0" }))
      const report = yield* store.query({ ...everything, by: ["day", "key"], limit: 100 })
      assert.strictEqual(report.totals.values[0], rows + 1)
      assert.strictEqual(report.rows.length, 100)
      assert.isTrue(report.truncated)
      assert.isAtLeast(looked(), rows)
      for (const { items } of sizes) assert.isAtMost(items, sliceItems)
      sizes.length = 0
      const day = yield* store.query({ ...everything, from: start - 24 * hourLength, to: start, by: ["key"] })
      assert.strictEqual(day.totals.values[0], 24 * rows / hours)
      assert.isAtMost(looked(), 24 * rows / hours + sliceItems)
    }).pipe(Effect.provide([NodeServices.layer]), Effect.provideService(CurrentSliceWatch, (size) => sizes.push(size)))
  })

  it.effect("is written while a long history is compacted", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const file = yield* usageFile
      const { close, reader, writer } = yield* openSqlite(file)
      writer.exec(`
        WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
        INSERT INTO usage SELECT ${dayOf(start - 200 * dayLength)} + (i / 50) * ${hourLength}, 'key', 'model',
          'account ' || (i % 50), 'chat', 'default', 'default/model', 'none', 1, 1, 0, 0, 1, 10, 5, 0, 0, 15, 0, 0, 1, 0, 0, 9,
          0, 0, 0, 0, 0, 0, 0, 0, NULL FROM n
      `)
      const recent = new Batch()
      for (const days of [1, 2, 3]) recent.addBucket(entry({ at: start - days * dayLength }))
      for (const _ of writeBatch(writer, recent, mostSessionsKept)) continue
      const count = (where: string) =>
        Number(reader.prepare(`SELECT count(*) AS n FROM usage WHERE ${where}`).get()?.["n"])
      const hours = `hour < ${start - 90 * dayLength} AND hour % ${dayLength} <> 0`
      const before = count(hours)
      const store = yield* sqliteStore({ file })
      store.add(entry())
      yield* second
      yield* until(Effect.sync(() => count("key <> 'key'") === 4))
      assert.isAbove(count(hours), 0)
      yield* until(Effect.sync(() => count(hours) === 0))
      assert.isBelow(count("key = 'key'"), before)
      assert.strictEqual(yield* requestsOf(store), 10_004)
      close()
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("closes the connection of an interrupted read", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const file = yield* usageFile
      const connections = yield* openSqlite(file)
      const batch = new Batch()
      for (let i = 0; i < 5000; i++) batch.addBucket(entry({ model: `model ${i}` }))
      for (const _ of writeBatch(connections.writer, batch, mostSessionsKept)) continue
      connections.close()
      const open: Array<DatabaseSync> = []
      const store = yield* sqliteStore({
        file,
        connect: (path, options) => {
          const db = new DatabaseSync(path, options)
          open.push(db)
          return db
        }
      })
      const before = open.length
      const reading = yield* Effect.forkChild(store.query(everything), { startImmediately: true })
      yield* until(Effect.sync(() => open.length > before))
      yield* Fiber.interrupt(reading)
      assert.isFalse(open.at(-1)?.isOpen)
    }).pipe(Effect.provide(NodeServices.layer)))
})
