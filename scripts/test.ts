// Runs all checks, then all tests or the tests that the arguments (vitest's) select. `--bail` ends the run at the first failure.
// Everything runs in one process, so that a signal reaches the run once. The last line is always the verdict.
import "./plainOutput.ts"
import path from "node:path"
import { parseCLI, startVitest } from "vitest/node"
import type { Vitest } from "vitest/node"
import { executable, fromRegistry } from "../test/web/chromium.ts"
import { runChecks } from "./checks.ts"
import { provideRedisServer } from "./redisServer.ts"
import { begin, type Run, verdict } from "./verdict.ts"

/** Counts the tests. Errors outside tests (a file that does not load, a failing hook) count as failed tests. */
const countTests = ({ state }: Vitest): Pick<Run, "passed" | "failed" | "skipped"> => {
  const modules = state.getTestModules()
  const tests = modules.flatMap((module) => [...module.children.allTests()])
  const count = (wanted: string) => tests.filter((test) => test.result().state === wanted).length
  const errors = state.getUnhandledErrors().length + modules.flatMap((module) => [
    ...module.errors(),
    ...[...module.children.allSuites()].flatMap((suite) => suite.errors())
  ]).length
  return { passed: count("passed"), failed: count("failed") + errors, skipped: count("skipped") }
}

/** The slowest files with their total time and their import time. */
const slowest = ({ config, state }: Vitest): string => {
  const seconds = (millis: number) => `${(millis / 1000).toFixed(1)} s`.padStart(8)
  const rows = state.getTestModules().map((module) => {
    const { collectDuration, duration } = module.diagnostic()
    return { file: path.relative(config.root, module.moduleId), all: collectDuration + duration, collectDuration }
  })
  return rows.toSorted((a, b) => b.all - a.all).slice(0, 10)
    .map(({ all, collectDuration, file }) => `${seconds(all)} ${seconds(collectDuration)} ${file}`).join("\n")
}

const { run, signal } = begin()

const bails = process.argv.includes("--bail")
const { filter, options } = parseCLI([
  "vitest",
  "run",
  ...process.argv.slice(2).map((argument) => argument === "--bail" ? "--bail=1" : argument)
])

// Installs once what several files need, before they run in parallel. If that fails, those tests report what is missing.
const [failedChecks] = await Promise.all([
  runChecks(signal),
  filter.length === 0 ? fromRegistry().then(executable).catch(() => undefined) : undefined
])
run.failedChecks = failedChecks
if (bails && failedChecks.length > 0) process.exit(1)
provideRedisServer()

// Passed tests are a line a file, so that failures stand out.
const vitest = await startVitest("test", filter, {
  silent: "passed-only",
  slowTestThreshold: Number.MAX_SAFE_INTEGER,
  ...options
})
await vitest.close()

console.log(`The slowest files (total, of which imports):\n${slowest(vitest)}`)

Object.assign(run, countTests(vitest), { stopped: undefined })
// A handle that a test left open must not keep the process alive.
process.exit(verdict(run).startsWith("green") ? 0 : 1)
