/**
 * `npm run soak -- [--minutes 2] [--seed S] [--clients 32] [--requests N] [--only NUMBER] [--out bench/out/soak]`: the
 * gateway under a mixed load with faults, aborting clients and changes, where the expected answer of every request is known. Exit code 1 if
 * a verdict is out of bounds. SIGINT ends the load early; a second SIGINT ends the process.
 */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { parseArgs } from "node:util"
import { hasPassed, reportOf, writeResult } from "./report.ts"
import { runOnly, runSoak } from "./soak.ts"

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "2" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 1_000_000)) },
    clients: { type: "string", default: "32" },
    requests: { type: "string" },
    only: { type: "string" },
    out: { type: "string", default: path.join("bench", "out", "soak") }
  }
})

const numberOf = (name: "minutes" | "clients" | "requests" | "only"): number | undefined => {
  const text = values[name]
  if (text === undefined) return undefined
  const value = Number(text)
  const least = name === "only" ? 0 : name === "minutes" ? Number.MIN_VALUE : 1
  if (text.trim() !== "" && value >= least && (name === "minutes" || Number.isInteger(value))) return value
  console.error(`--${name} must be a number of at least ${name === "only" ? 0 : 1}`)
  return process.exit(1)
}

const folder = await mkdtemp(path.join(tmpdir(), "model-gateway-soak-"))
const interrupted = new AbortController()
process.once("SIGINT", () => interrupted.abort())
const options = {
  ended: interrupted.signal,
  minutes: numberOf("minutes") ?? 2,
  clients: numberOf("clients") ?? 32,
  requests: numberOf("requests"),
  seed: values.seed,
  folder,
  print: (line: string) => console.log(line)
}
const only = numberOf("only")

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
