import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { CurrentCollector, layerIdleMemory } from "../../src/server/idleMemory.ts"
import { Lifecycle } from "../../src/server/Lifecycle.ts"

const setup = (then: (lifecycle: Lifecycle["Service"], collected: () => number) => Effect.Effect<void>) => {
  let collected = 0
  const collector = Layer.succeed(CurrentCollector, Effect.sync(() => void collected++))
  const layer = Layer.provideMerge(layerIdleMemory, Layer.merge(Lifecycle.layer, collector))
  return Effect.provide(Effect.flatMap(Lifecycle, (lifecycle) => then(lifecycle, () => collected)), layer)
}

const burst = (lifecycle: Lifecycle["Service"], requests: number) => {
  for (let i = 0; i < requests; i++) lifecycle.begin()()
}

it.effect("memory is collected once after a burst, when requests have stopped", () =>
  setup((lifecycle, collected) =>
    Effect.gen(function*() {
      burst(lifecycle, 1_000)
      yield* TestClock.adjust("15 seconds")
      assert.strictEqual(collected(), 0)
      yield* TestClock.adjust("15 seconds")
      assert.strictEqual(collected(), 1)
      burst(lifecycle, 999)
      yield* TestClock.adjust("2 minutes")
      assert.strictEqual(collected(), 1)
      burst(lifecycle, 1)
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual(collected(), 2)
    })
  ))

it.effect("no memory is collected while requests come or are open", () =>
  setup((lifecycle, collected) =>
    Effect.gen(function*() {
      burst(lifecycle, 5_000)
      for (let i = 0; i < 10; i++) {
        burst(lifecycle, 1)
        yield* TestClock.adjust("15 seconds")
      }
      const end = lifecycle.begin()
      yield* TestClock.adjust("2 minutes")
      assert.strictEqual(collected(), 0)
      end()
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual(collected(), 1)
    })
  ))

it.live("the collector of the process runs", () => Effect.flatMap(CurrentCollector, (collect) => collect))
