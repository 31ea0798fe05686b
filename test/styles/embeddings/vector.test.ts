import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { runSync } from "../../../src/domain/stream/cooperative.ts"
import { defaultDimensions, makeVectorizer } from "../../../src/styles/shared/embeddings/vector.ts"
import { runs } from "../../support/effort.ts"

const vectorizer = makeVectorizer(defaultDimensions)
const vector = (text: string): Float64Array => {
  vectorizer.addText(text)
  return runSync(vectorizer.take())
}
const cosine = (a: Float64Array, b: Float64Array): number => a.reduce((sum, value, i) => sum + value * b[i]!, 0)
const length = (v: Float64Array): number => Math.sqrt(cosine(v, v))

const syllables = ["ka", "lo", "mi", "ter", "an", "in", "re", "con", "ing", "ed", "pro", "ta", "ve", "st"]
const letters = fc.string({ minLength: 3, maxLength: 9, unit: fc.constantFrom(..."abcdefghijklmnopqrstuvwxyz") })
const syllabic = fc.array(fc.constantFrom(...syllables), { minLength: 2, maxLength: 4 }).map((parts) => parts.join(""))

/** A text, one that shares half of its words in another order, and one that shares none; all of the same length. */
const triple = fc.tuple(fc.constantFrom(letters, syllabic), fc.integer({ min: 2, max: 12 })).chain(([word, half]) =>
  fc.uniqueArray(word, { minLength: 5 * half, maxLength: 5 * half }).chain((words) =>
    fc.shuffledSubarray([...words.slice(0, half), ...words.slice(2 * half, 3 * half)], { minLength: 2 * half }).map(
      (near) => ({ text: words.slice(0, 2 * half), near, far: words.slice(3 * half) })
    )
  )
)

describe("an embedding", () => {
  it.each([1, 2, 256, 4096])("has unit length and the %i dimensions that are asked for, whatever the text", (size) => {
    const sized = makeVectorizer(size)
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: "binary" }), (text) => {
        sized.addText(text)
        const made = runSync(sized.take())
        assert.strictEqual(made.length, size)
        assert.closeTo(length(made), 1, 1e-9)
      }),
      { numRuns: runs(50) }
    )
  })

  it("is the same for the same text, whatever came before it and in whichever pieces it comes", () =>
    fc.assert(
      fc.property(fc.lorem({ maxCount: 20 }), fc.lorem(), fc.nat(), (text, before, cut) => {
        const expected = vector(text)
        vector(before)
        const at = cut % text.length
        vectorizer.addText(text.slice(0, at))
        vectorizer.addText(text.slice(at))
        assert.deepStrictEqual(runSync(vectorizer.take()), expected)
      })
    ))

  it("is closer to a text that shares half the words than to an unrelated text, by 0.1 in 99 of 100", () => {
    const triples = fc.sample(triple, { numRuns: runs(500) })
    const apart = triples.filter(({ far, near, text }) => {
      const made = vector(text.join(" "))
      return cosine(made, vector(near.join(" "))) - cosine(made, vector(far.join(" "))) >= 0.1
    })
    assert.isAtLeast(apart.length, 0.99 * triples.length)
  })

  it("does not look at case, punctuation and width", () => {
    const same = ["The quick, brown fox!", "the QUICK brown fox", "ｔｈｅ quick… brown fox"]
    for (const text of same) assert.closeTo(cosine(vector(same[0]!), vector(text)), 1, 1e-9)
  })

  it("finds the words of scripts without blanks, and words that are nearly the same", () => {
    const text = vector("今天天气很好我们去公园")
    assert.isAbove(cosine(text, vector("我们明天去公园")), cosine(text, vector("电脑软件需要更新")) + 0.2)
    const word = vector("embedding")
    assert.isAbove(cosine(word, vector("embeddings")), cosine(word, vector("gateway")) + 0.2)
  })

  it("distinguishes token ids like words", () => {
    const of = (...tokens: ReadonlyArray<number>) => {
      vectorizer.addTokens(tokens)
      return runSync(vectorizer.take())
    }
    const made = of(1, 2, 3, 4, 100_000)
    assert.closeTo(length(made), 1, 1e-9)
    assert.deepStrictEqual(of(1, 2, 3, 4, 100_000), made)
    assert.isAbove(cosine(made, of(4, 3, 9, 8)), cosine(made, of(11, 12, 13, 14)) + 0.1)
  })
})
