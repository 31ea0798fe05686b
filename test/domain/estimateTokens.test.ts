import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { estimateTokens, TokenCounter } from "../../src/domain/estimateTokens.ts"
import { cutAt } from "../support/cuts.ts"

describe("an estimate of tokens", () => {
  it("is one token per short word, for any number of words", () => {
    fc.assert(fc.property(fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 60_000 })), (count) => {
      const text = "words ".repeat(count).trimEnd()
      assert.strictEqual(estimateTokens(text), count)
    }))
  })

  it("depends on the script, in short and long texts", () => {
    const costs = { "漢": 0.72, "я": 0.23, "é": 0.8, "か": 0.9 }
    for (const [character, cost] of Object.entries(costs)) {
      for (const count of [10, 63, 64, 1000, 200_000]) {
        assert.strictEqual(estimateTokens(character.repeat(count)), Math.round(count * cost), `${character} ${count}`)
      }
    }
  })

  it("counts a part of a text like the part alone", () => {
    const text = fc.string({
      unit: fc.constantFrom("a", "Z", "0", " ", "\n", ".", "{", "é", "漢", "\u0001"),
      maxLength: 200
    })
    fc.assert(fc.property(text, text, text, (before, part, after) => {
      const whole = before + part + after
      assert.strictEqual(estimateTokens(whole, before.length, before.length + part.length), estimateTokens(part))
    }))
  })

  it("does not depend on the cuts of the text", () => {
    const text = fc.string({
      unit: fc.constantFrom("a", "bc", "Z", "XY", "07", " ", "\n", "..", "{", "é", "漢", "😀", "\u0001"),
      maxLength: 2000
    })
    fc.assert(fc.property(text, fc.array(fc.nat(4000), { maxLength: 40 }), (whole, positions) => {
      const counter = new TokenCounter()
      for (const piece of cutAt(whole, positions)) {
        counter.push(piece)
        counter.total()
      }
      assert.strictEqual(counter.total(), estimateTokens(whole))
    }))
  })

  it("is 0 for the empty text", () => {
    assert.strictEqual(estimateTokens(""), 0)
    assert.strictEqual(estimateTokens("abc", 2, 2), 0)
  })
})
