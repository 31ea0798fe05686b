// All checks besides the tests: format, lint, types with Effect's diagnostics, floors, links, prose, rules of the tests. Tools run in
// parallel, each in its own process.
import { execFile } from "node:child_process"
import path from "node:path"
import { floorViolations } from "./floors.ts"
import { brokenLinks } from "./links.ts"
import { proseViolations } from "./prose.ts"
import { testRuleViolations } from "./testRules.ts"

const root = path.join(import.meta.dirname, "..")
const inModules = (file: string): string => path.join(root, "node_modules", file)

interface Outcome {
  readonly passed: boolean
  /** What the check found; empty if it passed. */
  readonly output: string
}

const run = (command: string, ...args: ReadonlyArray<string>): Promise<Outcome> =>
  new Promise((resolve) => {
    const env = process.stdout.isTTY ? process.env : { ...process.env, NO_COLOR: "1" }
    execFile(command, args, { cwd: root, env, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      resolve(
        error === null ? { passed: true, output: "" } : { passed: false, output: stdout + stderr || error.message }
      )
    })
  })

const report = (problems: ReadonlyArray<string>): Outcome => ({
  passed: problems.length === 0,
  output: problems.join("\n")
})

const format = (): Promise<Outcome> => run(process.execPath, inModules("dprint/bin.cjs"), "check")

const lint = (): Promise<Outcome> => run(process.execPath, inModules("oxlint/bin/oxlint"), "--deny-warnings")

// Effect's build of the compiler reports the compiler's errors and Effect's diagnostics in one pass. It has its own build info file,
// because the plain compiler would write one without those diagnostics.
const types = (project: string, name: string) => (): Promise<Outcome> =>
  run(
    inModules(`@effect/tsgo-${process.platform}-${process.arch}/lib/tsc`),
    "--project",
    project,
    "--incremental",
    "--tsBuildInfoFile",
    inModules(`.cache/${name}.tsbuildinfo`)
  )

const checks: Readonly<Record<string, () => Promise<Outcome>>> = {
  format,
  lint,
  types: types("tsconfig.json", "effect-tsc"),
  "types of the console": types("src/web/tsconfig.json", "effect-tsc-console"),
  floors: async () => report(floorViolations(root)),
  links: async () => report(brokenLinks(root)),
  prose: async () => report(proseViolations()),
  "rules of the tests": async () => report(testRuleViolations(root))
}

/** Runs all checks, prints their findings, and returns the names of the checks that failed. */
export const runChecks = async (): Promise<Array<string>> => {
  const failed: Array<string> = []
  const outcomes = Object.entries(checks).map(async ([name, check]) => {
    const started = performance.now()
    const outcome = await check()
    return { ...outcome, name, seconds: (performance.now() - started) / 1000 }
  })
  for (const outcome of outcomes) {
    const { name, output, passed, seconds } = await outcome
    console.log(`${passed ? "ok    " : "FAILED"} ${name} (${seconds.toFixed(1)} s)`)
    if (!passed) {
      console.log(output.trimEnd())
      failed.push(name)
    }
  }
  return failed
}
