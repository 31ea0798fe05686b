/**
 * `npm run bench [-- counts | gateway | defaults | streams | latency | collections | sieve | pool | observability | usage | store | workers]`: prints figures as ratios within one run.
 * `BENCH_EFFORT=0.1` runs a tenth of the requests of `gateway`, `defaults`, `streams`, `latency` and `workers`, to check that they work.
 */
import { collectionsBench } from "./collections.ts"
import { countsBench } from "./counts.ts"
import { defaultsBench, gatewayBench, latencyBench, streamsBench } from "./gateway.ts"
import { observabilityBench } from "./observability.ts"
import { poolBench } from "./pool.ts"
import { sieveBench } from "./sieve.ts"
import { storeBench } from "./store.ts"
import { type Row, table } from "./table.ts"
import { usageBench } from "./usage.ts"
import { workersBench } from "./workers.ts"

const benches: Readonly<Record<string, () => Promise<void>>> = {
  counts: countsBench,
  gateway: gatewayBench,
  defaults: defaultsBench,
  streams: streamsBench,
  latency: latencyBench,
  collections: collectionsBench,
  sieve: () => {
    const rows = sieveBench().map(({ unit, value, what }): Row => [what, value, unit])
    process.stdout.write(`${table(["", "value", "unit"], rows)}\n`)
    return Promise.resolve()
  },
  pool: poolBench,
  observability: observabilityBench,
  usage: usageBench,
  store: storeBench,
  workers: workersBench
}

const wanted = process.argv.slice(2)
const unknown = wanted.find((name) => !Object.hasOwn(benches, name))
if (unknown !== undefined) {
  process.stderr.write(`Unknown benchmark "${unknown}"; the benchmarks are ${Object.keys(benches).join(", ")}\n`)
  process.exitCode = 1
} else {
  for (const name of wanted.length === 0 ? Object.keys(benches) : wanted) {
    process.stdout.write(`\n## ${name}\n\n`)
    await benches[name]!()
  }
}
