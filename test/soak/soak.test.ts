/** A short soak with a fixed seed: the command itself, with its processes, and its output. */
import { afterAll, assert, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"

const root = path.join(import.meta.dirname, "../..")
const out = mkdtempSync(path.join(tmpdir(), "soak-test-"))
afterAll(() => rmSync(out, { recursive: true }))

const soak = (...args: ReadonlyArray<string>): Promise<{ readonly code: number; readonly said: string }> =>
  new Promise((resolve) => {
    const main = path.join(root, "bench/soak/main.ts")
    execFile(process.execPath, [main, ...args], { cwd: root, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), said: stdout + stderr })
    })
  })

describe("npm run soak", () => {
  it("passes a short run, and writes its result, report, samples and plot", async () => {
    const { code, said } = await soak("--requests", "150", "--seed", "suite", "--clients", "8", "--out", out)
    assert.strictEqual(code, 0, said)
    assert.match(said, /^seed suite\n/)
    const result = JSON.parse(readFileSync(path.join(out, "result.json"), "utf8"))
    assert.deepInclude(result, { passed: true, seed: "suite", size: { clients: 8, nodes: 1, workers: 1 } })
    assert.isAtLeast(result.totals.requests, 150)
    assert.isAbove(result.changes, 0)
    assert.match(readFileSync(path.join(out, "report.md"), "utf8"), /^# Soak: passed\n/)
    assert.match(readFileSync(path.join(out, "samples.csv"), "utf8"), /^at,rss,heap,cpu,.*\n\d/)
    assert.match(readFileSync(path.join(out, "plot.svg"), "utf8"), /^<svg [^]*<polyline/)
  })

  it("rejects an invalid option with the expected value", async () => {
    const { code, said } = await soak("--clients", "none")
    assert.deepStrictEqual([code, said], [1, "--clients must be a number of at least 1\n"])
  })

  it("rejects a failover without a store", async () => {
    const { code, said } = await soak("--failover", "5")
    assert.deepStrictEqual([code, said], [1, "--failover needs several --nodes or --workers\n"])
  })
})
