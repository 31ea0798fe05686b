/** The seal of a compaction. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { makeEncryption } from "../../../../src/cluster/store/encryption.ts"
import {
  type Compaction,
  isGatewaySeal,
  longestSummary,
  openSeal,
  sealOf,
  unsealed
} from "../../../../src/styles/responses/compaction/seal.ts"
import { runs } from "../../../support/effort.ts"

const own = makeEncryption("a key of this gateway", undefined)

const sealed = (compaction: Compaction, by = own): string => {
  const { name, text } = unsealed(compaction)
  return sealOf(by.seal(name, text))
}

const compactions = fc.record({
  at: fc.nat(),
  model: fc.string({ unit: "grapheme", maxLength: 50 }),
  summary: fc.string({ unit: "grapheme" })
})

const example = { at: 1, model: "m", summary: "What was done." }

describe("the seal of a compaction", () => {
  it("opens to what was sealed, for every holder of the key", () => {
    const other = makeEncryption("a key of this gateway", undefined)
    fc.assert(
      fc.property(compactions, (compaction) => {
        const seal = sealed(compaction)
        assert.match(seal, /^gwc1_[\w-]+$/)
        assert.isTrue(isGatewaySeal(seal))
        assert.deepStrictEqual(openSeal(other.open, seal), compaction)
      }),
      { numRuns: runs(100) }
    )
  })

  it("opens with the key before the current one", () => {
    const later = makeEncryption("the next key", "a key of this gateway")
    assert.deepStrictEqual(openSeal(later.open, sealed(example)), example)
  })

  it("says nothing after any change of a character", () => {
    const seal = sealed(example)
    fc.assert(
      fc.property(fc.nat({ max: seal.length }), fc.constantFrom("A", "b", "_", "!", "=", "\n", ""), (at, text) => {
        const replaced = seal.slice(0, at) + text + seal.slice(at + 1)
        const inserted = seal.slice(0, at) + text + seal.slice(at)
        for (const changed of [replaced, inserted]) {
          if (changed !== seal) assert.isUndefined(openSeal(own.open, changed), changed)
        }
      }),
      { numRuns: runs(300) }
    )
  })

  it("says nothing to other keys, and other texts of the same key are no seals", () => {
    const other = makeEncryption("another key", undefined)
    assert.isUndefined(openSeal(own.open, sealed(example, other)))
    assert.isUndefined(openSeal(own.open, sealOf(own.seal("another purpose", unsealed(example).text))))
    assert.isUndefined(openSeal(own.open, "gAAAA_of_a_vendor"))
  })

  it("has the longest summary of any alphabet, and is not read beyond its bound", () => {
    const summary = "語".repeat(longestSummary)
    const seal = sealed({ ...example, summary: `${summary}more` })
    assert.strictEqual(openSeal(own.open, seal)?.summary, summary)
    assert.isUndefined(openSeal(() => "[1,\"m\"]\nx", `gwc1_${"A".repeat(2_000_000)}`))
  })
})
