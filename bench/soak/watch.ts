/**
 * Observes both processes: samples each second under load, and rests.
 */
import { listAt, textAt } from "./json.ts"
import { upstreamKeepAlive } from "./processes.ts"
import { type Site, type Use, useOf } from "./site.ts"
import type { Rest } from "./verdicts.ts"

/** A sample of one second. */
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

const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/** Takes a sample. `cpuBefore` are the CPU seconds at `before`. */
export class Watch {
  private readonly site: Site
  private readonly began = performance.now()
  private cpu = 0
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
    const { cpu, delay, descriptors, heapUsed, rss } = await this.site.inspector.sample()
    const at = this.seconds
    const share = (cpu - this.cpu) / (at - this.sampled)
    this.cpu = cpu
    this.sampled = at
    return { at, ...use, rss, heap: heapUsed, cpu: share, descriptors, delay, requests }
  }

  /**
   * Waits until nothing is in use, up to a limit, then collects garbage and measures. No request may be running.
   * `quiet`: also waits for idle connections to close.
   */
  async rest(quiet: boolean): Promise<Rest> {
    const { client, inspector } = this.site
    await inspector.ignoreDelay()
    client.close()
    const began = performance.now()
    let use = await useOf(this.site)
    let connections = 0
    for (;;) {
      // The call itself has ended before the next one counts.
      connections = await inspector.connections()
      const left = [use.active, use.inUse, use.waiting, use.upstream, connections].some((each) => each !== 0)
      if (!left || performance.now() - began > settleTime) break
      await pause(100)
      use = await useOf(this.site)
    }
    if (use.upstream !== 0) this.print(`left upstream: ${JSON.stringify(await this.openUpstream())}`)
    const settled = (performance.now() - began) / 1000
    if (quiet) await pause(upstreamKeepAlive + 1000)
    await inspector.collectGarbage()
    await inspector.collectGarbage()
    const { descriptors, heapUsed, rss } = await inspector.sample()
    return { at: this.seconds, settled, ...use, connections, heap: heapUsed, rss, descriptors }
  }
}
