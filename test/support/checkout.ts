/**
 * A copy of the checkout for tests of the scripts, so that no script installs or builds in the repository itself.
 */
import { execFileSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"

export const root = path.join(import.meta.dirname, "../..")

const own = [
  "scripts",
  "docs",
  "CHANGELOG.md",
  "SECURITY.md",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  ".npmrc"
]

/** A folder with the repository's packages, without build output; by default with the sources. */
export const unstamped = (parts: ReadonlyArray<string> = ["src"]): string => {
  const folder = realpathSync(mkdtempSync(path.join(tmpdir(), "checkout-")))
  for (const name of [...own, ...parts]) cpSync(path.join(root, name), path.join(folder, name), { recursive: true })
  mkdirSync(path.join(folder, "node_modules"))
  for (const name of readdirSync(path.join(root, "node_modules"))) {
    if (name === ".cache" || name === ".installed") continue
    symlinkSync(path.join(root, "node_modules", name), path.join(folder, "node_modules", name))
  }
  return folder
}

/** The same, with the stamp of a complete installation. */
export const checkout = (): string => {
  const folder = unstamped()
  execFileSync("sh", ["-c", `echo "$(uname -sm) $(cksum <package-lock.json)" >node_modules/.installed`], {
    cwd: folder
  })
  return folder
}
