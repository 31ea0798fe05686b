/**
 * Optimizations that V8 makes of a gateway's functions and loses again: by function and reason, while it warms up and afterwards. A lost one
 * costs its compilation, and the slower code until the next one. Most are lost because objects of one kind come in several shapes.
 */
import { readFileSync } from "node:fs"
import type { Scenario } from "./rows.ts"
import { type Row, table } from "./table.ts"
import { callers, effort, endProcess, withTargets } from "./targets.ts"

/** Requests after which a gateway should lose no optimization, and those that are counted then. */
const warmUp = 20_000 * effort
const counted = 10_000 * effort

/** The functions that the tables show. */
const shown = 10

/** A lost optimization as `--trace-deopt` prints it. */
const lost =
  /^\[bailout \(kind: [^,]+, reason: (.+?)\): begin\. deoptimizing 0x\w+ <JSFunction (.*?)(?: \(sfi = 0x\w+\))?>, (?:.*?<Code (\w+)>)?/

/** A finished optimization as `--trace-opt` prints it. */
const made = /^\[completed (?:optimizing|compiling) 0x\w+ <JSFunction (.*?)(?: \(sfi = 0x\w+\))?> \(target (\w+)\)/

/** The lost and the made optimizations of a part of the trace. */
const read = (trace: string) => {
  const lines = trace.split("\n")
  const losses = lines.flatMap((line) => {
    const [, reason, name] = lost.exec(line) ?? []
    return reason === undefined ? [] : [`${name || "(anonymous)"}: ${reason}`]
  })
  return { losses, made: lines.filter((line) => made.test(line)).length }
}

const counts = (names: ReadonlyArray<string>): ReadonlyArray<Row> =>
  [...Map.groupBy(names, (name) => name)].map(([name, all]): Row => [name, all.length])
    .toSorted(([, a], [, b]) => Number(b) - Number(a)).slice(0, shown)

/** Prints the lost optimizations of a gateway under a mix of its rows, and the functions and reasons with the most. */
export const deoptsBench = (rows: ReadonlyArray<Scenario>): Promise<void> =>
  withTargets(async ({ gateway }) => {
    for (const [kind, mix] of Map.groupBy(rows, ({ kind }) => kind)) {
      let log = ""
      const flags = ["--trace-opt", "--trace-deopt"]
      const logged = (file: string) => {
        log = file
      }
      const target = await gateway(kind, "as shipped", { flags, fromSources: true, logged })
      const load = async (requests: number) => {
        const from = readFileSync(log, "utf8").length
        let left = requests
        await Promise.all(mix.map(({ concurrency, what }) => callers(target, what, concurrency, () => left-- > 0)))
        return read(readFileSync(log, "utf8").slice(from))
      }
      const first = await load(warmUp)
      const steady = await load(counted)
      await endProcess(target.pid, "SIGTERM")
      process.stdout.write(`${
        table([mix.map(({ name }) => name).join("; "), "made", "lost"], [
          [`first ${warmUp} requests`, first.made, first.losses.length],
          [`next ${counted} requests`, steady.made, steady.losses.length]
        ])
      }\n\n`)
      process.stdout.write(`${table(["lost while it warms up", "times"], counts(first.losses))}\n\n`)
      process.stdout.write(`${table(["lost afterwards", "times"], counts(steady.losses))}\n\n`)
    }
  })
