// Runs all checks, then all tests or the tests that the arguments (vitest's) select. Everything runs in one process, so that a signal
// reaches the run once. The last line is always `N passed, N failed`.
import path from "node:path"
import { parseCLI, startVitest } from "vitest/node"
import type { Vitest } from "vitest/node"
import { executable, fromRegistry } from "../test/web/chromium.ts"
import { runChecks } from "./checks.ts"
import { provideRedisServer } from "./redisServer.ts"

/** Summarizes the run in one line. Errors outside tests (a file that does not load, a failing hook) count as failed tests. */
const summarize = ({ state }: Vitest): string => {
  const modules = state.getTestModules()
  const tests = modules.flatMap((module) => [...module.children.allTests()])
  const count = (wanted: string) => tests.filter((test) => test.result().state === wanted).length
  const errors = state.getUnhandledErrors().length + modules.flatMap((module) => [
    ...module.errors(),
    ...[...module.children.allSuites()].flatMap((suite) => suite.errors())
  ]).length
  const skipped = count("skipped")
  return `${count("passed")} passed, ${count("failed") + errors} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`
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

const { filter, options } = parseCLI(["vitest", "run", ...process.argv.slice(2)])

// Installs once what several files need, before they run in parallel. If that fails, those tests report what is missing.
const [failed] = await Promise.all([
  runChecks(),
  filter.length === 0 ? fromRegistry().then(executable).catch(() => undefined) : undefined
])
provideRedisServer()

const vitest = await startVitest("test", filter, options)
await vitest.close()

console.log(`The slowest files (total, of which imports):\n${slowest(vitest)}`)

if (failed.length > 0) {
  console.log(`Failed checks: ${failed.join(", ")}`)
  process.exitCode = 1
}
console.log(summarize(vitest))
// A handle that a test left open must not keep the process alive.
process.exit()
