import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { WholeCharacters } from "../../../src/domain/stream/text.ts"
import { cutsOf } from "../../support/cuts.ts"
import { runs } from "../../support/effort.ts"

const cutText = (unit: fc.Arbitrary<string>) =>
  fc.array(unit, { maxLength: 12 }).map((parts) => parts.join("")).chain((text) =>
    fc.record({ text: fc.constant(text), pieces: cutsOf(text) })
  )

const takeAll = (pieces: ReadonlyArray<string>) => {
  const whole = new WholeCharacters()
  return { left: pieces.map((piece) => whole.take(piece)), rest: whole.end() }
}

describe("WholeCharacters", () => {
  it("keeps the text and emits only whole characters, in any cut", () => {
    const unit = fc.constantFrom("a", "é", "日", "🌍", "👩‍🚀", "", "\u{10ffff}")
    fc.assert(
      fc.property(cutText(unit), ({ pieces, text }) => {
        const { left, rest } = takeAll(pieces)
        assert.strictEqual(left.join(""), text)
        assert.strictEqual(rest, "")
        assert.isTrue(left.every((piece) => piece.isWellFormed()))
      }),
      { numRuns: runs(400) }
    )
  })

  it("holds only the first half of a pair, and keeps an unpaired half", () => {
    const unit = fc.constantFrom("a", "🌍", "\ud83d", "\ude00", "")
    fc.assert(
      fc.property(cutText(unit), ({ pieces, text }) => {
        const whole = new WholeCharacters()
        let taken = ""
        let left = ""
        for (const piece of ["", ...pieces, ""]) {
          taken += piece
          left += whole.take(piece)
          assert.strictEqual(left, taken.replace(/[\ud800-\udbff]$/, ""))
        }
        assert.strictEqual(left + whole.end(), text)
        assert.strictEqual(whole.end(), "")
      }),
      { numRuns: runs(400) }
    )
  })
})
