// The facts of a release. They follow from the commit alone, so that two clones agree.
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import path from "node:path"

export const root = path.join(import.meta.dirname, "../..")

interface Manifest {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly license: string
  readonly exports: Readonly<Record<string, unknown>>
  readonly engines: Readonly<Record<string, string>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly optionalDependencies: Readonly<Record<string, string>>
}

export const manifest = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as Manifest

/** A package in the lock file. */
export interface Locked {
  readonly version: string
  readonly integrity: string
  readonly os?: string | ReadonlyArray<string>
  readonly cpu?: string | ReadonlyArray<string>
}

/** The lock file's packages by their paths. */
export const locked = (JSON.parse(readFileSync(path.join(root, "package-lock.json"), "utf8")) as {
  readonly packages: Readonly<Record<string, Locked>>
}).packages

/** Facts of a release. */
export interface Facts {
  readonly version: string
  /** The full commit id. */
  readonly revision: string
  /** Whether the tree has uncommitted changes. */
  readonly dirty: boolean
  /** The time of all files in the release, in seconds since 1970: `SOURCE_DATE_EPOCH`, else the commit's time. */
  readonly time: number
}

const git = (...args: ReadonlyArray<string>): string =>
  execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim()

/**
 * `inputs` are the paths whose changes make the tree dirty, by default all. Throws outside a git repository, and if `SOURCE_DATE_EPOCH`
 * is not a number.
 */
export const readFacts = (...inputs: ReadonlyArray<string>): Facts => {
  const epoch = process.env["SOURCE_DATE_EPOCH"]?.trim() || git("log", "-1", "--format=%ct")
  if (!/^\d+$/.test(epoch)) throw new Error("SOURCE_DATE_EPOCH must be a number of seconds since 1970")
  return {
    version: manifest.version,
    revision: git("rev-parse", "HEAD"),
    dirty: git("status", "--porcelain", "--", ...inputs) !== "",
    time: Number(epoch)
  }
}

/** The time as `2026-11-20T12:34:56Z`. */
export const isoTime = ({ time }: Facts): string => new Date(time * 1000).toISOString().replace(/\.000Z$/, "Z")

/** The day as `2026-11-20`. */
export const isoDate = (facts: Facts): string => isoTime(facts).slice(0, 10)

const named = (commit: string, { dirty }: Facts): string => dirty ? `${commit}-dirty` : commit

/** The commit's first 12 hex digits. */
export const shortCommit = ({ revision }: Facts): string => revision.slice(0, 12)

/** The commit as builds print it. */
export const commitName = (facts: Facts): string => named(shortCommit(facts), facts)

/** The commit as a reference that machines resolve. */
export const revisionName = (facts: Facts): string => named(facts.revision, facts)

/** Throws unless a changelog has a section with text for the version. */
export const checkChangelog = (changelog: string, version: string): void => {
  const section = changelog.split(/^## /m).slice(1).find((text) => text.split("\n", 1)[0]!.split(" ")[0] === version)
  if (section === undefined) throw new Error(`CHANGELOG.md has no section ${version}`)
  if (section.split("\n").slice(1).join("").trim() === "") {
    throw new Error(`the section ${version} of CHANGELOG.md is empty`)
  }
}
