/** Stored responses of two nodes over one store. */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { ResponsesStore } from "../../src/responses-store/ResponsesStore.ts"
import { command, connect, type RedisServer, redisServer } from "../support/redisServer.ts"
import { storeLayer } from "./support.ts"

const responses = (server: RedisServer, node: string, limits: { readonly stored_responses?: number } = {}) =>
  Effect.map(
    Layer.build(
      ResponsesStore.layerShared.pipe(
        Layer.provide(storeLayer(server, node)),
        Layer.provide(ConfigStore.layerJson({ responses: { store_ttl_seconds: 30 }, limits }))
      )
    ),
    Context.get(ResponsesStore)
  )

const response = (id: string, body = "{\"status\":\"completed\"}") => ({
  id,
  body,
  items: [{ role: "user", content: "ü" }]
})

describe("stored responses of two nodes", () => {
  it.live("are read, continued and removed on every node, by their owner only", () =>
    Effect.gen(function*() {
      const server = yield* redisServer()
      const one = yield* responses(server, "one")
      const other = yield* responses(server, "other")
      yield* one.put("alice", response("resp_1"))
      assert.deepStrictEqual(yield* other.get("alice", "resp_1"), response("resp_1"))
      assert.isUndefined(yield* other.get("bob", "resp_1"))
      assert.isFalse(yield* other.remove("bob", "resp_1"))
      assert.isTrue(yield* other.remove("alice", "resp_1"))
      assert.isFalse(yield* one.remove("alice", "resp_1"))
      assert.isUndefined(yield* one.get("alice", "resp_1"))
      assert.deepStrictEqual(yield* one.held, { count: 0, bytes: 0 })
    }))

  it.live("are there before what tells of them may leave, and are final in the same way", () =>
    Effect.gen(function*() {
      const server = yield* redisServer()
      const one = yield* responses(server, "one")
      const other = yield* responses(server, "other")
      const open = one.openUnsafe("alice", response("resp_1", "in progress"))
      assert.isUndefined(yield* other.get("alice", "resp_1"))
      yield* open.written() ?? Effect.die("nothing to do")
      assert.strictEqual((yield* other.get("alice", "resp_1"))?.body, "in progress")
      open.settleUnsafe("completed")
      yield* open.written() ?? Effect.die("nothing to do")
      assert.isUndefined(open.written())
      assert.strictEqual((yield* other.get("alice", "resp_1"))?.body, "completed")
      // One that was removed meanwhile does not come back.
      const removed = one.openUnsafe("alice", response("resp_2"))
      yield* removed.written() ?? Effect.void
      yield* other.remove("alice", "resp_2")
      removed.settleUnsafe("completed")
      yield* removed.written() ?? Effect.void
      assert.isUndefined(yield* one.get("alice", "resp_2"))
    }))

  it.live("are bounded over all nodes, the oldest go first, and expire", () =>
    Effect.gen(function*() {
      const server = yield* redisServer()
      const one = yield* responses(server, "one", { stored_responses: 10 })
      const other = yield* responses(server, "other", { stored_responses: 10 })
      for (let i = 0; i < 12; i++) yield* (i % 2 === 0 ? one : other).put("alice", response(`resp_${i}`))
      assert.strictEqual((yield* one.held).count, 10)
      assert.isUndefined(yield* one.get("alice", "resp_1"))
      assert.isDefined(yield* one.get("alice", "resp_2"))
      const client = yield* Effect.promise(() => connect(server.socket))
      const keys = yield* Effect.promise(() => command(client, "KEYS", "gw:{main}:resp:*"))
      for (const key of keys as ReadonlyArray<string>) {
        const seconds = Number(yield* Effect.promise(() => command(client, "TTL", key)))
        assert.isTrue(seconds > 0 && seconds <= 30)
      }
      client.destroy()
    }))

  it.live("do not fail a reply whose copy is lost", () =>
    Effect.gen(function*() {
      const server = yield* redisServer()
      const one = yield* responses(server, "one")
      yield* Effect.promise(() => server.stop())
      yield* one.put("alice", response("resp_1"))
      const error = yield* Effect.flip(one.get("alice", "resp_1"))
      assert.deepInclude(error, { code: "store_unavailable", retryAfter: 1 })
    }))
})
