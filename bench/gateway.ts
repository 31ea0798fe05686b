/**
 * The gateway beside a plain relay and a byte pipe, in one run: throughput, CPU time of the process itself, time to first
 * byte, memory. Each target is a process of its own, and so is the upstream.
 *
 * CPU time is read from the kernel's account of the process (`/proc/PID/stat`), so this runs on Linux.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { Agent, request } from "node:http"
import { createInterface } from "node:readline"
import { type Row, table } from "./table.ts"

interface Target {
  readonly name: string
  readonly url: string
  readonly pid: number
  /** The relay in front of the same upstream: ratios are against it. */
  readonly base: string
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
    stdio: ["ignore", "pipe", "inherit"]
  })
  children.push(child)
  for await (const line of createInterface({ input: child.stdout })) {
    const found = ready.exec(line)
    if (found !== null) {
      child.stdout.resume()
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

const agent = new Agent({ keepAlive: true, maxSockets: 1000 })

interface Answer {
  readonly firstByte: number
  readonly events: number
}

const ask = (target: Target, prompt: string, stream: boolean): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const body = JSON.stringify({ model: "upstream-chat", stream, messages: [{ role: "user", content: prompt }] })
    const began = performance.now()
    const outgoing = request(`${target.url}/v1/chat/completions`, {
      method: "POST",
      agent,
      headers: {
        authorization: "Bearer bench-key",
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body)
      }
    }, (response) => {
      let firstByte = 0
      let events = 0
      response.on("data", (chunk: Buffer) => {
        if (firstByte === 0) firstByte = performance.now() - began
        for (let at = chunk.indexOf("\n\n"); at !== -1; at = chunk.indexOf("\n\n", at + 2)) events++
      })
      response.on("end", () => {
        if (response.statusCode === 200) resolve({ firstByte, events })
        else reject(new Error(`${target.name} answered ${response.statusCode}`))
      })
      response.on("error", reject)
    })
    outgoing.on("error", reject)
    outgoing.end(body)
  })

/** Runs `count` requests, `concurrency` at a time. */
const load = async (target: Target, prompt: string, stream: boolean, count: number, concurrency: number) => {
  let left = count
  let events = 0
  const worker = async () => {
    while (left-- > 0) events += (await ask(target, prompt, stream)).events
  }
  const cpu = cpuSeconds(target.pid)
  const began = performance.now()
  await Promise.all(Array.from({ length: concurrency }, worker))
  const seconds = (performance.now() - began) / 1000
  return { seconds, cpu: cpuSeconds(target.pid) - cpu, events, requests: count }
}

const median = (values: ReadonlyArray<number>): number => values.toSorted((a, b) => a - b)[values.length >> 1]!

interface Figures {
  requestsPerSecond: number
  cpuPerRequest: number
  eventsPerSecond: number
  cpuPerEvent: number
  firstByte: number
  memoryIdle: number
  memoryOpen: number
}

const eventsPerStream = 200

const openStreams = async (target: Target, count: number): Promise<number> => {
  const controllers: Array<() => void> = []
  const opened = Array.from({ length: count }, () =>
    new Promise<void>((resolve, reject) => {
      const body = JSON.stringify({
        model: "upstream-chat",
        stream: true,
        messages: [{ role: "user", content: "!pace 200ms\n!count 1000" }]
      })
      const outgoing = request(`${target.url}/v1/chat/completions`, {
        method: "POST",
        headers: {
          authorization: "Bearer bench-key",
          "content-type": "application/json",
          "content-length": Buffer.byteLength(body)
        }
      }, (response) => {
        response.once("data", () => resolve())
        response.on("data", () => undefined)
        response.on("error", () => undefined)
      })
      controllers.push(() => outgoing.destroy())
      outgoing.on("error", reject)
      outgoing.end(body)
    }))
  await Promise.all(opened)
  await new Promise((resolve) => setTimeout(resolve, 1000))
  const memory = residentMb(target.pid)
  for (const close of controllers) close()
  await new Promise((resolve) => setTimeout(resolve, 500))
  return memory
}

const rounds = 3

const measure = async (targets: ReadonlyArray<Target>): Promise<ReadonlyMap<string, Figures>> => {
  const samples = new Map<string, Array<Figures>>(targets.map((target) => [target.name, []]))
  for (const target of targets) {
    // The optimising compiler is done with a target only after some thousand requests.
    await load(target, "!say short", false, 8000, 50)
    await load(target, `!count ${eventsPerStream}`, true, 1000, 50)
  }
  // Targets take turns within each round, so that a change of the machine's speed meets all of them.
  for (let round = 0; round < rounds; round++) {
    for (const target of targets) {
      const plain = await load(target, "!say short", false, 3000, 50)
      const streamed = await load(target, `!count ${eventsPerStream}`, true, 600, 50)
      const firstBytes: Array<number> = []
      for (let i = 0; i < 100; i++) firstBytes.push((await ask(target, "!say short", true)).firstByte)
      samples.get(target.name)!.push({
        requestsPerSecond: plain.requests / plain.seconds,
        cpuPerRequest: plain.cpu / plain.requests * 1e6,
        eventsPerSecond: streamed.requests * eventsPerStream / streamed.seconds,
        cpuPerEvent: streamed.cpu / (streamed.requests * eventsPerStream) * 1e6,
        firstByte: median(firstBytes),
        memoryIdle: 0,
        memoryOpen: 0
      })
    }
  }
  const figures = new Map<string, Figures>()
  for (const target of targets) {
    const taken = samples.get(target.name)!
    const of = (field: keyof Figures) => median(taken.map((sample) => sample[field]))
    const memoryIdle = residentMb(target.pid)
    figures.set(target.name, {
      requestsPerSecond: of("requestsPerSecond"),
      cpuPerRequest: of("cpuPerRequest"),
      eventsPerSecond: of("eventsPerSecond"),
      cpuPerEvent: of("cpuPerEvent"),
      firstByte: of("firstByte"),
      memoryIdle,
      memoryOpen: await openStreams(target, 500)
    })
  }
  return figures
}

const gatewayTarget = async (
  name: string,
  base: string,
  config: object,
  extraArgs: ReadonlyArray<string> = []
): Promise<Target> => {
  const { pid, port } = await start(
    [...extraArgs, "src/main.ts"],
    { PORT: "0", GATEWAY_CONFIG_JSON: JSON.stringify(config), GATEWAY_ADMIN_KEY: "bench", GATEWAY_LOG_LEVEL: "error" },
    /listens on http:\/\/[^:]+:(\d+)/
  )
  return { name, base, url: `http://127.0.0.1:${port}`, pid }
}

/** Prints the tables. */
export const gatewayBench = async (): Promise<void> => {
  try {
    const upstream = await start(["src/upstream/reference/main.ts", "--port", "0"], {}, /http:\/\/[^:]+:(\d+)/)
    const upstreamUrl = `http://127.0.0.1:${upstream.port}`
    const accounts = [{ email: "bench@example.com", password: "bench" }]
    const shared = {
      keys: ["bench-key"],
      accounts,
      runtime: { account_max_inflight: 256, account_max_queue: 2000, global_max_inflight: 2000 },
      upstream: { driver: "session", base_url: upstreamUrl }
    }
    const many = Array.from({ length: 4 }, (_, i) => ({ email: `bench${i}@example.com`, password: "bench" }))
    const openai = await start(["bench/openaiServer.ts"], {}, /listening (\d+)/)
    const openaiUrl = `http://127.0.0.1:${openai.port}`
    const relayTarget = async (name: string, base: string, mode: string, url: string): Promise<Target> => {
      const { pid, port } = await start(["bench/relay.ts", mode, url], {}, /listening (\d+)/)
      return { name, base, url: `http://127.0.0.1:${port}`, pid }
    }
    const sessionRelay = "node:http relay"
    const openaiRelay = "node:http relay, openai"
    const quiet = { enabled: false }
    const targets: ReadonlyArray<Target> = [
      await relayTarget("byte pipe", sessionRelay, "pipe", upstreamUrl),
      await relayTarget(sessionRelay, sessionRelay, "relay", upstreamUrl),
      await gatewayTarget("gateway, session driver", sessionRelay, { ...shared, accounts: many, captures: quiet }),
      await gatewayTarget("gateway, captures on", sessionRelay, { ...shared, accounts: many }),
      await relayTarget(openaiRelay, openaiRelay, "openai", openaiUrl),
      await gatewayTarget("gateway, openai driver", openaiRelay, {
        ...shared,
        accounts: Array.from({ length: 4 }, (_, i) => ({ token: `sk-bench-${i}` })),
        captures: quiet,
        upstream: { driver: "openai", base_url: `${openaiUrl}/v1` }
      })
    ]
    const figures = await measure(targets)
    const rows = targets.map(({ base: baseName, name }): Row => {
      const of = figures.get(name)!
      const base = figures.get(baseName)!
      return [
        name,
        of.requestsPerSecond,
        of.cpuPerRequest,
        of.cpuPerRequest / base.cpuPerRequest,
        of.eventsPerSecond,
        of.cpuPerEvent,
        of.cpuPerEvent / base.cpuPerEvent,
        of.firstByte,
        of.memoryIdle,
        of.memoryOpen
      ]
    })
    process.stdout.write(`${
      table([
        "",
        "requests/s",
        "CPU µs/request",
        "÷ relay",
        "events/s",
        "CPU µs/event",
        "÷ relay",
        "first byte ms",
        "MB after load",
        "MB at 500 streams"
      ], rows)
    }\n`)
  } finally {
    agent.destroy()
    for (const child of children) {
      child.kill("SIGKILL")
      if (child.exitCode === null) await once(child, "exit")
    }
  }
}
