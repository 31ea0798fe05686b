/**
 * Counts of work: machines and builders that promise linear cost count what they touch into a meter, where one is given.
 * Tests give one and hold the sums to a constant times input and output; in service there is none and nothing is counted.
 */

/** Work done so far. */
export interface Meter {
  /** Items and characters looked at. */
  steps: number
}

/** A meter at zero. */
export const makeMeter = (): Meter => ({ steps: 0 })

/** Items that a loop may handle between two yields of the event loop. */
export const sliceItems = 2000

/** Characters that a loop may handle between two yields of the event loop. */
export const sliceChars = 256 * 1024
