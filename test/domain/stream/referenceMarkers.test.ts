import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { longestMarker, markerMachine, stripReferenceMarkers } from "../../../src/domain/stream/referenceMarkers.ts"
import { run } from "../../../src/domain/stream/transducer.ts"
import { cutsOf } from "../../support/cuts.ts"
import { runs } from "../../support/effort.ts"

const strip = (pieces: Iterable<string>) => run(stripReferenceMarkers, pieces).join("")

describe("reference markers", () => {
  it("are removed in every cut of the text, and nothing else is", () => {
    const fragment = fc.constantFrom(
      "[citation:1]",
      "[reference:0]",
      "[citation:123456789]",
      "[citation:1234567890]",
      "[citation:]",
      "[citation:1",
      "[reference:x]",
      "[",
      "]",
      "[[",
      "[cit",
      "text ",
      "[citations:1]",
      "[1]"
    )
    fc.assert(
      fc.property(
        fc.array(fragment, { maxLength: 12 }).map((parts) => parts.join("")).chain((text) =>
          fc.tuple(fc.constant(text), cutsOf(text))
        ),
        ([text, pieces]) =>
          assert.strictEqual(strip(pieces), text.replaceAll(/\[(?:citation|reference):\d{1,9}\]/g, ""))
      ),
      { numRuns: runs(2000) }
    )
  })

  it("are held for at most a marker's length", () => {
    const machine = markerMachine()
    const out: Array<string> = []
    let pushed = 0
    for (const character of "see [citation:1234567890] and [reference:12] [ [citation: end") {
      machine.push(character, out)
      pushed++
      const removed = pushed > 44 ? "[reference:12]".length : 0
      assert.isAtMost(pushed - removed - out.join("").length, longestMarker)
    }
  })
})
