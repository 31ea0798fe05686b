import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { compose, run, type Transducer } from "../../../src/domain/stream/transducer.ts"

/** Emits each number as often as its value, and at the end the count of numbers. */
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
  it("emit the same as one machine after the other, for any number of outputs per input", () =>
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 4 })), (inputs) => {
        const apart = run(repeated, run(repeated, run(repeated, inputs)))
        assert.deepStrictEqual(run(compose(compose(repeated, repeated), repeated), inputs), apart)
      })
    ))
})
