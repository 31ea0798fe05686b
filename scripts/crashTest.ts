// Kills a process that saves the configuration, two hundred times (or as often as the argument says), and checks that each
// time the file loads and holds every change that was acknowledged.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { emptyConfig, killWhileSaving } from "../test/config/crash/kill.ts"

const rounds = Number(process.argv[2] ?? 200)
const folder = mkdtempSync(join(tmpdir(), "crash-"))
const path = join(folder, "config.json")
let acknowledged = 0
let lost = 0

for (let round = 0; round < rounds; round++) {
  // Each tenth round starts on a new file.
  if (round % 10 === 0) writeFileSync(path, emptyConfig)
  const aftermath = await killWhileSaving(path, Math.random() * 60)
  acknowledged += aftermath.acknowledged
  lost += aftermath.lost.length
  if (aftermath.lost.length > 0) console.error(`Round ${round} lost ${aftermath.lost.join(", ")}`)
}
rmSync(folder, { recursive: true })

console.log(`${rounds} kills, ${acknowledged} acknowledged changes, ${lost} lost`)
process.exitCode = lost === 0 ? 0 : 1
