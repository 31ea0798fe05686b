/**
 * The processes of the benchmarks: upstreams, gateways and relays. A target has a core of its own, and load and upstreams share the
 * others.
 *
 * CPU time comes from `/proc/PID/stat` and cores from `taskset`, so this runs on Linux only.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs"
import { Agent, request } from "node:http"
import { tmpdir } from "node:os"
import path from "node:path"
import { createInterface } from "node:readline"
import { PassThrough } from "node:stream"
import { nodeFlags, nodeVariables } from "../scripts/nodeFlags.ts"
import type { Counts } from "./counting.ts"
import { bundleInto, childrenOf } from "./soak/processes.ts"
import { expectSoon } from "./soak/until.ts"

/** Scales seconds and numbers of requests: `BENCH_EFFORT=0.1` checks quickly that a benchmark runs. */
export const effort = Number(process.env["BENCH_EFFORT"] ?? 1)

export interface Target {
  readonly name: string
  readonly url: string
  readonly pid: number
  /** What its requests have besides those of the gateway. */
  readonly headers?: Readonly<Record<string, string>>
  /** Its name of the upstream's model. */
  readonly model?: string
}

const children = new Map<number, ChildProcess>()

const sorted = (values: ReadonlyArray<number>): ReadonlyArray<number> => values.toSorted((a, b) => a - b)
export const median = (values: ReadonlyArray<number>): number => sorted(values)[values.length >> 1]!
export const percentile = (values: ReadonlyArray<number>, part: number): number =>
  sorted(values)[Math.min(values.length - 1, Math.floor(values.length * part))]!

/** The cores that this process may use when it starts. */
const cores = /Cpus_allowed_list:\s+(\S+)/.exec(readFileSync("/proc/self/status", "utf8"))![1]!.split(",").flatMap(
  (range) => {
    const [first, last = first] = range.split("-").map(Number) as [number, number?]
    return Array.from({ length: last - first + 1 }, (_, i) => first + i)
  }
)

/** Moves this process, and the processes that it starts from then on, to some cores. */
const moveTo = (some: ReadonlyArray<number>): void => {
  execFileSync("taskset", ["-acp", some.join(","), String(process.pid)], { stdio: "ignore" })
}

/** How to start a process, of Node without a `command`. Its output goes to the file `log`; without one, `heard` receives every line. */
export interface Start {
  readonly command?: string
  readonly args: ReadonlyArray<string>
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** Matches the output line that announces readiness and port; or the port on which it listens once it is ready, with a log. */
  readonly ready: RegExp | number
  readonly heard?: ((line: string) => void) | undefined
  readonly log?: string | undefined
}

/** Waits until a process that writes a file is ready. Resolves with its port. */
const readyPort = async (file: string, ready: RegExp | number, child: ChildProcess): Promise<string> => {
  let port: string | undefined
  await expectSoon(`ready, by ${file}`, async () => {
    const said = readFileSync(file, "utf8")
    port = typeof ready === "number"
      ? await fetch(`http://127.0.0.1:${ready}`).then(() => String(ready), () => undefined)
      : ready.exec(said)?.[1]
    if (port === undefined && child.exitCode !== null) {
      throw new Error(`it ended before it was ready: ${/^.*Error:.*$/m.exec(said)?.[0] ?? said.slice(-300)}`)
    }
    return port !== undefined
  })
  return port!
}

const launch = async (child: ChildProcess, { args, heard, log, ready }: Start) => {
  const pid = child.pid!
  children.set(pid, child)
  if (log !== undefined) return { pid, port: await readyPort(log, ready, child) }
  const said = new PassThrough()
  child.stdout?.pipe(said)
  child.stderr?.pipe(said)
  return new Promise<{ readonly pid: number; readonly port: string }>((resolve, reject) => {
    createInterface({ input: said }).on("line", (line) => {
      const found = typeof ready === "number" ? null : ready.exec(line)
      if (found !== null) resolve({ pid, port: found[1]! })
      heard?.(line)
    }).on("close", () => reject(new Error(`${args.join(" ")} ended before it was ready`)))
  })
}

/** Starts a process on the target's core, and waits until it is ready. */
export const startProcess = (how: Start): Promise<{ readonly pid: number; readonly port: string }> => {
  const out = how.log === undefined ? "pipe" : openSync(how.log, "w")
  const child = spawn("taskset", ["-c", String(cores[0]), how.command ?? process.execPath, ...how.args], {
    ...(how.cwd === undefined ? {} : { cwd: how.cwd }),
    env: { ...process.env, ...how.env },
    stdio: ["ignore", out, out]
  })
  return launch(child, how)
}

/** A process and all processes that descend from it. */
export const treeOf = async (pid: number): Promise<ReadonlyArray<number>> => {
  const below = await Promise.all((await childrenOf(pid)).map(treeOf))
  return [pid, ...below.flat()]
}

/** Ends a process, waits for its end, and ends the processes that it leaves. */
export const endProcess = async (pid: number, signal: "SIGKILL" | "SIGTERM" = "SIGKILL"): Promise<void> => {
  const child = children.get(pid)
  if (child === undefined) return
  children.delete(pid)
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, "exit")
  const descendants = (await treeOf(pid)).slice(1)
  child.kill(signal)
  await ended
  for (const each of descendants) {
    try {
      process.kill(each, "SIGKILL")
    } catch {
      // It has ended with its parent.
    }
  }
}

const ticksPerSecond = 100

/** CPU seconds of processes so far, user and system together, and those of their ended children. */
export const cpuSeconds = (pids: ReadonlyArray<number>): number =>
  pids.reduce((sum, pid) => {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    const [user, system, childrenUser, childrenSystem] = stat.slice(stat.lastIndexOf(")") + 2).split(" ").slice(11, 15)
      .map(Number) as [number, number, number, number]
    return sum + (user + system + childrenUser + childrenSystem) / ticksPerSecond
  }, 0)

/** Resident memory of a process in MB. */
export const residentMb = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024

/** The HTTP agent of the requests. */
const agent = new Agent({ keepAlive: true, maxSockets: 1000 })

/** A request of the benchmark. */
export interface Ask {
  readonly path: string
  readonly body: string
  /** Whether this is the text of the reply, or the arguments of its call. */
  readonly isReply: (text: string) => boolean
}

/** The text that the upstreams answer to a prompt, or for a call, a part of the arguments. */
const isReplyTo = (content: string): Ask["isReply"] => {
  const [, command, rest = ""] = /!(say|count|call \w+) (.*)$/.exec(content) ?? []
  if (command === "count") {
    const counted = Array.from({ length: Number(rest) }, (_, i) => i + 1).join(" ")
    return (text) => text === counted
  }
  const said = rest.startsWith("\"") ? JSON.parse(rest) as string : rest
  // In front of a relay the call is text, in the form that the model writes.
  return command === "say" ? (text) => text === said : (text) => text.includes(rest.slice(1, -1))
}

export const chat = (content: string, stream: boolean, rest: object = {}): Ask => ({
  path: "/v1/chat/completions",
  body: JSON.stringify({ model: "upstream-chat", stream, messages: [{ role: "user", content }], ...rest }),
  isReply: isReplyTo(content)
})

export const messages = (content: string, stream: boolean): Ask => ({
  path: "/v1/messages",
  body: JSON.stringify({
    model: "msgcompat-haiku-4-5",
    max_tokens: 1000,
    stream,
    messages: [{ role: "user", content }]
  }),
  isReply: isReplyTo(content)
})

/** The text of a streamed reply is in its events, and whole in the last ones of its part, its item and its response. */
export const responses = (content: string, stream: boolean): Ask => {
  const isReply = isReplyTo(content)
  return {
    path: "/v1/responses",
    body: JSON.stringify({ model: "upstream-chat", stream, input: [{ type: "message", role: "user", content }] }),
    isReply: (text) => isReply(stream ? text.slice(0, text.length / 4) : text)
  }
}

/** The string values of the fields of a reply, in every style, that have text or arguments. */
const textOf = (reply: string): string => {
  const values = [...reply.matchAll(/"(?:content|text|arguments)":"([^"\\]*(?:\\.[^"\\]*)*)"/g)].map(([, value]) =>
    value
  )
  return JSON.parse(`"${values.join("")}"`) as string
}

/** A reply with the status 200. */
interface Replied {
  /** Milliseconds to the first byte of the body. */
  readonly firstByte: number
  readonly text: {
    /** What the fields with text or arguments say. */
    readonly of: string
    /** The body. */
    readonly whole: string
  }
}

/** Sends a request and checks the reply. Returns the milliseconds to the first byte of the response body. */
export const ask = async (target: Target, what: Ask): Promise<number> => {
  const { firstByte, text } = await reply(target, what)
  if (!what.isReply(text.of)) {
    throw new Error(`${target.name} answers 200 with another reply: ${text.whole.slice(0, 300)}`)
  }
  return firstByte
}

/** Sends a request. */
export const reply = (target: Target, { body, path }: Pick<Ask, "body" | "path">): Promise<Replied> =>
  new Promise((resolve, reject) => {
    const began = performance.now()
    const outgoing = request(`${target.url}${path}`, {
      method: "POST",
      agent,
      headers: {
        authorization: "Bearer bench-key",
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
        ...target.headers
      }
    }, (response) => {
      let firstByte = 0
      const chunks: Array<Buffer> = []
      response.on("data", (chunk: Buffer) => {
        if (firstByte === 0) firstByte = performance.now() - began
        chunks.push(chunk)
      })
      response.on("end", () => {
        const whole = Buffer.concat(chunks).toString()
        if (response.statusCode === 200) resolve({ firstByte, text: { of: textOf(whole), whole } })
        else reject(new Error(`${target.name} answers ${response.statusCode}, ${whole.slice(0, 300)}`))
      })
      response.on("error", reject)
    })
    outgoing.on("error", reject)
    outgoing.end(body)
  })

/** Callers that each send one request after the other, as long as `goesOn` holds or until one fails. */
export const callers = async (
  target: Target,
  what: Ask,
  concurrency: number,
  goesOn: () => boolean,
  onReply: () => void = () => undefined
): Promise<void> => {
  let failed = false
  const caller = async () => {
    while (!failed && goesOn()) {
      await ask(target, what).catch((error: unknown) => {
        failed = true
        throw error
      })
      onReply()
    }
  }
  await Promise.all(Array.from({ length: concurrency }, caller))
}

/** Settings of a gateway: all defaults on, all off, or one on. */
export const variants = ["all off", "records", "captures", "usage", "log", "as shipped"] as const

export type Variant = (typeof variants)[number]

/** The driver of a gateway that is a service, or how one that is mounted in another app's server calls its upstream. */
export type Kind = "session" | "openai" | "responses" | "mounted by undici" | "mounted by client"

const groups = { records: "requests", captures: "captures", usage: "usage" } as const

/** The configuration of a variant. */
const switchedOff = (variant: Variant): object =>
  Object.fromEntries(
    Object.entries(groups).filter(([name]) => variant !== "as shipped" && variant !== name)
      .map(([, group]) => [group, { enabled: false }])
  )

/** Options of Node for a gateway. */
export interface NodeOptions {
  readonly flags?: ReadonlyArray<string>
  /** Runs the sources instead of the bundle. */
  readonly fromSources?: boolean
  /** Receives the output of a gateway without a log. */
  readonly heard?: (line: string) => void
  /** Receives the file of the output of a gateway with a log. */
  readonly logged?: (file: string) => void
  /** Groups of its configuration, in place of the usual ones. */
  readonly config?: object
}

export interface Targets {
  /** A folder that is removed at the end. */
  readonly folder: string
  readonly serverUrl: string
  /** Starts a relay in front of the upstream of a gateway. */
  readonly relay: (kind: Kind) => Promise<Target>
  /** Starts a gateway: the bundle that `scripts/start` runs. */
  readonly gateway: (kind: Kind, variant: Variant, options?: NodeOptions) => Promise<Target>
  /** What has gone over the connections of both upstreams so far. */
  readonly counts: () => Promise<Counts>
}

/** Runs a measurement, and ends all processes that it started. */
export const withTargets = async (measure: (targets: Targets) => Promise<void>): Promise<void> => {
  const folder = mkdtempSync(path.join(tmpdir(), "bench-"))
  try {
    const compiled = { NODE_COMPILE_CACHE: path.join(folder, "compiled") }
    const listens = /listens on http:\/\/[^:]+:(\d+)/
    const bundle = async (): Promise<string> => {
      const file = await bundleInto(folder)
      // Like the first start by `scripts/start`, this one leaves compiled code for later starts.
      const first = await startProcess({
        args: [...nodeFlags, file],
        env: {
          ...compiled,
          PORT: "0",
          GATEWAY_DATA_DIR: path.join(folder, "first"),
          GATEWAY_CONFIG_JSON: JSON.stringify({ keys: ["bench-key"] })
        },
        ready: listens
      })
      await endProcess(first.pid, "SIGTERM")
      return file
    }
    let bundled: Promise<string> | undefined
    moveTo(cores.length > 1 ? cores.slice(1) : cores)
    const upstream = async (ready: RegExp, ...args: ReadonlyArray<string>) => {
      const counting = path.join(import.meta.dirname, "counting.ts")
      const child = spawn(process.execPath, ["--import", counting, ...args], {
        stdio: ["ignore", "pipe", "pipe", "ipc"]
      })
      const { port } = await launch(child, { args, ready })
      return { child, url: `http://127.0.0.1:${port}` }
    }
    const reference = await upstream(/http:\/\/[^:]+:(\d+)/, "src/testing/main.ts", "--port", "0")
    const server = await upstream(/listening (\d+)/, "bench/openaiServer.ts")
    const sessionConfig = {
      accounts: Array.from({ length: 40 }, (_, i) => ({ email: `bench${i}@example.com`, password: "bench" })),
      upstream: { driver: "session", base_url: reference.url }
    }
    const configs: Readonly<Record<Kind, object>> = {
      session: sessionConfig,
      "mounted by undici": sessionConfig,
      "mounted by client": sessionConfig,
      openai: {
        accounts: Array.from({ length: 40 }, (_, i) => ({ token: `sk-bench-${i}` })),
        upstream: { driver: "openai", base_url: `${server.url}/v1` }
      },
      responses: {
        accounts: Array.from({ length: 40 }, (_, i) => ({ token: `sk-bench-${i}` })),
        upstream: { driver: "responses", base_url: `${server.url}/v1` },
        limits: { key_websockets: 20_000 }
      }
    }
    const services: ReadonlySet<Kind> = new Set(["session", "openai", "responses"])
    let started = 0
    const gateway: Targets["gateway"] = async (
      kind,
      variant,
      { config: given, flags = [], fromSources = false, heard, logged: onLog } = {}
    ) => {
      const own = path.join(folder, String(started++))
      const logged = variant === "log" || variant === "as shipped"
      const config = {
        keys: ["bench-key"],
        runtime: { account_max_inflight: 256, account_max_queue: 2000, global_max_inflight: 20_000 },
        ...configs[kind],
        ...switchedOff(variant),
        ...given
      }
      onLog?.(`${own}.log`)
      const isMounted = !services.has(kind)
      // The service sets these options itself; the documents advise them to apps.
      const advised = ["--no-allocation-site-pretenuring", "--no-maglev-destroy-on-background"]
      const program = isMounted
        ? [...advised, "bench/mounted.ts", ...(kind === "mounted by client" ? ["client"] : [])]
        : fromSources
        ? ["src/main.ts"]
        : [...nodeFlags, await (bundled ??= bundle())]
      const { pid, port } = await startProcess({
        args: [...flags, ...program],
        env: {
          ...(fromSources ? {} : { ...compiled, ...nodeVariables }),
          PORT: "0",
          GATEWAY_CONFIG_JSON: JSON.stringify(config),
          GATEWAY_ADMIN_KEY: "bench",
          GATEWAY_DATA_DIR: own,
          ...(logged ? {} : { GATEWAY_LOG_LEVEL: "error" })
        },
        ready: listens,
        ...(logged ? { log: `${own}.log` } : { heard })
      })
      const name = variant === "as shipped" ? "gateway" : `gateway, ${variant}`
      return { name, url: `http://127.0.0.1:${port}${isMounted ? "/ai" : ""}`, pid }
    }
    const relay: Targets["relay"] = async (kind) => {
      const isOverServer = kind === "openai" || kind === "responses"
      const [mode, { url }] = isOverServer ? [kind, server] as const : ["relay", reference] as const
      const { pid, port } = await startProcess({ args: ["bench/relay.ts", mode, url], ready: /listening (\d+)/ })
      return { name: "relay", url: `http://127.0.0.1:${port}`, pid }
    }
    const counts: Targets["counts"] = async () => {
      const both = await Promise.all([reference, server].map(async ({ child }) => {
        const answer = once(child, "message") as Promise<[Counts]>
        child.send("counts")
        return (await answer)[0]
      }))
      return { bytes: both[0]!.bytes + both[1]!.bytes, events: both[0]!.events + both[1]!.events }
    }
    await measure({ folder, serverUrl: server.url, relay, gateway, counts })
  } finally {
    for (const pid of children.keys()) await endProcess(pid)
    agent.destroy()
    moveTo(cores)
    rmSync(folder, { recursive: true })
  }
}
