// Kills a process while it saves the configuration, 200 times (or as often as the argument says). After each kill the file must load
// and contain every acknowledged change.
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
  // Every tenth round starts with a new file.
  if (round % 10 === 0) writeFileSync(path, emptyConfig)
  const aftermath = await killWhileSaving(path, Math.random() * 60)
  acknowledged += aftermath.acknowledged
  lost += aftermath.lost.length
  if (aftermath.lost.length > 0) console.error(`Round ${round} lost ${aftermath.lost.join(", ")}`)
}
rmSync(folder, { recursive: true })

console.log(`${rounds} kills, ${acknowledged} acknowledged changes, ${lost} lost`)
process.exitCode = lost === 0 ? 0 : 1
