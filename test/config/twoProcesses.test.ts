/**
 * Several gateways with one configuration file: no acknowledged change of one is lost by another.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import { spawnSync } from "node:child_process"
import { hostname } from "node:os"
import { isJsonObject } from "../../src/config/json.ts"
import { addKey, configFile, NodeServices, readJson, startStore } from "./support.ts"

const keysIn = (path: string) =>
  Effect.map(readJson(path), (raw) => isJsonObject(raw) && Array.isArray(raw["keys"]) ? raw["keys"] : [])

describe("two configuration stores on one file", () => {
  it.live("keep every key that either of them adds, in any order", () =>
    Effect.gen(function*() {
      const path = yield* configFile({ keys: [] })
      const stores = [
        yield* startStore({ GATEWAY_CONFIG_PATH: path }),
        yield* startStore({ GATEWAY_CONFIG_PATH: path })
      ]
      const each = Array.from({ length: 10 }, (_, n) => n)
      yield* Effect.all(
        stores.map((store, which) =>
          Effect.forEach(each, (n) => addKey(store, `key-${which}-${n}`), { discard: true })
        ),
        { concurrency: "unbounded" }
      )
      assert.sameMembers([...(yield* keysIn(path))], each.flatMap((n) => [`key-0-${n}`, `key-1-${n}`]))
      const fs = yield* FileSystem.FileSystem
      assert.isFalse(yield* fs.exists(`${path}.lock`))
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))

  it.live("wait for a save of the other", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const path = yield* configFile({ keys: [] })
      const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
      yield* fs.writeFileString(`${path}.lock`, "another process")
      const saving = yield* Effect.forkChild(addKey(store, "mine"))
      // The other process completes its save.
      yield* fs.writeFileString(path, JSON.stringify({ keys: ["theirs"] }))
      assert.isUndefined(saving.pollUnsafe())
      yield* fs.remove(`${path}.lock`)
      yield* Fiber.join(saving)
      assert.sameMembers([...(yield* keysIn(path))], ["theirs", "mine"])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))

  it.live("take over the lock of a dead process immediately", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const path = yield* configFile({ keys: [] })
      const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
      const { pid } = spawnSync(process.execPath, ["--version"])
      yield* fs.writeFileString(`${path}.lock`, `${hostname()} ${pid} abc`)
      yield* addKey(store, "mine")
      assert.deepEqual(yield* keysIn(path), ["mine"])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))

  it.live("take over a stale lock", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const path = yield* configFile({ keys: [] })
      const store = yield* startStore({ GATEWAY_CONFIG_PATH: path })
      yield* fs.writeFileString(`${path}.lock`, "a process that died")
      const long = new Date(Date.now() - 60_000)
      yield* fs.utimes(`${path}.lock`, long, long)
      yield* addKey(store, "mine")
      assert.deepEqual(yield* keysIn(path), ["mine"])
      const left = yield* fs.readDirectory(path.slice(0, path.lastIndexOf("/")))
      assert.deepEqual(left, ["config.json"])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
})
