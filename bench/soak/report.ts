/**
 * Writes the results of a soak: a Markdown report, the samples, all data as JSON, and a plot.
 */
import { mkdir, writeFile } from "node:fs/promises"
import { arch, cpus, platform } from "node:os"
import path from "node:path"
import { table } from "../table.ts"
import type { Totals } from "./load.ts"
import { plotOf } from "./plot.ts"
import type { Size } from "./site.ts"
import type { Disturbance, Sort } from "./unrest.ts"
import { type Footprint, footprintsOf, type Rest, sumOf, type Verdict } from "./verdicts.ts"
import type { Sample } from "./watch.ts"

/** The results of a soak. */
export interface Result {
  readonly seed: string
  readonly size: Size
  readonly every: Readonly<Record<Sort, number>>
  readonly minutes: number
  readonly seconds: number
  readonly changes: number
  /** The most concurrent streams of an account at the upstream. */
  readonly most: number
  readonly totals: Totals
  readonly disturbances: ReadonlyArray<Disturbance>
  readonly verdicts: ReadonlyArray<Verdict>
  readonly rests: ReadonlyArray<Rest>
  readonly samples: ReadonlyArray<Sample>
}

const mega = 1024 * 1024

/** True if all verdicts are within their bounds. */
export const hasPassed = ({ verdicts }: Pick<Result, "verdicts">): boolean => verdicts.every(({ passed }) => passed)

const verdictTable = ({ verdicts }: Result): string =>
  table(
    ["verdict", "value", "bound", ""],
    verdicts.map(({ bound, name, passed, unit, value }) => [
      name,
      `${Number.isInteger(value) ? value : value.toFixed(2)}${unit === "" ? "" : ` ${unit}`}`,
      bound,
      passed ? "ok" : "FAILED"
    ])
  )

const outcomes = ["whole", "error", "refused", "reset", "left", "untrue", "hung"]

const outcomeTable = (name: string, counts: ReadonlyMap<string, ReadonlyMap<string, number>>): string =>
  table(
    [name, ...outcomes],
    [...counts].toSorted(([a], [b]) => a < b ? -1 : 1).map(([each, byOutcome]) => [
      each,
      ...outcomes.map((outcome) => String(byOutcome.get(outcome) ?? 0))
    ])
  )

const restTable = ({ rests }: Result): string =>
  table(
    ["rest", "settled s", "heap MB", "RSS MB", "descriptors", ...(rests[0]?.store === undefined ? [] : ["store MB"])],
    rests.map(({ at, processes, settled, store }) => [
      `${(at / 60).toFixed(1)} min`,
      settled,
      sumOf(processes, "heap") / mega,
      sumOf(processes, "rss") / mega,
      String(sumOf(processes, "descriptors")),
      ...(store === undefined ? [] : [store / mega])
    ])
  )

const processTable = ({ rests }: Result): string => {
  const change = (from: number, to: number): string => `${(from / mega).toFixed(1)} → ${(to / mega).toFixed(1)}`
  const row = (footprints: ReadonlyArray<Footprint>) => {
    const [first, last] = [footprints[0]!, footprints.at(-1)!]
    return [
      first.name,
      `${(first.at / 60).toFixed(1)}–${(last.at / 60).toFixed(1)}`,
      change(first.heap, last.heap),
      change(first.rss, last.rss),
      `${first.descriptors} → ${last.descriptors}`
    ] as const
  }
  return table(
    ["process", "rests, min", "heap MB", "RSS MB", "descriptors"],
    [...footprintsOf(rests).values()].map(row)
  )
}

/** Seconds with one digit. */
const secondsOf = (millis: number): string => (millis / 1000).toFixed(1)

/** The cells of a disturbance. */
const cellsOf = (each: Disturbance): ReadonlyArray<readonly [name: string, cell: string]> => {
  const {
    allowed,
    arrivals,
    crash,
    from,
    held,
    kind,
    lastRefusal,
    limit,
    lost,
    most,
    over,
    refused,
    resets,
    untrue,
    used,
    whole
  } = each
  const last = lastRefusal === undefined ? "" : secondsOf(lastRefusal - from)
  return [
    ["disturbance", kind],
    ["took s", secondsOf(over - from)],
    ["refused", String(refused)],
    ["last refusal s", last],
    ["after the new primary s", lastRefusal === undefined ? "" : secondsOf(Math.max(0, lastRefusal - over))],
    ["resets", crash === undefined ? String(resets) : `${resets} of ${crash.ports.size}, ${arrivals} new`],
    ["lost responses", String(lost)],
    ["most concurrent", `${most} of ${limit}`],
    ["held streams whole", `${whole} of ${held}`],
    ["limited key", `${used} of ${allowed}`],
    ["untrue", String(untrue)]
  ]
}

/** A disturbance in one line. */
export const shownDisturbance = (each: Disturbance): string =>
  cellsOf(each).map(([name, cell]) => `${name} ${cell}`).join(", ")

const disturbanceTable = ({ disturbances }: Result): string => {
  const rows = disturbances.map(cellsOf)
  return table(
    rows[0]!.map(([name]) => name),
    rows.map(([first, ...rest]) => [first![1], ...rest.map(([, cell]) => cell)])
  )
}

const planOf = ({ every, size }: Result): string => {
  const { clients, nodes, workers } = size
  if (nodes * workers === 1) return `${clients} clients`
  const minutes = (name: string, seconds: number): string =>
    seconds === 0 ? `no ${name}` : `a ${name} every ${seconds / 60} minutes`
  return `${clients} clients, ${nodes} gateways with ${workers} ${
    workers === 1 ? "process" : "workers"
  } each over one store, ` +
    [minutes("failover", every.failover), minutes("replacement of workers", every.roll), minutes("kill -9", every.kill)]
      .join(", ")
}

/** The report as Markdown. */
export const reportOf = (result: Result): string => {
  const { changes, disturbances, most, seconds, seed, totals } = result
  const errors = [...totals.errors].toSorted(([, a], [, b]) => b - a).map(([code, count]) => `${code} ${count}`)
  return [
    `# Soak: ${hasPassed(result) ? "passed" : "FAILED"}`,
    `Seed \`${seed}\`, ${planOf(result)}, ${
      (seconds / 60).toFixed(1)
    } minutes, ${totals.requests} requests, ${changes} ` +
    `changes, ${
      (totals.requests / seconds).toFixed(1)
    } requests/s; Node ${process.version}, ${platform()}-${arch()}, ` +
    `${cpus().length} cores.`,
    verdictTable(result),
    ...(disturbances.length === 0 ? [] : ["## Disturbances", disturbanceTable(result)]),
    "## Rests",
    restTable(result),
    "## Processes",
    processTable(result),
    "## Requests",
    `At most ${most} concurrently of an account at the upstream.`,
    outcomeTable("kind", totals.kinds),
    `Errors that a fault or a change explains: ${errors.join(", ") || "none"}.`,
    "## Faults",
    outcomeTable("fault", totals.faults),
    ...(totals.untrue.length === 0 ? [] : [
      "## Untrue",
      totals.untrue.slice(0, 50).map(({ at, number, requestId, what, why }) =>
        `- ${what} ${number} at ${at.toFixed(1)} s ${requestId}: ${why.replaceAll("\n", "\\n")}`
      ).join("\n")
    ])
  ].join("\n\n") + "\n"
}

const csvOf = (samples: ReadonlyArray<Sample>): string => {
  const names = [
    "at",
    "rss",
    "heap",
    "cpu",
    "descriptors",
    "active",
    "inUse",
    "waiting",
    "upstream",
    "delay",
    "requests"
  ] as const
  const rows = samples.map((sample) => names.map((name) => Number(sample[name].toFixed(3))).join(","))
  return `${[names.join(","), ...rows].join("\n")}\n`
}

const plain = (_: string, value: unknown): unknown => value instanceof Map ? Object.fromEntries(value) : value

/** Writes `report.md`, `samples.csv`, `result.json` and `plot.svg` into a folder. */
export const writeResult = async (folder: string, result: Result): Promise<void> => {
  await mkdir(folder, { recursive: true })
  const { samples, ...rest } = result
  const files = {
    "report.md": reportOf(result),
    "samples.csv": csvOf(samples),
    "result.json": `${JSON.stringify({ passed: hasPassed(result), ...rest }, plain, 2)}\n`,
    "plot.svg": plotOf(samples, result.rests)
  }
  for (const [name, content] of Object.entries(files)) await writeFile(path.join(folder, name), content)
}
