import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { parseStoreAddress } from "../../src/cluster/store/address.ts"
import { makeClient } from "../../src/cluster/store/client.ts"
import { silent, textOf } from "../../src/cluster/store/connection.ts"
import { makeScript } from "../../src/cluster/store/scripts.ts"
import { ask } from "../support/redisGroups.ts"
import { command, connect, freePort, type RedisServer, redisServer } from "../support/redisServer.ts"
import { untilTrue } from "../support/until.ts"

const say = (server: RedisServer, ...args: ReadonlyArray<string>) => Effect.promise(() => ask(server, ...args))

/** How a server comes to refuse writes: its options, its answer, and what happens to it. */
const refusals: Readonly<
  Record<
    string,
    readonly [ReadonlyArray<string>, RegExp, (server: RedisServer) => Effect.Effect<unknown, never, Scope.Scope>]
  >
> = {
  "is a replica": [[], /^READONLY/, (server) => say(server, "REPLICAOF", "127.0.0.1", "1")],
  "has lost its replicas": [[], /^NOREPLICAS/, (server) => say(server, "CONFIG", "SET", "min-replicas-to-write", "1")],
  "loads its data": [
    ["--enable-debug-command", "yes", "--rdbcompression", "no", "--loading-process-events-interval-bytes", "1024"],
    /^LOADING/,
    (server) =>
      Effect.gen(function*() {
        for (let i = 0; i < 100; i++) yield* say(server, "SET", `${i}`, "x".repeat(2_000))
        yield* say(server, "CONFIG", "SET", "key-load-delay", "100000")
        yield* Effect.forkScoped(Effect.ignore(Effect.tryPromise(() => ask(server, "DEBUG", "RELOAD"))))
      })
  ],
  "is in a cluster without the slot": [["--cluster-enabled", "yes"], /^CLUSTERDOWN/, () => Effect.void],
  "is in a cluster whose other node has the slot": [
    ["--cluster-enabled", "yes"],
    /^MOVED/,
    (server) =>
      Effect.gen(function*() {
        const bus = yield* Effect.promise(freePort)
        const owner = yield* redisServer("--cluster-enabled", "yes", "--cluster-port", String(bus))
        yield* say(owner, "CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        yield* say(server, "CLUSTER", "MEET", "127.0.0.1", String(owner.port), String(bus))
      })
  ]
}

describe("the client of a store", () => {
  for (const [kind, [options, answer, happens]] of Object.entries(refusals)) {
    it.live(`counts it as lost at once if the server ${kind}`, () =>
      Effect.gen(function*() {
        const server = yield* redisServer(...options)
        const [one, other] = yield* Effect.all([1, 2].map(() => makeClient(parseStoreAddress(server.url)!, 1_500)))
        yield* happens(server)
        const refused = () => ask(server, "SET", "gw:{main}:a", "1").then(() => "", textOf)
        yield* untilTrue(Effect.map(Effect.promise(refused), (text) => answer.test(text)))
        const script = makeScript("write", "return redis.call('SET', 'gw:{main}:a', '1')")
        assert.strictEqual((yield* Effect.flip(one!.run(script, [])))._tag, "StoreUnavailable")
        assert.strictEqual((yield* Effect.flip(other!.send("SET", "gw:{main}:a", "1")))._tag, "StoreUnavailable")
        assert.deepStrictEqual([one!.isFailing(), other!.isFailing()], [true, true])
      }))
  }
})

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

describe("a store without connection", () => {
  it.live("has an error with its host and the cause, and without its credentials", () =>
    Effect.gen(function*() {
      const host = `127.0.0.1:${yield* Effect.promise(freePort)}`
      const address = parseStoreAddress(`redis://ann:hidden@${host}`)!
      const seen = yield* Deferred.make<unknown>()
      const connecting = Effect.scoped(
        makeClient(address, 250, (error) => Deferred.doneUnsafe(seen, Effect.succeed(error)))
      )
      const error = yield* Effect.raceFirst(Deferred.await(seen), Effect.as(connecting, undefined))
      assert.strictEqual(
        silent(address, error).message,
        `cannot connect to the store at redis://${host}: the connection was refused; ` +
          "check GATEWAY_STORE_URL, and that a Redis or Valkey server runs there"
      )
      assert.match(
        silent(address, undefined).message,
        /^the store at redis:\S+ does not answer: check GATEWAY_STORE_URL/
      )
    }))
})
