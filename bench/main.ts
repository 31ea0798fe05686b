/**
 * `npm run bench [-- BENCH [ROW …] …]`: prints figures as ratios within one run. A word that is the name of no bench chooses rows of the bench
 * before it: those whose names contain it. Without a bench, all run except those that must be named.
 */
import { billsBench } from "./bills.ts"
import { collectionsBench } from "./collections.ts"
import { consoleBench } from "./console.ts"
import { countsBench } from "./counts.ts"
import { deoptsBench } from "./deopts.ts"
import { defaultsBench, gatewayBench, latencyBench, streamsBench } from "./gateway.ts"
import { observabilityBench } from "./observability.ts"
import { peersBench } from "./peers.ts"
import { poolBench } from "./pool.ts"
import { profileBench } from "./profile.ts"
import { rows, type Scenario } from "./rows.ts"
import { sieveBench } from "./sieve.ts"
import { storeBench } from "./store.ts"
import { type Row, table } from "./table.ts"
import { usageBench } from "./usage.ts"
import { websocketsBench } from "./websockets.ts"
import { workersBench } from "./workers.ts"

interface Bench {
  readonly run: (rows: ReadonlyArray<Scenario>) => Promise<void>
  /** The rows to choose from. */
  readonly rows?: ReadonlyArray<Scenario>
  /** Whether it runs only if it is named. */
  readonly isNamed?: boolean
}

const overOpenai = rows.filter(({ kind }) => kind === "openai")

const benches: Readonly<Record<string, Bench>> = {
  counts: { run: countsBench },
  gateway: { run: gatewayBench, rows },
  defaults: { run: defaultsBench, rows: rows.filter(({ name }) => /^chat, whole, (?:session|openai)$/.test(name)) },
  peers: { run: peersBench, rows: overOpenai, isNamed: true },
  deopts: { run: deoptsBench, rows, isNamed: true },
  profile: { run: profileBench, rows, isNamed: true },
  streams: { run: streamsBench },
  latency: { run: latencyBench },
  websockets: { run: websocketsBench },
  collections: { run: collectionsBench },
  sieve: {
    run: () => {
      const rows = sieveBench().map(({ unit, value, what }): Row => [what, value, unit])
      process.stdout.write(`${table(["", "value", "unit"], rows)}\n`)
      return Promise.resolve()
    }
  },
  pool: { run: poolBench },
  observability: { run: observabilityBench },
  bills: { run: billsBench },
  usage: { run: usageBench },
  console: { run: consoleBench },
  store: { run: storeBench },
  workers: { run: workersBench }
}

/** The benches that the arguments name, with their rows. Throws with what may be named instead. */
const wanted = (
  words: ReadonlyArray<string>
): ReadonlyArray<readonly [name: string, rows: ReadonlyArray<Scenario>]> => {
  const chosen: Array<[name: string, filters: Array<string>]> = []
  for (const word of words) {
    if (Object.hasOwn(benches, word)) chosen.push([word, []])
    else if (chosen.length > 0) chosen.at(-1)![1].push(word)
    else throw new Error(`There is no bench "${word}". The benches are ${Object.keys(benches).join(", ")}.`)
  }
  return chosen.map(([name, filters]) => {
    const { rows = [] } = benches[name]!
    const matching = rows.filter((row) => filters.length === 0 || filters.some((filter) => row.name.includes(filter)))
    if (filters.length === 0 || matching.length > 0) return [name, matching]
    const names = rows.map((row) => `\n  ${row.name}`)
    throw new Error(
      `The bench ${name} has no row "${filters.join("\", \"")}". Its rows are:${names.join("") || " none"}`
    )
  })
}

const run = async (): Promise<void> => {
  const words = process.argv.slice(2)
  const usual = Object.keys(benches).filter((name) => benches[name]!.isNamed !== true)
  for (const [name, rows] of wanted(words.length === 0 ? usual : words)) {
    process.stdout.write(`\n## ${name}\n\n`)
    await benches[name]!.run(rows)
  }
}

await run().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
