import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { estimateTokens, TokenCounter } from "../../src/domain/estimateTokens.ts"
import { cutAt } from "../support/cuts.ts"

describe("an estimate of tokens", () => {
  it("is one for each short word, however many there are", () => {
    fc.assert(fc.property(fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 60_000 })), (count) => {
      const text = "words ".repeat(count).trimEnd()
      assert.strictEqual(estimateTokens(text), count)
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

  it("is the same however the text is cut", () => {
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

  it("is none for nothing", () => {
    assert.strictEqual(estimateTokens(""), 0)
    assert.strictEqual(estimateTokens("abc", 2, 2), 0)
  })
})
