/**
 * Compares the gateway with a plain relay in one run: ratio of CPU times, many open streams, time to first byte, memory. Every target and
 * the upstream is a separate process. The gateway runs with the default settings (captures, records, usage and log in files), and with
 * all of them off.
 */
import { Agent, request } from "node:http"
import { type Row, table } from "./table.ts"
import {
  type Ask,
  ask,
  chat,
  cpuSeconds,
  type Kind,
  median,
  messages,
  percentile,
  residentMb,
  type Target,
  type Targets,
  type Variant,
  variants,
  withTargets
} from "./targets.ts"

/** Scales all numbers of requests: `BENCH_EFFORT=0.1` checks quickly that the benchmark runs. */
const effort = Number(process.env["BENCH_EFFORT"] ?? 1)

/** Runs `most` requests, `concurrency` at a time. Returns the CPU time of the target's process per request in µs. */
const load = async (target: Target, what: Ask, most: number, concurrency: number): Promise<number> => {
  const count = Math.max(1, Math.round(most * effort))
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

const rounds = Math.max(1, Math.round(5 * effort))

interface Scenario {
  readonly name: string
  readonly kind: Kind
  readonly what: Ask
  readonly warmUp: number
  readonly count: number
  readonly concurrency: number
  /** Ratio of the default gateway to the relay. */
  readonly goal: string
}

const relayOf = (targets: Targets, kind: Kind): Target => kind === "openai" ? targets.serverRelay : targets.sessionRelay

/** CPU time of a reply for each target, the relay first. Targets alternate, so that a change of the machine's speed affects all. */
const compare = async (targets: Targets, scenario: Scenario, asked: ReadonlyArray<Variant>) => {
  const { concurrency, count, kind, warmUp, what } = scenario
  const compared = [relayOf(targets, kind)]
  for (const variant of asked) compared.push(await targets.gateway(kind, variant))
  for (const target of compared) await load(target, what, warmUp, concurrency)
  const costs: Array<ReadonlyArray<number>> = []
  for (let round = 0; round < rounds; round++) {
    const costsNow: Array<number> = []
    for (const target of compared) costsNow.push(await load(target, what, count, concurrency))
    costs.push(costsNow)
  }
  return compared.map((_, i) => ({
    cost: median(costs.map((round) => round[i]!)),
    ratio: median(costs.map((round) => round[i]! / round[0]!))
  }))
}

const later = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))

/** Time limit of such a stream in milliseconds. The upstream prepares all events at once. */
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
  // The first event takes up to one pace, so open this many at once.
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

/** Milliseconds to first byte at a steady request rate. */
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

const whole = { warmUp: 3000, count: 1000, concurrency: 50 }
const streams = { warmUp: 400, count: 200, concurrency: 50 }
const large = { warmUp: 30, count: 30, concurrency: 4 }
const megabyte = "The quick brown fox jumps over the lazy dog. ".repeat(23_300)
const markdown = JSON.stringify(
  "# A list\n\n1. *One* of `them`:\n\n```ts\nconst a = [1, 2]\n```\n\n> said <b>so</b> | **two** | {three}\n\n".repeat(
    20
  )
)
const call = `!call lookup ${JSON.stringify({ word: "long ".repeat(20_000) })}`

const scenarios: ReadonlyArray<Scenario> = [
  { ...whole, kind: "session", name: "chat, whole", what: chat("!say short", false), goal: "1.7" },
  { ...streams, kind: "session", name: "chat, stream of 200", what: chat("!count 200", true), goal: "1.3" },
  {
    ...streams,
    kind: "session",
    name: "chat, stream of 200, tools declared",
    what: chat("!count 200", true, { tools: [lookup] }),
    goal: "1.15 × the row above"
  },
  { ...streams, kind: "session", name: "chat, Markdown", what: chat(`!say ${markdown}`, true), goal: "" },
  {
    ...streams,
    kind: "session",
    name: "chat, Markdown, tools declared",
    what: chat(`!say ${markdown}`, true, { tools: [lookup] }),
    goal: "1.15 × the row above"
  },
  {
    ...large,
    kind: "session",
    name: "chat, 100 kB of arguments in small pieces",
    what: chat(call, true, { tools: [lookup] }),
    goal: "1.2"
  },
  {
    ...large,
    kind: "session",
    name: "1 MB of messages, whole",
    what: chat(`${megabyte}\n!say short`, false),
    goal: "1.5"
  },
  { ...whole, kind: "openai", name: "chat, whole, openai", what: chat("!say short", false), goal: "2.2" },
  { ...streams, kind: "openai", name: "chat, stream of 200, openai", what: chat("!count 200", true), goal: "1.3" },
  { ...whole, kind: "openai", name: "messages, whole, openai", what: messages("!say short", false), goal: "2.3" },
  {
    ...streams,
    kind: "openai",
    name: "messages, stream of 200, openai",
    what: messages("!count 200", true),
    goal: "1.4"
  },
  {
    ...large,
    kind: "openai",
    name: "1 MB of messages, whole, openai",
    what: chat(`${megabyte}\n!say short`, false),
    goal: "1.5"
  },
  { ...whole, kind: "mounted", name: "chat, whole, in another app", what: chat("!say short", false), goal: "1.7" },
  {
    ...streams,
    kind: "mounted",
    name: "chat, stream of 200, in another app",
    what: chat("!count 200", true),
    goal: "1.3"
  },
  {
    ...whole,
    kind: "mounted by client",
    name: "chat, whole, in another app, its HttpClient",
    what: chat("!say short", false),
    goal: ""
  }
]

/** The default settings, and all of them off. */
const both = ["all off", "as shipped"] as const satisfies ReadonlyArray<Variant>

/** Prints the cost of a reply by kind of request. */
export const gatewayBench = (): Promise<void> =>
  withTargets(async (targets) => {
    const rows: Array<Row> = []
    for (const scenario of scenarios) {
      const [relay, off, shipped] = await compare(targets, scenario, both)
      rows.push([scenario.name, relay!.cost, off!.cost, off!.ratio, shipped!.cost, shipped!.ratio, scenario.goal])
    }
    const head = ["CPU µs a reply", "relay", "all off", "÷ relay", "as shipped", "÷ relay", "goal as shipped"]
    process.stdout.write(`${table(head, rows)}\n`)
  })

/** Prints the cost of each default setting for a whole reply. */
export const defaultsBench = (): Promise<void> =>
  withTargets(async (targets) => {
    const head = ["CPU µs a reply", "relay", ...variants.flatMap((name) => [name, "÷ relay"])]
    const rows: Array<Row> = []
    for (
      const scenario of scenarios.filter(({ kind, what }) =>
        (kind === "session" || kind === "openai") && what.body.includes("!say short")
      )
    ) {
      const [relay, ...gateways] = await compare(targets, scenario, variants)
      rows.push([scenario.name, relay!.cost, ...gateways.flatMap(({ cost, ratio }) => [cost, ratio])])
    }
    process.stdout.write(`${table(head, rows)}\n`)
  })

/** The relay, and the gateway with all defaults off and on. */
const sessionTargets = async ({ gateway, sessionRelay }: Targets): Promise<ReadonlyArray<Target>> => [
  sessionRelay,
  ...await Promise.all(both.map((variant) => gateway("session", variant)))
]

/** Prints the cost of open streams: CPU per event, lateness, memory. */
export const streamsBench = (): Promise<void> =>
  withTargets(async (targets) => {
    const paced: Array<Row> = []
    for (
      const [name, count, pace] of [
        ["500 streams at 25 events a second", 500, 40],
        ["5,000 open streams", 5000, 2000]
      ] as const
    ) {
      for (const target of await sessionTargets(targets)) {
        const { cpuPerEvent, kilobytes, late99, opened } = await openStreams(target, count * effort, pace, 5 * effort)
        paced.push([`${name}, ${target.name}`, opened, cpuPerEvent, late99, kilobytes])
      }
    }
    process.stdout.write(`${table(["", "opened", "CPU µs/event", "late p99 ms", "kB/stream"], paced)}\n`)
  })

/** Prints the time to first byte at a steady rate, and the memory after a burst of small replies. */
export const latencyBench = (): Promise<void> =>
  withTargets(async (targets) => {
    const first: Array<Row> = []
    for (const target of await sessionTargets(targets)) {
      await load(target, chat("!say short", true), 3000, 50)
      const { p50, p99 } = await steadily(target, chat("!say short", true), 200, 5 * effort)
      await load(target, chat("!say short", false), 5000, 200)
      first.push([target.name, p50, p99, residentMb(target.pid)])
    }
    const head = ["first byte at 200 requests a second", "p50 ms", "p99 ms", "MB after a burst of 5,000"]
    process.stdout.write(`${table(head, first)}\n`)
  })
