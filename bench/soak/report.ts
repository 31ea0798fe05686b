/**
 * Writes the results of a soak: a Markdown report, the samples, all data as JSON, and a plot.
 */
import { mkdir, writeFile } from "node:fs/promises"
import { arch, cpus, platform } from "node:os"
import path from "node:path"
import { table } from "../table.ts"
import type { Totals } from "./load.ts"
import { plotOf } from "./plot.ts"
import type { Rest, Verdict } from "./verdicts.ts"
import type { Sample } from "./watch.ts"

/** The results of a soak. */
export interface Result {
  readonly seed: string
  readonly clients: number
  readonly minutes: number
  readonly seconds: number
  readonly changes: number
  readonly totals: Totals
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

const outcomes = ["whole", "error", "left", "untrue", "hung"]

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
    ["rest", "settled s", "heap MB", "RSS MB", "descriptors"],
    rests.map(({ at, descriptors, heap, rss, settled }) => [
      `${(at / 60).toFixed(1)} min`,
      settled,
      heap / mega,
      rss / mega,
      String(descriptors)
    ])
  )

/** The report as Markdown. */
export const reportOf = (result: Result): string => {
  const { changes, clients, seconds, seed, totals } = result
  const errors = [...totals.errors].toSorted(([, a], [, b]) => b - a).map(([code, count]) => `${code} ${count}`)
  return [
    `# Soak: ${hasPassed(result) ? "passed" : "FAILED"}`,
    `Seed \`${seed}\`, ${clients} clients, ${
      (seconds / 60).toFixed(1)
    } minutes, ${totals.requests} requests, ${changes} ` +
    `changes, ${
      (totals.requests / seconds).toFixed(1)
    } requests/s; Node ${process.version}, ${platform()}-${arch()}, ` +
    `${cpus().length} cores.`,
    verdictTable(result),
    "## Rests",
    restTable(result),
    "## Requests",
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
