/**
 * The end of a run of all checks and tests: its last line, and the findings that it prints.
 */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import path from "node:path"
import { pathToFileURL } from "node:url"
import { checksNamed, newFindings } from "../../scripts/checks.ts"
import { verdict } from "../../scripts/verdict.ts"

const run = { passed: 7, failed: 0, skipped: 0, failedChecks: [], stopped: undefined }

describe("the verdict of a run", () => {
  it("is green if everything passed", () => {
    assert.strictEqual(verdict(run), "green: 7 passed, 0 failed")
    assert.strictEqual(verdict({ ...run, skipped: 2 }), "green: 7 passed, 0 failed, 2 skipped")
  })

  it("is red for a failed test, a failed check and a run that ended early", () => {
    assert.strictEqual(verdict({ ...run, failed: 1 }), "red: 7 passed, 1 failed")
    assert.strictEqual(verdict({ ...run, failedChecks: ["lint", "types"] }), "red: 7 passed, 2 failed")
    assert.strictEqual(verdict({ ...run, stopped: "by SIGINT" }), "red: 7 passed, 1 failed")
  })

  it.each([
    ["by SIGTERM", 143, "(await import('node:net')).createServer().listen(0); process.kill(process.pid, 'SIGTERM')"],
    ["before the tests", 1, "throw new Error('no')"]
  ])("is the last line of a run that ends early: %s", (why, code, then) => {
    const module = pathToFileURL(path.join(import.meta.dirname, "../../scripts/verdict.ts")).href
    const script = `import { begin } from ${JSON.stringify(module)}; begin(); ${then}`
    const { status, stdout } = spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
      encoding: "utf8"
    })
    assert.strictEqual(stdout, `Stopped ${why} (exit code ${code})\nred: 0 passed, 1 failed\n`)
    assert.strictEqual(status, code)
  })
})

describe("the checks of a run", () => {
  it("are the one that is named, all without a name, and none for an unknown name", () => {
    assert.deepStrictEqual(checksNamed("types"), ["types"])
    assert.includeMembers([...checksNamed("")], ["types", "lint"])
    assert.deepStrictEqual(checksNamed("type"), [])
  })
})

describe("the findings of two checks", () => {
  it("are printed once, with their indented lines", () => {
    const seen = new Set<string>()
    const shared = "a.ts(1,1): error TS1: no\n  because of this"
    assert.strictEqual(newFindings(`${shared}\nb.ts(2,2): error TS2: no`, seen), `${shared}\nb.ts(2,2): error TS2: no`)
    assert.strictEqual(newFindings(`${shared}\nc.ts(3,3): error TS3: no`, seen), "c.ts(3,3): error TS3: no")
  })
})
