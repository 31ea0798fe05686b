/**
 * How much generated input a run tries: by default a fixed amount, the same in every run; `TEST_EFFORT` multiplies it, to look
 * for what that does not find, best with a seed of its own (`FAST_CHECK_SEED`).
 */
export const effort = Number(process.env["TEST_EFFORT"] ?? 1)

/** The seed of all generated input. fast-check prints it where a property fails. */
export const seed = Number(process.env["FAST_CHECK_SEED"] ?? 20_260)

/** So many runs of a property, by the effort. */
export const runs = (count: number): number => Math.ceil(count * effort)
