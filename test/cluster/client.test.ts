import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { parseStoreAddress } from "../../src/cluster/store/address.ts"
import { makeClient } from "../../src/cluster/store/client.ts"
import { makeScript } from "../../src/cluster/store/scripts.ts"
import { command, connect, redisServer } from "../support/redisServer.ts"

/** A client of a server that accepts commands and never replies. */
const ofSilent = Effect.fnUntraced(function*(timeoutMillis: number) {
  const server = yield* redisServer()
  const client = yield* makeClient(parseStoreAddress(server.url)!, timeoutMillis)
  assert.strictEqual(yield* client.send("PING"), "PONG")
  yield* Effect.promise(async () => {
    const other = await connect(server.socket)
    await command(other, "CLIENT", "PAUSE", "1000000", "ALL")
    other.destroy()
  })
  return client
})

describe("the client of a silent store", () => {
  it.effect("fails a command after its timeout, and counts the store as lost after three failures", () =>
    Effect.gen(function*() {
      for (const millis of [250, 1_500]) {
        const client = yield* ofSilent(millis)
        for (const isLost of [false, false, true]) {
          const fiber = yield* Effect.forkChild(Effect.flip(client.send("PING")), { startImmediately: true })
          yield* TestClock.adjust(millis - 1)
          assert.isUndefined(fiber.pollUnsafe(), `${millis}`)
          yield* TestClock.adjust(1)
          assert.strictEqual((yield* Fiber.join(fiber))._tag, "StoreUnavailable")
          assert.strictEqual(client.isFailing(), isLost)
        }
      }
    }))

  it.effect("does not count the store as lost when large values time out", () =>
    Effect.gen(function*() {
      const client = yield* ofSilent(250)
      for (let i = 0; i < 5; i++) {
        const fiber = yield* Effect.forkChild(Effect.flip(client.bulk([["SET", "a", "large value"]])), {
          startImmediately: true
        })
        if (i === 0) {
          yield* TestClock.adjust(4_999)
          assert.isUndefined(fiber.pollUnsafe())
        }
        yield* TestClock.adjust(5_000)
        assert.strictEqual((yield* Fiber.join(fiber))._tag, "StoreUnavailable")
        assert.isFalse(client.isFailing())
      }
    }))

  it.effect("has a longer timeout for large values", () =>
    Effect.gen(function*() {
      const client = yield* ofSilent(250)
      const large = makeScript("large", "return 1", 2_000)
      const fiber = yield* Effect.forkChild(Effect.flip(client.run(large, [])), { startImmediately: true })
      yield* TestClock.adjust(1_999)
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.strictEqual((yield* Fiber.join(fiber))._tag, "StoreUnavailable")
    }))
})
