// Processes of other programs: started with a log, known to be ready by an address, ended with all that they have started.
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { openSync, readdirSync, readFileSync } from "node:fs"
import { createServer } from "node:net"
import type { AddressInfo } from "node:net"

/** A pause between two looks at what has no event, in milliseconds. */
const pause = 50

export const sleep = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/** Looks until `condition` holds. Returns the milliseconds that it took; `undefined` after `most` milliseconds. */
export const until = async (most: number, condition: () => Promise<boolean> | boolean): Promise<number | undefined> => {
  const start = performance.now()
  while (performance.now() - start < most) {
    if (await condition()) return performance.now() - start
    await sleep(pause)
  }
  return undefined
}

/** A port that is free now. */
export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, "close")
  return port
}

/** How a process is started. */
export interface Start {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly env?: NodeJS.ProcessEnv
  readonly cwd?: string
  /** The file of its output. */
  readonly log: string
  /** Answers with a status below 500 once the process is ready. */
  readonly ready: string
}

/** A running process. */
export interface Running {
  readonly pid: number
  /** Ends it and its descendants immediately. */
  readonly kill: () => Promise<void>
}

/** The longest that a process takes to be ready, in milliseconds. */
const longestStart = 600_000

/** The descendants of a process, from the table of all processes. */
const descendants = (pid: number): ReadonlyArray<number> => {
  const parents = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).flatMap((name) => {
    try {
      return [[Number(name), Number(readFileSync(`/proc/${name}/stat`, "utf8").split(") ")[1]!.split(" ")[1])] as const]
    } catch {
      return []
    }
  })
  const below = (one: number): ReadonlyArray<number> =>
    parents.filter(([, parent]) => parent === one).flatMap(([child]) => [child, ...below(child)])
  return below(pid)
}

/** The CPU time of a process and its descendants so far, in seconds. */
export const cpuSeconds = (pid: number): number => {
  const ticks = [pid, ...descendants(pid)].map((one) => {
    try {
      const fields = readFileSync(`/proc/${one}/stat`, "utf8").split(") ")[1]!.split(" ")
      return Number(fields[11]) + Number(fields[12])
    } catch {
      return 0
    }
  })
  return ticks.reduce((sum, own) => sum + own, 0) / 100
}

const running = new Set<ChildProcess>()
process.on("exit", () => {
  for (const child of running) {
    for (const pid of descendants(child.pid!)) process.kill(pid, "SIGKILL")
    child.kill("SIGKILL")
  }
})
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1))

/** Starts a process and waits until it is ready. Rejects with the end of its log. */
export const start = async ({ args, command, cwd, env, log, ready }: Start): Promise<Running> => {
  const out = openSync(log, "w")
  const child = spawn("nice", ["-n", "5", command, ...args], {
    env: { ...process.env, ...env },
    ...(cwd === undefined ? {} : { cwd }),
    stdio: ["ignore", out, out]
  })
  running.add(child)
  child.on("exit", () => running.delete(child))
  const kill = async () => {
    const below = descendants(child.pid!)
    const ended = child.exitCode !== null || child.signalCode !== null ? undefined : once(child, "exit")
    child.kill("SIGKILL")
    for (const pid of below) {
      try {
        process.kill(pid, "SIGKILL")
      } catch {
        // It has ended already.
      }
    }
    await ended
  }
  const isReady = await until(longestStart, async () => {
    if (child.exitCode !== null) throw new Error(`${command} ended: ${readFileSync(log, "utf8").slice(-2000)}`)
    return fetch(ready).then((response) => response.status < 500, () => false)
  })
  if (isReady === undefined) {
    await kill()
    throw new Error(`${command} is not ready: ${readFileSync(log, "utf8").slice(-2000)}`)
  }
  return { pid: child.pid!, kill }
}
