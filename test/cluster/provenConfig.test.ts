/**
 * The shared configuration under a client of the store that can write anything and decrypt nothing.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { Environment } from "../../src/config/Environment.ts"
import { collectLogs, withVariables } from "../config/support.ts"
import { run } from "../server/cli/process.ts"
import { servicesIn, withTransfer } from "../support/configServices.ts"
import { command, connect, type RedisServer } from "../support/redisServer.ts"
import { until, untilTrue } from "../support/until.ts"
import { settledServer, storeKey, storeLayer } from "./support.ts"

const config = "gw:{main}:config"
const limits = "gw:{main}:lim"

const startNode = Effect.fnUntraced(function*(server: RedisServer, id: string) {
  const scope = yield* Scope.make()
  yield* Effect.addFinalizer(() => Scope.close(scope, Exit.void))
  const context = yield* Scope.provide(
    Layer.build(
      withTransfer(ConfigStore.layerShared).pipe(
        Layer.provide(storeLayer(server, id)),
        Layer.provide(Environment.layer),
        Layer.provide(withVariables({ GATEWAY_CONFIG_JSON: JSON.stringify({ keys: ["first"] }) })),
        Layer.provide(NodeServices.layer)
      )
    ),
    scope
  )
  const store = servicesIn(context)
  const seen = new Set<string>()
  return {
    store,
    keys: () => {
      for (const key of store.now().keys) seen.add(key)
      return store.now().keys.join()
    },
    setKeys: (...keys: ReadonlyArray<string>) => store.update((raw) => Effect.succeed({ ...raw, keys })),
    revision: () => store.shared?.revision() ?? 0,
    stop: Scope.close(scope, Exit.void)
  }
})

/** A client of the store without its key. */
const intruder = Effect.fnUntraced(function*(server: RedisServer) {
  const client = yield* Effect.acquireRelease(
    Effect.promise(() => connect(server.socket)),
    (open) => Effect.sync(() => open.destroy())
  )
  const say = (...args: ReadonlyArray<string>) => Effect.promise(() => command(client, ...args))
  return {
    say,
    document: Effect.map(say("HMGET", config, "document", "proof", "revision"), (reply) => {
      const [document = "", proof = "", revision = ""] = (reply as ReadonlyArray<unknown>).map(String)
      return { document, proof, revision }
    })
  }
})

/** Two nodes, from whose configuration a key was deleted, and what the store had before. */
const deleted = Effect.gen(function*() {
  const server = yield* settledServer
  const [one, two] = [yield* startNode(server, "one"), yield* startNode(server, "two")]
  const { document, say } = yield* intruder(server)
  yield* one.setKeys("first", "deleted")
  yield* until(() => two.keys() === "first,deleted")
  const before = yield* document
  yield* one.setKeys("first")
  yield* until(() => two.keys() === "first")
  return { server, one, two, say, document, before }
})

type Deleted = Effect.Success<typeof deleted>

const attacks: Readonly<Record<string, (found: Deleted, revision: string) => Effect.Effect<unknown>>> = {
  "an older document with a higher revision": ({ before, say }, revision) =>
    Effect.andThen(
      say("HSET", config, "document", before.document, "revision", revision),
      say("HSET", limits, "revision", revision)
    ),
  "an older document with its proof and a higher revision": ({ before, say }, revision) =>
    Effect.andThen(
      say("HSET", config, "document", before.document, "proof", before.proof, "revision", revision),
      say("HSET", limits, "revision", revision)
    ),
  "an older document without a proof": ({ before, say }, revision) =>
    Effect.gen(function*() {
      yield* say("HDEL", config, "proof", "origin", "origin_proof")
      yield* say("HSET", config, "document", before.document, "revision", revision)
      yield* say("HSET", limits, "revision", revision)
    }),
  "only a higher revision": ({ say }, revision) => say("HSET", config, "revision", revision),
  "only a higher count": ({ say }, revision) => say("HSET", limits, "revision", revision),
  "a revision that is not a number": ({ say }) =>
    Effect.andThen(say("HSET", config, "revision", "many"), say("HSET", limits, "revision", "many"))
}

describe("the shared configuration, after somebody without the key has written", () => {
  for (const [name, attack] of Object.entries(attacks)) {
    it.live(`${name}: stays as it is, changes go on, and the log says so`, () => {
      const logs: Array<string> = []
      return Effect.gen(function*() {
        const found = yield* deleted
        const { document, one, say, server, two } = found
        yield* attack(found, "40")
        // Each node asks for the newest revision when it meets a bearer that it does not know.
        yield* Effect.forEach([one, two], ({ store }) => Effect.ignore(store.newest ?? Effect.void))
        yield* untilTrue(Effect.map(
          Effect.all([document, say("HGET", limits, "revision")]),
          ([{ revision }, counted]) => revision === String(counted) && Number(revision) >= 4
        ))
        assert.isAtLeast(logs.filter((line) => line.includes("is refused")).length, 1)
        yield* one.setKeys("first", "second")
        yield* until(() => two.keys() === "first,second")
        yield* two.setKeys("third")
        yield* until(() => one.keys() === "third")
        assert.strictEqual((yield* startNode(server, "three")).keys(), "third")
      }).pipe(Effect.scoped, Effect.provide(collectLogs(logs)))
    })
  }

  it.live("an older document, is restored by the running nodes before another one starts", () =>
    Effect.gen(function*() {
      const { before, one, say, server } = yield* deleted
      // The count stays: nothing tells the running nodes.
      yield* say("HSET", config, "document", before.document, "proof", before.proof, "revision", before.revision)
      const three = yield* startNode(server, "three")
      assert.strictEqual(three.keys(), "first")
      yield* three.setKeys("second")
      yield* until(() => one.keys() === "second")
    }).pipe(Effect.scoped))

  it.live("an older document, stops the start of a node alone, until the right one is written by force", () =>
    Effect.gen(function*() {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(path.join(tmpdir(), "proven-"))),
        (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
      )
      const { before, one, say, server, two } = yield* deleted
      const cli = (...args: ReadonlyArray<string>) =>
        Effect.promise(() =>
          run(["store", ...args], {
            env: { GATEWAY_STORE_URL: server.url, GATEWAY_STORE_KEY: storeKey, GATEWAY_STORE_TIMEOUT_MS: "1500" }
          })
        )
      const file = path.join(folder, "backup.sealed")
      assert.strictEqual((yield* cli("backup", file)).code, 0)
      yield* Effect.all([one.stop, two.stop])
      yield* say("HSET", config, "document", before.document, "revision", "9")
      yield* say("HSET", limits, "revision", "9")
      const { message } = yield* Effect.flip(startNode(server, "three"))
      assert.include(message, "store restore FILE --force")
      assert.strictEqual((yield* cli("restore", file, "--force")).code, 0)
      assert.strictEqual((yield* startNode(server, "three")).keys(), "first")
    }).pipe(Effect.scoped))
})
