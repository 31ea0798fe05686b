import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import * as fc from "fast-check"
import { type Deadline, Deadlines, tickMillis } from "../../../src/config/clock/Deadlines.ts"
import { runs } from "../../support/effort.ts"

/** Moves the clock after all woken fibers sleep again. */
const pass = (millis: number) =>
  Effect.promise(() => new Promise(setImmediate)).pipe(
    Effect.repeat({ times: 4 }),
    Effect.andThen(TestClock.adjust(millis))
  )

describe("deadlines", () => {
  it.effect("fire once, at their time", () =>
    Effect.gen(function*() {
      const deadlines = yield* Deadlines
      const ran: Array<number> = []
      deadlines.add(deadlines.now() + 5_000, (now) => ran.push(now))
      yield* TestClock.adjust(4_999)
      assert.deepStrictEqual(ran, [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(ran, [5_000])
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(ran, [5_000])
    }).pipe(Effect.provide(Deadlines.layer)))

  it.effect("move by assignment in both directions, and end by cancelling", () =>
    Effect.gen(function*() {
      const deadlines = yield* Deadlines
      let ran = 0
      const deadline = deadlines.add(1_000, () => ran++)
      yield* TestClock.adjust(900)
      deadline.at = 3_000
      yield* TestClock.adjust(2_000)
      assert.strictEqual(ran, 0)
      deadline.at = 2_950
      yield* TestClock.adjust(tickMillis)
      assert.strictEqual(ran, 1)
      deadline.at = 4_000
      deadline.cancel()
      deadline.cancel()
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(ran, 1)
      assert.strictEqual(deadlines.size(), 0)
    }).pipe(Effect.provide(Deadlines.layer)))

  it.effect("fire after a period without deadlines", () =>
    Effect.gen(function*() {
      const deadlines = yield* Deadlines
      deadlines.add(500, () => undefined).cancel()
      yield* TestClock.adjust("1 hour")
      let ran = 0
      deadlines.add(deadlines.now() + 500, () => ran++)
      yield* TestClock.adjust(500)
      assert.strictEqual(ran, 1)
    }).pipe(Effect.provide(Deadlines.layer)))

  it.effect("cancelled ones keep no reference to one another", () =>
    Effect.gen(function*() {
      const deadlines = yield* Deadlines
      const all = Array.from({ length: 3 }, () => deadlines.add(deadlines.now() + 1_000, () => undefined))
      const reached = (from: unknown, seen = new Set<unknown>()): ReadonlySet<unknown> => {
        if (typeof from !== "object" || from === null || seen.has(from)) return seen
        seen.add(from)
        for (const name of Reflect.ownKeys(from)) reached(Reflect.get(from, name), seen)
        return seen
      }
      assert.isTrue(all.every((deadline) => reached(all[1]).has(deadline)), "they are in one list")
      for (const deadline of all) deadline.cancel()
      for (const kept of all) assert.deepStrictEqual(all.filter((each) => reached(kept).has(each)), [kept])
    }).pipe(Effect.provide(Deadlines.layer)))

  it.effect("fire on time in any interleaving of additions, moves and cancellations", () =>
    Effect.gen(function*() {
      const deadlines = yield* Deadlines
      const step = fc.record({
        wait: fc.integer({ min: 0, max: 5 }),
        what: fc.constantFrom("add", "move", "cancel", "cancel when it runs", "add when it runs"),
        which: fc.nat(20),
        after: fc.integer({ min: 0, max: 10 })
      })
      for (const steps of fc.sample(fc.array(step, { maxLength: 60 }), { numRuns: runs(100) })) {
        interface Model {
          readonly deadline: Deadline
          at: number
          alive: boolean
          ran: number
        }
        const models: Array<Model> = []
        const add = (after: number, then: () => void = () => undefined) => {
          const at = deadlines.now() + after * tickMillis
          const model: Model = {
            at,
            alive: true,
            ran: 0,
            deadline: deadlines.add(at, (now) => {
              assert.isTrue(model.alive, "it was not cancelled")
              assert.isAtMost(model.at, now, "it is not early")
              assert.isBelow(now - model.at, tickMillis + 1, "it is late by no more than a tick")
              model.ran++
              model.at = Infinity
              then()
            })
          }
          models.push(model)
        }
        const cancel = (model: Model) => {
          model.deadline.cancel()
          model.alive = false
        }
        for (const { after, wait, what, which } of steps) {
          if (wait > 0) yield* pass(wait * tickMillis)
          const model = models.length === 0 ? undefined : models[which % models.length]
          if (what === "add" || model === undefined) add(after)
          else if (what === "add when it runs") add(after, () => add(1))
          else if (what === "cancel when it runs") add(after, () => cancel(models[which % models.length]!))
          else if (what === "cancel") cancel(model)
          else if (model.alive) model.deadline.at = model.at = deadlines.now() + after * tickMillis
        }
        yield* pass(30 * tickMillis)
        for (const model of models) {
          if (model.alive) assert.strictEqual(model.at, Infinity, "whatever was due has run")
          cancel(model)
        }
        assert.strictEqual(deadlines.size(), 0)
      }
    }).pipe(Effect.provide(Deadlines.layer)))
})
