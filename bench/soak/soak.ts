/**
 * Runs one soak from start to verdicts.
 */
import { readStream } from "./answers.ts"
import { Changes } from "./changes.ts"
import { Disturber } from "./disturb.ts"
import { listAt, numberAt } from "./json.ts"
import { Load, type Untrue } from "./load.ts"
import { type Plan, planOf } from "./plan.ts"
import { type Result, shownDisturbance } from "./report.ts"
import { headersOf } from "./requests.ts"
import { businessKey, mostAtOnce, mostInFlight, type Site, type Size, stableCount, startSite, useOf } from "./site.ts"
import { Schedule, type Sort, Unrest } from "./unrest.ts"
import { pause, until } from "./until.ts"
import {
  countVerdicts,
  drainVerdicts,
  footprintsOf,
  type ProcessFigures,
  processVerdicts,
  type Rest,
  sumOf,
  unrestVerdicts
} from "./verdicts.ts"
import { type Sample, Watch } from "./watch.ts"
import { World } from "./world.ts"

/** Options of a soak. */
export interface SoakOptions {
  readonly minutes: number
  readonly seed: string
  readonly size: Size
  /** The most requests in a second. */
  readonly rate: number
  /** Seconds between the disturbances of each sort; 0 is never. */
  readonly every: Readonly<Record<Sort, number>>
  /** Ends after this number of requests, and judges counts only. */
  readonly requests: number | undefined
  /** Folder for the processes' files. */
  readonly folder: string
  readonly print: (line: string) => void
  /** Ends the load early. The results so far are judged. */
  readonly ended: AbortSignal
}

/** Upper bound of printed characters of an answer. */
const mostShown = 50_000

/** Streams that are open at SIGTERM. */
const drained = 8

/** Sends SIGTERM to all gateways while streams are open. Returns the number of complete streams and the worst exit. */
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
  await until(async () => (await useOf(site)).upstream >= drained, 10_000)
  site.inspectors.close()
  for (const { child } of site.gateways) child.kill("SIGTERM")
  const answers = await Promise.all(streams)
  const whole = answers.filter(({ body, how, requestId, status }) => {
    const answer = readStream("chat", body)
    const isWhole = how === "whole" && answer.ended && answer.error === undefined && answer.text === text
    if (!isWhole) print(`not whole at the end: ${status} (${how}) ${requestId} ${body.slice(-1000)}`)
    return isWhole
  })
  const exits = await Promise.race([
    Promise.all(site.gateways.map(({ ended }) => ended)),
    pause(30_000).then(() => ["still running after 30 s"])
  ])
  return { streams: drained, whole: whole.length, exit: exits.find((exit) => exit !== 0) ?? 0 }
}

/** The command that repeats a wrong outcome. */
const repeatOf = ({ seed, size }: SoakOptions, { number, what }: Untrue): string => {
  const command =
    `npm run soak -- --seed ${seed} --clients ${size.clients} --nodes ${size.nodes} --workers ${size.workers}`
  return what === "request" ? `${command} --only ${number}` : `${command}  (${what} ${number})`
}

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
  const { seed } = options
  const site = await startSite(options.folder, options.size)
  try {
    const plan = planOf(seed, number)
    const load = new Load({ site, world: new World(), unrest: new Unrest(), seed, print: () => undefined })
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
  const { every, minutes, rate, requests, seed, size } = options
  const { clients } = size
  options.print(`seed ${seed}`)
  const site = await startSite(options.folder, size)
  try {
    const world = new World()
    const unrest = new Unrest()
    const load = new Load({ site, world, unrest, seed, print: printUntrue(options) })
    const changes = new Changes({
      site,
      world,
      seed,
      clients,
      accounts: stableCount(clients),
      complain: (number, why) => load.untrue("change", number, why)
    })
    const disturber = new Disturber({
      site,
      unrest,
      complain: (number, why) => load.untrue("disturbance", number, why)
    })
    const schedule = new Schedule(every)
    const watch = new Watch(site, options.print)
    const samples: Array<Sample> = []
    const rests: Array<Rest> = []
    /** Seconds between rests. */
    const between = minutes > 20 ? 300 : 20
    /** When the measured load began. */
    let began = Infinity
    let disturbing = false
    const isOver = (): boolean =>
      options.ended.aborted ||
      (requests === undefined ? watch.seconds - began >= minutes * 60 : load.started >= requests)

    /** Makes what is due: a disturbance, else a change. Changes pause during a disturbance. */
    const changeOrDisturb = async (): Promise<void> => {
      const sort = isOver() ? undefined : schedule.next(watch.seconds - began)
      if (sort === undefined) return await changes.next()
      disturbing = true
      try {
        const disturbance = await disturber.disturb(sort)
        if (disturbance !== undefined) options.print(shownDisturbance(disturbance))
      } finally {
        disturbing = false
      }
    }

    /** The load with its changes and samples, until `over` and the end of a disturbance. */
    const work = async (over: () => boolean): Promise<void> => {
      await site.inspectors.each((inspector) => inspector.watchDelay())
      let working = true
      const each = async (millis: number, action: () => Promise<void>): Promise<void> => {
        while (working) {
          const next = performance.now() + millis
          await action()
          while (working && performance.now() < next) await pause(Math.min(100, Math.max(1, next - performance.now())))
        }
      }
      await Promise.all([
        load.run(clients, rate, () => over() && !disturbing).then(() => {
          working = false
        }),
        each(requests === undefined ? 1000 : 200, changeOrDisturb),
        each(1000, async () => {
          samples.push(await watch.sample(load.totals.requests))
        })
      ])
    }
    const rest = async (): Promise<void> => {
      const found = await watch.rest(requests === undefined)
      rests.push(found)
      options.print(
        `rest at ${
          found.at.toFixed(0)
        } s: ${load.totals.requests} requests, ${load.totals.untrue.length} untrue, heap ` +
          `${(sumOf(found.processes, "heap") / 1024 / 1024).toFixed(1)} MB, RSS ${
            (sumOf(found.processes, "rss") / 1024 / 1024).toFixed(0)
          } MB`
      )
    }
    const instances = async (): Promise<ReadonlyMap<number, ReadonlyMap<string, number>>> =>
      new Map(
        requests === undefined
          ? await site.inspectors.each(async (inspector, { pid }) => [pid, await inspector.instances()] as const)
          : []
      )

    // Use everything once, so that lazily loaded code is in memory before the first rest.
    const warm = requests === undefined ? 20 * clients : Math.min(requests, clients)
    await work(() => load.started >= warm)
    await rest()
    const first = await instances()
    began = watch.seconds
    while (!isOver()) {
      const restAt = watch.seconds + between
      await work(() => isOver() || watch.seconds >= restAt)
      await rest()
    }
    const delays = new Map(
      await site.inspectors.each(async (inspector, { pid }) => [pid, await inspector.delay()] as const)
    )
    const last = await instances()
    const footprints = footprintsOf(rests)
    const processes = [...last].flatMap(([pid, counts]): ReadonlyArray<ProcessFigures> => {
      const before = first.get(pid)
      const own = footprints.get(pid)
      if (before === undefined || own === undefined) return []
      return [{ name: own[0]!.name, rests: own, first: before, last: counts, delay: delays.get(pid) ?? Number.NaN }]
    })
    const most = await mostAtOnce(site)
    const report = await site.control("report")
    const violations = numberAt(report, "violations") ?? Number.NaN
    for (const violation of listAt(report, "latestViolations")) {
      options.print(`protocol violation: ${String(violation)}`)
    }
    const seconds = watch.seconds
    const ended = await drain(site, options.print)
    const { totals } = load
    const counts = {
      untrue: totals.untrue.length,
      hung: totals.hung,
      internal: totals.internal,
      limitsExceeded: most.filter(([, each]) => each > mostInFlight).length,
      violations
    }
    return {
      seed,
      size,
      every,
      minutes,
      seconds,
      changes: changes.made,
      most: Math.max(0, ...most.map(([, each]) => each)),
      totals,
      samples,
      rests,
      disturbances: unrest.all,
      verdicts: [
        ...countVerdicts(counts, rests),
        ...unrestVerdicts(unrest.all),
        ...processVerdicts({ minutes, processes }),
        ...drainVerdicts(ended)
      ]
    }
  } finally {
    await site.stop()
  }
}
