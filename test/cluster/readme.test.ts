/** The commands of docs/operate/nodes.md, and those of docs/operate/store.md for the store, as pasted on other ports and in a folder of their own. */
import { assert, describe, it } from "@effect/vitest"
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { promisify } from "node:util"
import { keptName } from "../../src/config/sharedDocument.ts"
import { freePort } from "../support/redisServer.ts"
import { service } from "../support/service.ts"
import { pageText, snippetsOf } from "../support/snippets.ts"
import { untilHolds } from "../support/until.ts"

const root = path.join(import.meta.dirname, "../..")

const isReady = async (port: number | undefined): Promise<boolean> =>
  (await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined))?.status === 200

describe("the commands of docs/operate/nodes.md", () => {
  it("start a store that keeps its data, and two nodes that act as one gateway", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "readme-nodes-"))
    const ports: Record<number, number> = { 6379: await freePort(), 5001: await freePort(), 5002: await freePort() }
    const [begin = "", look = ""] = snippetsOf(pageText("docs/operate/nodes.md"), "sh nodes")
      .map(({ text }) =>
        text.replaceAll(/\b(?:6379|5001|5002)\b/g, (port) => String(ports[Number(port)]))
          .replaceAll(" data", ` ${folder}`)
      )
    const env = {
      PATH: process.env["PATH"],
      GATEWAY_CONFIG_PATH: path.join(folder, "config.json"),
      GATEWAY_DATA_DIR: folder,
      // The store may be slow on a busy test machine.
      GATEWAY_STORE_TIMEOUT_MS: "1500"
    }
    const redis = (...args: ReadonlyArray<string>) =>
      promisify(execFile)("redis-cli", ["-p", String(ports[6379]), ...args])
    const log = path.join(folder, "output.log")
    const output = openSync(log, "w")
    // The shell ends when one of the nodes ends, so that a failing start fails the test.
    const script = `${begin.replaceAll(/ &$/gm, () => " || kill $$ &")}\nwait`
    const shell = spawn("sh", ["-euc", script], { cwd: root, env, detached: true, stdio: ["ignore", output, output] })
    let isRunning = true
    const ended = once(shell, "exit").then(() => void (isRunning = false))
    try {
      for (const port of [ports[5001], ports[5002]]) await untilHolds(async () => !isRunning || await isReady(port))
      assert.isTrue(isRunning, readFileSync(log, "utf8"))
      const admin = "an-admin-key-of-your-own"
      const { stdout } = await promisify(execFile)("sh", ["-euc", look], { env: { ...env, GATEWAY_ADMIN_KEY: admin } })
      assert.include(stdout, "\"total_keys\":1")
      assert.include(stdout, "\"object\":\"chat.completion\"")
      assert.include(stdout, `"url":"redis://127.0.0.1:${ports[6379]}"`)
      // A backup is written and restored while the nodes run.
      const recipes = snippetsOf(pageText("docs/operate/store.md"), "sh nodes").map(({ text }) =>
        text.replace("6379", String(ports[6379])).replaceAll("model-gateway", `'${process.execPath}' '${service}'`)
      )
      const store = [`cd '${folder}'`, ...recipes].join("\n")
      const backup = await promisify(execFile)("sh", ["-euc", store], { env: { ...env, GATEWAY_ADMIN_KEY: admin } })
      assert.match(
        backup.stdout,
        /^\S+backup\.sealed: revision \d+ of the shared configuration\n\S+backup\.sealed: in the store as revision \d+\n$/
      )
      // A restart of the store keeps its data: an empty one would have another epoch.
      const epoch = async () => (await redis("get", "gw:{main}:epoch")).stdout
      const before = await epoch()
      await redis("shutdown", "nosave").catch(() => undefined)
      await untilHolds(async () => !await isReady(ports[5001]) && !await isReady(ports[5002]))
      await promisify(execFile)("sh", ["-euc", begin.split("\n")[0]!], { env })
      await untilHolds(async () => await isReady(ports[5001]) && await isReady(ports[5002]))
      assert.strictEqual(await epoch(), before)
      const again = await promisify(execFile)("sh", ["-euc", look], { env: { ...env, GATEWAY_ADMIN_KEY: admin } })
      assert.include(again.stdout, "\"object\":\"chat.completion\"")
      assert.isTrue(existsSync(path.join(folder, keptName)))
      assert.lengthOf(stdout.match(/"self":/g) ?? [], 2)
    } finally {
      closeSync(output)
      try {
        process.kill(-shell.pid!, "SIGKILL")
      } catch {
        // All processes of the group have ended.
      }
      await ended
      await redis("shutdown", "nosave").catch(() => undefined)
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
