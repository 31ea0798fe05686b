/** Without a store nothing of it is loaded. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { start } from "../cli/process.ts"
import { redisServer } from "../support/redisServer.ts"

/** What a gateway has printed that was started, announced itself and was asked to stop. */
const printed = async (env: Readonly<Record<string, string>>): Promise<string> => {
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
  await gateway.printed(/listens on/)
  gateway.child.kill("SIGTERM")
  const { stdout } = await gateway.ended
  rmSync(folder, { recursive: true, force: true })
  return stdout
}

describe("the Redis client", () => {
  it("is loaded by a gateway with a store, and by no other", () =>
    Effect.runPromise(Effect.scoped(Effect.gen(function*() {
      const { url } = yield* redisServer()
      const store = { GATEWAY_STORE_URL: url, GATEWAY_ADMIN_KEY: "an-admin-key" }
      const [alone, shared] = yield* Effect.promise(() => Promise.all([printed({}), printed(store)]))
      assert.notInclude(alone, "loaded redis")
      assert.include(shared, "loaded redis")
    }))))
})
