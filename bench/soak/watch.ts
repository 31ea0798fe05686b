/**
 * Looks at both processes: a sample each second under the load, and rests.
 */
import { listAt, textAt } from "./json.ts"
import { upstreamKeepAlive } from "./processes.ts"
import { type Site, type Use, useOf } from "./site.ts"
import type { Rest } from "./verdicts.ts"

/** What is seen each second. */
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

/** Milliseconds in which nothing may be left. */
const settleTime = 10_000

const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/** Takes a sample after `cpuBefore` CPU seconds at `before`. */
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

  /** The requests that the upstream is still answering, as far as it remembers. */
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
   * Waits until nothing is left, as long as it may take, then collects garbage and looks. No request may be on its way.
   * `quiet`: waits also for the connections that stay open for a while in case another request comes.
   */
  async rest(quiet: boolean): Promise<Rest> {
    const { client, inspector } = this.site
    await inspector.ignoreDelay()
    client.close()
    const began = performance.now()
    let use = await useOf(this.site)
    let connections = 0
    for (;;) {
      // The question about it is not left by the time that the next one is asked.
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
