/** Work that has to be linear: its steps, counted into a meter, for an adversarial shape of three sizes. */
import { assert } from "@effect/vitest"
import { makeMeter, type Meter } from "../../src/domain/stream/steps.ts"

/** Does the work for a shape of size `n`, counting into the meter; gives the characters that went in and came out. */
export type Shape = (n: number, meter: Meter) => number

/** Holds the steps of `n`, `2n` and `4n` to `most` for each character, and to growing no faster than the characters. */
export const assertLinear = (shape: Shape, n: number, most: number, fixed = 0): void => {
  const perCharacter = [n, 2 * n, 4 * n].map((size) => {
    const meter = makeMeter()
    const characters = shape(size, meter)
    assert.isAbove(meter.steps, 0)
    assert.isAtMost(meter.steps, fixed + most * characters, `steps of size ${size}`)
    return Math.max(0, meter.steps - fixed) / characters
  })
  assert.isAtMost(perCharacter[2]!, 1.5 * perCharacter[0]! + most / 4, `steps a character: ${perCharacter.join(", ")}`)
}
