/**
 * How much a run looks at. A daily run takes fewer generated inputs, and leaves out what repeats an assertion with another look; a whole run,
 * `./scripts/test --all`, has everything.
 */

/** Whether this is a whole run. */
export const isWhole = process.env["TEST_ALL"] === "1"

/** The share of generated inputs of a daily run. */
const daily = 0.3

/**
 * The amount of generated input. Within a daily or a whole run it is the same each time. `TEST_EFFORT` multiplies it; combine it with another
 * seed (`--seed`) to search for new failures.
 */
export const effort = Number(process.env["TEST_EFFORT"] ?? 1) * (isWhole ? 1 : daily)

/** The seed of all generated input. The run prints it, and fast-check when a property fails. */
export const seed = Number(process.env["FAST_CHECK_SEED"] ?? 20_260)

/** The number of runs of a property, multiplied by the effort. */
export const runs = (count: number): number => Math.ceil(count * effort)

/** The size of an input that is large only to be large: a quarter of it in a daily run. */
export const sized = (count: number): number => isWhole ? count : Math.ceil(count / 4)

/** What a test goes through, of which a daily run looks at one: at another one for each `turn`. */
export const inTurn = <A>(all: ReadonlyArray<A>, turn: number): ReadonlyArray<A> =>
  isWhole ? all : [all[turn % all.length]!]

/** Whether a run looks at the case of this number: a daily run does at one in `step`. */
export const isLookedAt = (number: number, step: number): boolean => isWhole || number % step === 0
