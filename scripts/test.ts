// Runs all checks, then all tests or those that the arguments select: a part (`testParts.ts`), whose checks are left to `npm run check`, or
// filters and options of vitest. Everything runs in one process, so that a signal reaches the run once. The last line is always the verdict.
//
// --all       everything that is asserted, and no build of an earlier run
// --seed N    generated input from another seed
// --order N   the files in another order
// --changed   the tests that the changes since the last commit reach by imports; `--changed=main` those since a branch
// --bail      ends the run at the first failure
// --record    writes the figures of a green run of everything into the documents
import "./plainOutput.ts"
import { rmSync } from "node:fs"
import path from "node:path"
import { parseCLI, startVitest } from "vitest/node"
import type { TestModule, Vitest } from "vitest/node"
import { executable, fromRegistry } from "../test/web/chromium.ts"
import { runChecks } from "./checks.ts"
import { inModules } from "./compiler.ts"
import { cpuSeconds } from "./cpu.ts"
import { type FileFigures, writeFigures } from "./figures.ts"
import { provideRedisServer } from "./redisServer.ts"
import { filtersOf } from "./testParts.ts"
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

/** The figures of a file, in seconds. Files of components have no CPU time, which the browser spends. */
const figuresOf = ({ config }: Vitest) => (module: TestModule): FileFigures => {
  const { collectDuration, duration } = module.diagnostic()
  return {
    file: path.relative(config.root, module.moduleId).replaceAll(path.sep, "/"),
    cpu: module.meta().cpu ?? 0,
    wall: (collectDuration + duration) / 1000
  }
}

/** How many of the dearest files are shown. */
const shown = 10

/** What earlier runs have made of the sources, which a whole run makes anew. */
const caches = [
  "builds",
  "console",
  "declarations",
  "service",
  "effect-tsc-programs.tsbuildinfo",
  "effect-tsc-console.tsbuildinfo"
]

const started = performance.now()
const { run, signal } = begin()

/** The value of an option, which is taken out of the arguments. */
const take = (args: Array<string>, name: string): string | undefined => {
  const at = args.indexOf(name)
  return at < 0 ? undefined : args.splice(at, 2)[1]
}
/** Whether there is an option without a value, which is taken out of the arguments. */
const has = (args: Array<string>, name: string): boolean => {
  const at = args.indexOf(name)
  if (at >= 0) args.splice(at, 1)
  return at >= 0
}

const args = process.argv.slice(2)
if (has(args, "--all")) {
  process.env["TEST_ALL"] = "1"
  for (const cache of caches) rmSync(inModules(`.cache/${cache}`), { recursive: true, force: true })
}
for (const [option, variable] of [["--seed", "FAST_CHECK_SEED"], ["--order", "TEST_ORDER"]] as const) {
  const value = take(args, option)
  if (value !== undefined) process.env[variable] = value
}
const records = has(args, "--record")
const bails = args.includes("--bail")
const { filter, options } = parseCLI(["vitest", "run", ...args.map((each) => each === "--bail" ? "--bail=1" : each)])
const isEverything = args.length === 0
const parts = filter.map(filtersOf)
const isPart = filter.length > 0 && !parts.includes(undefined)

// Installs once what several files need, before they run in parallel. If that fails, those tests report what is missing.
const [failedChecks] = await Promise.all([
  isPart ? [] : runChecks(signal),
  isEverything ? fromRegistry().then(executable).catch(() => undefined) : undefined
])
run.failedChecks = failedChecks
if (bails && failedChecks.length > 0) process.exit(1)
provideRedisServer()

// Passed tests are a line a file, so that failures stand out.
const vitest = await startVitest("test", filter.flatMap((each, i) => parts[i] ?? [each]), {
  silent: "passed-only",
  slowTestThreshold: Number.MAX_SAFE_INTEGER,
  ...options
})
await vitest.close()

const { seed: usedSeed } = await import("../test/support/effort.ts")
const files = vitest.state.getTestModules().map(figuresOf(vitest)).toSorted((a, b) => b.cpu - a.cpu)
const seconds = (value: number) => `${value.toFixed(1)} s`.padStart(8)
console.log("The dearest files (CPU time, time):")
for (const { cpu, file, wall } of files.slice(0, shown)) console.log(`${seconds(cpu)} ${seconds(wall)} ${file}`)
const cpu = cpuSeconds()
console.log(`CPU time of the run: ${seconds(cpu).trim()}. Generated input is of the seed ${usedSeed}.`)

Object.assign(run, countTests(vitest), { stopped: undefined })
const isGreen = verdict(run).startsWith("green")
if (records && isEverything && isGreen) {
  const wall = (performance.now() - started) / 1000
  writeFigures({ isWhole: process.env["TEST_ALL"] === "1", tests: run.passed, cpu, wall, files: files.slice(0, shown) })
}
// A handle that a test left open must not keep the process alive.
process.exit(isGreen ? 0 : 1)
