/**
 * Before the tests: builds the console if a source has changed since the last build, and starts the browser of the run.
 */
import { readdirSync, statSync } from "node:fs"
import path from "node:path"
import type { TestProject } from "vitest/node"
import { buildConsole, cachedConsole } from "../../scripts/console.ts"
import { share } from "./chromium.ts"

const root = path.join(import.meta.dirname, "../..")

const changedAt = (file: string): number => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0

const sources = (): Array<string> => [
  path.join(root, "package-lock.json"),
  path.join(root, "scripts/console.ts"),
  ...readdirSync(path.join(root, "src"), { recursive: true, encoding: "utf8" }).map((file) =>
    path.join(root, "src", file)
  )
]

/** Files with tests in a browser, of which one serves them all. */
const inBrowser = /\/test\/web\/(?:pictures\/)?[^/]+\.test\.ts$/

/** Prepares the run. Resolves to what ends it. */
export default async ({ vitest }: TestProject): Promise<() => Promise<void>> => {
  const built = changedAt(path.join(cachedConsole, "index.html"))
  if (sources().some((file) => changedAt(file) > built)) await buildConsole(cachedConsole)
  if (!vitest.state.getPaths().some((file) => inBrowser.test(file))) return () => Promise.resolve()
  try {
    return await share()
  } catch (reason) {
    // The tests that need it fail with what is missing, and the others run.
    console.error(reason instanceof Error ? reason.message : reason)
    return () => Promise.resolve()
  }
}
