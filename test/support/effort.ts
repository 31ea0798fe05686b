/**
 * The amount of generated input. By default it is fixed and the same in every run. `TEST_EFFORT` multiplies it; combine it with another
 * seed (`FAST_CHECK_SEED`) to search for new failures.
 */
export const effort = Number(process.env["TEST_EFFORT"] ?? 1)

/** The seed of all generated input. fast-check prints it when a property fails. */
export const seed = Number(process.env["FAST_CHECK_SEED"] ?? 20_260)

/** The number of runs of a property, multiplied by the effort. */
export const runs = (count: number): number => Math.ceil(count * effort)
