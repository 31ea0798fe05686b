/**
 * Imported first: a worker hangs while the file of `HANG_IF` exists, and writes its process id there. It ends with its parent.
 */
import { existsSync, writeFileSync } from "node:fs"

const told = process.env["HANG_IF"]
const parent = process.ppid
if (told !== undefined && process.env["GATEWAY_WORKER_ROLE"] !== undefined && existsSync(told)) {
  try {
    writeFileSync(told, String(process.pid), { flag: "r+" })
  } catch {
    // The file was removed meanwhile.
  }
  const lock = new Int32Array(new SharedArrayBuffer(4))
  while (existsSync(told) && process.ppid === parent) Atomics.wait(lock, 0, 0, 20)
}
