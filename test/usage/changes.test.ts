/** The history of admin changes while its place fails, and at its bounds. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as TestClock from "effect/testing/TestClock"
import { DatabaseSync } from "node:sqlite"
import type { Change } from "../../src/usage/Change.ts"
import { type KeptChange, makeChangeHistory, mostChanges, plainTexts } from "../../src/usage/changes.ts"
import { changesInSqlite } from "../../src/usage/changesInSqlite.ts"
import { unconfirmed } from "../../src/usage/retention.ts"
import { NodeServices, sqliteStore, start, usageFile } from "./support.ts"

const change = (action: string, at = start): Change => ({
  at,
  who: { kind: "key", name: null },
  address: null,
  action,
  fields: [],
  more_fields: 0,
  node: "n1"
})

const end = Number.MAX_SAFE_INTEGER

describe("the history of changes", () => {
  it.effect("lists changes that cannot be written yet, and writes them once the place answers", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      let isUp = false
      const kept = new Map<number, KeptChange>()
      const history = yield* makeChangeHistory(() => 400, unconfirmed, {
        ...plainTexts,
        write: (changes) =>
          isUp ? Effect.sync(() => changes.forEach((each) => kept.set(each.position, each))) : Effect.fail("down"),
        removeBefore: () => Effect.succeed(0),
        read: () => isUp ? Effect.succeed([...kept.values()]) : Effect.fail("down")
      })
      yield* history.record(change("one"))
      yield* history.record(change("two"))
      assert.deepStrictEqual((yield* history.read(end, 9)).map((each) => each.change.action), ["two", "one"])
      assert.isEmpty(kept)
      isUp = true
      yield* TestClock.adjust("1 second")
      assert.strictEqual(kept.size, 2)
      assert.deepStrictEqual((yield* history.read(end, 9)).map((each) => each.change.action), ["two", "one"])
    }))

  it.effect("keeps the newest 10,000 changes", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const history = yield* makeChangeHistory(() => 400, unconfirmed)
      for (let i = 0; i < mostChanges + 5; i++) yield* history.record(change(String(i)))
      const found = yield* history.read(end, 2 * mostChanges)
      assert.strictEqual(found.length, mostChanges)
      assert.strictEqual(found.at(-1)?.change.action, "5")
    }))

  it.effect("bounds the changes of a file, and waits for another process that writes to it", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      const file = yield* usageFile
      const { changes } = yield* sqliteStore({ file })
      const place = changesInSqlite(file, undefined)
      const many = Array.from({ length: mostChanges + 5 }, (_, position) => ({ position, text: "{}" }))
      yield* place.write(many)
      const found = yield* place.read(end, 0, 2 * mostChanges)
      assert.deepStrictEqual([found.length, found.at(-1)?.position], [mostChanges, 5])

      const other = new DatabaseSync(file)
      other.exec("BEGIN IMMEDIATE")
      yield* changes!.record(change("while another writes"))
      assert.deepStrictEqual(
        (yield* changes!.read(end, 1)).map((each) => each.change.action),
        ["while another writes"]
      )
      assert.notStrictEqual((yield* place.read(end, 0, 1))[0]?.text.includes("another"), true)
      other.exec("COMMIT")
      other.close()
      yield* TestClock.adjust("1 second")
      yield* changes!.read(end, 1)
      assert.include((yield* place.read(end, 0, 1))[0]?.text, "while another writes")
    }).pipe(Effect.provide(NodeServices.layer)))

  it.effect("makes no file of its own", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const file = yield* usageFile
      const failed = yield* Effect.flip(changesInSqlite(file, undefined).write([{ position: 1, text: "{}" }]))
      assert.include(failed.message, "is missing")
      assert.isFalse(yield* fs.exists(file))
    }).pipe(Effect.provide(NodeServices.layer)))
})
