/**
 * The service as `scripts/start` runs it: bundled from the sources as they are, once for all tests that start processes, and
 * found compiled by all but the first. From the sources each start takes four times as long.
 */
import { execFileSync } from "node:child_process"
import path from "node:path"

const root = path.join(import.meta.dirname, "../..")

/** The program: what Node is given to run. Built when it is not there, and never installed; fails with what is wrong in the sources. */
export const service = execFileSync(
  "sh",
  ["-euc", `scope=none; . ./scripts/install.sh; . ./scripts/bundle.sh; printf %s "$service"`],
  { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }
)

/** What a process that runs it has in its environment. */
export const serviceEnvironment: Readonly<Record<string, string>> = {
  PATH: process.env["PATH"] ?? "",
  NODE_COMPILE_CACHE: path.join(root, "node_modules/.cache/compiled")
}
