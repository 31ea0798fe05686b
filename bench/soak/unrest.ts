/**
 * The disturbances of a soak: failovers of the store, replacements and crashes of workers. Each explains some outcomes of the requests
 * of its time, and counts them.
 */
import type { Received } from "./client.ts"

/** What happens: a failover of the store, a replacement of all workers one by one, or a crash of a worker. */
export type Sort = "failover" | "roll" | "kill"

/** Milliseconds after a failover in which requests may still be refused. */
export const refusalTime = 3000

/** Milliseconds before a failover whose writes the new primary may lack. */
const lossTime = 1000

/** Milliseconds after a crash in which its connections end. */
const resetTime = 2000

/** Milliseconds after a crash in which its parent may still accept connections for the worker. */
const arrivalTime = 500

/** A crash of a worker. */
export interface Crash {
  /** The number of its gateway. */
  readonly node: number
  /** The worker is stopped at this time, and killed afterwards. Milliseconds. */
  readonly stopped: number
  readonly killed: number
  /** The clients' ports of its connections. */
  readonly ports: ReadonlySet<number>
}

/** One disturbance, with what it has caused. Times are milliseconds of the same clock. */
export interface Disturbance {
  readonly sort: Sort
  readonly kind: string
  readonly from: number
  /** When a majority names the new primary and it answers, or all workers are there again. Infinity until then. */
  over: number
  crash: Crash | undefined
  /** Requests that the gateway refused because of the store. */
  refused: number
  /** When the last one was refused. */
  lastRefusal: number | undefined
  /** Connections that a crash ended, and those that arrived for the worker afterwards. */
  resets: number
  arrivals: number
  /** Stored responses that were written in the lost time. */
  lost: number
  /** Wrong outcomes. */
  untrue: number
  /** The most concurrent requests of one account at the upstream, and their limit. */
  most: number
  limit: number
  /** Streams that were open at its beginning, and those that ended whole. */
  held: number
  whole: number
  /** Requests with a limited key that succeeded, and their limit. */
  used: number
  allowed: number
}

const isFailover = ({ sort }: Disturbance): boolean => sort === "failover"

/** Whether the gateway refused a request because of its store. */
export const isRefusal = ({ body }: Pick<Received, "body">): boolean =>
  body.includes("\"store_unavailable\"") || body.includes("shared store does not answer")

/** When a request was refused: with its head, or later in a stream. */
export const refusedAt = ({ answered, ended, status }: Pick<Received, "answered" | "ended" | "status">): number =>
  status === 200 ? ended : answered

export class Unrest {
  readonly all: Array<Disturbance> = []

  begin(sort: Sort, kind: string, from: number): Disturbance {
    const disturbance: Disturbance = {
      sort,
      kind,
      from,
      over: Infinity,
      crash: undefined,
      refused: 0,
      lastRefusal: undefined,
      resets: 0,
      arrivals: 0,
      lost: 0,
      untrue: 0,
      most: 0,
      limit: 0,
      held: 0,
      whole: 0,
      used: 0,
      allowed: 0
    }
    this.all.push(disturbance)
    return disturbance
  }

  /** The disturbance that includes a time, with the time in which refusals may follow. */
  during(time: number): Disturbance | undefined {
    return this.all.findLast(({ from, over }) => from <= time && time <= over + refusalTime)
  }

  /** The failover that explains a refusal at this time. */
  refusing(time: number): Disturbance | undefined {
    const disturbance = this.during(time)
    return disturbance !== undefined && isFailover(disturbance) ? disturbance : undefined
  }

  /** The failover that may have lost what was written at this time. */
  losing(time: number): Disturbance | undefined {
    return this.all.findLast((each) =>
      isFailover(each) && each.from - lossTime <= time && time <= each.over + refusalTime
    )
  }

  /** The crash that ended the connection of a request. */
  resetting({ began, ended, how, node, port }: Received): Disturbance | undefined {
    if (how !== "broken") return undefined
    return this.all.findLast(({ crash }) =>
      crash !== undefined && crash.node === node && crash.stopped <= ended && ended <= crash.killed + resetTime &&
      // A connection that arrives after the count is not among the ports.
      (crash.ports.has(port) || (crash.stopped <= began && began <= crash.killed + arrivalTime))
    )
  }

  /** Counts a reset: of a connection of the worker, or of one that arrived for it afterwards. */
  reset(disturbance: Disturbance, port: number): void {
    if (disturbance.crash?.ports.has(port) === true) disturbance.resets++
    else disturbance.arrivals++
  }

  refuse(disturbance: Disturbance, time: number): void {
    disturbance.refused++
    disturbance.lastRefusal = Math.max(disturbance.lastRefusal ?? 0, time)
  }
}

/** What is due, and how often. */
export class Schedule {
  private readonly entries: Array<{ readonly sort: Sort; readonly every: number; due: number }>

  /** `every` are seconds; 0 and `undefined` are never. */
  constructor(every: Readonly<Partial<Record<Sort, number>>>) {
    const sorts: ReadonlyArray<Sort> = ["failover", "roll", "kill"]
    this.entries = sorts.flatMap((sort) => {
      const seconds = every[sort] ?? 0
      return seconds > 0 ? [{ sort, every: seconds, due: seconds }] : []
    })
  }

  /** Takes what is due longest. */
  next(seconds: number): Sort | undefined {
    const entry = this.entries.filter(({ due }) => due <= seconds).toSorted((a, b) => a.due - b.due)[0]
    if (entry === undefined) return undefined
    entry.due += entry.every
    return entry.sort
  }
}
