/** Large replies are sent one per turn of the event loop, and count while they wait. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { type BufferedBytes, CurrentBufferedBytes, CurrentLimits } from "../../src/config/limits.ts"
import { defaultLimits } from "../../src/domain/limits.ts"
import { beforeReply, inTurn, largeReply, makeLarge } from "../../src/http/WorkLimit.ts"

const turn = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))

const within = (sum: BufferedBytes, buffered_bytes: number) => <A, E>(effect: Effect.Effect<A, E>) =>
  effect.pipe(
    Effect.provideService(CurrentBufferedBytes, sum),
    Effect.provideService(CurrentLimits, () => ({ ...defaultLimits, buffered_bytes }))
  )

describe("large replies", () => {
  it.effect("are sent one per turn of the event loop, in order, and count their bytes until then", () =>
    Effect.gen(function*() {
      const sum: BufferedBytes = { used: 0 }
      const sent: Array<number> = []
      for (let i = 0; i < 5; i++) {
        yield* Effect.forkChild(within(sum, 1000)(Effect.andThen(inTurn(10), Effect.sync(() => sent.push(i)))), {
          startImmediately: true
        })
      }
      assert.strictEqual(sum.used, 50)
      const perTurn: Array<number> = []
      while (sent.length < 5) {
        const before = sent.length
        yield* turn
        assert.strictEqual(sum.used, 50 - 10 * sent.length)
        perTurn.push(sent.length - before)
      }
      assert.isTrue(perTurn.every((count) => count <= 1))
      assert.deepStrictEqual(sent, [0, 1, 2, 3, 4])
    }))

  it.effect("release their bytes when the client disconnects while they wait", () =>
    Effect.gen(function*() {
      const sum: BufferedBytes = { used: 0 }
      const waiting = yield* Effect.forkChild(within(sum, 1000)(inTurn(10)), { startImmediately: true })
      assert.strictEqual(sum.used, 10)
      yield* Fiber.interrupt(waiting)
      assert.strictEqual(sum.used, 0)
    }))

  it.effect("are refused before they are made if there is no room, and record the refused size", () =>
    Effect.gen(function*() {
      const sum: BufferedBytes = { used: 1 }
      const refused = yield* Effect.exit(within(sum, largeReply)(beforeReply(largeReply)))
      assert.isTrue(Exit.isFailure(refused))
      assert.deepStrictEqual(sum, { used: 1, refused: largeReply })
      yield* within(sum, largeReply + 1)(beforeReply(largeReply))
      assert.strictEqual(sum.used, 1)
    }))

  it.effect("are made one at a time, count their bytes from before the work on, and are refused before it without room", () =>
    Effect.gen(function*() {
      const sum: BufferedBytes = { used: 0 }
      const limited = within(sum, 2 * largeReply)
      const made: Array<string> = []
      const gates = [Deferred.makeUnsafe<void>(), Deferred.makeUnsafe<void>()]
      const make = (name: string, gate: Deferred.Deferred<void>) =>
        limited(Effect.scoped(makeLarge(
          largeReply,
          Effect.andThen(Effect.sync(() => made.push(name)), Deferred.await(gate))
        )))
      const first = yield* Effect.forkChild(make("first", gates[0]!), { startImmediately: true })
      const second = yield* Effect.forkChild(make("second", gates[1]!), { startImmediately: true })
      assert.strictEqual(sum.used, 2 * largeReply)
      assert.deepStrictEqual(made, ["first"])
      const refused = yield* Effect.flip(make("third", gates[0]!))
      assert.strictEqual(refused.code, "rate_limit_exceeded")
      yield* limited(Effect.scoped(makeLarge(10, Effect.sync(() => made.push("small")))))
      Deferred.doneUnsafe(gates[0]!, Exit.void)
      yield* Fiber.join(first)
      yield* turn
      assert.deepStrictEqual(made, ["first", "small", "second"])
      Deferred.doneUnsafe(gates[1]!, Exit.void)
      yield* Fiber.join(second)
      assert.strictEqual(sum.used, 0)
    }))
})
