/**
 * The gateway beside a plain relay, in one run: CPU time of the process itself as a ratio, many open streams, time to first
 * byte, memory. Each target is a process of its own, and so is the upstream. Captures, records and history are off: they have
 * rows of their own elsewhere.
 *
 * CPU time is read from the kernel's account of the process (`/proc/PID/stat`), so this runs on Linux.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { Agent, request } from "node:http"
import { createInterface } from "node:readline"
import { PassThrough } from "node:stream"
import { type Row, table } from "./table.ts"

interface Target {
  readonly name: string
  readonly url: string
  readonly pid: number
}

const children: Array<ChildProcess> = []

/** Starts a process and waits for the line of its output that matches. */
const start = async (
  args: ReadonlyArray<string>,
  env: Record<string, string>,
  ready: RegExp
): Promise<{ readonly pid: number; readonly port: string }> => {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"]
  })
  children.push(child)
  const said = new PassThrough()
  child.stdout.pipe(said)
  child.stderr.pipe(said)
  for await (const line of createInterface({ input: said })) {
    const found = ready.exec(line)
    if (found !== null) {
      said.resume()
      return { pid: child.pid!, port: found[1]! }
    }
  }
  throw new Error(`${args.join(" ")} ended before it was ready`)
}

const ticksPerSecond = 100

/** CPU seconds of a process so far, user and system. */
const cpuSeconds = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

/** Resident memory of a process in MB. */
const residentMb = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024

let agent: Agent

/** A request of the benchmark. */
interface Ask {
  readonly path: string
  readonly body: string
  readonly stream: boolean
}

const chat = (content: string, stream: boolean, rest: object = {}): Ask => ({
  path: "/v1/chat/completions",
  body: JSON.stringify({ model: "upstream-chat", stream, messages: [{ role: "user", content }], ...rest }),
  stream
})

const messages = (content: string, stream: boolean): Ask => ({
  path: "/v1/messages",
  body: JSON.stringify({
    model: "msgcompat-haiku-4-5",
    max_tokens: 1000,
    stream,
    messages: [{ role: "user", content }]
  }),
  stream
})

const lookup = {
  type: "function",
  function: { name: "lookup", parameters: { type: "object", properties: { word: { type: "string" } } } }
}

/** Sends a request; gives the milliseconds to the first byte of the reply's body. */
const ask = (target: Target, { body, path }: Ask, onData?: (chunk: Buffer) => void): Promise<number> =>
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

/** Runs `count` requests, `concurrency` at a time; gives the CPU time of the target's process for each, in µs. */
const load = async (target: Target, what: Ask, count: number, concurrency: number): Promise<number> => {
  let left = count
  const worker = async () => {
    while (left-- > 0) await ask(target, what)
  }
  const cpu = cpuSeconds(target.pid)
  await Promise.all(Array.from({ length: concurrency }, worker))
  return (cpuSeconds(target.pid) - cpu) / count * 1e6
}

const sorted = (values: ReadonlyArray<number>): ReadonlyArray<number> => values.toSorted((a, b) => a - b)
const median = (values: ReadonlyArray<number>): number => sorted(values)[values.length >> 1]!
const percentile = (values: ReadonlyArray<number>, part: number): number =>
  sorted(values)[Math.min(values.length - 1, Math.floor(values.length * part))]!

const rounds = 5

interface Scenario {
  readonly name: string
  readonly relay: Target
  readonly gateway: Target
  readonly what: Ask
  readonly warmUp: number
  readonly count: number
  readonly concurrency: number
  readonly goal: string
}

/** CPU of both a reply, in turns, so that a change of the machine's speed meets both. */
const compare = async ({ concurrency, count, gateway, relay, warmUp, what }: Scenario) => {
  for (const target of [relay, gateway]) await load(target, what, warmUp, concurrency)
  const relays: Array<number> = []
  const gateways: Array<number> = []
  const ratios: Array<number> = []
  for (let round = 0; round < rounds; round++) {
    const base = await load(relay, what, count, concurrency)
    const own = await load(gateway, what, count, concurrency)
    relays.push(base)
    gateways.push(own)
    ratios.push(own / base)
  }
  return { relay: median(relays), gateway: median(gateways), ratio: median(ratios) }
}

const later = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))

/** How long such a stream lasts at most, in milliseconds: the upstream makes all of its events at once. */
const longest = 120_000

/** Open streams that the upstream feeds slowly: CPU for each event, lateness between two events, memory for each stream. */
const openStreams = async (target: Target, count: number, pace: number, seconds: number) => {
  const before = residentMb(target.pid)
  const outgoings: Array<ReturnType<typeof request>> = []
  const own = new Agent({ maxSockets: Infinity })
  let opened = 0
  let events = 0
  let measuring = false
  const gaps: Array<number> = []
  const { body, path } = chat(`!pace ${pace}ms\n!count ${Math.ceil(longest / pace)}`, true)
  const open = () =>
    new Promise<void>((resolve) => {
      const outgoing = request(`${target.url}${path}`, {
        method: "POST",
        agent: own,
        headers: { authorization: "Bearer bench-key", "content-type": "application/json" }
      }, (response) => {
        let last = 0
        response.once("data", () => {
          if (response.statusCode === 200) opened++
          resolve()
        })
        response.on("data", () => {
          const now = performance.now()
          if (measuring) {
            events++
            if (last !== 0) gaps.push(now - last)
          }
          last = now
        })
        response.on("error", () => undefined)
      })
      outgoings.push(outgoing)
      outgoing.on("error", () => resolve())
      outgoing.end(body)
    })
  // An event may take its pace to come: so many are opened at once.
  const atOnce = 250
  for (let begun = 0; begun < count; begun += atOnce) {
    await Promise.all(Array.from({ length: Math.min(atOnce, count - begun) }, open))
  }
  measuring = true
  const cpu = cpuSeconds(target.pid)
  await later(seconds * 1000)
  measuring = false
  const spent = cpuSeconds(target.pid) - cpu
  const memory = residentMb(target.pid) - before
  for (const outgoing of outgoings) outgoing.destroy()
  own.destroy()
  await later(1000)
  return {
    opened,
    kilobytes: memory * 1024 / count,
    cpuPerEvent: events === 0 ? Number.NaN : spent / events * 1e6,
    late99: gaps.length === 0 ? Number.NaN : percentile(gaps, 0.99) - pace
  }
}

/** Milliseconds to the first byte at a steady rate of requests. */
const steadily = async (target: Target, what: Ask, rate: number, seconds: number) => {
  const asked: Array<Promise<number>> = []
  const began = performance.now()
  for (let i = 0; i < rate * seconds; i++) {
    const wait = began + i * 1000 / rate - performance.now()
    if (wait > 1) await later(wait)
    asked.push(ask(target, what))
  }
  const times = await Promise.all(asked)
  return { p50: percentile(times, 0.5), p99: percentile(times, 0.99) }
}

const gatewayTarget = async (name: string, config: object): Promise<Target> => {
  const { pid, port } = await start(
    ["src/main.ts"],
    { PORT: "0", GATEWAY_CONFIG_JSON: JSON.stringify(config), GATEWAY_ADMIN_KEY: "bench", GATEWAY_LOG_LEVEL: "error" },
    /listens on http:\/\/[^:]+:(\d+)/
  )
  return { name, url: `http://127.0.0.1:${port}`, pid }
}

const relayTarget = async (name: string, mode: string, url: string): Promise<Target> => {
  const { pid, port } = await start(["bench/relay.ts", mode, url], {}, /listening (\d+)/)
  return { name, url: `http://127.0.0.1:${port}`, pid }
}

interface Targets {
  readonly sessionRelay: Target
  readonly session: Target
  readonly serverRelay: Target
  readonly openai: Target
}

/** Runs a measurement against gateways and relays of its own. */
const withTargets = async (measure: (targets: Targets) => Promise<void>): Promise<void> => {
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
    const session = await gatewayTarget("gateway", sessionConfig)
    const serverRelay = await relayTarget("relay", "openai", serverUrl)
    const openai = await gatewayTarget("gateway", {
      ...shared,
      accounts: Array.from({ length: 40 }, (_, i) => ({ token: `sk-bench-${i}` })),
      upstream: { driver: "openai", base_url: `${serverUrl}/v1` }
    })
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

/** Prints what a reply costs, by kinds of requests. */
export const gatewayBench = (): Promise<void> =>
  withTargets(async ({ openai, serverRelay, session, sessionRelay }) => {
    const overSession = { relay: sessionRelay, gateway: session, warmUp: 3000, count: 1000, concurrency: 50 }
    const overServer = { relay: serverRelay, gateway: openai, warmUp: 3000, count: 1000, concurrency: 50 }
    const streams = { warmUp: 400, count: 200 }
    const megabyte = "The quick brown fox jumps over the lazy dog. ".repeat(23_300)
    const scenarios: ReadonlyArray<Scenario> = [
      { ...overSession, name: "chat, whole", what: chat("!say short", false), goal: "1.5" },
      { ...overSession, ...streams, name: "chat, stream of 200", what: chat("!count 200", true), goal: "1.5" },
      {
        ...overSession,
        ...streams,
        name: "chat, stream of 200, tools declared",
        what: chat("!count 200", true, { tools: [lookup] }),
        goal: "1.15 × the row above"
      },
      { ...overServer, name: "chat, whole, openai", what: chat("!say short", false), goal: "" },
      { ...overServer, ...streams, name: "chat, stream of 200, openai", what: chat("!count 200", true), goal: "" },
      { ...overServer, name: "messages, whole, openai", what: messages("!say short", false), goal: "1.7" },
      {
        ...overServer,
        ...streams,
        name: "messages, stream of 200, openai",
        what: messages("!count 200", true),
        goal: "1.5"
      },
      {
        ...overServer,
        warmUp: 30,
        count: 30,
        concurrency: 4,
        name: "1 MB of messages, whole, openai",
        what: chat(`${megabyte}\n!say short`, false),
        goal: "1.5"
      }
    ]
    const rows: Array<Row> = []
    for (const scenario of scenarios) {
      const { gateway, ratio, relay } = await compare(scenario)
      rows.push([scenario.name, relay, gateway, ratio, scenario.goal])
    }
    process.stdout.write(`${table(["CPU µs a reply", "relay", "gateway", "÷ relay", "goal"], rows)}\n`)
  })

/** Prints what open streams cost: CPU an event, lateness, memory. */
export const streamsBench = (): Promise<void> =>
  withTargets(async ({ session, sessionRelay }) => {
    const paced: Array<Row> = []
    for (const target of [sessionRelay, session]) {
      const { cpuPerEvent, kilobytes, late99, opened } = await openStreams(target, 500, 40, 5)
      paced.push([`500 streams at 25 events a second, ${target.name}`, opened, cpuPerEvent, late99, kilobytes])
    }
    for (const target of [sessionRelay, session]) {
      const { cpuPerEvent, kilobytes, late99, opened } = await openStreams(target, 5000, 2000, 5)
      paced.push([`5,000 open streams, ${target.name}`, opened, cpuPerEvent, late99, kilobytes])
    }
    process.stdout.write(`${table(["", "opened", "CPU µs/event", "late p99 ms", "kB/stream"], paced)}\n`)
  })

/** Prints the time to the first byte at a steady rate. */
export const latencyBench = (): Promise<void> =>
  withTargets(async ({ session, sessionRelay }) => {
    const first: Array<Row> = []
    for (const target of [sessionRelay, session]) {
      await load(target, chat("!say short", true), 3000, 50)
      const { p50, p99 } = await steadily(target, chat("!say short", true), 200, 5)
      first.push([`first byte at 200 requests a second, ${target.name}`, p50, p99])
    }
    process.stdout.write(`${table(["", "p50 ms", "p99 ms"], first)}\n`)
  })
