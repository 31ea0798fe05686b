import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { compileStopSequences, stopMachine } from "../../../src/domain/stream/stopSequences.ts"
import { cutsOf } from "../../support/cuts.ts"
import { runs } from "../../support/effort.ts"
import { assertLinear } from "../../support/linear.ts"

const runStops = (sequences: ReadonlyArray<string>, pieces: ReadonlyArray<string>) => {
  const compiled = compileStopSequences(sequences)
  assert(compiled !== undefined)
  const machine = stopMachine(compiled)
  const out: Array<string> = []
  for (const piece of pieces) machine.push(piece, out)
  machine.end(out)
  return { text: out.join(""), found: machine.found() }
}

/** The rule, without an automaton: the earliest end decides, then the longest sequence. */
const plainly = (sequences: ReadonlyArray<string>, text: string) => {
  for (let end = 1; end <= text.length; end++) {
    const ending = sequences.filter((sequence) => sequence !== "" && text.slice(0, end).endsWith(sequence))
    if (ending.length > 0) {
      const found = ending.reduce((a, b) => b.length > a.length ? b : a)
      return { text: text.slice(0, end - found.length), found }
    }
  }
  return { text, found: undefined }
}

describe("stop sequences", () => {
  it("end the text before the first one, in any cut", () => {
    const word = fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(
        fc.array(word, { minLength: 1, maxLength: 4 }),
        fc.string({ unit: fc.constantFrom("a", "b", "c", "d"), maxLength: 40 }).chain((text) =>
          fc.tuple(fc.constant(text), cutsOf(text))
        ),
        (sequences, [text, pieces]) => assert.deepStrictEqual(runStops(sequences, pieces), plainly(sequences, text))
      ),
      { numRuns: runs(2000) }
    )
  })

  it("are found across surrogate pairs and pieces of one character", () => {
    assert.deepStrictEqual(runStops(["🛑"], ["go\ud83d", "\uded1on"]), { text: "go", found: "🛑" })
    assert.deepStrictEqual(runStops(["END"], [..."the END."]), { text: "the ", found: "END" })
  })

  it("hold only text that may begin a sequence", () => {
    const compiled = compileStopSequences(["\n\nUser:"])
    assert(compiled !== undefined)
    const machine = stopMachine(compiled)
    const out: Array<string> = []
    machine.push("first\n", out)
    assert.deepStrictEqual(out, ["first"])
    machine.push("second", out)
    assert.deepStrictEqual(out.join(""), "first\nsecond")
  })

  it("compile to undefined when the list is empty", () => {
    assert.strictEqual(compileStopSequences([]), undefined)
    assert.strictEqual(compileStopSequences([""]), undefined)
  })

  it("cost a few steps per character of the sequences and the text", () => {
    const shapes: ReadonlyArray<
      readonly [sequences: (n: number) => ReadonlyArray<string>, text: (n: number) => string]
    > = [
      [(n) => ["a".repeat(n) + "b"], (n) => "a".repeat(n - 1) + "c" + "a".repeat(n)],
      [(n) => ["a".repeat(n), "b" + "a".repeat(n - 1), "ab".repeat(n)], (n) => "ab".repeat(n / 2)],
      [() => Array.from({ length: 64 }, (_, i) => String.fromCharCode(200 + i) + "x"), (n) => "z".repeat(n)]
    ]
    for (const [sequences, text] of shapes) {
      assertLinear(
        (n, meter) => {
          const wanted = sequences(n)
          const compiled = compileStopSequences(wanted, meter)
          assert(compiled !== undefined)
          const machine = stopMachine(compiled, meter)
          const out: Array<string> = []
          for (const character of text(n)) machine.push(character, out)
          machine.end(out)
          return wanted.join("").length + text(n).length
        },
        1_000,
        8
      )
    }
  })
})
