/** The commands of docs/nodes.md as pasted, on other ports and with their own configuration. */
import { assert, describe, it } from "@effect/vitest"
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { promisify } from "node:util"
import { keptName } from "../../src/config/keptDocument.ts"
import { freePort } from "../support/redisServer.ts"
import { pageText, snippetsOf } from "../support/snippets.ts"
import { untilHolds } from "../support/until.ts"

const root = path.join(import.meta.dirname, "../..")

const ready = (url: string): Promise<void> =>
  untilHolds(async () => (await fetch(`${url}/readyz`).catch(() => undefined))?.status === 200)

describe("the commands of docs/nodes.md", () => {
  it("start a store and two nodes that act as one gateway", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "readme-nodes-"))
    const ports = { 6379: await freePort(), 5001: await freePort(), 5002: await freePort() }
    const [begin = "", look = ""] = snippetsOf(pageText("docs/nodes.md"), "sh nodes")
      .map(({ text }) =>
        Object.entries(ports).reduce((script, [port, free]) => script.replaceAll(port, String(free)), text)
          .replaceAll(" data", ` ${folder}`)
      )
    const env = {
      PATH: process.env["PATH"],
      GATEWAY_CONFIG_PATH: path.join(folder, "config.json"),
      GATEWAY_DATA_DIR: folder,
      // The store may be slow on a busy test machine.
      GATEWAY_STORE_TIMEOUT_MS: "1500"
    }
    const shell = spawn("sh", ["-euc", `${begin}\nwait`], { cwd: root, env, detached: true, stdio: "ignore" })
    try {
      await Promise.all([ready(`http://127.0.0.1:${ports[5001]}`), ready(`http://127.0.0.1:${ports[5002]}`)])
      const admin = "an-admin-key-of-your-own"
      const { stdout } = await promisify(execFile)("sh", ["-euc", look], { env: { ...env, GATEWAY_ADMIN_KEY: admin } })
      assert.include(stdout, "\"total_keys\":1")
      assert.include(stdout, "\"object\":\"chat.completion\"")
      assert.include(stdout, `"url":"redis://127.0.0.1:${ports[6379]}"`)
      // The change is saved in the store and on the node.
      assert.isTrue(existsSync(path.join(folder, "appendonlydir")))
      assert.isTrue(existsSync(path.join(folder, keptName)))
      assert.lengthOf(stdout.match(/"self":/g) ?? [], 2)
    } finally {
      const ended = once(shell, "exit")
      process.kill(-shell.pid!, "SIGTERM")
      await ended
      await promisify(execFile)("redis-cli", ["-p", String(ports[6379]), "shutdown", "nosave"])
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
