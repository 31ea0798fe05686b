import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { emptyConfig, killWhileSaving } from "./crash/kill.ts"
import { configFile, NodeServices, startStore } from "./support.ts"

/** The number of keys that a gateway finds at a start with the file. */
const keysAfterRestart = (path: string) =>
  Effect.scoped(
    Effect.gen(function*() {
      const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
      return (yield* store.current).configured_keys.length
    })
  )

/** Kills a saving process after each of these numbers of steps, always on the same file. */
const kill = Effect.fnUntraced(function*(counts: ReadonlyArray<number>) {
  const path = yield* configFile(emptyConfig)
  let acknowledged = 0
  for (const steps of counts) {
    const aftermath = yield* Effect.promise(() => killWhileSaving(path, steps))
    assert.isAtLeast(aftermath.acknowledged, 1)
    assert.deepStrictEqual(aftermath.lost, [])
    acknowledged += aftermath.acknowledged
    assert.isAtLeast(yield* keysAfterRestart(path), acknowledged)
  }
})

describe("a process that is killed during a save", () => {
  it.live("leaves a file that loads and contains every acknowledged change, five times in a row", () =>
    Effect.forEach([[1, 3, 6], [2, 13]], kill, { concurrency: 2 }).pipe(Effect.provide(NodeServices.layer)))
})
