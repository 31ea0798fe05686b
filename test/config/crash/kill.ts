/** Kills processes that save, at moments nobody chose, and looks at what they leave. */
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
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
 * Runs a process that saves to the file at `path` until it acknowledged some changes, kills it by SIGKILL `delay` ms later,
 * and reads the file. Rejects when the file is no JSON object with `keys`.
 */
export const killWhileSaving = (path: string, delay: number): Promise<Aftermath> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [saver], {
      env: { GATEWAY_CONFIG_PATH: path },
      stdio: ["ignore", "pipe", "inherit"]
    })
    let printed = ""
    child.stdout.on("data", (chunk: Buffer) => {
      if (printed === "") setTimeout(() => child.kill("SIGKILL"), delay)
      printed += chunk.toString()
    })
    child.on("error", reject)
    child.on("close", (code, signal) => {
      if (signal !== "SIGKILL") {
        reject(new Error(`The process ended by itself (${code})`))
        return
      }
      // The last line may be cut; what is acknowledged ends with a line feed.
      const acknowledged = printed.split("\n").slice(0, -1)
      const config: { readonly keys: ReadonlyArray<string> } = JSON.parse(readFileSync(path, "utf8"))
      const keys = new Set(config.keys)
      resolve({ acknowledged: acknowledged.length, lost: acknowledged.filter((key) => !keys.has(key)) })
    })
  })
