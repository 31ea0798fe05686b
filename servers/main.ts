/**
 * `npm run test:servers [-- SERVER …] [--check NAME …] [--driver NAME …]`: checks the gateway in front of real servers, which it installs into a
 * cache outside of the repository. It writes the rows of those in `docs/servers/tested.md` whose checks all ran. `--record`, before the names of
 * servers, writes the lists of models that they have in place of that.
 */
import { type CheckName, checkNames, checkServer, type Result } from "./checks.ts"
import { prepareModels, realServers } from "./realServers.ts"
import { recordLists } from "./record.ts"
import { rowOf, writeRows } from "./report.ts"
import { versionOf } from "./versions.ts"

/** Server names, and the values of the options. */
const parse = (words: ReadonlyArray<string>) => {
  const chosen: Record<"" | "--check" | "--driver", Array<string>> = { "": [], "--check": [], "--driver": [] }
  let option: keyof typeof chosen = ""
  for (const word of words) {
    if (word === "--check" || word === "--driver") option = word
    else chosen[option].push(word)
  }
  return { servers: chosen[""], checks: chosen["--check"], drivers: chosen["--driver"] }
}

const print = (line: string) => void process.stdout.write(`${line}\n`)

const words = process.argv.slice(2)
if (words[0] === "--record") {
  prepareModels()
  await recordLists(words.slice(1))
  process.exit()
}
const { checks, drivers, servers } = parse(words)
const wanted = new Set<CheckName>(checks.length === 0 ? checkNames : checkNames.filter((name) => checks.includes(name)))
prepareModels()
let faults = 0
let passed = 0
for (const [name, launch] of Object.entries(realServers)) {
  if (servers.length > 0 && !servers.includes(name)) continue
  try {
    const server = await launch()
    for (const driver of server.drivers) {
      if (drivers.length > 0 && !drivers.includes(driver)) continue
      const results: Array<Result> = []
      await checkServer(server, driver, wanted, (result) => {
        results.push(result)
        if (result.fault === undefined) passed++
        else faults++
        const sign = result.fault !== undefined ? "FAULT" : result.lacks !== undefined ? "lacks" : "ok   "
        print(
          `${sign} ${name}, ${driver}, ${result.check}${
            result.api === undefined ? "" : `, ${result.api}`
          }: ${result.title}`
        )
        const why = result.fault ?? result.lacks
        if (why !== undefined) print(`      ${why}`)
      })
      if (checks.length === 0) writeRows([rowOf(server.name, versionOf(server.name), driver, results)])
    }
    await server.stop()
  } catch (error) {
    faults++
    print(`${name} did not run: ${String(error)}`)
  }
}
print(`${passed} passed, ${faults} failed`)
process.exitCode = faults === 0 ? 0 : 1
