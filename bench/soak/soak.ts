/**
 * Runs one soak from start to verdicts.
 */
import { readStream } from "./answers.ts"
import { Changes } from "./changes.ts"
import { at, numberAt } from "./json.ts"
import { Load, type Untrue } from "./load.ts"
import { type Plan, planOf } from "./plan.ts"
import type { Result } from "./report.ts"
import { headersOf } from "./requests.ts"
import { businessKey, mostInFlight, type Site, stableCount, startSite, useOf } from "./site.ts"
import { countVerdicts, drainVerdicts, processVerdicts, type Rest } from "./verdicts.ts"
import { type Sample, Watch } from "./watch.ts"
import { World } from "./world.ts"

/** Options of a soak. */
export interface SoakOptions {
  readonly minutes: number
  readonly seed: string
  readonly clients: number
  /** Ends after this number of requests, and judges counts only. */
  readonly requests: number | undefined
  /** Folder for the processes' files. */
  readonly folder: string
  readonly print: (line: string) => void
  /** Ends the load early. The results so far are judged. */
  readonly ended: AbortSignal
}

const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/** Upper bound of printed characters of an answer. */
const mostShown = 50_000

/** Streams that are open at SIGTERM. */
const drained = 8

/** Sends SIGTERM while streams are open. Returns the number of complete streams and the exit of the process. */
const drain = async (site: Site, print: SoakOptions["print"]) => {
  const count = 30
  const prompt = `!pace 100ms\n!count ${count}`
  const text = Array.from({ length: count }, (_, i) => i + 1).join(" ")
  const streams = Array.from({ length: drained }, () =>
    site.client.send({
      method: "POST",
      path: "/v1/chat/completions",
      headers: headersOf("chat", businessKey),
      body: JSON.stringify({ model: "upstream-chat", stream: true, messages: [{ role: "user", content: prompt }] })
    }))
  // Requests after the signal are refused; the check below reports an earlier refusal.
  const began = performance.now()
  while ((await useOf(site)).upstream < drained && performance.now() - began < 10_000) await pause(20)
  site.inspector.close()
  site.gateway.child.kill("SIGTERM")
  const answers = await Promise.all(streams)
  const whole = answers.filter(({ body, how, requestId, status }) => {
    const answer = readStream("chat", body)
    const isWhole = how === "whole" && answer.ended && answer.error === undefined && answer.text === text
    if (!isWhole) print(`not whole at the end: ${status} (${how}) ${requestId} ${body.slice(-1000)}`)
    return isWhole
  })
  const exit = await Promise.race([site.gateway.ended, pause(30_000).then(() => "still running after 30 s")])
  return { streams: drained, whole: whole.length, exit }
}

/** Accounts with more concurrent streams than the soak allows. */
const limitsExceeded = (report: unknown): number =>
  Object.entries(at(report, "mostAtOnce") ?? {})
    .filter(([account, most]) => account.endsWith("@soak.example") && Number(most) > mostInFlight).length

/** The command that repeats a wrong outcome. */
const repeatOf = (options: SoakOptions, { number, what }: Untrue): string =>
  what === "request"
    ? `npm run soak -- --seed ${options.seed} --clients ${options.clients} --only ${number}`
    : `npm run soak -- --seed ${options.seed} --clients ${options.clients}  (change ${number})`

const printUntrue = (options: SoakOptions) => (untrue: Untrue, plan: Plan | undefined): void => {
  const { at, number, requestId, what, why } = untrue
  options.print(`untrue: ${what} ${number} at ${at.toFixed(1)} s ${requestId}: ${why}`)
  if (plan !== undefined) {
    const { behaviour, credential, kind, model, stream, style, victim } = plan
    const how = JSON.stringify({ style, kind, stream, model, credential, victim, behaviour })
    options.print(`  ${how}\n  ${plan.prompt.slice(0, 400).replaceAll("\n", "\n  ")}`)
  }
  options.print(`  ${repeatOf(options, untrue)}`)
}

/** Runs the request with one number alone, and prints it with its answer. */
export const runOnly = async (options: SoakOptions, number: number): Promise<boolean> => {
  const site = await startSite(options.folder, options.clients)
  try {
    const plan = planOf(options.seed, number)
    const world = new World()
    const load = new Load(site, world, options.seed, () => undefined)
    const { judgement, received } = await load.one(number)
    options.print(JSON.stringify({ ...plan, expected: undefined, prompt: undefined }, undefined, 2))
    const body = received.body.length > mostShown ? `${received.body.slice(0, mostShown)}…` : received.body
    options.print(`\n${plan.prompt}\n\n${received.status} ${received.contentType} (${received.how})\n${body}`)
    options.print(`${judgement.outcome}${judgement.why === undefined ? "" : `: ${judgement.why}`}`)
    return judgement.why === undefined
  } finally {
    await site.stop()
  }
}

/** Runs a soak. */
export const runSoak = async (options: SoakOptions): Promise<Result> => {
  const { clients, minutes, requests, seed } = options
  options.print(`seed ${seed}`)
  const site = await startSite(options.folder, clients)
  try {
    const world = new World()
    const load = new Load(site, world, seed, printUntrue(options))
    const changes = new Changes({
      site,
      world,
      seed,
      clients,
      accounts: stableCount(clients),
      complain: (number, why) => load.untrue("change", number, why)
    })
    const watch = new Watch(site, options.print)
    const samples: Array<Sample> = []
    const rests: Array<Rest> = []
    /** Seconds between rests. */
    const between = minutes > 20 ? 300 : 20

    /** The load with its changes and samples, until `over`. */
    const work = async (over: () => boolean): Promise<void> => {
      await site.inspector.watchDelay()
      let working = true
      const each = async (millis: number, action: () => Promise<void>): Promise<void> => {
        while (working) {
          const next = performance.now() + millis
          await action()
          while (working && performance.now() < next) await pause(Math.min(100, Math.max(1, next - performance.now())))
        }
      }
      const beside = Promise.all([
        each(requests === undefined ? 1000 : 200, () => changes.next()),
        each(1000, async () => {
          samples.push(await watch.sample(load.totals.requests))
        })
      ])
      await load.run(clients, over)
      working = false
      await beside
    }
    const rest = async (): Promise<void> => {
      const found = await watch.rest(requests === undefined)
      rests.push(found)
      options.print(
        `rest at ${
          found.at.toFixed(0)
        } s: ${load.totals.requests} requests, ${load.totals.untrue.length} untrue, heap ` +
          `${(found.heap / 1024 / 1024).toFixed(1)} MB, RSS ${(found.rss / 1024 / 1024).toFixed(0)} MB`
      )
    }

    // Use everything once, so that lazily loaded code is in memory before the first rest.
    const warm = requests === undefined ? 20 * clients : Math.min(requests, clients)
    await work(() => load.started >= warm)
    await rest()
    const first = requests === undefined ? await site.inspector.instances() : new Map<string, number>()
    const began = watch.seconds
    const isOver = (): boolean =>
      options.ended.aborted ||
      (requests === undefined ? watch.seconds - began >= minutes * 60 : load.started >= requests)
    while (!isOver()) {
      const restAt = watch.seconds + between
      await work(() => isOver() || watch.seconds >= restAt)
      await rest()
    }
    const delay = await site.inspector.delay()
    const last = requests === undefined ? await site.inspector.instances() : new Map<string, number>()
    const report = await site.control("report")
    const seconds = watch.seconds
    const ended = await drain(site, options.print)
    const { totals } = load
    const counts = {
      untrue: totals.untrue.length,
      hung: totals.hung,
      internal: totals.internal,
      limitsExceeded: limitsExceeded(report),
      violations: numberAt(report, "violations") ?? Number.NaN
    }
    return {
      seed,
      clients,
      minutes,
      seconds,
      changes: changes.made,
      totals,
      samples,
      rests,
      verdicts: [
        ...countVerdicts(counts, rests),
        ...(requests === undefined ? processVerdicts({ minutes, rests, first, last, delay }) : []),
        ...drainVerdicts(ended)
      ]
    }
  } finally {
    await site.stop()
  }
}
