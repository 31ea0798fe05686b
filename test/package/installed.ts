/**
 * The package as installed in a fresh project, which has only the package's declared dependencies and those of its own
 * code. Nothing is downloaded.
 */
import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { promisify } from "node:util"
import { buildPackage, type Files } from "../../scripts/release/npmPackage.ts"
import { built } from "../support/built.ts"

const run = promisify(execFile)
const root = path.join(import.meta.dirname, "../..")
const inModules = (name: string): string => path.join(root, "node_modules", name)

/** A cache of Effect's compiled modules, which every app imports. */
const compiled = { ...process.env, NODE_COMPILE_CACHE: inModules(".cache/compiled") }

/** Throws a command's failure with its output. */
const output = (error: unknown): never => {
  const { message, stderr, stdout } = error as Error & { readonly stdout?: string; readonly stderr?: string }
  throw new Error(`${message}\n${stdout ?? ""}${stderr ?? ""}`)
}

/** A project with the package installed. */
export interface Project {
  /** The package's files. */
  readonly files: Files
  readonly folder: string
  /** Adds a module; returns its path. */
  readonly add: (name: string, text: string) => string
  /** Type-checks the project. */
  readonly check: () => Promise<void>
  /** Runs a module to its end and returns what it printed. */
  readonly run: (file: string, ...args: ReadonlyArray<string>) => Promise<string>
  /** Runs modules in one process, one after another, to their end. Returns what each printed, and what it threw. */
  readonly runTogether: (files: ReadonlyArray<string>) => Promise<Readonly<Record<string, string>>>
  readonly remove: () => void
}

const tsconfig = {
  compilerOptions: {
    target: "ES2024",
    lib: ["ES2024"],
    types: ["node"],
    module: "NodeNext",
    moduleDetection: "force",
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    // Effect's own declarations are not under test.
    skipLibCheck: true
  },
  include: ["*.ts"]
}

/** Imports the modules that the arguments name, and prints what each printed: also what one prints later, beside the next one. */
const together = `import { AsyncLocalStorage } from "node:async_hooks"
import { writeFileSync } from "node:fs"
import { inspect } from "node:util"

const [report, ...files] = process.argv.slice(2)
const runs = new AsyncLocalStorage()
const printed = Object.fromEntries(files.map((file) => [file, ""]))
const write = (text) => {
  printed[runs.getStore()] += text
  return true
}
process.stdout.write = process.stderr.write = write
for (const file of files) {
  await runs.run(file, () => import(file).catch((reason) => write(inspect(reason))))
}
process.once("exit", () => writeFileSync(report, JSON.stringify(printed)))
`

/** Builds the package, and installs it with its peers into a new project. */
export const installPackage = async (): Promise<Project> => {
  const folder = mkdtempSync(path.join(tmpdir(), "model-gateway-app-"))
  const modules = path.join(folder, "node_modules")
  const own = path.join(modules, "model-gateway")
  const files = await built("package", async () => (await buildPackage({ commit: null, date: null }, "quick")).files)
  for (const [name, content] of files) {
    mkdirSync(path.dirname(path.join(own, name)), { recursive: true })
    writeFileSync(path.join(own, name), content)
  }
  const manifest = JSON.parse(new TextDecoder().decode(files.get("package.json"))) as {
    readonly dependencies?: object
    readonly peerDependencies: object
  }
  for (const name of ["@types/node", ...Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })]) {
    mkdirSync(path.dirname(path.join(modules, name)), { recursive: true })
    symlinkSync(inModules(name), path.join(modules, name))
  }
  writeFileSync(path.join(folder, "package.json"), JSON.stringify({ name: "app", private: true, type: "module" }))
  writeFileSync(path.join(folder, "tsconfig.json"), JSON.stringify(tsconfig))
  const add = (name: string, text: string): string => {
    const file = path.join(folder, name)
    writeFileSync(file, text)
    return file
  }
  const runModule = async (file: string, ...args: ReadonlyArray<string>): Promise<string> => {
    const { stderr, stdout } = await run(process.execPath, [file, ...args], { cwd: folder, env: compiled }).catch(
      output
    )
    return stdout + stderr
  }
  return {
    files,
    folder,
    add,
    check: async () => {
      await run(inModules(".bin/tsc"), ["--project", "tsconfig.json"], { cwd: folder }).catch(output)
    },
    run: runModule,
    runTogether: async (files) => {
      const report = path.join(folder, "printed.json")
      await runModule(add("together.mjs", together), report, ...files)
      return JSON.parse(readFileSync(report, "utf8")) as Readonly<Record<string, string>>
    },
    remove: () => rmSync(folder, { recursive: true })
  }
}
