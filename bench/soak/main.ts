/**
 * `npm run soak -- [--minutes 2] [--seed S] [--clients 32] [--rate N] [--requests N] [--only NUMBER] [--out bench/out/soak]`: the
 * gateway under a mixed load with faults, aborting clients and changes, where the expected answer of every request is known. Exit code 1 if
 * a verdict is out of bounds. SIGINT ends the load early; a second SIGINT ends the process.
 *
 * `[--nodes 2] [--workers 2] [--failover 5] [--roll 7] [--kill 11]`: several gateways over one store, with workers. Every so many
 * minutes the store fails over, the last gateway replaces its workers, and one of its workers is killed.
 */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { parseArgs } from "node:util"

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "2" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 1_000_000)) },
    clients: { type: "string", default: "32" },
    rate: { type: "string" },
    nodes: { type: "string", default: "1" },
    workers: { type: "string", default: "1" },
    failover: { type: "string" },
    roll: { type: "string" },
    kill: { type: "string" },
    requests: { type: "string" },
    only: { type: "string" },
    out: { type: "string", default: path.join("bench", "out", "soak") }
  }
})

/** The least value of each number, which is a whole one unless it is a time. */
const least = {
  minutes: Number.MIN_VALUE,
  clients: 1,
  rate: Number.MIN_VALUE,
  nodes: 1,
  workers: 1,
  failover: 0,
  roll: 0,
  kill: 0,
  requests: 1,
  only: 0
}
const fractions: ReadonlySet<string> = new Set(["minutes", "rate", "failover", "roll", "kill"])

const refuse = (why: string): never => {
  console.error(why)
  return process.exit(1)
}

const numberOf = (name: keyof typeof least): number | undefined => {
  const text = values[name]
  if (text === undefined) return undefined
  const value = Number(text)
  if (text.trim() !== "" && value >= least[name] && (fractions.has(name) || Number.isInteger(value))) return value
  const range = least[name] === Number.MIN_VALUE ? "above 0" : `of at least ${least[name]}`
  return refuse(`--${name} must be a number ${range}`)
}

const size = {
  clients: numberOf("clients") ?? 32,
  nodes: numberOf("nodes") ?? 1,
  workers: numberOf("workers") ?? 1
}
const every = {
  failover: 60 * (numberOf("failover") ?? 0),
  roll: 60 * (numberOf("roll") ?? 0),
  kill: 60 * (numberOf("kill") ?? 0)
}
if (every.failover > 0 && size.nodes * size.workers === 1) refuse("--failover needs several --nodes or --workers")
if (every.roll + every.kill > 0 && size.workers === 1) refuse("--roll and --kill need several --workers")

const folder = await mkdtemp(path.join(tmpdir(), "model-gateway-soak-"))
const interrupted = new AbortController()
process.once("SIGINT", () => interrupted.abort())
const options = {
  ended: interrupted.signal,
  minutes: numberOf("minutes") ?? 2,
  size,
  rate: numberOf("rate") ?? Infinity,
  every,
  requests: numberOf("requests"),
  seed: values.seed,
  folder,
  print: (line: string) => console.log(line)
}
const only = numberOf("only")

// Loaded for a run alone: an option that is refused is refused soon.
const { hasPassed, reportOf, writeResult } = await import("./report.ts")
const { runOnly, runSoak } = await import("./soak.ts")

try {
  if (only !== undefined) process.exitCode = await runOnly(options, only) ? 0 : 1
  else {
    const result = await runSoak(options)
    await writeResult(values.out, result)
    console.log(`\n${reportOf(result)}`)
    process.exitCode = hasPassed(result) ? 0 : 1
  }
} finally {
  await rm(folder, { recursive: true, force: true })
}
process.exit()
