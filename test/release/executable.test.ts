/**
 * The single executable of this machine, alone in an empty folder: it prints its version, answers, and serves its pages.
 */
import { afterAll, assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { buildInside, checkExecutable, makeExecutable, tryExecutable } from "../../scripts/release/executables.ts"
import { manifest } from "../../scripts/release/facts.ts"
import { findNode, platforms, runsHere } from "../../scripts/release/nodes.ts"

const platform = platforms.find(runsHere)
const node = platform === undefined ? undefined : findNode(platform, undefined)

const folder = mkdtempSync(path.join(tmpdir(), "executable-test-"))
afterAll(() => rmSync(folder, { recursive: true }))

describe.skipIf(platform === undefined || node === undefined || "reason" in node)("the executable", () => {
  it("has the whole service inside", async () => {
    if (platform === undefined || node === undefined || "reason" in node) return assert.fail("no Node")
    const inside = await buildInside({ commit: "0123456789ab", date: "2026-01-02" }, "quick")
    const bytes = await makeExecutable(platform, node.program, "the notices\n", inside)
    assert.throws(() => checkExecutable(node.program, platform, inside), /no mark inside/)
    const other = platforms.find(({ machine }) => machine.cpu !== platform.machine.cpu)!
    assert.throws(() => checkExecutable(bytes, other, inside), /not for this machine/)

    const file = path.join(folder, "model-gateway")
    writeFileSync(file, bytes)
    chmodSync(file, 0o755)
    await tryExecutable(file, manifest.version)

    // Called by its bare name with an empty environment.
    const run = (...args: ReadonlyArray<string>) =>
      spawnSync(file, args, { cwd: folder, env: {}, argv0: "gateway", encoding: "utf8" })
    assert.match(run("--version").stdout, /\(commit 0123456789ab, built 2026-01-02, node v.*, executable\)\n$/)
    assert.strictEqual(run("licenses").stdout, "the notices\n")
    const { status, stderr } = run("health", "--url", "http://127.0.0.1:1")
    assert.deepEqual([status, stderr], [1, "http://127.0.0.1:1/readyz cannot be reached (ECONNREFUSED)\n"])
  })
})
