/**
 * The gateway beside a plain relay, in one run: CPU time of the process itself as a ratio, many open streams, time to first
 * byte, memory. Each target is a process of its own, and so is the upstream. Captures, records and history are off: they have
 * rows of their own elsewhere.
 */
import { Agent, request } from "node:http"
import { type Row, table } from "./table.ts"
import { type Ask, ask, chat, cpuSeconds, messages, residentMb, type Target, withTargets } from "./targets.ts"

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

const lookup = {
  type: "function",
  function: { name: "lookup", parameters: { type: "object", properties: { word: { type: "string" } } } }
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
