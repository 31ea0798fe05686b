/**
 * The CPU time of a reply from the start of a process on, side by side for several targets.
 */
import type { Scenario } from "./rows.ts"
import { pause } from "./soak/until.ts"
import { type Row, table } from "./table.ts"
import { callers, cpuSeconds, effort, endProcess, type Target, type Targets, treeOf } from "./targets.ts"

/** Seconds of load until the steady state: V8 has compiled what a request runs. */
export const warmUp = 20 * effort

/** Seconds of load of each column: the first ones of a process, the others of the warm-up, and the steady state. */
export const spans = [warmUp / 4, warmUp * 3 / 4, 10 * effort] as const

/** Lets callers ask a target for some seconds, span after span. Returns the CPU time of a reply in each span, in µs, and replies a second. */
export const load = async (
  target: Target,
  { concurrency, what }: Pick<Scenario, "concurrency" | "what">,
  ...spans: ReadonlyArray<number>
): Promise<
  { readonly costs: ReadonlyArray<number>; readonly rates: ReadonlyArray<number>; readonly replies: number }
> => {
  let replies = 0
  let isOver = false
  const costs: Array<number> = []
  const rates: Array<number> = []
  const look = async () => {
    const pids = await treeOf(target.pid)
    return { at: performance.now(), cpu: cpuSeconds(pids), replies }
  }
  const watch = async () => {
    let last = await look()
    for (const seconds of spans) {
      await pause(seconds * 1000)
      const now = await look()
      costs.push((now.cpu - last.cpu) / (now.replies - last.replies) * 1e6)
      rates.push((now.replies - last.replies) / (now.at - last.at) * 1e3)
      last = now
    }
    isOver = true
  }
  await Promise.all([watch(), callers(target, what, concurrency, () => !isOver, () => replies++)])
  return { costs, rates, replies }
}

/** A target and how to start it for a row. */
export interface Starter {
  readonly name: string
  readonly start: (row: Pick<Scenario, "kind">) => Promise<Target>
  /** Whether the run succeeds without it. */
  readonly mayFail?: boolean
}

const measure = async (targets: Targets, row: Scenario, { start }: Starter) => {
  const target = await start(row)
  const { body } = row.what
  const named = target.model === undefined ? body : body.replace(/"model":"[^"]*"/, `"model":"${target.model}"`)
  try {
    const before = await targets.counts()
    const { costs, replies } = await load(target, { ...row, what: { ...row.what, body: named } }, ...spans)
    const after = await targets.counts()
    return { costs, wire: [(after.bytes - before.bytes) / replies, (after.events - before.events) / replies] }
  } finally {
    await endProcess(target.pid)
  }
}

/**
 * Asks new processes of each target for the replies of each row. Prints the CPU time of a reply, its ratio to the target `base`, and what
 * went over the connections to the upstream for a reply: bytes in both directions, and events.
 */
export const compare = async (
  targets: Targets,
  rows: ReadonlyArray<Scenario>,
  starters: ReadonlyArray<Starter>,
  base: string
): Promise<void> => {
  const lines: Array<Row> = []
  const failures = new Map<string, Array<string>>()
  for (const row of rows) {
    const measured = new Map<string, Awaited<ReturnType<typeof measure>>>()
    for (const starter of starters) {
      const name = `${row.name}, ${starter.name}`
      try {
        measured.set(starter.name, await measure(targets, row, starter))
        process.stderr.write(`measured: ${name}\n`)
      } catch (error) {
        if (starter.mayFail !== true) process.exitCode = 1
        const reason = `${starter.name}: ${String(error).replaceAll(/\s+/g, " ").slice(0, 200)}`
        failures.set(reason, [...failures.get(reason) ?? [], row.name])
      }
    }
    const steady = measured.get(base)?.costs.at(-1) ?? Number.NaN
    for (const [name, { costs, wire }] of measured) {
      lines.push([row.name, name, ...costs, costs.at(-1)! / steady, ...wire, name === "gateway" ? row.goal : ""])
    }
  }
  const [first, second] = spans
  const head = [
    "CPU µs a reply",
    "target",
    `first ${first} s`,
    `${first} to ${first + second} s`,
    "steady",
    `÷ ${base}`,
    "bytes",
    "events",
    "goal"
  ]
  process.stdout.write(`${table(head, lines)}\n`)
  for (const [reason, names] of failures) process.stdout.write(`\nNot measured: ${names.join("; ")}. ${reason}\n`)
}
