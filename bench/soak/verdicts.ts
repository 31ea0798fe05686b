/**
 * The verdicts on the figures of a soak.
 */

import { type Disturbance, refusalTime, type Sort } from "./unrest.ts"

/** One line of the table. `bound` is the permitted range of `value` in words. */
export interface Verdict {
  readonly name: string
  readonly value: number
  readonly unit: string
  readonly bound: string
  readonly passed: boolean
}

/** The memory and descriptors of a process after a collection, at a rest. */
export interface Footprint {
  /** Seconds since the start. */
  readonly at: number
  readonly name: string
  readonly pid: number
  /** Bytes. */
  readonly heap: number
  readonly rss: number
  readonly descriptors: number
}

/** Resources that remain after the load has paused. */
export interface Rest {
  /** Seconds since the start. */
  readonly at: number
  /** Seconds until nothing remained, or until the wait was given up. */
  readonly settled: number
  readonly inUse: number
  readonly waiting: number
  readonly active: number
  readonly upstream: number
  readonly connections: number
  /** The processes at that time. */
  readonly processes: ReadonlyArray<Footprint>
  /** Bytes of the store's data. */
  readonly store: number | undefined
}

/** The sum of a field. */
export const sumOf = <Name extends string>(all: ReadonlyArray<Readonly<Record<Name, number>>>, name: Name): number =>
  all.reduce((sum, each) => sum + each[name], 0)

/** The footprints of each process, by its number. */
export const footprintsOf = (
  rests: ReadonlyArray<Pick<Rest, "processes">>
): ReadonlyMap<number, ReadonlyArray<Footprint>> => {
  const all = new Map<number, Array<Footprint>>()
  for (const { processes } of rests) {
    for (const footprint of processes) all.set(footprint.pid, [...all.get(footprint.pid) ?? [], footprint])
  }
  return all
}

const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** The median of the slopes between all pairs of points, which is robust against outliers. 0 for fewer than two points. */
export const theilSen = (points: ReadonlyArray<readonly [x: number, y: number]>): number => {
  const slopes = points.flatMap(([x, y], i) =>
    points.slice(i + 1).filter((other) => other[0] !== x).map((other) => (other[1] - y) / (other[0] - x))
  )
  return slopes.length === 0 ? 0 : median(slopes)
}

const mega = 1024 * 1024

/** Growth of the heap in bytes over the second half of the rests, by their slope. */
export const heapGrowth = (
  rests: ReadonlyArray<Pick<Footprint, "at" | "heap">>
): { readonly bytes: number; readonly share: number } => {
  const half = rests.slice(Math.floor(rests.length / 2) - (rests.length % 2 === 0 ? 1 : 0))
  const length = half.at(-1)!.at - half[0]!.at
  const bytes = theilSen(half.map(({ at, heap }) => [at, heap])) * length
  return { bytes, share: bytes / median(half.map(({ heap }) => heap)) }
}

/** The median resident memory of the last three rests relative to the three before. The first rest is ignored. */
export const residentRatio = (rests: ReadonlyArray<Pick<Footprint, "rss">>): number => {
  const rss = rests.slice(1).map((rest) => rest.rss)
  const size = Math.min(3, rss.length >> 1)
  return size === 0 ? 1 : median(rss.slice(-size)) / median(rss.slice(-2 * size, -size))
}

const atMost = (name: string, value: number, most: number, unit = ""): Verdict => ({
  name,
  value,
  unit,
  bound: `≤ ${most}`,
  passed: value <= most
})

/** The counts of a soak. */
export interface Counts {
  readonly untrue: number
  readonly hung: number
  readonly internal: number
  readonly limitsExceeded: number
  readonly violations: number
}

/** The verdicts on answers and on remaining resources. */
export const countVerdicts = (counts: Counts, rests: ReadonlyArray<Rest>): ReadonlyArray<Verdict> => {
  const left = (name: "inUse" | "waiting" | "active" | "upstream" | "connections") =>
    Math.max(...rests.map((rest) => rest[name]))
  return [
    atMost("wrong answers and changes", counts.untrue, 0),
    atMost("hung requests", counts.hung, 0),
    atMost("status 500", counts.internal, 0),
    atMost("accounts above their limit upstream", counts.limitsExceeded, 0),
    atMost("protocol violations", counts.violations, 0),
    atMost("left at a rest: in_use", left("inUse"), 0),
    atMost("left at a rest: waiting", left("waiting"), 0),
    atMost("in use at a rest: active requests", left("active"), 0),
    atMost("in use at a rest: upstream calls", left("upstream"), 0),
    atMost("in use at a rest: client connections", left("connections"), 0)
  ]
}

/** The classes whose instances are counted, by description. */
const classes: Readonly<Record<string, ReadonlyArray<string>>> = {
  fibers: ["FiberImpl"],
  sockets: ["Socket", "TLSSocket"],
  requests: ["IncomingMessage", "ClientRequest", "Request"],
  replies: ["ServerResponse"],
  timers: ["Timeout"]
}

type Instances = ReadonlyMap<string, number>

const instancesOf = (counts: Instances, names: ReadonlyArray<string>): number =>
  names.reduce((sum, name) => sum + (counts.get(name) ?? 0), 0)

/** The figures of a process that runs from the first rest to the last. */
export interface ProcessFigures {
  readonly name: string
  readonly rests: ReadonlyArray<Footprint>
  readonly first: Instances
  readonly last: Instances
  /** Milliseconds. */
  readonly delay: number
}

/** The verdicts on one process. `minutes` is the planned length of the run. */
const verdictsOfProcess = (minutes: number, figures: ProcessFigures): ReadonlyArray<Verdict> => {
  const { delay, first, last, rests } = figures
  const growth = heapGrowth(rests)
  const [megabytes, percent] = minutes > 20 ? [3, 3] : [5, 10]
  return [
    {
      name: "heap after GC, growth over the second half",
      value: growth.bytes / mega,
      unit: "MB",
      bound: `≤ ${megabytes} MB or ${percent} % (${(growth.share * 100).toFixed(1)} %)`,
      passed: growth.bytes / mega <= megabytes || growth.share * 100 <= percent
    },
    atMost("RSS, last 3 rests ÷ 3 before", residentRatio(rests), 1.25),
    ...Object.entries(classes).map(([name, names]) =>
      atMost(`${name} more than at the first rest`, instancesOf(last, names) - instancesOf(first, names), 16)
    ),
    atMost("descriptors more than at the first rest", rests.at(-1)!.descriptors - rests[0]!.descriptors, 4),
    atMost("loop delay p99 under load", delay, 100, "ms")
  ]
}

/** The verdicts on the processes of a longer run: of each one the worst. */
export const processVerdicts = (
  { minutes, processes }: { readonly minutes: number; readonly processes: ReadonlyArray<ProcessFigures> }
): ReadonlyArray<Verdict> => {
  const all = processes.map((figures) =>
    verdictsOfProcess(minutes, figures).map((verdict) =>
      processes.length === 1 ? verdict : { ...verdict, name: `${verdict.name}: ${figures.name}` }
    )
  )
  return (all[0] ?? []).map((_, i) =>
    all.map((verdicts) => verdicts[i]!)
      .toSorted((a, b) => Number(a.passed) - Number(b.passed) || b.value - a.value)[0]!
  )
}

/** The verdicts on the disturbances. */
export const unrestVerdicts = (disturbances: ReadonlyArray<Disturbance>): ReadonlyArray<Verdict> => {
  const of = (sort: Sort) => disturbances.filter((each) => each.sort === sort)
  const over = disturbances.map(({ limit, most }) => most - limit)
  const late = of("failover").map(({ lastRefusal, over }) => Math.max(0, (lastRefusal ?? over) - over) / 1000)
  return [
    ...(over.length === 0 ? [] : [
      atMost("disturbances: an account's streams above its limit", Math.max(0, ...over), 0),
      atMost(
        "disturbances: open streams that did not end whole",
        sumOf(disturbances, "held") - sumOf(disturbances, "whole"),
        0
      ),
      atMost(
        "disturbances: uses of a limited key above its limit",
        Math.max(0, ...disturbances.map(({ allowed, used }) => used - allowed)),
        0
      )
    ]),
    ...(late.length === 0 ? [] : [
      atMost("failovers: last refusal after the new primary", Math.max(...late), refusalTime / 1000, "s")
    ]),
    ...(of("roll").length === 0 ? [] : [
      atMost("replacements: failed requests", sumOf(of("roll"), "untrue") + sumOf(of("roll"), "refused"), 0)
    ])
  ]
}

/** The verdict on a drain. */
export const drainVerdicts = (
  drain: {
    readonly streams: number
    readonly whole: number
    /** Of the gateway that ended worst. */
    readonly exit: number | string
  }
): ReadonlyArray<Verdict> => [
  {
    name: "SIGTERM: streams that end whole",
    value: drain.whole,
    unit: "",
    bound: `= ${drain.streams}`,
    passed: drain.whole === drain.streams
  },
  {
    name: "SIGTERM: exit code",
    value: typeof drain.exit === "number" ? drain.exit : Number.NaN,
    unit: typeof drain.exit === "number" ? "" : drain.exit,
    bound: "= 0",
    passed: drain.exit === 0
  }
]
