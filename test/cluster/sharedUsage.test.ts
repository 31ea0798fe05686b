/** Usage in a real server, which nodes share. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { makeEncryption } from "../../src/cluster/store/encryption.ts"
import { type ScriptName, scripts } from "../../src/cluster/store/scripts.ts"
import { StoreUnavailable } from "../../src/cluster/store/StoreShape.ts"
import { makeRedisStore } from "../../src/usage/redisStore.ts"
import { historyNames } from "../../src/usage/UsageEntry.ts"
import { dayLength, dayOf } from "../../src/usage/windows.ts"
import { connect, type RedisClient, redisServer } from "../support/redisServer.ts"
import { type Made, manyAgents, storeSuite, summedDays } from "../usage/storeSuite.ts"
import { entry, everything, start } from "../usage/support.ts"

let scope: Scope.Closeable
let client: RedisClient
beforeAll(async () => {
  scope = Effect.runSync(Scope.make())
  const server = await Effect.runPromise(Scope.provide(redisServer("--appendonly", "yes"), scope))
  client = await connect(server.socket)
})
afterAll(async () => {
  client.destroy()
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

const encryption = makeEncryption("a key of this test", undefined)
const unavailable = new StoreUnavailable({ message: "lost" })

/** The texts of a reply that is a list. */
const listOf = async (...command: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
  const reply: unknown = await client.sendCommand([...command])
  return Array.isArray(reply) ? reply.map(String) : []
}

/** A store without heartbeats; `lost` drops replies. Its clock differs from the node's by `offset` milliseconds. */
const nodeStore = (node: string, lost: () => boolean = () => false, offset = 0) => {
  const send = (command: string, ...args: ReadonlyArray<string>) =>
    Effect.tryPromise({
      try: async (): Promise<unknown> => {
        const reply: unknown = await client.sendCommand([command, ...args])
        if (lost()) throw unavailable
        return reply
      },
      catch: () => unavailable
    })
  return {
    secrets: encryption,
    isUp: () => true,
    clockOffset: () => offset,
    send,
    run: (name: ScriptName, ...args: ReadonlyArray<string>) =>
      Effect.map(
        send("EVAL", scripts[name].lua, "0", "", node, "", ...args),
        (reply) => (reply as Array<unknown>).map(String)
      )
  }
}

const inStore = (mostSessions?: number): Made =>
  Effect.gen(function*() {
    yield* Effect.promise(() => client.sendCommand(["FLUSHALL"]))
    const first = yield* Scope.make()
    return {
      store: yield* Scope.provide(makeRedisStore(nodeStore("one"), { mostSessions }), first),
      restarted: Effect.andThen(Scope.close(first, Exit.void), makeRedisStore(nodeStore("one")))
    }
  })

// Usage in windows is counted at admission.
storeSuite("redis", inStore(), { counts: false, small: inStore(3) })

describe("usage of several nodes over a store", () => {
  it.effect("has a bounded number of agents for a session, and counts the requests of all", () => manyAgents(inStore()))

  it.effect("is reported by each node a second after a request on another", () =>
    Effect.gen(function*() {
      yield* Effect.promise(() => client.sendCommand(["FLUSHALL"]))
      yield* TestClock.setTime(start)
      const [one, other] = [yield* makeRedisStore(nodeStore("one")), yield* makeRedisStore(nodeStore("other"))]
      const requests = (store: typeof one) => Effect.map(store.query(everything), ({ totals }) => totals.values[0])
      for (let i = 0; i < 3; i++) one.add(entry())
      other.add(entry({ error: "upstream_error", outcome: "failed" }))
      assert.strictEqual(yield* requests(one), 3)
      assert.strictEqual(yield* requests(other), 4)
      assert.strictEqual(yield* requests(one), 4)
      assert.deepStrictEqual(yield* one.status, { kind: "redis", persistent: true, detail: null })
      yield* Effect.promise(() => client.sendCommand(["CONFIG", "SET", "appendonly", "no"]))
      const { detail, persistent } = yield* one.status
      assert.isFalse(persistent)
      assert.match(detail ?? "", /appendonly no/)
      yield* Effect.promise(() => client.sendCommand(["CONFIG", "SET", "appendonly", "yes"]))
    }))

  it.effect("is summed once for each day that is over, and again after what ends later", () =>
    summedDays(inStore(), (before) =>
      Effect.promise(async () => {
        for (const hour of await listOf("ZRANGEBYSCORE", "gw:{main}:usage:hours", "-inf", `(${before}`)) {
          await client.sendCommand(["DEL", `gw:{main}:usage:h:${hour}`])
        }
        return (await listOf("ZRANGE", "gw:{main}:usage:days", "0", "-1")).map(Number)
      })))

  it.effect("of a day that changes while it is summed has no sums, until the day is summed again", () =>
    Effect.gen(function*() {
      yield* Effect.promise(() => client.sendCommand(["FLUSHALL"]))
      yield* TestClock.setTime(start + 2 * dayLength)
      yield* Effect.promise(() => client.sendCommand(["SET", "gw:{main}:usage:tidy", "another node"]))
      const one = yield* makeRedisStore(nodeStore("one"))
      const connection = nodeStore("other")
      const other = yield* makeRedisStore({
        ...connection,
        // What another node writes between the reading of the day and its sums.
        run: (name, ...args) =>
          Effect.andThen(
            args[0] === "sum" ? Effect.asVoid(one.query(everything)) : Effect.void,
            connection.run(name, ...args)
          )
      })
      const summed = Effect.promise(() => listOf("ZRANGE", "gw:{main}:usage:days", "0", "-1"))
      const byModel = Effect.map(other.query({ ...everything, by: ["model"] }), ({ totals }) => totals.values[0])
      other.add(entry())
      assert.strictEqual(yield* byModel, 1)
      one.add(entry())
      yield* other.compact
      assert.deepStrictEqual(yield* summed, [])
      assert.strictEqual(yield* byModel, 2)
      yield* other.compact
      assert.deepStrictEqual(yield* summed, [String(dayOf(start))])
      assert.strictEqual(yield* byModel, 2)
    }))

  it.effect("has no sums of days whose hours are merged or removed", () =>
    Effect.gen(function*() {
      yield* Effect.promise(() => client.sendCommand(["FLUSHALL"]))
      yield* Effect.promise(() => client.sendCommand(["SET", "gw:{main}:usage:tidy", "another node"]))
      /** Adds an entry on some days, and compacts a day after the last one. Returns the requests, and the days that have sums. */
      const compacted = Effect.fnUntraced(function*(days: ReadonlyArray<number>) {
        yield* TestClock.setTime(start + (days.at(-1)! + 1) * dayLength)
        const store = yield* makeRedisStore(nodeStore("one"))
        const requests = Effect.map(store.query({ ...everything, by: ["model"] }), ({ totals }) => totals.values[0])
        for (const day of days) store.add(entry({ at: start + day * dayLength }))
        yield* requests
        yield* store.compact
        const sums = yield* Effect.promise(() => listOf("KEYS", "gw:{main}:usage:d:*"))
        return [yield* requests, sums.length / historyNames.length]
      }, Effect.scoped)
      assert.deepStrictEqual(yield* compacted([0, 1, 2, 3, 4, 5]), [6, 6])
      // The hours of the first five days are merged: usage of later days confirms the time.
      assert.deepStrictEqual(yield* compacted([92, 93, 94]), [9, 4])
      // All before them are removed.
      assert.deepStrictEqual(yield* compacted([497, 498, 499]), [3, 3])
    }))

  it.effect("is removed by no node whose clock differs from the store's by days", () =>
    Effect.gen(function*() {
      yield* Effect.promise(() => client.sendCommand(["FLUSHALL"]))
      yield* TestClock.setTime(start + 500 * dayLength)
      // The nodes compact at the test's command alone.
      yield* Effect.promise(() => client.sendCommand(["SET", "gw:{main}:usage:tidy", "another node"]))
      const one = yield* makeRedisStore(nodeStore("one"))
      // Usage of every day up to the wrong time: only the store's time shows that it is wrong.
      for (let day = 0; day <= 500; day++) one.add(entry({ at: start + day * dayLength }))
      assert.strictEqual((yield* one.query(everything)).totals.values[0], 501)
      for (const offset of [-500, -2, 2, 500]) {
        const other = yield* makeRedisStore(nodeStore("other", undefined, offset * dayLength))
        yield* other.compact
        assert.strictEqual((yield* other.query(everything)).totals.values[0], 501, `${offset} days`)
      }
      yield* one.compact
      assert.strictEqual((yield* one.query(everything)).totals.values[0], 401)
    }))

  it.effect("is written once although the reply of a write was lost", () =>
    Effect.gen(function*() {
      yield* Effect.promise(() => client.sendCommand(["FLUSHALL"]))
      yield* TestClock.setTime(start)
      let isLost = false
      const one = yield* makeRedisStore(nodeStore("one", () => isLost))
      const other = yield* makeRedisStore(nodeStore("other"))
      one.add(entry())
      isLost = true
      const alone = yield* one.query(everything)
      assert.strictEqual(alone.totals.values[0], 1)
      assert.match((yield* one.status).detail ?? "", /does not answer/)
      one.add(entry())
      isLost = false
      assert.strictEqual((yield* one.query(everything)).totals.values[0], 2)
      assert.strictEqual((yield* other.query(everything)).totals.values[0], 2)
      assert.isNull((yield* one.status).detail)
    }))

  it.effect("has short names as long as there is one upstream", () =>
    Effect.gen(function*() {
      yield* Effect.promise(() => client.sendCommand(["FLUSHALL"]))
      yield* TestClock.setTime(start)
      const hash = `gw:{main}:usage:h:${start}`
      const fields = () => Effect.promise((): Promise<unknown> => client.sendCommand(["HKEYS", hash]))
      const own = entry()
      const named = entry({ answerer: { upstream: "gpu", target: "gpu/own" } })
      const store = yield* makeRedisStore(nodeStore("one"))
      store.add(own)
      yield* store.query(everything)
      const shortName = [own.key, own.model, own.account, own.style].join("\u0000")
      assert.deepStrictEqual(yield* fields(), [shortName])
      store.add({ ...own, app: "codex" })
      yield* store.query(everything)
      const [, longName] = ((yield* fields()) as ReadonlyArray<string>).toSorted((a, b) => a.length - b.length)
      assert.strictEqual(longName, [shortName, "default", "default/upstream-chat", "codex"].join("\u0000"))
      store.add(named)
      const { rows } = yield* store.query({ ...everything, by: ["upstream", "target"] })
      assert.deepStrictEqual(rows.map(({ sums, target, upstream }) => [upstream, target, sums.values[0]]), [
        ["default", "default/upstream-chat", 2],
        ["gpu", "gpu/own", 1]
      ])
    }))

  it.effect("is not kept if the history is disabled", () =>
    Effect.gen(function*() {
      let enabled = false
      const store = yield* makeRedisStore(nodeStore("one"), { enabled: () => enabled })
      yield* Effect.promise(() => client.sendCommand(["FLUSHALL"]))
      store.add(entry())
      assert.deepStrictEqual(yield* store.status, { kind: "off", persistent: false, detail: null })
      enabled = true
      assert.strictEqual((yield* store.query(everything)).totals.values[0], 0)
    }))
})
