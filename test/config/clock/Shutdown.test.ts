import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { Shutdown } from "../../../src/config/clock/Shutdown.ts"

describe("Shutdown", () => {
  it("notifies every listener once, and no removed one", () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("watch" as const) }),
      fc.record({ kind: fc.constant("leave" as const), who: fc.nat(20) })
    )
    fc.assert(fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const shutdown = new Shutdown()
      const told: Array<number> = []
      const leaves: Array<() => void> = []
      const watching = new Set<number>()
      for (const next of steps) {
        if (next.kind === "watch") {
          const who = leaves.length
          watching.add(who)
          leaves.push(shutdown.watch(() => told.push(who)))
        } else {
          leaves[next.who]?.()
          watching.delete(next.who)
        }
        assert.strictEqual(shutdown.hasListeners, watching.size > 0)
      }
      shutdown.force()
      shutdown.force()
      for (const leave of leaves) leave()
      assert.deepStrictEqual(told.toSorted((a, b) => a - b), [...watching].toSorted((a, b) => a - b))
      assert.isTrue(shutdown.isOver)
      assert.isFalse(shutdown.hasListeners)
    }))
  })

  it("does not notify a listener that another listener has removed", () => {
    const shutdown = new Shutdown()
    const told: Array<string> = []
    const leaves: { [name: string]: () => void } = {}
    const watch = (name: string, other: string) => {
      leaves[name] = shutdown.watch(() => {
        told.push(name)
        leaves[other]!()
      })
    }
    watch("first", "second")
    watch("second", "first")
    shutdown.force()
    assert.lengthOf(told, 1)
  })
})
