// Runs before each test file: generated input is the same in every run, so that a red run means a change of the code.
import * as fc from "fast-check"
import { runs, seed } from "./support/effort.ts"

fc.configureGlobal({ seed, numRuns: runs(100) })
