/**
 * Without a store its client is not loaded, and a node still has a name.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import path from "node:path"
import { admin, chat } from "../gateway/support.ts"
import { start } from "../server/cli/process.ts"
import { adminKey, businessKey } from "../support/gateway.ts"
import { redisServer } from "../support/redisServer.ts"
import { untilHolds } from "../support/until.ts"

/** The output of a gateway from its start to its stop. Before its end it prints `last`. */
const printed = async (env: Readonly<Record<string, string>>, last?: RegExp): Promise<string> => {
  const folder = mkdtempSync(path.join(tmpdir(), "without-store-"))
  const gateway = start(
    [],
    {
      PORT: "0",
      GATEWAY_CONFIG_PATH: path.join(folder, "config.json"),
      GATEWAY_DATA_DIR: folder,
      NODE_OPTIONS: `--import=${path.join(import.meta.dirname, "tellLoaded.ts")}`,
      ...env
    },
    folder,
    path.join(import.meta.dirname, "../../src/main.ts")
  )
  const [, url = ""] = await gateway.printed(/listens on (\S+)/)
  // It prints its address before it serves.
  assert.strictEqual((await fetch(`${url}/readyz`)).status, 200)
  gateway.child.kill("SIGTERM")
  if (last !== undefined) {
    await gateway.printed(last)
    gateway.child.kill("SIGTERM")
  }
  const { stdout } = await gateway.ended
  rmSync(folder, { recursive: true, force: true })
  return stdout
}

const serves = /Stopping: serving for 5 s more/

describe("the Redis client, and the notice before a drain", () => {
  it("are only for a gateway with a store", () =>
    Effect.runPromise(Effect.scoped(Effect.gen(function*() {
      const { url } = yield* redisServer()
      const store = { GATEWAY_STORE_URL: url, GATEWAY_ADMIN_KEY: "an-admin-key" }
      const [alone, shared] = yield* Effect.promise(() => Promise.all([printed({}), printed(store, serves)]))
      assert.notInclude(alone, "loaded redis")
      assert.include(shared, "loaded redis")
      // By default only a node that shares a store gives notice before its drain.
      assert.notMatch(alone, serves)
    }))))
})

describe("a node without a store", () => {
  it("has its configured name in log lines, /admin/nodes and exports", async () => {
    const exported: Array<string> = []
    const collector = createServer((request, response) => {
      request.on("data", (chunk: Buffer) => exported.push(chunk.toString()))
      request.on("end", () => response.setHeader("content-type", "application/json").end("{}"))
    })
    await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve))
    const { port } = collector.address() as AddressInfo
    const folder = mkdtempSync(path.join(tmpdir(), "without-store-"))
    const gateway = start([], {
      PORT: "0",
      GATEWAY_ADMIN_KEY: adminKey,
      GATEWAY_CONFIG_JSON: JSON.stringify({ keys: [businessKey] }),
      GATEWAY_DATA_DIR: folder,
      GATEWAY_NODE_ID: "the-name",
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      OTEL_BSP_SCHEDULE_DELAY: "50"
    })
    const [, url = ""] = await gateway.printed(/listens on (http:[^\s"]+)/)
    assert.strictEqual((await admin(url, "GET", "/admin/nodes"))["node"], "the-name")
    assert.strictEqual((await chat(url, "!say one")).status, 200)
    await gateway.printed(/"message":"request"[^\n]*"node":"the-name"/)
    await untilHolds(() => exported.join("").includes("service.instance.id"))
    assert.match(exported.join(""), /"service\.instance\.id","value":\{"stringValue":"the-name"/)
    gateway.child.kill("SIGTERM")
    await gateway.ended
    await new Promise((resolve) => collector.close(resolve))
    rmSync(folder, { recursive: true, force: true })
  })
})
