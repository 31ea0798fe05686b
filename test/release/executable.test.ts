/**
 * The single executable of this machine, alone in an empty folder: it prints its version, answers, and serves its pages.
 */
import { afterAll, assert, describe, it } from "@effect/vitest"
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { buildInside, checkExecutable, makeExecutable, tryExecutable } from "../../scripts/release/executables.ts"
import { manifest } from "../../scripts/release/facts.ts"
import { findNode, platforms, runsHere } from "../../scripts/release/nodes.ts"
import { built } from "../support/built.ts"
import { makeAuthority } from "../support/certificates.ts"
import { startOpenAiServer } from "../support/openaiServer.ts"
import { startProxy, startTlsFront } from "../support/proxyServers.ts"

const platform = platforms.find(runsHere)
const node = platform === undefined ? undefined : findNode(platform, undefined)

const folder = mkdtempSync(path.join(tmpdir(), "executable-test-"))
afterAll(() => rmSync(folder, { recursive: true }))

/** Calls an upstream that only an authority of `NODE_EXTRA_CA_CERTS` vouches for, by a SOCKS5 proxy of the environment. */
const trustsFurtherAuthorities = async (file: string): Promise<void> => {
  const authority = makeAuthority()
  const server = await startOpenAiServer()
  const front = await startTlsFront(authority.sign("DNS:upstream.test"), Number(new URL(server.baseUrl).port))
  const proxy = await startProxy({ kind: "socks5" })
  const ca = path.join(folder, "ca.pem")
  writeFileSync(ca, authority.cert)
  const upstream = { driver: "openai", base_url: `https://upstream.test:${front.port}/v1` }
  const config = JSON.stringify({ keys: ["key"], upstream })
  const env = { PORT: "0", GATEWAY_CONFIG_JSON: config, NODE_EXTRA_CA_CERTS: ca, https_proxy: proxy.url }
  const child = spawn(file, { cwd: folder, env })
  const ended = once(child, "exit")
  try {
    let said = ""
    const url = await new Promise<string>((resolve, reject) => {
      child.stderr.on("data", (text: Buffer) => {
        said += text.toString()
        const found = /listens on (http:\/\/\S+)\n/.exec(said)?.[1]
        if (found !== undefined) resolve(found)
      })
      void ended.then(() => reject(new Error(said)))
    })
    const reply = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: "Bearer key" },
      body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "Hi" }] })
    })
    assert.strictEqual(reply.status, 200, await reply.text())
    assert.deepEqual([...new Set(proxy.asked)], [`tunnel upstream.test:${front.port}`])
  } finally {
    child.kill("SIGTERM")
    await ended
    await Promise.all([server.stop(), front.stop(), proxy.stop()])
  }
}

describe.skipIf(platform === undefined || node === undefined || "reason" in node)("the executable", () => {
  it("has the whole service inside", async () => {
    if (platform === undefined || node === undefined || "reason" in node) return assert.fail("no Node")
    const origin = { commit: "0123456789ab", date: "2026-01-02" }
    const inside = await built("executable", () => buildInside(origin, "quick"))
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
    await trustsFurtherAuthorities(file)
  })
})
