import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { estimateTokens } from "../../src/domain/estimateTokens.ts"

/** What the estimate may be off by where a long text is looked at in pieces of 64 Ki characters. */
const pieces = (length: number): number => Math.ceil(length / 65536)

describe("an estimate of tokens", () => {
  it("is one for each short word, however many there are", () => {
    fc.assert(fc.property(fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 60_000 })), (count) => {
      const text = "words ".repeat(count).trimEnd()
      assert.isAtMost(Math.abs(estimateTokens(text) - count), text.length < 65536 ? 0 : pieces(text.length))
    }))
  })

  it("goes by the script, in short texts and in long ones", () => {
    const costs = { "漢": 0.72, "я": 0.23, "é": 0.8, "か": 0.9 }
    for (const [character, cost] of Object.entries(costs)) {
      for (const count of [10, 63, 64, 1000, 200_000]) {
        assert.strictEqual(estimateTokens(character.repeat(count)), Math.round(count * cost), `${character} ${count}`)
      }
    }
  })

  it("is that of a part of a text, wherever it stands", () => {
    const text = fc.string({
      unit: fc.constantFrom("a", "Z", "0", " ", "\n", ".", "{", "é", "漢", "\u0001"),
      maxLength: 200
    })
    fc.assert(fc.property(text, text, text, (before, part, after) => {
      const whole = before + part + after
      assert.strictEqual(estimateTokens(whole, before.length, before.length + part.length), estimateTokens(part))
    }))
  })

  it("is none for nothing", () => {
    assert.strictEqual(estimateTokens(""), 0)
    assert.strictEqual(estimateTokens("abc", 2, 2), 0)
  })
})
