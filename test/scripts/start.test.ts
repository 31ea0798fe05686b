/** The start script, called from another folder: relative paths start at the caller's folder. */
import { afterAll, assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { nodeFlags, nodeVariables } from "../../scripts/nodeFlags.ts"
import { checkout } from "../support/checkout.ts"
import { service } from "../support/service.ts"

const root = checkout()
const folder = realpathSync(mkdtempSync(path.join(tmpdir(), "start-")))
// The sources are those of the repository, and so is the bundle; bundle.test.ts builds it.
cpSync(path.dirname(service), path.join(root, "node_modules/.cache/service"), { recursive: true })
afterAll(() => [root, folder].forEach((each) => rmSync(each, { recursive: true })))

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
  it("runs Node with the options and variables of the other forms of the gateway", () => {
    const script = readFileSync(path.join(root, "scripts/start"), "utf8")
    assert.include(script, `exec "$node" ${nodeFlags.join(" ")} "$service"`)
    for (const [name, value] of Object.entries(nodeVariables)) {
      assert.include(script, `${name}=\${${name}:-${value}}\nexport ${name}\n`)
      for (const file of ["Dockerfile", "model-gateway.service"]) {
        assert.include(
          readFileSync(path.join(import.meta.dirname, "../../packaging", file), "utf8"),
          `${name}=${value}\n`
        )
      }
    }
  })

  it.each([
    [path.join(root, "scripts/start"), ["check-config", "mine.json"], {}],
    [path.join(root, "scripts/start"), ["check-config"], { GATEWAY_CONFIG_PATH: "mine.json" }],
    ["./start", ["check-config", "mine.json"], {}],
    ["./start", ["check-config"], { GATEWAY_CONFIG_PATH: "mine.json" }]
  ])("resolves a relative path from the caller's folder: %s %j %j", (script, args, env) => {
    const { said, status } = run(folder, script, args, env)
    assert.deepStrictEqual([status, /2 keys/.test(said)], [0, true], said)
  })

  it("uses the repository's config.json if no file is named", () => {
    const { said } = run(folder, path.join(root, "scripts/start"), ["check-config"])
    assert.include(said, path.join(root, "config.json"))
    assert.notInclude(said, "3 keys")
  })

  it("names the full path of a missing file", () => {
    const { said, status } = run(folder, path.join(root, "scripts/start"), ["check-config", "missing.json"])
    assert.notStrictEqual(status, 0)
    assert.include(said, path.join(folder, "missing.json"))
  })
})
