/** The start script, called from elsewhere: paths are taken from where the caller stands. */
import { afterAll, assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"

const root = path.join(import.meta.dirname, "../..")
const folder = realpathSync(mkdtempSync(path.join(tmpdir(), "start-")))
afterAll(() => rmSync(folder, { recursive: true }))

writeFileSync(path.join(folder, "mine.json"), JSON.stringify({ keys: ["one", "two"] }))
writeFileSync(path.join(folder, "config.json"), JSON.stringify({ keys: ["not", "the", "default"] }))
symlinkSync(path.join(root, "scripts/start"), path.join(folder, "start"))

const run = (cwd: string, script: string, args: ReadonlyArray<string>, env: Record<string, string> = {}) => {
  const { status, stderr, stdout } = spawnSync(script, args, {
    cwd,
    env: { PATH: process.env["PATH"], ...env },
    encoding: "utf8"
  })
  return { status, said: `${stdout}${stderr}` }
}

describe("the start script", () => {
  it("takes a relative path from where the caller stands, in an argument and in the environment", () => {
    for (const script of [path.join(root, "scripts/start"), "./start"]) {
      const asked = run(folder, script, ["check-config", "mine.json"])
      assert.deepStrictEqual([asked.status, /2 keys/.test(asked.said)], [0, true], asked.said)
      const named = run(folder, script, ["check-config"], { GATEWAY_CONFIG_PATH: "mine.json" })
      assert.deepStrictEqual([named.status, /2 keys/.test(named.said)], [0, true], named.said)
    }
  })

  it("has the repository's file where none is named", () => {
    const { said } = run(folder, path.join(root, "scripts/start"), ["check-config"])
    assert.include(said, path.join(root, "config.json"))
    assert.notInclude(said, "3 keys")
  })

  it("says where a file was looked for that is not there", () => {
    const { said, status } = run(folder, path.join(root, "scripts/start"), ["check-config", "missing.json"])
    assert.notStrictEqual(status, 0)
    assert.include(said, path.join(folder, "missing.json"))
  })
})
