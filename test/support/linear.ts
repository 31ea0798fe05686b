/** Asserts that work is linear, by counting its steps for adversarial input of three sizes. */
import { assert } from "@effect/vitest"
import type { Meter } from "../../src/domain/stream/cooperative.ts"

/** Does the work for input of size `n` and counts steps into the meter. Returns the characters of input and output. */
export type Shape = (n: number, meter: Meter) => number

/** Asserts at most `most` steps a character for `n`, `2n` and `4n`, and that steps grow no faster than characters. */
export const assertLinear = (shape: Shape, n: number, most: number, fixed = 0): void => {
  const perCharacter = [n, 2 * n, 4 * n].map((size) => {
    const meter: Meter = { steps: 0 }
    const characters = shape(size, meter)
    assert.isAbove(meter.steps, 0)
    assert.isAtMost(meter.steps, fixed + most * characters, `steps of size ${size}`)
    return Math.max(0, meter.steps - fixed) / characters
  })
  assert.isAtMost(perCharacter[2]!, 1.5 * perCharacter[0]! + most / 4, `steps a character: ${perCharacter.join(", ")}`)
}
