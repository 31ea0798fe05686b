/**
 * The bundled service, as `scripts/start` runs it, for all tests that start processes. It is built once and Node caches its compiled code;
 * a start from the sources takes four times as long.
 */
import { execFileSync } from "node:child_process"
import path from "node:path"

const root = path.join(import.meta.dirname, "../..")

/** Path of the program that Node runs. Built if it does not exist, without an installation. Throws with the errors in the sources. */
export const service = execFileSync(
  "sh",
  ["-euc", `scope=none; . ./scripts/install.sh; . ./scripts/bundle.sh; printf %s "$service"`],
  { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }
)

/** The environment of processes that run it. */
export const serviceEnvironment: Readonly<Record<string, string>> = {
  PATH: process.env["PATH"] ?? "",
  NODE_COMPILE_CACHE: path.join(root, "node_modules/.cache/compiled")
}
