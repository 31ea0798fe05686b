/**
 * The processes of the benchmarks: upstreams, gateways and relays.
 *
 * CPU time comes from `/proc/PID/stat`, so this runs on Linux only.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs"
import { Agent, request } from "node:http"
import { tmpdir } from "node:os"
import path from "node:path"
import { createInterface } from "node:readline"
import { PassThrough } from "node:stream"
import { expectSoon } from "./soak/until.ts"

export interface Target {
  readonly name: string
  readonly url: string
  readonly pid: number
}

const children: Array<ChildProcess> = []

const sorted = (values: ReadonlyArray<number>): ReadonlyArray<number> => values.toSorted((a, b) => a - b)
export const median = (values: ReadonlyArray<number>): number => sorted(values)[values.length >> 1]!
export const percentile = (values: ReadonlyArray<number>, part: number): number =>
  sorted(values)[Math.min(values.length - 1, Math.floor(values.length * part))]!

/** Waits for a matching line in a file that a process writes. Resolves with the match. */
const readLine = async (file: string, ready: RegExp, child: ChildProcess): Promise<string> => {
  let found: RegExpExecArray | null = null
  await expectSoon(`a line of ${file}`, async () => {
    found = ready.exec(readFileSync(file, "utf8"))
    if (child.exitCode !== null) throw new Error(`${child.spawnargs.join(" ")} ended before it was ready`)
    return found !== null
  })
  return found![1]!
}

/** How to start a process. `heard` receives every line of its output; `log` is a file for its output. */
interface Start {
  readonly args: ReadonlyArray<string>
  readonly env?: Record<string, string>
  /** Matches the output line that announces readiness and port. */
  readonly ready: RegExp
  readonly heard?: ((line: string) => void) | undefined
  readonly log?: string | undefined
}

/** Starts a process and waits until it is ready. */
const start = async (
  { args, env = {}, heard, log, ready }: Start
): Promise<{ readonly pid: number; readonly port: string }> => {
  const out = log === undefined ? "pipe" : openSync(log, "w")
  const child = spawn(process.execPath, args, { env: { ...process.env, ...env }, stdio: ["ignore", out, out] })
  children.push(child)
  if (log !== undefined) return { pid: child.pid!, port: await readLine(log, ready, child) }
  const said = new PassThrough()
  child.stdout?.pipe(said)
  child.stderr?.pipe(said)
  return new Promise((resolve, reject) => {
    createInterface({ input: said }).on("line", (line) => {
      const found = ready.exec(line)
      if (found !== null) resolve({ pid: child.pid!, port: found[1]! })
      heard?.(line)
    }).on("close", () => reject(new Error(`${args.join(" ")} ended before it was ready`)))
  })
}

const ticksPerSecond = 100

/** CPU seconds of a process so far, user and system together. */
export const cpuSeconds = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

/** Resident memory of a process in MB. */
export const residentMb = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024

/** The HTTP agent of the requests. */
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

/** Sends a request. Returns the milliseconds to the first byte of the response body. */
export const ask = (
  target: Target,
  { body, path }: Ask,
  onData?: (chunk: Buffer) => void,
  given?: Agent
): Promise<number> =>
  new Promise((resolve, reject) => {
    const began = performance.now()
    const outgoing = request(`${target.url}${path}`, {
      method: "POST",
      agent: given ?? agent,
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

/** Settings of a gateway: all defaults on, all off, or one on. */
export const variants = ["all off", "records", "captures", "usage", "log", "as shipped"] as const

export type Variant = (typeof variants)[number]

/** The driver of a gateway that is a service, or how one that is mounted in another app's server calls its upstream. */
export type Kind = "session" | "openai" | "mounted" | "mounted by client"

const groups = { records: "requests", captures: "captures", usage: "usage" } as const

/** The configuration of a variant. */
const switchedOff = (variant: Variant): object =>
  Object.fromEntries(
    Object.entries(groups).filter(([name]) => variant !== "as shipped" && variant !== name)
      .map(([, group]) => [group, { enabled: false }])
  )

const relayTarget = async (name: string, mode: string, url: string): Promise<Target> => {
  const { pid, port } = await start({ args: ["bench/relay.ts", mode, url], ready: /listening (\d+)/ })
  return { name, url: `http://127.0.0.1:${port}`, pid }
}

export interface Targets {
  readonly sessionRelay: Target
  readonly session: Target
  readonly serverRelay: Target
  readonly openai: Target
  /** A gateway, started on first use. `session` and `openai` have all defaults off. */
  readonly gateway: (kind: Kind, variant: Variant) => Promise<Target>
}

/**
 * Runs a measurement against new gateways and relays. `heard` receives the output of the gateways with all defaults off; those then also
 * print each garbage collection.
 */
export const withTargets = async (
  measure: (targets: Targets) => Promise<void>,
  heard?: (line: string) => void
): Promise<void> => {
  agent = new Agent({ keepAlive: true, maxSockets: 1000 })
  const folder = mkdtempSync(path.join(tmpdir(), "bench-"))
  try {
    const upstream = await start({
      args: ["src/testing/main.ts", "--port", "0"],
      ready: /http:\/\/[^:]+:(\d+)/
    })
    const upstreamUrl = `http://127.0.0.1:${upstream.port}`
    const server = await start({ args: ["bench/openaiServer.ts"], ready: /listening (\d+)/ })
    const serverUrl = `http://127.0.0.1:${server.port}`
    const sessionConfig = {
      accounts: Array.from({ length: 40 }, (_, i) => ({ email: `bench${i}@example.com`, password: "bench" })),
      upstream: { driver: "session", base_url: upstreamUrl }
    }
    const configs: Readonly<Record<Kind, object>> = {
      session: sessionConfig,
      mounted: sessionConfig,
      "mounted by client": sessionConfig,
      openai: {
        accounts: Array.from({ length: 40 }, (_, i) => ({ token: `sk-bench-${i}` })),
        upstream: { driver: "openai", base_url: `${serverUrl}/v1` }
      }
    }
    const startGateway = async (kind: Kind, variant: Variant): Promise<Target> => {
      const own = path.join(folder, `${kind} ${variant}`)
      const logged = variant === "log" || variant === "as shipped"
      const config = {
        keys: ["bench-key"],
        runtime: { account_max_inflight: 256, account_max_queue: 2000, global_max_inflight: 20_000 },
        ...configs[kind],
        ...switchedOff(variant)
      }
      // The service sets this option itself; the documents advise it to apps.
      const isMounted = kind !== "session" && kind !== "openai"
      const app = ["bench/mounted.ts", ...(kind === "mounted by client" ? ["client"] : [])]
      const program = isMounted
        ? ["--no-allocation-site-pretenuring", ...app]
        : ["src/main.ts"]
      const { pid, port } = await start({
        args: heard === undefined ? program : ["--trace-gc", ...program],
        env: {
          PORT: "0",
          GATEWAY_CONFIG_JSON: JSON.stringify(config),
          GATEWAY_ADMIN_KEY: "bench",
          GATEWAY_DATA_DIR: own,
          ...(logged ? {} : { GATEWAY_LOG_LEVEL: "error" })
        },
        ready: /listens on http:\/\/[^:]+:(\d+)/,
        ...(logged ? { log: `${own}.log` } : { heard })
      })
      return { name: variant, url: `http://127.0.0.1:${port}${isMounted ? "/ai" : ""}`, pid }
    }
    const gateways = new Map<string, Promise<Target>>()
    const gateway = (kind: Kind, variant: Variant): Promise<Target> => {
      const name = `${kind} ${variant}`
      const known = gateways.get(name) ?? startGateway(kind, variant)
      gateways.set(name, known)
      return known
    }
    const sessionRelay = await relayTarget("relay", "relay", upstreamUrl)
    const session = await gateway("session", "all off")
    const serverRelay = await relayTarget("relay", "openai", serverUrl)
    const openai = await gateway("openai", "all off")
    await measure({ sessionRelay, session, serverRelay, openai, gateway })
  } finally {
    agent.destroy()
    for (const child of children) {
      child.kill("SIGKILL")
      if (child.exitCode === null) await once(child, "exit")
    }
    children.length = 0
    rmSync(folder, { recursive: true })
  }
}
