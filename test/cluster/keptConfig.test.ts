/**
 * The shared configuration survives a stop of all nodes and the store.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import type { Store, StoreOptions } from "../../src/cluster/store/Store.ts"
import type { StoreInvalid } from "../../src/cluster/store/StoreShape.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { Environment } from "../../src/config/Environment.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { keptName } from "../../src/config/sharedDocument.ts"
import { collectLogs, withVariables } from "../config/support.ts"
import { run } from "../server/cli/process.ts"
import { servicesIn, withTransfer } from "../support/configServices.ts"
import { command, connect, listOf, type RedisServer } from "../support/redisServer.ts"
import { until, untilTrue } from "../support/until.ts"
import { deafStoreLayer, settledServer, storeKey, storeLayer } from "./support.ts"

/** Data folders by name, removed with the scope. */
const folders = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(path.join(tmpdir(), "kept-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  ),
  (root) => (name: string) => path.join(root, name)
)

/** A running node; `folder` is its data folder. */
const startNode = Effect.fnUntraced(function*(
  server: RedisServer,
  id: string,
  folder: string | undefined,
  options: Partial<StoreOptions> = {},
  config: RawConfig = { keys: ["of the file"] },
  layer: Layer.Layer<Store, StoreInvalid> = storeLayer(server, id, options)
) {
  const scope = yield* Scope.make()
  yield* Effect.addFinalizer(() => Scope.close(scope, Exit.void))
  const context = yield* Scope.provide(
    Layer.build(
      withTransfer(ConfigStore.layerShared).pipe(
        Layer.provide(layer),
        Layer.provide(Environment.layer),
        Layer.provide(withVariables({
          GATEWAY_CONFIG_JSON: JSON.stringify(config),
          ...(folder === undefined ? {} : { GATEWAY_DATA_DIR: folder })
        })),
        Layer.provide(NodeServices.layer)
      )
    ),
    scope
  )
  const store = servicesIn(context)
  return {
    store,
    keys: () => store.now().keys,
    setKeys: (...keys: ReadonlyArray<string>) => store.update((raw) => Effect.succeed({ ...raw, keys })),
    stop: Scope.close(scope, Exit.void)
  }
})

/** Removes the store's data, like a restart of a server without persistence. */
const empty = Effect.fnUntraced(function*(server: RedisServer) {
  yield* Effect.promise(async () => {
    const client = await connect(server.socket)
    await command(client, "FLUSHALL")
    // Ends the quiet period, so that nodes do not wait for others.
    await command(client, "SET", "gw:{main}:epoch", `after ${Date.now()}`)
    await command(client, "HSET", "gw:{main}:lim", "since", String(Date.now() + 1_000))
    client.destroy()
  })
})

describe("a backup of the shared configuration", () => {
  it.live("is written from the store or a data folder, and restored to an empty store or by force", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const at = yield* folders
      const folder = at("one")
      const node = yield* startNode(server, "one", folder)
      yield* node.setKeys("of the file", "a key of an operator")
      const store = (...args: ReadonlyArray<string>) =>
        Effect.promise(() =>
          run(["store", ...args], {
            env: {
              GATEWAY_STORE_URL: server.url,
              GATEWAY_STORE_KEY: storeKey,
              GATEWAY_DATA_DIR: folder,
              GATEWAY_STORE_TIMEOUT_MS: "1500"
            }
          })
        )
      const [file, offline] = [at("backup"), at("offline")]
      const saved = yield* store("backup", file)
      assert.deepStrictEqual(saved, {
        code: 0,
        signal: null,
        stdout: `${file}: revision 2 of the shared configuration\n`,
        stderr: ""
      })
      assert.strictEqual(statSync(file).mode & 0o777, 0o600)
      assert.notInclude(Buffer.from(readFileSync(file, "utf8"), "base64url").toString("latin1"), "operator")
      yield* node.setKeys("another key")
      const refused = yield* store("restore", file)
      assert.deepStrictEqual([refused.code, refused.stdout], [1, ""])
      assert.strictEqual(refused.stderr, "the store has a configuration (revision 3): --force replaces it\n")
      const forced = yield* store("restore", file, "--force")
      assert.deepStrictEqual([forced.code, forced.stdout], [0, `${file}: in the store as revision 4\n`])
      yield* until(() => node.keys().join() === "of the file,a key of an operator")
      // The node has added a record of the key that the restoration removed.
      yield* until(() => node.store.shared?.revision() === 5 && node.store.shared.keptIn() !== undefined)
      yield* node.stop
      yield* empty(server)
      const none = yield* store("backup", at("none"))
      assert.strictEqual(none.stderr, "the store has no configuration: --offline takes that of the data folder\n")
      assert.isFalse(existsSync(at("none")))
      const ofFolder = yield* store("backup", "--offline", offline)
      assert.strictEqual(ofFolder.stdout, `${offline}: revision 5 of the shared configuration\n`)
      assert.strictEqual((yield* store("restore", offline)).stdout, `${offline}: in the store as revision 5\n`)
      const after = yield* startNode(server, "two", undefined)
      assert.deepStrictEqual(after.keys(), ["of the file", "a key of an operator"])
      writeFileSync(file, "no backup")
      assert.include((yield* store("restore", file)).stderr, `${file} is no backup`)
    }))
})

describe("the shared configuration of a cluster", () => {
  it.live("is restored by a node that starts alone on an empty store", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const folder = (yield* folders)("one")
      const before = yield* startNode(server, "one", folder)
      const saved = yield* before.setKeys("of the file", "a key of an operator")
      assert.isTrue(saved.config_writable)
      yield* before.stop
      const file = path.join(folder, keptName)
      assert.strictEqual(statSync(file).mode & 0o777, 0o600)
      assert.notInclude(Buffer.from(readFileSync(file, "utf8"), "base64url").toString("latin1"), "operator")
      yield* empty(server)
      const logs: Array<string> = []
      const after = yield* startNode(server, "one", folder).pipe(Effect.provide(collectLogs(logs)))
      assert.include(logs, `The configuration of the store is restored from ${file}`)
      assert.deepStrictEqual(after.keys(), ["of the file", "a key of an operator"])
      assert.strictEqual(after.store.shared?.revision(), 2)
      assert.strictEqual(after.store.shared?.keptIn(), file)
    }))

  it.live("is kept in the data folder of a node that only received a change", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const at = yield* folders
      const one = yield* startNode(server, "one", at("one"))
      const other = yield* startNode(server, "other", at("other"))
      yield* one.setKeys("second")
      yield* until(() => other.store.shared?.revision() === 2 && other.store.shared?.keptIn() !== undefined)
      yield* one.stop
      // The node runs while the store loses its data, and restores the configuration.
      yield* empty(server)
      yield* until(() => other.keys().length === 1)
      const third = yield* startNode(server, "third", at("third"))
      yield* until(() => third.keys()[0] === "second")
      yield* Effect.all([other.stop, third.stop])
      yield* empty(server)
      assert.deepStrictEqual((yield* startNode(server, "other", at("other"))).keys(), ["second"])
    }))

  it.live("is restored by the node with the newest revision", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const start = (id: string) => startNode(server, id, undefined, {}, undefined, deafStoreLayer(server, id))
      const [behind, newest, alsoBehind] = [yield* start("one"), yield* start("two"), yield* start("three")]
      yield* newest.setKeys("second")
      yield* newest.setKeys("third")
      assert.deepStrictEqual([behind, newest, alsoBehind].map(({ store }) => store.shared?.revision()), [1, 3, 1])
      yield* empty(server)
      const client = yield* Effect.promise(() => connect(server.socket))
      yield* untilTrue(Effect.promise(async () =>
        await command(client, "HGET", "gw:{main}:config", "revision") === "3" &&
        (await listOf(client, "ZRANGE", "gw:{main}:nodes", "0", "-1")).length === 3
      ))
      client.destroy()
      assert.deepStrictEqual((yield* startNode(server, "four", undefined)).keys(), ["third"])
    }))

  it.live("is merged once with a newer kept document that arrives later", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const at = yield* folders
      const first = yield* startNode(server, "first", at("older"))
      yield* first.setKeys("stays", "is deleted")
      cpSync(at("older"), at("newer"), { recursive: true })
      yield* first.stop
      const second = yield* startNode(server, "second", at("newer"))
      yield* second.setKeys("stays")
      yield* second.setKeys("stays", "is added")
      yield* second.stop
      cpSync(at("newer"), at("newer still there"), { recursive: true })
      yield* empty(server)
      const older = yield* startNode(server, "first", at("older"))
      assert.deepStrictEqual(older.keys(), ["stays", "is deleted"])
      yield* older.setKeys("stays", "is deleted", "is added meanwhile")
      const newer = yield* startNode(server, "second", at("newer"))
      assert.sameMembers([...newer.keys()], ["stays", "is added", "is added meanwhile"])
      yield* until(() => older.keys().length === 3 && !older.keys().includes("is deleted"))
      // A later removal is not undone by another node of that time.
      yield* older.setKeys("stays")
      const again = yield* startNode(server, "third", at("newer still there"))
      assert.deepStrictEqual(again.keys(), ["stays"])
    }))

  it.live("is merged with a node's kept document although another node without a folder started first", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const at = yield* folders
      const before = yield* startNode(server, "one", at("one"))
      yield* before.setKeys("of the file", "of an operator")
      yield* before.stop
      yield* empty(server)
      const fresh = yield* startNode(server, "fresh", undefined)
      assert.isFalse(yield* fresh.store.configWritable)
      yield* fresh.setKeys("of the file", "meanwhile")
      const one = yield* startNode(server, "one", at("one"))
      assert.sameMembers([...one.keys()], ["of the file", "of an operator", "meanwhile"])
    }))

  it.live("is not merged with the kept document of another store", () =>
    Effect.gen(function*() {
      const [here, there] = [yield* settledServer, yield* settledServer]
      const at = yield* folders
      const file = path.join(at("one"), keptName)
      yield* empty(there)
      const running = yield* startNode(there, "running", undefined)
      const before = yield* startNode(here, "one", at("one"))
      for (const key of ["a", "b", "c"]) yield* before.setKeys(key)
      yield* before.stop
      // The data of the other store is older.
      const client = yield* Effect.promise(() => connect(there.socket))
      yield* Effect.promise(() => command(client, "HSET", "gw:{main}:lim", "since", "1000"))
      client.destroy()
      const moved = yield* startNode(there, "one", at("one"))
      assert.deepStrictEqual(moved.keys(), ["of the file"])
      assert.deepStrictEqual(running.keys(), ["of the file"])
      assert.isTrue(existsSync(file))
      assert.isTrue(existsSync(`${file}.invalid`))
    }))

  it.live("is not initialized from a kept document that cannot be decrypted", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const folder = (yield* folders)("one")
      const before = yield* startNode(server, "one", folder)
      yield* before.stop
      yield* empty(server)
      const key = Redacted.make("another key, long enough")
      const error = yield* Effect.flip(startNode(server, "one", folder, { key }))
      assert.include(error.message, `the store is empty, and ${path.join(folder, keptName)} is encrypted with another`)
      // The store's own document stays, and the file is renamed.
      yield* startNode(server, "two", undefined, { key })
      const after = yield* startNode(server, "one", folder, { key })
      assert.deepStrictEqual(after.keys(), ["of the file"])
      assert.isTrue(existsSync(path.join(folder, `${keptName}.invalid`)))
    }))

  it.live("counts as durable only if a file or the store persists it", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const folder = (yield* folders)("a folder")
      const node = yield* startNode(server, "one", folder)
      assert.isTrue(yield* node.store.configWritable)
      rmSync(folder, { recursive: true })
      writeFileSync(folder, "a file in its place")
      assert.isFalse((yield* node.setKeys("second")).config_writable)
      assert.isUndefined(node.store.shared?.keptIn())
      const client = yield* Effect.promise(() => connect(server.socket))
      yield* Effect.promise(() => command(client, "CONFIG", "SET", "appendonly", "yes"))
      client.destroy()
      assert.isTrue(yield* node.store.configWritable)
    }))
})
