/**
 * Processes that benchmarks run side by side: upstreams, gateways and relays, each of its own.
 *
 * CPU time is read from the kernel's account of the process (`/proc/PID/stat`), so this runs on Linux.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { Agent, request } from "node:http"
import { createInterface } from "node:readline"
import { PassThrough } from "node:stream"

export interface Target {
  readonly name: string
  readonly url: string
  readonly pid: number
}

const children: Array<ChildProcess> = []

/** Starts a process and waits for the line of its output that matches; `heard` is told every line. */
const start = (
  args: ReadonlyArray<string>,
  env: Record<string, string>,
  ready: RegExp,
  heard?: (line: string) => void
): Promise<{ readonly pid: number; readonly port: string }> => {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"]
  })
  children.push(child)
  const said = new PassThrough()
  child.stdout.pipe(said)
  child.stderr.pipe(said)
  return new Promise((resolve, reject) => {
    createInterface({ input: said }).on("line", (line) => {
      const found = ready.exec(line)
      if (found !== null) resolve({ pid: child.pid!, port: found[1]! })
      heard?.(line)
    }).on("close", () => reject(new Error(`${args.join(" ")} ended before it was ready`)))
  })
}

const ticksPerSecond = 100

/** CPU seconds of a process so far, user and system. */
export const cpuSeconds = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

/** Resident memory of a process in MB. */
export const residentMb = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024

/** The connections of the requests. */
let agent: Agent

/** A request of the benchmark. */
export interface Ask {
  readonly path: string
  readonly body: string
  readonly stream: boolean
}

export const chat = (content: string, stream: boolean, rest: object = {}): Ask => ({
  path: "/v1/chat/completions",
  body: JSON.stringify({ model: "upstream-chat", stream, messages: [{ role: "user", content }], ...rest }),
  stream
})

export const messages = (content: string, stream: boolean): Ask => ({
  path: "/v1/messages",
  body: JSON.stringify({
    model: "msgcompat-haiku-4-5",
    max_tokens: 1000,
    stream,
    messages: [{ role: "user", content }]
  }),
  stream
})

/** Sends a request; gives the milliseconds to the first byte of the reply's body. */
export const ask = (target: Target, { body, path }: Ask, onData?: (chunk: Buffer) => void): Promise<number> =>
  new Promise((resolve, reject) => {
    const began = performance.now()
    const outgoing = request(`${target.url}${path}`, {
      method: "POST",
      agent,
      headers: {
        authorization: "Bearer bench-key",
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body)
      }
    }, (response) => {
      let firstByte = 0
      response.on("data", (chunk: Buffer) => {
        if (firstByte === 0) firstByte = performance.now() - began
        onData?.(chunk)
      })
      response.on("end", () => {
        if (response.statusCode === 200) resolve(firstByte)
        else reject(new Error(`${target.name} answered ${response.statusCode}`))
      })
      response.on("error", reject)
    })
    outgoing.on("error", reject)
    outgoing.end(body)
  })

const gatewayTarget = async (name: string, config: object, heard?: (line: string) => void): Promise<Target> => {
  const { pid, port } = await start(
    heard === undefined ? ["src/main.ts"] : ["--trace-gc", "src/main.ts"],
    { PORT: "0", GATEWAY_CONFIG_JSON: JSON.stringify(config), GATEWAY_ADMIN_KEY: "bench", GATEWAY_LOG_LEVEL: "error" },
    /listens on http:\/\/[^:]+:(\d+)/,
    heard
  )
  return { name, url: `http://127.0.0.1:${port}`, pid }
}

const relayTarget = async (name: string, mode: string, url: string): Promise<Target> => {
  const { pid, port } = await start(["bench/relay.ts", mode, url], {}, /listening (\d+)/)
  return { name, url: `http://127.0.0.1:${port}`, pid }
}

export interface Targets {
  readonly sessionRelay: Target
  readonly session: Target
  readonly serverRelay: Target
  readonly openai: Target
}

/**
 * Runs a measurement against gateways and relays of its own. `heard` is told what the gateways say, which is then each of
 * their collections too.
 */
export const withTargets = async (
  measure: (targets: Targets) => Promise<void>,
  heard?: (line: string) => void
): Promise<void> => {
  agent = new Agent({ keepAlive: true, maxSockets: 1000 })
  try {
    const upstream = await start(["src/upstream/reference/main.ts", "--port", "0"], {}, /http:\/\/[^:]+:(\d+)/)
    const upstreamUrl = `http://127.0.0.1:${upstream.port}`
    const server = await start(["bench/openaiServer.ts"], {}, /listening (\d+)/)
    const serverUrl = `http://127.0.0.1:${server.port}`
    const quiet = { captures: { enabled: false }, requests: { enabled: false }, usage: { enabled: false } }
    const shared = {
      keys: ["bench-key"],
      runtime: { account_max_inflight: 256, account_max_queue: 2000, global_max_inflight: 20_000 },
      ...quiet
    }
    const sessionConfig = {
      ...shared,
      accounts: Array.from({ length: 40 }, (_, i) => ({ email: `bench${i}@example.com`, password: "bench" })),
      upstream: { driver: "session", base_url: upstreamUrl }
    }
    const sessionRelay = await relayTarget("relay", "relay", upstreamUrl)
    const session = await gatewayTarget("gateway", sessionConfig, heard)
    const serverRelay = await relayTarget("relay", "openai", serverUrl)
    const openai = await gatewayTarget("gateway", {
      ...shared,
      accounts: Array.from({ length: 40 }, (_, i) => ({ token: `sk-bench-${i}` })),
      upstream: { driver: "openai", base_url: `${serverUrl}/v1` }
    }, heard)
    await measure({ sessionRelay, session, serverRelay, openai })
  } finally {
    agent.destroy()
    for (const child of children) {
      child.kill("SIGKILL")
      if (child.exitCode === null) await once(child, "exit")
    }
    children.length = 0
  }
}
