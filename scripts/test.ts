// All checks, then all tests, or those that the arguments name (they are vitest's). One process from start to end, so
// that a signal reaches the run once. The last line is `N passed, N failed`, whatever went before.
import path from "node:path"
import { parseCLI, startVitest } from "vitest/node"
import type { Vitest } from "vitest/node"
import { executable } from "../test/web/chromium.ts"
import { runChecks } from "./checks.ts"
import { provideRedisServer } from "./redisServer.ts"

/** The run in one line. Errors outside any test (a file that does not load, a failing hook) count as failed. */
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

/** The files that took longest, with what their imports took: what a slow run is to be asked about first. */
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

// What several files need that may be missing is brought once, before they run side by side. Where it cannot be, they say so.
const [failed] = await Promise.all([
  runChecks(),
  filter.length === 0 ? executable().catch(() => undefined) : undefined
])
provideRedisServer()

const vitest = await startVitest("test", filter, options)
await vitest.close()

console.log(`The slowest files (in all, of that imports):\n${slowest(vitest)}`)

if (failed.length > 0) {
  console.log(`Failed checks: ${failed.join(", ")}`)
  process.exitCode = 1
}
console.log(summarize(vitest))
// Whatever a test left open must not keep the run from ending.
process.exit()
