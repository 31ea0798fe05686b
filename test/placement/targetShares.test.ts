/** The turns of targets by weight, against a plain count. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { plainTarget, type Target } from "../../src/domain/routes.ts"
import { TargetShares, type Turn } from "../../src/placement/targetShares.ts"
import { runs } from "../support/effort.ts"

const targetsOf = (weights: ReadonlyArray<number>): ReadonlyArray<Target> =>
  weights.map((weight, i) => ({
    ...plainTarget,
    upstream: `u${i}`,
    model: { id: "m", reasoning: true, search: false },
    enabled: true,
    weight
  }))

const weights = fc.array(fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 1_000 })), {
  minLength: 2,
  maxLength: 9
})

/** Serves a request at the first target that is not `out`; returns its index. */
const serve = (shares: TargetShares, targets: ReadonlyArray<Target>, out: ReadonlySet<number> = new Set()): number => {
  const turn = shares.take(targets)
  const index = turn.order.find((each) => !out.has(each))!
  turn.servedBy(targets[index]!)
  turn.over()
  return index
}

describe("the turns of targets by weight", () => {
  it("give each target its share of any number of requests, rounded up or down, concurrent ones too", () => {
    fc.assert(
      fc.property(weights, fc.array(fc.tuple(fc.boolean(), fc.nat(9)), { maxLength: 300 }), (weights, steps) => {
        const targets = targetsOf(weights)
        const shares = new TargetShares()
        const sum = weights.reduce((all, weight) => all + weight, 0)
        const counts = weights.map(() => 0)
        const running: Array<Turn> = []
        let n = 0
        for (const [begins, nth] of steps) {
          if (!begins && running.length > 0) {
            const [turn] = running.splice(nth % running.length, 1)
            turn!.servedBy(targets[turn!.order[0]!]!)
            turn!.over()
            continue
          }
          const turn = shares.take(targets)
          running.push(turn)
          assert.sameMembers([...turn.order], weights.map((_, i) => i))
          counts[turn.order[0]!]!++
          n++
          // Whole numbers: the share is n * weight / sum.
          for (const [i, weight] of weights.entries()) {
            assert.isBelow(Math.abs(counts[i]! * sum - n * weight), sum, `${i} after ${n}`)
          }
        }
      }),
      { numRuns: runs(150) }
    )
  })

  it("count for the target that serves, and for none when none does", () => {
    const targets = targetsOf([3, 1, 4])
    const shares = new TargetShares()
    const count = (requests: number, out?: ReadonlySet<number>) => {
      const counts = [0, 0, 0]
      for (let n = 0; n < requests; n++) {
        shares.take(targets).over()
        counts[serve(shares, targets, out)]!++
      }
      return counts
    }
    assert.deepStrictEqual(count(80), [30, 10, 40])
    // While one is out, the others have their shares of what is left.
    assert.deepStrictEqual(count(80, new Set([2])), [60, 20, 0])
    // What it has missed is not made up for.
    const back = count(80)
    for (const [i, share] of [30, 10, 40].entries()) assert.isAtMost(Math.abs(back[i]! - share), 2, String(back))
  })

  it("are among the targets that a request may go to", () => {
    const targets = targetsOf([3, 1, 4])
    const shares = new TargetShares()
    const some = [targets[0]!, targets[1]!]
    const counts = [0, 0]
    for (let n = 0; n < 80; n++) counts[serve(shares, some)]!++
    assert.deepStrictEqual(counts, [60, 20])
    // One that could serve none of them makes up for nothing.
    const all = [0, 0, 0]
    for (let n = 0; n < 80; n++) all[serve(shares, targets)]!++
    for (const [i, share] of [30, 10, 40].entries()) assert.isAtMost(Math.abs(all[i]! - share), 1, String(all))
  })
})
