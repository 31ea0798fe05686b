/**
 * Where requests go and why they are refused, through the public pool, against lists that are gone through as a whole: generated accounts,
 * budgets, pauses of models, failures, conversations, tries and waits.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { runs } from "../support/effort.ts"
import { follow, inProcess } from "./followDecision.ts"
import { decisionCase, fullOnceFree } from "./naiveDecision.ts"

describe("the decision of the pool", () => {
  it("equals a decision by plain lists for each generated request, down to the sentence of a refusal", async () => {
    let decided = 0
    const numRuns = runs(1_500)
    await fc.assert(
      fc.asyncProperty(decisionCase, async (one) => {
        decided += await follow(one, inProcess)
      }),
      { numRuns, examples: [[fullOnceFree]] }
    )
    assert.isAbove(decided, 14 * numRuns)
  })
})
