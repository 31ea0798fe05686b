// Runs before each test file: generated input is the same in every run, so that a red run means a change of the code. The file's CPU time is
// for the figures at the end of the run; it includes the file's imports and the processes that it starts.
import * as fc from "fast-check"
import { afterAll } from "vitest"
import { cpuSeconds } from "../scripts/cpu.ts"
import { runs, seed } from "./support/effort.ts"
import "./support/views.ts"

declare module "vitest" {
  interface TaskMeta {
    /** In seconds. */
    cpu?: number
  }
}

fc.configureGlobal({ seed, numRuns: runs(100) })

const before = cpuSeconds()
// oxlint-disable-next-line eslint/no-empty-pattern -- vitest reads from the parameters that the hook needs no fixture
afterAll(({}, file) => {
  file.meta.cpu = cpuSeconds() - before
})
