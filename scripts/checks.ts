// Everything that is checked besides the tests: format, lint, types with Effect's diagnostics, floors, links. The tools
// run at the same time, each in a process of its own.
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import path from "node:path"
import { floorViolations } from "./floors.ts"
import { brokenLinks } from "./links.ts"

const root = path.join(import.meta.dirname, "..")
const inModules = (file: string): string => path.join(root, "node_modules", file)

interface Outcome {
  readonly passed: boolean
  /** What to show: of a failure what was found, of a pass a word on what was left out. */
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

/** Whether the lock file has this package, that is: whether a tool has a build for this platform. */
const isLocked = (name: string): boolean =>
  `node_modules/${name}` in JSON.parse(readFileSync(path.join(root, "package-lock.json"), "utf8")).packages

const format = (): Promise<Outcome> => run(process.execPath, inModules("dprint/bin.cjs"), "check")

const lint = async (): Promise<Outcome> => {
  const { optionalDependencies } = JSON.parse(readFileSync(inModules("oxlint/package.json"), "utf8"))
  const builds = Object.keys(optionalDependencies).filter((name) =>
    name.includes(`${process.platform}-${process.arch}`)
  )
  return builds.some(isLocked)
    ? run(process.execPath, inModules("oxlint/bin/oxlint"), "--deny-warnings")
    : { passed: true, output: "left out: oxlint has no build for this platform in package-lock.json" }
}

// Effect's build of the compiler is TypeScript with diagnostics of its own added, so one pass does for both.
const types = async (): Promise<Outcome> => {
  const build = `@effect/tsgo-${process.platform}-${process.arch}`
  if (isLocked(build)) return run(inModules(`${build}/lib/tsc`), "--project", "tsconfig.json")
  const outcome = await run(process.execPath, inModules("typescript/bin/tsc"), "--project", "tsconfig.json")
  return outcome.passed
    ? { passed: true, output: "without Effect's diagnostics: no build for this platform in package-lock.json" }
    : outcome
}

const checks: Readonly<Record<string, () => Promise<Outcome>>> = {
  format,
  lint,
  types,
  floors: async () => report(floorViolations(root)),
  links: async () => report(brokenLinks(root))
}

/** Runs all checks, prints what they found, and returns the names of those that failed. */
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
    if (output !== "") console.log(output.trimEnd())
    if (!passed) failed.push(name)
  }
  return failed
}
