/**
 * The processes of the soak: the gateway, bundled as for a start, and the scripted upstream.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createWriteStream } from "node:fs"
import { mkdir, readdir, readFile, readlink, writeFile } from "node:fs/promises"
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

/** A gateway, which may be the parent of workers. */
export interface Gateway extends Running {
  /** Its name in the report. */
  readonly name: string
  readonly url: string
  /** The folder of its configuration. */
  readonly folder: string
}

/** Starts a gateway. It and its workers open an inspector each. */
export const startGateway = async (
  service: string,
  options: {
    readonly name: string
    readonly folder: string
    /** The folder of the inspectors' addresses. */
    readonly inspectors: string
    readonly args: ReadonlyArray<string>
    readonly env: Readonly<Record<string, string>>
  }
): Promise<Gateway> => {
  const { folder, name } = options
  const running = await start(
    [service, ...options.args],
    {
      cwd: folder,
      log: `${folder}.log`,
      env: {
        PORT: "0",
        GATEWAY_CONFIG_PATH: path.join(folder, "config.json"),
        GATEWAY_LOG_LEVEL: "warn",
        SOAK_INSPECTORS: options.inspectors,
        NODE_OPTIONS: `--import=${path.join(import.meta.dirname, "openInspector.ts")}`,
        ...options.env
      }
    },
    [/listens on (http:\S+)/]
  )
  return { ...running, name, folder, url: running.found[0]! }
}

/** The processes that a process has started, the oldest first. Empty for an ended process. */
export const childrenOf = async (pid: number): Promise<ReadonlyArray<number>> => {
  const tasks = await readdir(`/proc/${pid}/task`).catch(() => [])
  const lists = await Promise.all(
    tasks.map((task) => readFile(`/proc/${pid}/task/${task}/children`, "utf8").catch(() => ""))
  )
  return lists.flatMap((list) => list.split(" ").filter((child) => child !== "").map(Number)).toSorted((a, b) => a - b)
}

/** The processes of a gateway that serve: itself, or its workers. */
export const serving = async ({ child }: Gateway, workers: number): Promise<ReadonlyArray<number>> =>
  workers > 1 ? await childrenOf(child.pid!) : [child.pid!]

/** The state of an open connection in the system's table. */
const established = "01"

/** The clients' ports of a process's open connections to a port, and of those that no process has accepted yet. */
export const clientPortsOf = async (pid: number, port: number): Promise<ReadonlySet<number>> => {
  const files = await readdir(`/proc/${pid}/fd`)
  const links = await Promise.all(files.map((file) => readlink(`/proc/${pid}/fd/${file}`).catch(() => "")))
  const sockets = new Set(["0", ...links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? [])])
  const portOf = (address: string): number => Number.parseInt(address.split(":")[1]!, 16)
  const lines = (await readFile(`/proc/${pid}/net/tcp`, "utf8")).trim().split("\n").slice(1)
  return new Set(lines.flatMap((line) => {
    const [, local, remote, state, , , , , , socket] = line.trim().split(/\s+/)
    return portOf(local!) === port && state === established && sockets.has(socket!) ? [portOf(remote!)] : []
  }))
}
