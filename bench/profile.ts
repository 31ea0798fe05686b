/**
 * Where the CPU time of a gateway goes in the steady state: by folder of the sources and by package, and by function.
 */
import { mkdirSync, readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { load, warmUp } from "./compare.ts"
import type { Scenario } from "./rows.ts"
import { type Row, table } from "./table.ts"
import { effort, endProcess, withTargets } from "./targets.ts"

/** V8's profile of a process. Times are monotonic, in µs. */
interface Profile {
  readonly nodes: ReadonlyArray<{
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  }>
  readonly startTime: number
  readonly samples: ReadonlyArray<number>
  readonly timeDeltas: ReadonlyArray<number>
}

const root = path.join(import.meta.dirname, "..")

/** The place of a function, and its file and line within it. */
const placeOf = (functionName: string, url: string, line: number): readonly [place: string, where: string] => {
  if (functionName === "(garbage collector)") return ["garbage collection", ""]
  if (url.startsWith("node:")) return ["node", `${url}:${line}`]
  // Functions that were compiled from text have a line and no file.
  if (!url.startsWith("file:")) return line > 0 && url === "" ? ["generated", ""] : ["native", url]
  const file = fileURLToPath(url)
  const [, inPackage, name] = /.*[\\/]node_modules[\\/](((?:@[^\\/]+[\\/])?[^\\/]+).*)/.exec(file) ?? []
  const own = path.relative(root, file)
  return name === undefined ? [own.split(path.sep)[1]!, `${own}:${line}`] : [name, `${inPackage}:${line}`]
}

const nowMicros = (): number => Number(process.hrtime.bigint() / 1000n)

/** The functions that the table shows. */
const shown = 25

/** Prints the self time by place and by function. */
export const profileBench = (rows: ReadonlyArray<Scenario>): Promise<void> =>
  withTargets(async ({ folder, gateway }) => {
    for (const [i, row] of rows.entries()) {
      const own = path.join(folder, `profile-${i}`)
      mkdirSync(own)
      const flags = ["--cpu-prof", `--cpu-prof-dir=${own}`, "--cpu-prof-interval=500"]
      const target = await gateway(row.kind, "as shipped", { flags, fromSources: true })
      await load(target, row, warmUp)
      const from = nowMicros()
      await load(target, row, 10 * effort)
      const to = nowMicros()
      await endProcess(target.pid, "SIGTERM")
      const [file] = readdirSync(own)
      const { nodes, samples, startTime, timeDeltas } = JSON.parse(
        readFileSync(path.join(own, file!), "utf8")
      ) as Profile
      const frames = new Map(nodes.map(({ callFrame, id }) => [id, callFrame]))
      const places = new Map<string, number>()
      const functions = new Map<string, number>()
      let time = startTime
      let all = 0
      for (const [i, node] of samples.entries()) {
        const spent = timeDeltas[i]!
        time += spent
        const { functionName, lineNumber, url } = frames.get(node)!
        if (time < from || time > to || functionName === "(idle)") continue
        const [place, where] = placeOf(functionName, url, lineNumber + 1)
        const name = `${functionName || "(anonymous)"} ${where}`
        all += spent
        places.set(place, (places.get(place) ?? 0) + spent)
        functions.set(name, (functions.get(name) ?? 0) + spent)
      }
      const percents = (times: ReadonlyMap<string, number>): ReadonlyArray<Row> =>
        [...times].toSorted(([, a], [, b]) => b - a).map(([name, spent]) => [name, spent / all * 100])
      process.stdout.write(`${table([row.name, "% self time"], percents(places))}\n\n`)
      process.stdout.write(`${table(["function", "% self time"], percents(functions).slice(0, shown))}\n\n`)
    }
  })
