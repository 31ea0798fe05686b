/** Kills processes in the midst of a save, by its steps in the file's folder, and looks at what they leave. */
import { spawn } from "node:child_process"
import { type FSWatcher, readFileSync, watch } from "node:fs"
import path from "node:path"
import { fileURLToPath } from "node:url"

const saver = fileURLToPath(new URL("saver.ts", import.meta.url))

/** What a file starts with: large enough that most of a save's time is spent writing it. */
export const emptyConfig = JSON.stringify({ keys: [], embeddings: { provider: "x".repeat(2_000_000) } })

/** What a killed process left behind. */
export interface Aftermath {
  /** Changes that it acknowledged, in all. */
  readonly acknowledged: number
  /** Acknowledged changes that the file lacks. */
  readonly lost: ReadonlyArray<string>
}

/**
 * Runs a process that saves to `file` until it acknowledged some changes, kills it by SIGKILL when so many more things have
 * happened in the file's folder (a file was made, written to, renamed: some of each save), and reads the file. Rejects when it
 * is no JSON object with `keys`.
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
      // The last line may be cut; what is acknowledged ends with a line feed.
      const acknowledged = printed.split("\n").slice(0, -1)
      const config: { readonly keys: ReadonlyArray<string> } = JSON.parse(readFileSync(file, "utf8"))
      const keys = new Set(config.keys)
      resolve({ acknowledged: acknowledged.length, lost: acknowledged.filter((key) => !keys.has(key)) })
    })
  })
