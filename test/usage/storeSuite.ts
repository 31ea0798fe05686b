/** The behaviour of every usage store. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import type * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import * as fc from "fast-check"
import type { Change } from "../../src/usage/Change.ts"
import { addSums, type UsageEntry, zero } from "../../src/usage/UsageEntry.ts"
import type { UsageQuery } from "../../src/usage/UsageQuery.ts"
import { mostSessionRows, type UsageStoreShape } from "../../src/usage/UsageStoreShape.ts"
import { dayLength, dayOf } from "../../src/usage/windows.ts"
import { runs } from "../support/effort.ts"
import { until } from "../support/until.ts"
import { withWallClock } from "../support/wallClock.ts"
import {
  collectLogs,
  entries,
  entry,
  everything,
  expectedCounters,
  expectedReport,
  keyA,
  keyB,
  NodeServices,
  plain,
  queries,
  start
} from "./support.ts"

/** A store, and the same after a restart of the process; a memory store's process continues. */
export interface Run {
  readonly store: UsageStoreShape
  readonly restarted: Effect.Effect<UsageStoreShape, never, Scope.Scope>
}

export type Made = Effect.Effect<Run, never, FileSystem.FileSystem | Scope.Scope>

const adminChange = (place: number, at: number): Change => ({
  at,
  who: { kind: "token", name: "ci" },
  address: "192.0.2.1",
  action: `change ${place}`,
  fields: [{ path: "runtime.sticky", before: null, after: "true" }],
  more_fields: 0,
  node: "n1"
})

/** Something that happens to a store between two queries. */
type Act = { readonly add: ReadonlyArray<UsageEntry> } | { readonly pass: number }

const acts = fc.array(
  fc.oneof(
    fc.array(entries(3), { maxLength: 12 }).map((add): Act => ({ add })),
    fc.constantFrom<Act>({ pass: 400 }, { pass: 1000 })
  ),
  { maxLength: 8 }
)

const check = (
  make: Made,
  steps: ReadonlyArray<Act>,
  asked: ReadonlyArray<UsageQuery>,
  counts: boolean
) =>
  Effect.gen(function*() {
    yield* TestClock.setTime(start)
    const { store } = yield* make
    const recorded: Array<UsageEntry> = []
    for (const step of steps) {
      if ("pass" in step) {
        yield* TestClock.adjust(step.pass)
        continue
      }
      for (const one of step.add) {
        store.add(one)
        recorded.push(one)
      }
      for (const query of asked) {
        assert.deepStrictEqual(plain(yield* store.query(query)), expectedReport(recorded, query))
      }
      for (const key of counts ? [keyA, keyB] : []) {
        for (const now of [start, start + 2.5 * dayLength, recorded.at(-1)?.at ?? start]) {
          assert.deepStrictEqual(yield* store.counters(key, now), expectedCounters(recorded, key, now))
        }
      }
    }
  }).pipe(Effect.scoped, Effect.provide([TestClock.layer(), NodeServices.layer]))

/** A session of more agents than a file or a store keeps: its requests all count, those of further agents at `none`. */
export const manyAgents = (make: Made) =>
  Effect.gen(function*() {
    yield* TestClock.setTime(start)
    const { store } = yield* make
    for (let i = 0; i < mostSessionRows + 5; i++) store.add(entry({ session: "long", agent: `agent ${i}` }))
    yield* TestClock.adjust("1 second")
    store.add(entry({ session: "long", agent: "agent 3" }))
    store.add(entry({ session: "long", agent: "late" }))
    yield* TestClock.adjust("1 second")
    const { rows, totals } = yield* store.query({ ...everything, by: ["agent"] })
    assert.strictEqual(totals.values[0], mostSessionRows + 7)
    assert.lengthOf(rows, mostSessionRows + 1)
    const requests = new Map(rows.map(({ agent, sums }) => [agent, sums.values[0]]))
    assert.deepStrictEqual([requests.get("none"), requests.get("agent 3"), requests.get("late")], [6, 2, undefined])
  }).pipe(Effect.provide(NodeServices.layer))

/**
 * Days that are over are summed once, and what ends later is in their reports. `forgetHours` removes the hours before a time behind the
 * store's back, and returns the summed days: what queries by days read are the sums, and not the hours that they are of.
 */
export const summedDays = (make: Made, forgetHours: (before: number) => Effect.Effect<ReadonlyArray<number>>) =>
  Effect.gen(function*() {
    const days = 5
    const recorded = fc.sample(entries(days), { numRuns: 400 })
    const now = start + days * dayLength
    yield* TestClock.setTime(now)
    const asked = [
      everything,
      ...fc.sample(queries(days), { numRuns: 40 }),
      ...([["model"], ["day"], ["key", "day"], []] as const).map((by) => ({ ...everything, by })),
      { ...everything, by: ["account"] as const, only: { account: new Set(["a1", "a3"]) } },
      { ...everything, by: [], only: { app: new Set(["codex"]) } }
    ]
    const { restarted, store } = yield* make
    for (const one of recorded) store.add(one)
    yield* TestClock.adjust("1 second")
    yield* store.compact!
    const late = fc.sample(entries(days), { numRuns: 50 })
    for (const one of late) store.add(one)
    recorded.push(...late)
    for (const query of asked) {
      assert.deepStrictEqual(plain(yield* store.query(query)), expectedReport(recorded, query))
    }
    yield* store.compact!
    const after = yield* restarted
    const summed = yield* forgetHours(dayOf(now))
    assert.deepStrictEqual(summed, Array.from({ length: days }, (_, day) => dayOf(start) + day * dayLength))
    for (const { dayOf: dayIn, ...query } of asked) {
      const by = query.by.filter((name) => name !== "day")
      // Days are summed by one dimension each.
      const involved = new Set([
        ...by,
        ...Object.entries(query.only).flatMap(([name, of]) => of === undefined ? [] : [name])
      ])
      if (dayIn !== undefined || query.by.includes("hour") || involved.size > 1) continue
      const whole = { ...query, from: dayOf(start), to: now }
      assert.deepStrictEqual(plain(yield* after.query(whole)), expectedReport(recorded, whole))
    }
  }).pipe(Effect.provide(NodeServices.layer))

/** The suite; `counts`: whether the store counts the windows of keys too, `small`: the store with room for three sessions. */
export const storeSuite = (
  name: string,
  make: Made,
  { counts, small }: { readonly counts: boolean; readonly small: Made }
) => {
  describe(`the ${name} usage store`, () => {
    it("reports the plain sum of its entries, written or not", async () => {
      await fc.assert(
        fc.asyncProperty(
          acts,
          fc.array(queries(3), { minLength: 1, maxLength: 3 }),
          (steps, asked) => Effect.runPromise(check(make, steps, asked, counts))
        ),
        { numRuns: runs(60) }
      )
    })

    it.effect("keeps admin changes over a restart, and returns them from any position on, newest first", () =>
      Effect.gen(function*() {
        yield* TestClock.setTime(start)
        const run = yield* make
        for (const place of [1, 2, 3, 4, 5]) yield* run.store.changes!.record(adminChange(place, start))
        const { changes } = yield* run.restarted
        const found = yield* changes!.read(Number.MAX_SAFE_INTEGER, 3)
        assert.deepStrictEqual(found.map(({ change }) => change), [5, 4, 3].map((place) => adminChange(place, start)))
        const older = yield* changes!.read(found.at(-1)!.position, 3)
        assert.deepStrictEqual(older.map(({ change }) => change.action), ["change 2", "change 1"])
        assert.isEmpty(yield* changes!.read(older.at(-1)!.position, 3))
      }).pipe(Effect.provide(NodeServices.layer)))

    it.effect("forgets admin changes after 400 days", () =>
      Effect.gen(function*() {
        const now = start + 400 * dayLength - 1000
        yield* TestClock.setTime(now)
        const { store: { changes } } = yield* make
        yield* changes!.record(adminChange(1, start))
        yield* changes!.record(adminChange(2, now))
        const actions = Effect.map(
          changes!.read(Number.MAX_SAFE_INTEGER, 9),
          (found) => found.map(({ change }) => change.action)
        )
        assert.deepStrictEqual(yield* actions, ["change 2", "change 1"])
        yield* TestClock.adjust("2 seconds")
        assert.deepStrictEqual(yield* actions, ["change 2"])
      }).pipe(Effect.provide(NodeServices.layer)))

    it.effect("keeps its whole history through a start with a clock that is 500 days ahead, and through requests there", () =>
      withWallClock((clock) =>
        Effect.gen(function*() {
          const recorded = fc.sample(entries(3), { numRuns: runs(37) })
          const now = start + 3 * dayLength
          yield* TestClock.setTime(now)
          const run = yield* make
          for (const one of recorded) run.store.add(one)
          yield* run.store.changes!.record(adminChange(1, now))
          clock.offset = 500 * dayLength
          const store = yield* run.restarted
          const late = entry({ at: now + clock.offset })
          store.add(late)
          yield* store.changes!.record(adminChange(2, late.at))
          yield* TestClock.adjust("61 minutes")
          yield* store.compact
          assert.deepStrictEqual(
            plain(yield* store.query(everything)),
            expectedReport([...recorded, late], everything)
          )
          clock.offset = 0
          const changes = yield* store.changes!.read(Number.MAX_SAFE_INTEGER, 9)
          assert.deepStrictEqual(changes.map(({ change }) => change), [adminChange(2, late.at), adminChange(1, now)])
        })
      ).pipe(Effect.provide(NodeServices.layer)))

    it.effect("logs what it removes, and that it keeps old usage while its clock may be wrong", () => {
      const logs: Array<string> = []
      return withWallClock((clock) =>
        Effect.gen(function*() {
          yield* TestClock.setTime(start)
          const { store } = yield* make
          store.add(entry())
          yield* store.changes!.record(adminChange(1, start))
          // The compaction of the start ends, and the entry is written.
          yield* TestClock.adjust("1 second")
          clock.offset = 500 * dayLength
          yield* store.compact
          yield* store.compact
          assert.deepStrictEqual(logs, [
            "Warn Old usage is kept because the clock may be wrong: " +
            "the history has too little usage of the days before 2027-07-13T22:00:01Z"
          ])
          for (const days of [497, 498, 499]) store.add(entry({ at: start + days * dayLength }))
          yield* TestClock.adjust("1 second")
          yield* store.compact
          yield* TestClock.adjust("1 hour")
          yield* until(() => logs.length >= 3)
          const [change, entries, ...others] = logs.slice(1).sort()
          // The store's own clock goes on during the test.
          assert.match(change ?? "", /^Info Removed 1 admin change from before 2026-06-08T23:0\d:\d\dZ$/)
          assert.strictEqual(entries, "Info Removed 1 entry of usage from before 2026-06-08T00:00:00Z")
          assert.deepStrictEqual(others, [])
          assert.strictEqual((yield* store.query(everything)).totals.values[0], 3)
        })
      ).pipe(Effect.provide([NodeServices.layer, collectLogs(logs)]))
    })

    it.effect("merges hours into days after 90 days, and deletes days after 400", () =>
      Effect.gen(function*() {
        const recorded = fc.sample(entries(420), { numRuns: runs(1500) })
        yield* TestClock.setTime(start + 420 * dayLength)
        const run = yield* make
        for (const one of recorded) run.store.add(one)
        yield* run.store.compact
        const store = yield* run.restarted
        yield* store.compact
        const kept = recorded.filter(({ at }) => at >= dayOf(start + 20 * dayLength))
        assert.isBelow(kept.length, recorded.length)
        assert.deepStrictEqual(
          plain(yield* store.query(everything)),
          expectedReport(kept, everything, dayOf(start + 330 * dayLength))
        )
      }).pipe(Effect.provide(NodeServices.layer)))

    it.effect("has the usage of each key by app, session and agent too", () =>
      Effect.gen(function*() {
        const recorded = fc.sample(entries(3), { numRuns: runs(200) })
        const { store } = yield* make
        for (const one of recorded) store.add(one)
        for (const by of ["app", "session", "agent"] as const) {
          const split = yield* store.query({ ...everything, by: ["key", by] })
          assert.isAbove(new Set(split.rows.map((row) => row[by])).size, 2)
          for (const { key, sums } of (yield* store.query({ ...everything, by: ["key"] })).rows) {
            const sum = zero()
            for (const row of split.rows) if (row.key === key) addSums(sum, row.sums)
            assert.deepStrictEqual(sum, sums)
          }
        }
      }).pipe(Effect.provide(NodeServices.layer)))

    it.effect("keeps the sessions of 30 days", () =>
      Effect.gen(function*() {
        yield* TestClock.setTime(start + 40 * dayLength)
        const { store } = yield* make
        for (const days of [0, 9, 10, 37, 38, 39]) {
          store.add(entry({ at: start + days * dayLength, session: "long", agent: `day ${days}` }))
        }
        store.add(entry({ session: "old" }))
        yield* TestClock.adjust("1 second")
        yield* store.compact
        const { rows } = yield* store.query({ ...everything, by: ["session", "agent"] })
        assert.deepStrictEqual(rows.map(({ agent }) => agent), ["day 10", "day 37", "day 38", "day 39"])
        assert.strictEqual((yield* store.query(everything)).totals.values[0], 7)
      }).pipe(Effect.provide(NodeServices.layer)))

    it.effect("drops the session that was used longest ago", () =>
      Effect.gen(function*() {
        yield* TestClock.setTime(start)
        const { store } = yield* small
        for (const [second, session] of ["a", "b", "a", "c", "d"].entries()) {
          // A request that was refused before its admission began at a fraction of a millisecond.
          store.add(entry({ at: start + second * 1000 + 0.25, counted: false, session }))
          yield* TestClock.adjust("1 second")
        }
        const { rows } = yield* store.query({ ...everything, by: ["session"] })
        assert.deepStrictEqual(rows.map(({ session, sums }) => [session, sums.values[0]]), [["a", 2], ["c", 1], [
          "d",
          1
        ]])
      }).pipe(Effect.provide(NodeServices.layer)))

    if (counts) {
      it.effect("keeps a key's use of all windows while the clock jumps 60 days forth and back", () =>
        withWallClock((clock) =>
          Effect.gen(function*() {
            yield* TestClock.setTime(start)
            const { store } = yield* make
            const recorded = [1, 2, 3].map((promptTokens) => entry({ promptTokens }))
            for (const one of recorded) store.add(one)
            clock.offset = 60 * dayLength
            store.add(entry({ at: start + clock.offset }))
            yield* TestClock.adjust("1 second")
            yield* store.compact
            clock.offset = 0
            const { windows } = yield* store.counters(keyA, start)
            assert.deepStrictEqual(windows, expectedCounters(recorded, keyA, start).windows)
          })
        ).pipe(Effect.provide(NodeServices.layer)))

      it.effect("keeps the use of at most 60 minutes, 24 hours and 45 days", () =>
        Effect.gen(function*() {
          yield* TestClock.setTime(start + 100 * dayLength)
          const { store } = yield* make
          for (let day = 0; day < 100; day++) store.add(entry({ at: start + day * dayLength }))
          yield* store.compact
          const kept = { minute: 0, hour: 0, day: 0 }
          for (let day = 0; day < 100; day++) {
            const { windows } = yield* store.counters(keyA, start + day * dayLength)
            for (const window of ["minute", "hour", "day"] as const) kept[window] += windows[window].requests
          }
          assert.deepStrictEqual(kept, { minute: 60, hour: 24, day: 45 })
        }).pipe(Effect.provide(NodeServices.layer)))

      it.effect("keeps a key's use of the month when minutes and hours are compacted", () =>
        Effect.gen(function*() {
          const monthEnd = Date.UTC(2026, 2, 31, 23, 59, 59)
          yield* TestClock.setTime(monthEnd)
          const { store } = yield* make
          const recorded = fc.sample(entries(31), { numRuns: runs(300) })
          for (const one of recorded) store.add(one)
          yield* TestClock.adjust("1 second")
          yield* store.compact
          assert.deepStrictEqual(yield* store.counters(keyA, monthEnd), expectedCounters(recorded, keyA, monthEnd))
        }).pipe(Effect.provide(NodeServices.layer)))
    }

    it.effect("returns rows up to the limit, and sums over all rows", () =>
      Effect.gen(function*() {
        const { store } = yield* make
        for (let i = 0; i < 50; i++) store.add(entry({ model: `m${i % 10}`, promptTokens: i }))
        const report = yield* store.query({ ...everything, by: ["model"], limit: 3 })
        assert.deepStrictEqual(report.rows.map(({ model }) => model), ["m9", "m8", "m7"])
        assert.isTrue(report.truncated)
        assert.strictEqual(report.totals.values[0], 50)
      }).pipe(Effect.provide(NodeServices.layer)))
  })
}
