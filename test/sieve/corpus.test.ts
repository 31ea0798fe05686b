/**
 * The contract of every form: the corpus, in every cut. Expectations are data, written from the forms' descriptions; a new case is a new
 * entry in a file.
 */
import { assert, describe, it } from "@effect/vitest"
import { effort, runs } from "../support/effort.ts"
import { callsOf, type Case, cutAtRandom, feed, readCases, replyOf, seeded, textOf } from "./support.ts"

/** Longer texts are cut at a sample of positions. */
const longestWithEveryCut = 4096

/** Each how many positions a shorter text is cut: a daily run begins at another one for each length, so that texts of a form share them. */
const everyCut = Math.max(1, Math.round(1 / effort))

const assertExpected = (test: Case): void => {
  const items = replyOf(feed([test.text]))
  const calls = callsOf(items)
  assert.strictEqual(textOf(items), test.expect.text)
  assert.deepStrictEqual(
    calls.filter((call) => call.isFinished).map((call) => ({ name: call.name, arguments: JSON.parse(call.arguments) })),
    test.expect.calls.map((call) => ({ ...call }))
  )
  const expectedCutOff = test.expect.cutOff ?? []
  const cutOff = calls.filter((call) => !call.isFinished)
  assert.deepStrictEqual(
    cutOff.map((call, i) => expectedCutOff[i]?.arguments === undefined ? [call.name] : [call.name, call.arguments]),
    expectedCutOff.map((call) => call.arguments === undefined ? [call.name] : [call.name, call.arguments])
  )
}

const assertEveryCut = (text: string): void => {
  const whole = JSON.stringify(replyOf(feed([text])))
  const same = (pieces: ReadonlyArray<string>): void => {
    const cut = JSON.stringify(replyOf(feed(pieces)))
    if (cut !== whole) assert.strictEqual(cut, whole, JSON.stringify(pieces))
  }
  same(text.split(""))
  const step = text.length <= longestWithEveryCut ? everyCut : Math.ceil(text.length / 64)
  for (let at = 1 + text.length % everyCut; at < text.length; at += step) same([text.slice(0, at), text.slice(at)])
  const random = seeded(text.length)
  for (let i = 0; i < runs(12); i++) same(cutAtRandom(text, random))
}

const files = ["families", "details", "noCalls"]

for (const file of files) {
  const cases = readCases(file)
  describe(`sieve corpus ${file}`, () => {
    for (const test of cases) {
      it(`${test.name}`, () => {
        assertExpected(test)
        assertEveryCut(test.text)
      })
    }
  })
}

describe("sieve corpus", () => {
  it("has unique names of cases", () => {
    const names = files.flatMap((file) => readCases(file).map((test) => test.name))
    assert.strictEqual(new Set(names).size, names.length)
  })

  it("expects every character of a case without calls as text", () => {
    for (const test of readCases("noCalls")) assert.strictEqual(test.expect.text, test.text)
  })

  it("yields the same calls with long arguments, in every cut", () => {
    const city = "x".repeat(5000)
    // A tag with its arguments as attributes is decided by its whole head, so the head must fit the bound.
    const cases = readCases("families").filter(({ name }) => name.endsWith(": alone") && !name.includes("attributes"))
    for (const test of cases) {
      const text = test.text.replace("Oslo", city)
      assertEveryCut(text)
      const [call] = callsOf(replyOf(feed([text])))
      assert.strictEqual(call?.isFinished, true, test.name)
      assert.deepStrictEqual(JSON.parse(call?.arguments ?? ""), { city })
    }
  })
})
