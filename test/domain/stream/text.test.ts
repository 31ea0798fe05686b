import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { TextPieces, WholeCharacters } from "../../../src/domain/stream/text.ts"
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

describe("TextPieces", () => {
  it("keeps the text in few strings, whatever the sizes of its pieces", () => {
    const piece = fc.tuple(
      fc.constantFrom("a", "é", "日"),
      fc.constantFrom(0, 1, 7, 255, 256, 300, 16_383, 16_384, 20_000)
    )
      .map(([unit, length]) => unit.repeat(length))
    fc.assert(
      fc.property(fc.array(fc.tuple(piece, fc.boolean()), { maxLength: 40 }), (pieces) => {
        const text = new TextPieces()
        let expected = ""
        for (const [each, isRead] of pieces) {
          text.push(each)
          expected += each
          assert.strictEqual(text.length, expected.length)
          assert.isAtMost(text.strings, 256 + Math.ceil(expected.length / 256))
          if (isRead) assert.strictEqual(text.toString(), expected)
        }
        assert.strictEqual(text.toString(), expected)
        text.clear()
        assert.strictEqual(text.toString(), "")
      }),
      { numRuns: runs(300) }
    )
  })
})
