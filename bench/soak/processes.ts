/**
 * The processes of the soak: the gateway, bundled as for a start, and the scripted upstream.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createWriteStream } from "node:fs"
import { mkdir, writeFile } from "node:fs/promises"
import path from "node:path"
import { packAssets } from "../../scripts/bundle/assets.ts"
import { buildService } from "../../scripts/bundle/service.ts"

const root = path.join(import.meta.dirname, "../..")

/** Bundles the service into a folder, as `scripts/start` does. Returns the file to run. */
export const bundleInto = async (folder: string): Promise<string> => {
  await mkdir(folder, { recursive: true })
  const info = { form: "bundle", commit: null, date: null, assets: "./service.assets" } as const
  const { assets, code } = await buildService("main.ts", info, "quick")
  await writeFile(path.join(folder, "service.assets"), packAssets(assets))
  const file = path.join(folder, "service.mjs")
  await writeFile(file, code)
  return file
}

/** A running process. */
export interface Running {
  readonly child: ChildProcess
  /** The first match of each pattern in its output. */
  readonly found: ReadonlyArray<string>
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>
}

/** Starts a process and waits for lines that match all patterns. Its output goes into a file. */
const start = async (
  args: ReadonlyArray<string>,
  options: { readonly cwd: string; readonly env?: Readonly<Record<string, string>>; readonly log: string },
  patterns: ReadonlyArray<RegExp>
): Promise<Running> => {
  const child = spawn(process.execPath, args, {
    cwd: options.cwd,
    env: { PATH: process.env["PATH"], ...options.env },
    stdio: ["ignore", "pipe", "pipe"]
  })
  const log = createWriteStream(options.log)
  let printed = ""
  const found = await new Promise<ReadonlyArray<string>>((resolve, reject) => {
    const look = (): void => {
      const matches = patterns.map((pattern) => pattern.exec(printed)?.[1])
      if (matches.every((match) => match !== undefined)) resolve(matches)
    }
    for (const output of [child.stdout, child.stderr]) {
      output.setEncoding("utf8").on("data", (text: string) => {
        log.write(text)
        if (printed.length > 100_000) return
        printed += text
        look()
      })
    }
    child.once("error", reject)
    child.once("exit", (code) => reject(new Error(`it ended with ${code} before it was ready:\n${printed}`)))
  })
  const ended = once(child, "close").then(([code, signal]: Array<unknown>) => {
    log.end()
    return typeof code === "number" ? code : String(signal)
  })
  return { child, found, ended }
}

/** Milliseconds that the upstream keeps idle connections open. */
export const upstreamKeepAlive = 4000

/** The reference upstream on a socket. */
export const startReference = async (log: string): Promise<Running & { readonly url: string }> => {
  const main = path.join(root, "src/testing/main.ts")
  const args = [main, "--port", "0", "--remember", "500", "--keep-alive", String(upstreamKeepAlive)]
  const running = await start(args, { cwd: root, log }, [/listens on (http:\S+)/])
  return { ...running, url: running.found[0]! }
}

/** The gateway with an open inspector. */
export const startGateway = async (
  service: string,
  options: { readonly cwd: string; readonly adminKey: string; readonly log: string }
): Promise<Running & { readonly url: string; readonly inspector: string }> => {
  const running = await start(
    ["--inspect=127.0.0.1:0", service],
    {
      cwd: options.cwd,
      log: options.log,
      env: {
        PORT: "0",
        GATEWAY_CONFIG_PATH: path.join(options.cwd, "config.json"),
        GATEWAY_ADMIN_KEY: options.adminKey,
        GATEWAY_LOG_LEVEL: "warn"
      }
    },
    [/listens on (http:\S+)/, /Debugger listening on (ws:\S+)/]
  )
  return { ...running, url: running.found[0]!, inspector: running.found[1]! }
}
