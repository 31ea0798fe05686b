/**
 * `npm run bench [-- gateway | sieve | pool]`: figures as ratios within one run, never as timed tests.
 */
import { gatewayBench } from "./gateway.ts"

const benches: Readonly<Record<string, () => Promise<void>>> = { gateway: gatewayBench }

const wanted = process.argv.slice(2)
for (const name of wanted.length === 0 ? Object.keys(benches) : wanted) {
  const bench = benches[name]
  if (bench === undefined) {
    process.stderr.write(`There is no benchmark "${name}"; there are ${Object.keys(benches).join(", ")}\n`)
    process.exitCode = 1
    break
  }
  process.stdout.write(`\n## ${name}\n\n`)
  await bench()
}
