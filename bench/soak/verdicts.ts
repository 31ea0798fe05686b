/**
 * The verdicts on the figures of a soak.
 */

/** One line of the table. `bound` is the permitted range of `value` in words. */
export interface Verdict {
  readonly name: string
  readonly value: number
  readonly unit: string
  readonly bound: string
  readonly passed: boolean
}

/** Resources that remain after the load has paused, and the memory then. */
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
  /** Bytes after a collection. */
  readonly heap: number
  readonly rss: number
  readonly descriptors: number
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
export const heapGrowth = (rests: ReadonlyArray<Rest>): { readonly bytes: number; readonly share: number } => {
  const half = rests.slice(Math.floor(rests.length / 2) - (rests.length % 2 === 0 ? 1 : 0))
  const length = half.at(-1)!.at - half[0]!.at
  const bytes = theilSen(half.map(({ at, heap }) => [at, heap])) * length
  return { bytes, share: bytes / median(half.map(({ heap }) => heap)) }
}

/** The median resident memory of the last three rests relative to the three before. The first rest is ignored. */
export const residentRatio = (rests: ReadonlyArray<Rest>): number => {
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
  const left = (name: keyof Rest) => Math.max(...rests.map((rest) => rest[name]))
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

/** The verdicts on memory growth of a longer run. `minutes` is its planned length. */
export const processVerdicts = (
  figures: {
    readonly minutes: number
    readonly rests: ReadonlyArray<Rest>
    readonly first: Instances
    readonly last: Instances
    /** Milliseconds. */
    readonly delay: number
  }
): ReadonlyArray<Verdict> => {
  const { delay, first, last, minutes, rests } = figures
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

/** The verdict on a drain. */
export const drainVerdicts = (
  drain: { readonly streams: number; readonly whole: number; readonly exit: number | string }
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
