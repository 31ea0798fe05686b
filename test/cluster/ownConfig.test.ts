/**
 * A node's own configuration beside the one that the nodes of a store share.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { Environment } from "../../src/config/Environment.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { withVariables } from "../config/support.ts"
import { servicesIn, withTransfer } from "../support/configServices.ts"
import type { RedisServer } from "../support/redisServer.ts"
import { settledServer, storeLayer } from "./support.ts"

/** Starts a node, runs what is asked of it, and stops it. Returns the lines of its log with their levels. */
const withNode = Effect.fnUntraced(function*(
  server: RedisServer,
  config: RawConfig | undefined,
  use: (store: ReturnType<typeof servicesIn>) => Effect.Effect<void, unknown> = () => Effect.void
) {
  const lines: Array<string> = []
  const logs = Logger.layer([Logger.make(({ logLevel, message }) => {
    lines.push(`${logLevel} ${String(message)}`)
  })])
  yield* Layer.build(
    withTransfer(ConfigStore.layerShared).pipe(
      Layer.provide(storeLayer(server, "one")),
      Layer.provide(Environment.layer),
      Layer.provide(withVariables(config === undefined ? {} : { GATEWAY_CONFIG_JSON: JSON.stringify(config) })),
      Layer.provide(NodeServices.layer)
    )
  ).pipe(
    Effect.flatMap((context) => use(servicesIn(context))),
    Effect.scoped,
    Effect.provide(logs)
  )
  return lines.filter((line) => line.includes("configuration"))
})

describe("a node's own configuration that has changed", () => {
  it.live("has no effect on its own, and a warning names the fields", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      assert.isEmpty(yield* withNode(server, { keys: ["one"] }))
      assert.isEmpty(yield* withNode(server, { keys: ["one"] }))
      const lines = yield* withNode(server, { keys: ["one"], runtime: { key_max_inflight: 3 } }, (store) =>
        Effect.sync(() =>
          assert.strictEqual(store.now().runtime.key_max_inflight, undefined)
        ))
      assert.lengthOf(lines, 1)
      assert.match(
        lines[0]!,
        /^Warn The shared configuration is in effect.*differ in runtime\.key_max_inflight\. Set store\.config/
      )
    }).pipe(Effect.scoped))

  it.live("replaces the shared one where store.config is file, once, and leaves the gateway's state", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      yield* withNode(
        server,
        { keys: ["one"] },
        (store) =>
          store.update((raw) =>
            Effect.succeed({ ...raw, keys: ["one", "by hand"], admin: { jwt_valid_after_unix: 5 } })
          )
      )
      const own = { store: { config: "file" }, keys: ["one", "two"], runtime: { key_max_inflight: 3 } }
      const replaced = yield* withNode(server, own, (store) =>
        Effect.sync(() => {
          assert.deepStrictEqual(store.now().keys, ["one", "two"])
          assert.strictEqual(store.now().runtime.key_max_inflight, 3)
          assert.strictEqual(store.now().admin.jwt_valid_after_unix, 5)
        }))
      assert.match(replaced.join(), /^Info This node's own configuration replaces the shared one/)
      assert.isEmpty(yield* withNode(server, own))
    }).pipe(Effect.scoped))
})
