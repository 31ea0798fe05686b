// Installs the programs of `versions.ts`, each into a folder of its own below a cache outside of the repository. A program that already exists
// is not installed again.
import { execFile } from "node:child_process"
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { availableParallelism, tmpdir } from "node:os"
import path from "node:path"
import { promisify } from "node:util"
import { type ProgramName, programs, type PythonProgram } from "./versions.ts"

const run = promisify(execFile)

/** The cache: `SERVERS_CACHE`, or a folder of the temporary directory. */
export const cache = process.env["SERVERS_CACHE"] ?? path.join(tmpdir(), "model-gateway-servers")

/** Bytes of output that are kept of a command. */
const maxBuffer = 16 * 1024 * 1024

const quietly = async (
  command: string,
  args: ReadonlyArray<string>,
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}
) => {
  try {
    await run("nice", [command, ...args], { maxBuffer, ...options })
  } catch (error) {
    const { stderr = "", stdout = "" } = error as { stderr?: string; stdout?: string }
    const last = `${stdout}\n${stderr}`.trim().split("\n").slice(-3).join(" ")
    throw new Error(`${path.basename(command)} ${args[0]}: ${last}`, { cause: error })
  }
}

const pip = (folder: string) => path.join(folder, "bin/pip")

/** Installs a package with the accepted ones of what it depends on, and lets it be found by another name too. */
const installLast = async (folder: string, { alias, python, without }: NonNullable<PythonProgram["last"]>) => {
  await quietly(pip(folder), ["install", "--quiet", "--no-deps", python])
  const library = path.join(folder, "lib")
  const packages = path.join(library, readdirSync(library)[0]!, "site-packages")
  const [name = "", version = ""] = python.replaceAll("-", "_").split("==")
  const said = path.join(packages, `${name}-${version}.dist-info`)
  const metadata = readFileSync(path.join(said, "METADATA"), "utf8")
  const needs = [...metadata.matchAll(/^Requires-Dist: (.*)$/gm)].map(([, need]) => need!).filter((need) =>
    !without.test(need)
  )
  await quietly(pip(folder), ["install", "--quiet", ...needs])
  const other = path.join(packages, `${alias}-${version}+cpu.dist-info`)
  cpSync(said, other, { recursive: true })
  const renamed = metadata.replace(/^Name: .*$/m, `Name: ${alias}`).replace(/^Version: .*$/m, `Version: ${version}+cpu`)
  writeFileSync(path.join(other, "METADATA"), renamed)
}

const installPython = async (folder: string, { last, python }: PythonProgram) => {
  await quietly("python3", ["-m", "venv", folder])
  await quietly(pip(folder), ["install", "--quiet", ...python])
  if (last !== undefined) await installLast(folder, last)
}

const installGo = async (
  folder: string,
  { go, headers }: Extract<(typeof programs)[ProgramName], { readonly go: string }>
) => {
  const included = path.join(folder, "include")
  const parts = path.join(folder, "parts")
  mkdirSync(included, { recursive: true })
  mkdirSync(parts, { recursive: true })
  for (const name of headers.debian) {
    await quietly("apt-get", ["download", name], { cwd: parts })
    const file = readdirSync(parts).find((entry) => entry.startsWith(`${name}_`))!
    await quietly("dpkg", ["-x", path.join(parts, file), path.join(parts, name)])
    cpSync(path.join(parts, name, "usr/include"), included, { recursive: true })
  }
  for (const [source, within] of headers.python) {
    await quietly("python3", ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", source], {
      cwd: parts
    })
    const archive = readdirSync(parts).find((entry) => entry.startsWith(source.replace("==", "-")))!
    await quietly("tar", ["xzf", archive], { cwd: parts })
    cpSync(path.join(parts, source.replace("==", "-"), within), path.join(included, within), { recursive: true })
  }
  const flags = `-O2 -I${included}`
  await quietly("go", ["install", "-p", String(availableParallelism()), go], {
    env: { ...process.env, GOBIN: path.join(folder, "bin"), CGO_CFLAGS: flags, CGO_CXXFLAGS: flags }
  })
}

/** The folder of a program. Installs it if it is not there. Rejects with the installer's last words. */
export const install = async (name: ProgramName): Promise<string> => {
  const program: PythonProgram | { readonly go: string } | { readonly npm: ReadonlyArray<string> } = programs[name]
  const words = "npm" in program
    ? program.npm[0]!
    : "go" in program
    ? program.go
    : program.last?.python ?? program.python[0]!
  const folder = path.join(cache, words.replaceAll(/[^\w.=@-]+/g, "-"))
  const done = path.join(folder, "installed")
  if (existsSync(done)) return folder
  rmSync(folder, { recursive: true, force: true })
  process.stdout.write(`installing ${words}\n`)
  mkdirSync(cache, { recursive: true })
  if ("npm" in program) {
    const options = ["--prefix", folder, "--ignore-scripts", "--legacy-peer-deps", "--no-audit", "--no-fund"]
    mkdirSync(folder)
    await quietly("npm", ["install", ...options, ...program.npm])
  } else if ("go" in program) await installGo(folder, programs[name] as never)
  else await installPython(folder, program)
  mkdirSync(`${done}-`)
  renameSync(`${done}-`, done)
  return folder
}
