/**
 * Imported first by every process of a gateway: opens the process's inspector on a free port, and writes its address to a file that has
 * the process's number as its name.
 */
import { writeFileSync } from "node:fs"
import { open, url } from "node:inspector"
import path from "node:path"
import { isMainThread } from "node:worker_threads"

const folder = process.env["SOAK_INSPECTORS"]

if (isMainThread && folder !== undefined) {
  open(0, "127.0.0.1")
  writeFileSync(path.join(folder, String(process.pid)), url() ?? "")
}
