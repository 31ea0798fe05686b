import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { compose, run, type Transducer } from "../../../src/domain/stream/transducer.ts"

/** Gives each number as often as it says, and at the end how many came. */
const repeated: Transducer<number, number> = () => {
  let count = 0
  return {
    push(input, out) {
      count++
      for (let i = 0; i < input; i++) out.push(input)
    },
    end(out) {
      out.push(count)
    }
  }
}

describe("composed machines", () => {
  it("give what one gives after the other, however many outputs an input has", () =>
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 4 })), (inputs) => {
        const apart = run(repeated, run(repeated, run(repeated, inputs)))
        assert.deepStrictEqual(run(compose(compose(repeated, repeated), repeated), inputs), apart)
      })
    ))
})
