/** Kills processes during a save, after a given number of file system events, and reads the remaining state. */
import { spawn } from "node:child_process"
import { type FSWatcher, readFileSync, watch } from "node:fs"
import path from "node:path"
import { fileURLToPath } from "node:url"

const saver = fileURLToPath(new URL("saver.ts", import.meta.url))

/** The initial content of the file, large enough that writing dominates a save. */
export const emptyConfig = JSON.stringify({ keys: [], embeddings: { provider: "x".repeat(2_000_000) } })

/** The state after a killed process. */
export interface Aftermath {
  /** Number of acknowledged changes. */
  readonly acknowledged: number
  /** Acknowledged changes that are missing in the file. */
  readonly lost: ReadonlyArray<string>
}

/**
 * Runs a process that saves to `file` until it has acknowledged some changes, kills it with SIGKILL after a further number
 * of events in the folder (a file was created, written to or renamed), and reads the file. Rejects if the file is not a
 * JSON object with `keys`.
 */
export const killWhileSaving = (file: string, steps: number): Promise<Aftermath> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [saver], {
      env: { GATEWAY_CONFIG_PATH: file },
      stdio: ["ignore", "pipe", "inherit"]
    })
    let printed = ""
    let watcher: FSWatcher | undefined
    child.stdout.on("data", (chunk: Buffer) => {
      if (printed === "") {
        let seen = 0
        watcher = watch(path.dirname(file), () => {
          if (++seen === steps) child.kill("SIGKILL")
        })
      }
      printed += chunk.toString()
    })
    child.on("error", reject)
    child.on("close", (code, signal) => {
      watcher?.close()
      if (signal !== "SIGKILL") {
        reject(new Error(`The process ended by itself (${code})`))
        return
      }
      // The last line may be cut; an acknowledged change ends with a line feed.
      const acknowledged = printed.split("\n").slice(0, -1)
      const config: { readonly keys: ReadonlyArray<string> } = JSON.parse(readFileSync(file, "utf8"))
      const keys = new Set(config.keys)
      resolve({ acknowledged: acknowledged.length, lost: acknowledged.filter((key) => !keys.has(key)) })
    })
  })
