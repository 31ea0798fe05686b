/**
 * The scripts install nothing if everything is present, and never remove packages.
 */
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync
} from "node:fs"
import path from "node:path"
import manifest from "../../package.json" with { type: "json" }
import { root, unstamped } from "../support/checkout.ts"

let folder: string
beforeEach(() => {
  folder = unstamped([])
  mkdirSync(path.join(folder, "bin"))
  // A fake npm that records its arguments.
  writeFileSync(path.join(folder, "bin/npm"), `#!/bin/sh\necho "$*" >>"${folder}/asked"\nexit 1\n`, { mode: 0o755 })
})
afterEach(() => rmSync(folder, { recursive: true }))

/** Runs a shell command in the folder; returns the recorded npm commands. */
const runCommand = (command: string) => {
  const { status, stderr } = spawnSync("sh", ["-euc", command], {
    cwd: folder,
    env: { PATH: `${folder}/bin:${process.env["PATH"]}`, npm_config_cache: path.join(folder, "cache") },
    encoding: "utf8"
  })
  const asked = path.join(folder, "asked")
  const commands = existsSync(asked) ? readFileSync(asked, "utf8").trim().split("\n") : []
  return { status, stderr, commands: commands.map((command) => command.split(" --ignore-scripts")[0]) }
}

/** Installs for a scope. */
const install = (scope: string) => runCommand(`scope=${scope}; . ./scripts/install.sh; "$node" --version`)

const nothing = { status: 0, stderr: "", commands: [] }

type Packages = Record<string, Record<string, unknown>>

/** Changes the packages in a lock file. */
const edit = (name: string, change: (packages: Packages) => void): void => {
  const file = path.join(folder, name)
  const lock = JSON.parse(readFileSync(file, "utf8")) as { readonly packages: Packages }
  change(lock.packages)
  // The repository's folder behind the link is unchanged.
  unlinkSync(file)
  writeFileSync(file, JSON.stringify(lock))
}

const hidden = "node_modules/.package-lock.json"

/** The state that npm records after an installation without development packages: those that the lock file names. */
const dropDevelopment = () =>
  edit(hidden, (packages) => {
    const lock = JSON.parse(readFileSync(path.join(root, "package-lock.json"), "utf8")) as {
      readonly packages: Packages
    }
    for (const at of Object.keys(packages)) if (lock.packages[at]?.["dev"] === true) delete packages[at]
  })

const newer = (name: string) =>
  edit("package-lock.json", (packages) => packages[`node_modules/${name}`]!["version"] = "99")

describe("scripts/install.sh", () => {
  it.each(["run", "all"])("accepts a complete installation by plain npm: scope %s", (scope) => {
    const before = readdirSync(path.join(folder, "node_modules"))
    assert.deepInclude(install(scope), nothing)
    assert.sameMembers(readdirSync(path.join(folder, "node_modules")), [...before, ".installed"])
    // Later calls need not look again.
    unlinkSync(path.join(folder, hidden))
    assert.deepInclude(install("all"), nothing)
  })

  it("adds development packages to an installation for running", () => {
    dropDevelopment()
    assert.deepInclude(install("run"), nothing)
    assert.deepInclude(install("all"), { status: 1, commands: ["ci --include=dev --include=optional --include=peer"] })
  })

  it("adds development packages to an installation for running, whichever npm script is called", () => {
    dropDevelopment()
    const scripts = Object.entries(manifest.scripts).filter(([name]) => name !== "start")
    assert.isAbove(scripts.length, 5)
    for (const [name, command] of scripts) {
      const { commands, status } = runCommand(command)
      assert.deepEqual([status, commands.at(-1)], [1, "ci --include=dev --include=optional --include=peer"], name)
      rmSync(path.join(folder, "asked"))
    }
  })

  it("is behind every command of the documents: none calls node or npx by itself", () => {
    const texts = [
      "README.md",
      "docs/library/README.md",
      "docs/contributing/README.md",
      "docs/contributing/commands.md",
      "docs/contributing/add-to-the-gateway.md"
    ].map((file) => readFileSync(path.join(root, file), "utf8"))
    const commands = texts.flatMap((text) => [...text.matchAll(/`([^`\n]+)`|^ {4}(\S.*)$/gm)])
      .map(([, inline, block]) => (inline ?? block!).replace(/^(?:[A-Z_]+=\S+ )+/, ""))
    assert.deepEqual(commands.filter((command) => /^(?:node|npx) \S/.test(command)), [])
    const called = commands.flatMap((command) => /^npm run ([\w:]+)/.exec(command)?.[1] ?? [])
    assert.includeMembers(called, ["build", "check", "console", "docs", "format", "picture"])
    for (const name of called) assert.property(manifest.scripts, name)
  })

  it("keeps an installation for running when only a development package has a newer version", () => {
    newer("vitest")
    assert.deepInclude(install("run"), nothing)
    assert.deepInclude(install("all"), { status: 1, commands: ["ci --include=dev --include=optional --include=peer"] })
  })

  it.each([
    ["npm knows", () => newer("effect")],
    ["nobody knows", () => unlinkSync(path.join(folder, hidden))]
  ])("keeps the packages for development that %s of when one for running is missing", (_, change) => {
    change()
    assert.deepInclude(install("run"), { status: 1, commands: ["ci --include=dev --include=optional --include=peer"] })
  })

  it("installs only the packages for running into an empty folder", () => {
    const small = (commands: ReadonlyArray<string | undefined>) => {
      assert.include(commands, "ci --omit=dev --include=optional --include=peer")
      assert.isFalse(commands.some((command) => command?.includes("--include=dev")))
    }
    dropDevelopment()
    newer("effect")
    small(install("run").commands)
    rmSync(path.join(folder, "node_modules"), { recursive: true })
    small(install("run").commands)
  })

  it("continues after an interruption", () => {
    unlinkSync(path.join(folder, hidden))
    writeFileSync(path.join(folder, "node_modules/.installed"), "begun run\n")
    assert.include(install("run").commands, "ci --omit=dev --include=optional --include=peer")
  })

  it("installs nothing with scope none, which tests use", () => {
    rmSync(path.join(folder, "node_modules"), { recursive: true })
    // The machine's own Node, which may be older.
    symlinkSync(process.execPath, path.join(folder, "bin/node"))
    assert.deepInclude(install("none"), nothing)
  })
})

describe("a build that fails", () => {
  it("leaves the previous build in place", () => {
    const built = path.join(folder, "dist/package/index.js")
    mkdirSync(path.dirname(built), { recursive: true })
    writeFileSync(built, "the one before")
    cpSync(path.join(root, "src"), path.join(folder, "src"), { recursive: true })
    writeFileSync(path.join(folder, "src/index.ts"), "export const broken = {")
    const { status } = spawnSync(process.execPath, ["scripts/build.ts"], { cwd: folder, encoding: "utf8" })
    assert.notStrictEqual(status, 0)
    assert.strictEqual(readFileSync(built, "utf8"), "the one before")
    assert.deepStrictEqual(readdirSync(path.join(folder, "dist")), ["package"])
  })
})
