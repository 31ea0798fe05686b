// Runs before each test file: generated input is the same in every run, so that a red run means a change of the code.
// FAST_CHECK_SEED sets another seed, to look for what this one does not find.
import * as fc from "fast-check"

fc.configureGlobal({ seed: Number(process.env.FAST_CHECK_SEED ?? 20_260) })
