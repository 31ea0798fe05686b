/**
 * Builds the console before the tests if a source has changed since the last build.
 */
import { readdirSync, statSync } from "node:fs"
import path from "node:path"
import { buildConsole, cachedConsole } from "../../scripts/console.ts"

const root = path.join(import.meta.dirname, "../..")

const changedAt = (file: string): number => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0

const sources = (): Array<string> => [
  path.join(root, "package-lock.json"),
  path.join(root, "scripts/console.ts"),
  ...readdirSync(path.join(root, "src"), { recursive: true, encoding: "utf8" }).map((file) =>
    path.join(root, "src", file)
  )
]

export default async (): Promise<void> => {
  const built = changedAt(path.join(cachedConsole, "index.html"))
  if (sources().some((file) => changedAt(file) > built)) await buildConsole(cachedConsole)
}
