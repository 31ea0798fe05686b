// All checks besides the tests: format, lint, types with Effect's diagnostics, floors, counts, links, pages, prose, rules of the
// tests. Tools run in parallel, each in its own process.
import { execFile } from "node:child_process"
import path from "node:path"
import { effectCompiler, inModules } from "./compiler.ts"
import { countedViolations } from "./counts.ts"
import { floorViolations } from "./floors.ts"
import { brokenLinks } from "./links.ts"
import { pageViolations } from "./pages.ts"
import { proseViolations } from "./prose.ts"
import { declarationsCommand } from "./release/declarations.ts"
import { statsRuleViolations } from "./statsRules.ts"
import { testRuleViolations } from "./testRules.ts"

const root = path.join(import.meta.dirname, "..")

interface Outcome {
  readonly passed: boolean
  /** What the check found; empty if it passed. */
  readonly output: string
}

const run = (signal: AbortSignal | undefined, command: string, ...args: ReadonlyArray<string>): Promise<Outcome> =>
  new Promise((resolve) => {
    const env = process.stdout.isTTY ? process.env : { ...process.env, NO_COLOR: "1" }
    execFile(command, args, {
      cwd: root,
      env,
      maxBuffer: 64 * 1024 * 1024,
      ...(signal === undefined ? {} : { signal })
    }, (error, stdout, stderr) => {
      resolve(
        error === null ? { passed: true, output: "" } : { passed: false, output: stdout + stderr || error.message }
      )
    })
  })

const report = (problems: ReadonlyArray<string>): Outcome => ({
  passed: problems.length === 0,
  output: problems.join("\n")
})

type Check = (signal?: AbortSignal) => Promise<Outcome>

const format: Check = (signal) => run(signal, process.execPath, inModules("dprint/bin.cjs"), "check")

const lint: Check = (signal) => run(signal, process.execPath, inModules("oxlint/bin/oxlint"), "--deny-warnings")

const compile = (command: readonly [string, ...ReadonlyArray<string>]): Check => (signal) => run(signal, ...command)

let declared: Promise<Outcome> | undefined

/** The types of what apps and the console import, and what the package declares: a type that an exported name uses must be exported too. */
const declarations: Check = (signal) => declared ??= compile(declarationsCommand)(signal)

/** The types of a project that reads the other sources as their declarations, so that each is checked once. */
const types = (project: string, name: string): Check => async (signal) => {
  const made = await declarations(signal)
  return made.passed ? compile(effectCompiler(project, inModules(`.cache/${name}.tsbuildinfo`)))(signal) : made
}

const checks: Readonly<Record<string, Check>> = {
  format,
  lint,
  declarations,
  types: types("tsconfig.programs.json", "effect-tsc-programs"),
  "types of the console": types("tsconfig.console.json", "effect-tsc-console"),
  floors: async () => report(floorViolations(root)),
  counts: async (signal) => report(await countedViolations(root, signal)),
  "readers of stats": async () => report(statsRuleViolations(root)),
  links: async () => report(brokenLinks(root)),
  pages: async () => report(pageViolations(root)),
  prose: async () => report(proseViolations()),
  "rules of the tests": async () => report(testRuleViolations(root))
}

/**
 * Leaves out the findings of one check that another one has printed: projects of the compiler share sources.
 * `seen` collects the findings, which are groups of lines: the first one starts at the margin.
 */
export const newFindings = (output: string, seen: Set<string>): string =>
  output.split(/\n(?=\S)/).filter((finding) => {
    const isNew = !seen.has(finding.trim())
    seen.add(finding.trim())
    return isNew
  }).join("\n")

/** The check of a name; all without a name. */
export const checksNamed = (named: string): ReadonlyArray<string> =>
  Object.keys(checks).filter((name) => named === "" || name === named)

/** Runs the check of a name, by default all, prints their findings, and returns the names of those that failed. `signal` ends them. */
export const runChecks = async (signal?: AbortSignal, named = ""): Promise<Array<string>> => {
  const failed: Array<string> = []
  const seen = new Set<string>()
  const chosen = new Set(checksNamed(named))
  const outcomes = Object.entries(checks).filter(([name]) => chosen.has(name)).map(async ([name, check]) => {
    const started = performance.now()
    console.log(`start  ${name}`)
    const outcome = await check(signal)
    return { ...outcome, name, seconds: (performance.now() - started) / 1000 }
  })
  for (const outcome of outcomes) {
    const { name, output, passed, seconds } = await outcome
    console.log(`${passed ? "ok    " : "FAILED"} ${name} (${seconds.toFixed(1)} s)`)
    if (!passed) {
      const findings = newFindings(output.trimEnd(), seen).trimEnd()
      console.log(findings === "" ? "The findings are those above." : findings)
      failed.push(name)
    }
  }
  return failed
}
