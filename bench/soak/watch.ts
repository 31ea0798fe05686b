/**
 * Observes all processes: samples each second under load, and rests.
 */
import { listAt, textAt } from "./json.ts"
import { upstreamKeepAlive } from "./processes.ts"
import { type Site, type Use, useOf } from "./site.ts"
import { pause } from "./until.ts"
import { type Footprint, type Rest, sumOf } from "./verdicts.ts"

/** A sample of one second: sums of all processes, and the longest delay. */
export interface Sample extends Use {
  /** Seconds since the start. */
  readonly at: number
  /** Bytes. */
  readonly rss: number
  readonly heap: number
  /** Share of one core. */
  readonly cpu: number
  readonly descriptors: number
  /** Milliseconds. */
  readonly delay: number
  /** Requests so far. */
  readonly requests: number
}

/** Milliseconds after which no resource may remain in use. */
const settleTime = 10_000

export class Watch {
  private readonly site: Site
  private readonly began = performance.now()
  /** CPU seconds by process, at the last sample. */
  private cpu: ReadonlyMap<number, number> = new Map()
  private sampled = 0
  private readonly print: (line: string) => void

  constructor(site: Site, print: (line: string) => void) {
    this.site = site
    this.print = print
  }

  /** The requests that the upstream is still answering, within its memory. */
  private async openUpstream(): Promise<ReadonlyArray<unknown>> {
    const requests = listAt(await this.site.control("report"), "requests")
    return requests.filter((request) => textAt(request, "outcome") === "open")
  }

  /** Seconds since the start. */
  get seconds(): number {
    return (performance.now() - this.began) / 1000
  }

  async sample(requests: number): Promise<Sample> {
    const use = await useOf(this.site)
    const processes = await this.site.inspectors.each(async (inspector, { pid }) => ({
      pid,
      ...await inspector.sample()
    }))
    const at = this.seconds
    const spent = processes.reduce((sum, { cpu, pid }) => sum + cpu - (this.cpu.get(pid) ?? 0), 0)
    const share = spent / (at - this.sampled)
    this.cpu = new Map(processes.map(({ cpu, pid }) => [pid, cpu]))
    this.sampled = at
    return {
      at,
      ...use,
      rss: sumOf(processes, "rss"),
      heap: sumOf(processes, "heapUsed"),
      cpu: share,
      descriptors: sumOf(processes, "descriptors"),
      delay: Math.max(0, ...processes.map(({ delay }) => delay)),
      requests
    }
  }

  /**
   * Waits until nothing is in use, up to a limit, then collects garbage and measures. No request may be running.
   * `quiet`: also waits for idle connections to close.
   */
  async rest(quiet: boolean): Promise<Rest> {
    const { client, inspectors, store } = this.site
    await inspectors.each((inspector) => inspector.ignoreDelay())
    client.close()
    const began = performance.now()
    let use = await useOf(this.site)
    let connections = 0
    for (;;) {
      // The call itself has ended before the next one counts.
      connections = (await inspectors.each((inspector) => inspector.connections())).reduce((sum, each) => sum + each, 0)
      const left = [use.active, use.inUse, use.waiting, use.upstream, connections].some((each) => each !== 0)
      if (!left || performance.now() - began > settleTime) break
      await pause(100)
      use = await useOf(this.site)
    }
    if (use.upstream !== 0) this.print(`left upstream: ${JSON.stringify(await this.openUpstream())}`)
    const settled = (performance.now() - began) / 1000
    if (quiet) await pause(upstreamKeepAlive + 1000)
    const at = this.seconds
    const processes = await inspectors.each(async (inspector, { name, pid }): Promise<Footprint> => {
      await inspector.collectGarbage()
      await inspector.collectGarbage()
      const { descriptors, heapUsed, rss } = await inspector.sample()
      return { at, name, pid, heap: heapUsed, rss, descriptors }
    })
    return { at, settled, ...use, connections, processes, store: await store?.memory() }
  }
}
