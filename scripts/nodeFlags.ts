/** The options of Node with which the gateway is shipped: in the executable, in benches, and, as it has them in a line of shell, in `scripts/start`. */
export const nodeFlags: ReadonlyArray<string> = ["--heap-growing-percent=100", "--max-semi-space-size=16"]

/** The variables with which `scripts/start`, the image and the unit start Node. */
export const nodeVariables: Readonly<Record<string, string>> = { MALLOC_ARENA_MAX: "1" }
