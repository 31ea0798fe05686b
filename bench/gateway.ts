/**
 * Compares the gateway with a plain relay: CPU time of a reply, many open streams, time to first byte, memory. Every target and the
 * upstream is a separate process. The gateway runs as shipped: with the default settings (captures, records, usage and log in files).
 */
import { Agent, request } from "node:http"
import { compare, load, type Starter, warmUp } from "./compare.ts"
import type { Scenario } from "./rows.ts"
import { pause } from "./soak/until.ts"
import { type Row, table } from "./table.ts"
import {
  type Ask,
  ask,
  callers,
  chat,
  cpuSeconds,
  effort,
  endProcess,
  percentile,
  residentMb,
  type Target,
  type Targets,
  type Variant,
  variants,
  withTargets
} from "./targets.ts"

/** The relay, and gateways. */
export const startersOf = ({ gateway, relay }: Targets, asked: ReadonlyArray<Variant>): ReadonlyArray<Starter> => [
  { name: "relay", start: ({ kind }) => relay(kind) },
  ...asked.map((variant): Starter => ({
    name: variant === "as shipped" ? "gateway" : variant,
    start: ({ kind }) => gateway(kind, variant)
  }))
]

/** Prints the cost of a reply by kind of request. */
export const gatewayBench = (rows: ReadonlyArray<Scenario>): Promise<void> =>
  withTargets((targets) => compare(targets, rows, startersOf(targets, ["as shipped"]), "relay"))

/** Prints the cost of each default setting. */
export const defaultsBench = (rows: ReadonlyArray<Scenario>): Promise<void> =>
  withTargets((targets) => compare(targets, rows, startersOf(targets, variants), "relay"))

/** Time limit of such a stream in milliseconds. The upstream prepares all events together. */
const longest = 120_000

/** Slow open streams: CPU per event, lateness between events, memory per stream. */
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
  // The first event takes up to one pace, so open this many concurrently.
  const atOnce = 250
  for (let begun = 0; begun < count; begun += atOnce) {
    await Promise.all(Array.from({ length: Math.min(atOnce, count - begun) }, open))
  }
  measuring = true
  const cpu = cpuSeconds([target.pid])
  await pause(seconds * 1000)
  measuring = false
  const spent = cpuSeconds([target.pid]) - cpu
  const memory = residentMb(target.pid) - before
  for (const outgoing of outgoings) outgoing.destroy()
  own.destroy()
  await pause(1000)
  return {
    opened,
    kilobytes: memory * 1024 / count,
    cpuPerEvent: events === 0 ? Number.NaN : spent / events * 1e6,
    late99: gaps.length === 0 ? Number.NaN : percentile(gaps, 0.99) - pace
  }
}

/** Milliseconds to first byte at a steady request rate. */
export const steadily = async (target: Target, what: Ask, rate: number, seconds: number) => {
  const asked: Array<Promise<number>> = []
  const began = performance.now()
  for (let i = 0; i < rate * seconds; i++) {
    const wait = began + i * 1000 / rate - performance.now()
    if (wait > 1) await pause(wait)
    asked.push(ask(target, what))
  }
  const times = await Promise.all(asked)
  return { p50: percentile(times, 0.5), p99: percentile(times, 0.99) }
}

/** Measures the relay and gateways over the session protocol, each in a new process. */
const each = async (
  targets: Targets,
  measure: (target: Target) => Promise<ReadonlyArray<number>>
): Promise<ReadonlyArray<Row>> => {
  const lines: Array<Row> = []
  for (const { name, start } of startersOf(targets, ["all off", "as shipped"])) {
    const target = await start({ kind: "session" })
    lines.push([name, ...await measure(target)])
    await endProcess(target.pid)
  }
  return lines
}

/** Prints the cost of open streams: CPU per event in the steady state, lateness, memory of a new process. */
export const streamsBench = (): Promise<void> =>
  withTargets(async (targets) => {
    const lines: Array<Row> = []
    for (
      const [name, count, pace, isWarm] of [
        ["500 streams at 25 events a second", 500, 40, true],
        ["5,000 open streams", 5000, 2000, false]
      ] as const
    ) {
      const measured = await each(targets, async (target) => {
        if (isWarm) await load(target, { what: chat("!count 200", true), concurrency: 50 }, warmUp)
        const { cpuPerEvent, kilobytes, late99, opened } = await openStreams(target, count * effort, pace, 5 * effort)
        return [opened, cpuPerEvent, late99, kilobytes]
      })
      for (const [target, ...cells] of measured) lines.push([`${name}, ${target}`, ...cells])
    }
    process.stdout.write(`${table(["", "opened", "CPU µs/event", "late p99 ms", "kB/stream"], lines)}\n`)
  })

/** Prints the memory of a new process after a burst of small replies, and the time to first byte at a steady rate once it is warm. */
export const latencyBench = (): Promise<void> =>
  withTargets(async (targets) => {
    const lines = await each(targets, async (target) => {
      let left = 5000 * effort
      await callers(target, chat("!say short", false), 200, () => left-- > 0)
      const resident = residentMb(target.pid)
      const what = chat("!say short", true)
      await load(target, { what, concurrency: 50 }, warmUp)
      const { p50, p99 } = await steadily(target, what, 200, 5 * effort)
      return [p50, p99, resident]
    })
    const head = ["first byte at 200 requests a second", "p50 ms", "p99 ms", "MB after a burst of 5,000"]
    process.stdout.write(`${table(head, lines)}\n`)
  })
