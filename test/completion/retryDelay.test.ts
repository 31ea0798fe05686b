import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { retryDelay } from "../../src/completion/retryDelay.ts"

describe("the wait before a retry at the same server", () => {
  it.effect.each([[1, 100], [2, 400], [3, 400]] as const)(
    "lasts for retry %i: %i ms, plus up to a quarter",
    ([count, least]) =>
      Effect.gen(function*() {
        const waiting = yield* Effect.forkChild(retryDelay(count))
        yield* TestClock.adjust(least - 1)
        assert.isUndefined(waiting.pollUnsafe())
        yield* TestClock.adjust(1 + least / 4)
        yield* Fiber.join(waiting)
      })
  )
})
