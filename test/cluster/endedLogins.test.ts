/**
 * Ended logins in a cluster.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeSharedEndedLogins } from "../../src/config/EndedLogins.ts"
import { command, connect, type RedisServer } from "../support/redisServer.ts"
import { until, untilTrue } from "../support/until.ts"
import { settledServer, storeNode } from "./support.ts"

const place = "gw:{main}:marks:ended-logins"
const now = Math.floor(Date.now() / 1000)
const login = (jti: string) => ({ jti, issuedAt: now - 60, expiresAt: now + 3_600 })

/** A node with its ended logins. */
const nodeOf = Effect.fnUntraced(function*(server: RedisServer, name: string) {
  const { heard, store } = yield* storeNode(server, name)
  return { heard, logins: yield* makeSharedEndedLogins(store) }
})

describe("logins that one node has ended", () => {
  it.live("are ended on every node, and restored to a store that has lost its data", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const client = yield* Effect.promise(() => connect(server.socket))
      const say = (...args: ReadonlyArray<string>) => Effect.promise(() => command(client, ...args))
      const two = yield* nodeOf(server, "two")
      yield* Effect.scoped(Effect.gen(function*() {
        const one = yield* nodeOf(server, "one")
        assert.isTrue(yield* one.logins.end(login("ended")))
        assert.isTrue(yield* two.logins.has(login("ended")))
        assert.isFalse(yield* two.logins.has(login("another")))
        yield* until(() => two.heard.some((line) => line.startsWith("mark ended-logins ")))
      }))
      // The node that ended the login is gone, and so is the data. An eviction policy for volatile keys spares the key,
      // which has no TTL.
      assert.strictEqual(yield* say("PTTL", place), -1)
      yield* say("FLUSHALL")
      assert.isTrue(yield* two.logins.has(login("ended")))
      yield* until(() => two.heard.includes("restored"))
      yield* untilTrue(Effect.map(say("ZCARD", place), (size) => size === 1))
      const three = yield* nodeOf(server, "three")
      assert.isTrue(yield* three.logins.has(login("ended")))
      client.destroy()
    }))

  it.live("are reported as pending while the store is lost, and written when it returns", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const one = yield* nodeOf(server, "one")
      yield* Effect.promise(() => server.stop())
      yield* until(() => one.heard.includes("lost"))
      assert.isFalse(yield* one.logins.end(login("late")))
      assert.isTrue(yield* one.logins.has(login("late")))
      yield* Effect.promise(() => server.start())
      yield* until(() => one.heard.includes("up"))
      const client = yield* Effect.promise(() => connect(server.socket))
      yield* untilTrue(Effect.promise(async () => await command(client, "ZCARD", place) === 1))
      const two = yield* nodeOf(server, "two")
      assert.isTrue(yield* two.logins.has(login("late")))
      client.destroy()
    }))

  it.live("are deleted when they expire", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const one = yield* nodeOf(server, "one")
      const client = yield* Effect.promise(() => connect(server.socket))
      yield* Effect.promise(() => command(client, "ZADD", place, String(now * 1000 - 1), "expired 1"))
      yield* one.logins.end(login("ended"))
      assert.strictEqual(yield* Effect.promise(() => command(client, "ZCARD", place)), 1)
      client.destroy()
    }))
})
