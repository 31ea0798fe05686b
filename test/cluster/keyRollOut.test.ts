/**
 * Rotation of the store key, node after node, by the table of docs/operate/store-connection.md.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { Store } from "../../src/cluster/store/Store.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { Environment } from "../../src/config/Environment.ts"
import { storeSettings } from "../../src/config/storeSettings.ts"
import { withVariables } from "../config/support.ts"
import type { RedisServer } from "../support/redisServer.ts"
import { pageText } from "../support/snippets.ts"
import { until } from "../support/until.ts"
import { settledServer } from "./support.ts"

const startNode = Effect.fnUntraced(function*(server: RedisServer, id: string, keys: Readonly<Record<string, string>>) {
  const scope = yield* Scope.make()
  yield* Effect.addFinalizer(() => Scope.close(scope, Exit.void))
  const store = Layer.unwrap(Effect.gen(function*() {
    const settings = yield* storeSettings(yield* Environment, "1.0.0")
    return Store.layerRedis(settings!)
  }))
  const context = yield* Scope.provide(
    Layer.build(
      ConfigStore.layerShared.pipe(
        Layer.provideMerge(store),
        Layer.provide(Environment.layer),
        Layer.provide(withVariables({
          GATEWAY_CONFIG_JSON: JSON.stringify({ keys: ["first"] }),
          GATEWAY_STORE_URL: server.url,
          GATEWAY_STORE_TIMEOUT_MS: "1500",
          GATEWAY_NODE_ID: id,
          ...keys
        })),
        Layer.provide(NodeServices.layer)
      )
    ),
    scope
  )
  const config = Context.get(context, ConfigStore)
  return {
    name: Context.get(context, Store).secrets.nameOf("account"),
    keys: () => config.now().keys,
    setKeys: (...keys: ReadonlyArray<string>) => config.update((raw) => Effect.succeed({ ...raw, keys })),
    stop: Scope.close(scope, Exit.void)
  }
})

const admin = { GATEWAY_ADMIN_KEY: "an admin key" }
const own = { GATEWAY_STORE_KEY: "a key of the store's own" }

describe("rotation of the store key", () => {
  for (const old of ["derived", "an older key of the store"]) {
    it.live(`takes the documented steps while nodes of the previous step change the configuration: ${old}`, () =>
      Effect.gen(function*() {
        const server = yield* settledServer
        const isDerived = old === "derived"
        const keys = new Map([["old key", old], ["new key", own.GATEWAY_STORE_KEY]])
        const start = (
          id: string,
          key: string,
          previous: string,
          adminKeys: Readonly<Record<string, string>> = admin
        ) => {
          const [own, other] = [keys.get(key), keys.get(previous)]
          return startNode(server, id, {
            ...adminKeys,
            ...(own === undefined || own === "derived" ? {} : { GATEWAY_STORE_KEY: own }),
            ...(other === undefined ? {} : { GATEWAY_STORE_KEY_PREVIOUS: other })
          })
        }
        const nodes = [yield* start("one", "old key", "unset"), yield* start("two", "old key", "unset")]
        const [{ name }] = nodes as [typeof nodes[0]]
        const steps = [
          ...pageText("docs/operate/store-connection.md").matchAll(/^\| (\d) \| (\w+ key) \| (\w+(?: key)?) \|$/gm)
        ]
        assert.lengthOf(steps, 3)
        for (const [, step = "", key = "", previous = ""] of steps) {
          // The admin key changes with the derived key.
          const adminKeys = !isDerived || step === "1" ? admin : {
            GATEWAY_ADMIN_KEY: "another admin key",
            ...(step === "2" ? { GATEWAY_ADMIN_KEY_PREVIOUS: admin.GATEWAY_ADMIN_KEY } : {})
          }
          for (const [i, id] of ["one", "two"].entries()) {
            yield* nodes[i]!.stop
            const [next, other] = [yield* start(id, key, previous, adminKeys), nodes[1 - i]!]
            nodes[i] = next
            for (const [writer, reader] of [[next, other], [other, next]] as const) {
              const added = `added in step ${step} at ${id}, ${writer === next}`
              yield* writer.setKeys(added)
              yield* until(() => reader.keys()[0] === added)
            }
            assert.strictEqual(next.name, name)
          }
        }
        yield* Effect.forEach(nodes, ({ stop }) => stop)
        const alone = yield* startNode(server, "three", own)
        assert.deepStrictEqual(alone.keys(), ["added in step 3 at two, false"])
      }))
  }

  it.live("a wrong key is rejected with the variables that are set and those to set", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const node = yield* startNode(server, "one", admin)
      yield* node.stop
      const refusal = (keys: Readonly<Record<string, string>>) =>
        Effect.map(Effect.flip(startNode(server, "two", keys)), ({ message }) => message)
      const ofOwn = yield* refusal({ ...admin, ...own })
      assert.match(
        ofOwn,
        /^GATEWAY_STORE_KEY does not decrypt.*GATEWAY_STORE_KEY_PREVIOUS to the previous key: derived/
      )
      const ofDerived = yield* refusal({ GATEWAY_ADMIN_KEY: "another admin key" })
      assert.match(
        ofDerived,
        /^the key derived from GATEWAY_ADMIN_KEY does not decrypt.*GATEWAY_STORE_KEY_PREVIOUS=derived/
      )
      // Follow the advice of the message.
      const changed = yield* startNode(server, "two", {
        GATEWAY_ADMIN_KEY: "another admin key",
        GATEWAY_ADMIN_KEY_PREVIOUS: admin.GATEWAY_ADMIN_KEY,
        GATEWAY_STORE_KEY_PREVIOUS: "derived"
      })
      assert.strictEqual(changed.name, node.name)
    }))

  it.live("a node starts only if it knows the key of the last writer", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const ready = yield* startNode(server, "one", { ...admin, GATEWAY_STORE_KEY_PREVIOUS: own.GATEWAY_STORE_KEY })
      yield* startNode(server, "two", { ...admin, ...own, GATEWAY_STORE_KEY_PREVIOUS: "derived" })
      yield* ready.setKeys("second")
      const { message } = yield* Effect.flip(startNode(server, "three", own))
      assert.match(message, /^the shared configuration was last encrypted with another store key/)
    }))
})
