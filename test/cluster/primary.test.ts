import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { newestOf, readCluster, readSentinel } from "../../src/cluster/store/primary.ts"
import { ask, sentinelGroup } from "../support/redisGroups.ts"
import { redisServer } from "../support/redisServer.ts"
import { until, untilTrue } from "../support/until.ts"
import { storeNode } from "./support.ts"

describe("the primary of a store", () => {
  it("is read from a sentinel's reply", () => {
    const reply = ["name", "main", "ip", "10.0.0.1", "port", "6379", "flags", "master", "config-epoch", "12"]
    assert.deepStrictEqual(readSentinel(reply), {
      primary: { host: "10.0.0.1", port: 6379 },
      epoch: 12,
      others: []
    })
  })

  it("is the one of the newest epoch, and never an older one while a server does not answer", () => {
    const [old, next] = [1, 2].map((epoch) => ({ primary: { host: `of ${epoch}`, port: 1 }, epoch, others: [] }))
    const none = { primary: undefined, epoch: 9, others: [] }
    assert.strictEqual(newestOf([old, next, none], 1), next)
    assert.strictEqual(newestOf([undefined, old], 1), old)
    assert.isUndefined(newestOf([undefined, old], 2))
    // Sentinels that were set up anew begin with the first epoch.
    assert.strictEqual(newestOf([old, old], 2), old)
    assert.isUndefined(newestOf([none, undefined], -1))
  })

  it("is the node of a cluster that has the slot of the keys, by the newest epoch", () => {
    const lines = [
      "a1 10.0.0.1:7000@17000,one.example myself,master - 0 0 1 connected 0-8191",
      "b2 10.0.0.2:7000@17000,two.example master,fail - 0 0 2 disconnected 8192-16383",
      "c3 10.0.0.3:7000@17000,three.example master - 0 0 7 connected 12000-12600 [12700->-a1]",
      "d4 :0@0 slave,noaddr a1 0 0 1 disconnected",
      ""
    ]
    const asked = { host: "127.0.0.1", port: 7000 }
    const nodes = [{ host: "10.0.0.1", port: 7000 }, { host: "10.0.0.3", port: 7000 }]
    assert.deepStrictEqual(readCluster(lines.join("\n"), asked, false), { primary: nodes[1], epoch: 7, others: nodes })
    // Certificates have the names.
    assert.deepStrictEqual(readCluster(lines.join("\n"), asked, true).primary, { host: "three.example", port: 7000 })
    // A node that knows no address of itself is where it was asked.
    const alone = "a1 :7000@17000 myself,master - 0 0 1 connected 0-16383"
    assert.deepStrictEqual(readCluster(alone, asked, false).primary, asked)
    assert.isUndefined(readCluster("a1 :7000@17000 myself,master - 0 0 1 connected 0-100", asked, false).primary)
  })
})

describe("nodes of a store behind sentinels", () => {
  it.live("follow a failover with their claims, messages and credentials", () =>
    Effect.gen(function*() {
      const group = yield* sentinelGroup
      const rejected = (address: string) =>
        Effect.map(
          Effect.flip(Effect.scoped(storeNode(group.first, "none", { url: Redacted.make(address) }))),
          ({ message }) => message
        )
      const of = "the sentinels of GATEWAY_STORE_URL"
      assert.strictEqual(yield* rejected(group.url), `${of} refuse the credentials`)
      assert.strictEqual(
        yield* rejected(`${group.url}ly${group.query}`),
        `${of} know no primary of its name`
      )
      const url = Redacted.make(group.url + group.query)
      const one = yield* storeNode(group.first, "one", { url })
      const two = yield* storeNode(group.first, "two", { url })
      assert.strictEqual(one.store.status().url, group.url.replace(/\/\/.*@/, "//"))
      one.store.holds(() => ({ leases: [["t1", "of one", 7]], tickets: [["t2", "A", 3, 60_000, 5, "chat"]] }), () => ({
        leases: 1,
        tickets: 1,
        unsettled: 0
      }))
      let data = 0
      two.store.bringsBack(({ at, isEmpty }) =>
        Effect.sync(() => {
          data = isEmpty ? 0 : at
        })
      )
      yield* Effect.promise(() => group.handOver())
      yield* Effect.promise(() => group.untilHandedOver())
      yield* until(() => one.heard.includes("up") && two.heard.includes("up"))
      yield* untilTrue(Effect.map(one.store.send("EXISTS", "gw:{main}:quiet"), (count) => count === 0))
      assert.isAbove(data, 0)
      assert.deepStrictEqual(yield* two.store.send("HGETALL", "gw:{main}:leases:one"), ["t1", "7 of one"])
      assert.deepStrictEqual(yield* two.store.send("HMGET", "gw:{main}:sum", "in_use", "waiting"), ["1", "1"])
      // New numbers are beyond all that the lost writes may have given.
      const [given] = (yield* two.store.send("HMGET", "gw:{main}:sum", "given")) as ReadonlyArray<string>
      assert.isAbove(Number(given), 1_000_000)
      yield* one.store.run("tell", "hello there")
      yield* until(() => two.heard.includes("hello there"))
      assert.match(String(yield* Effect.promise(() => ask(group.second, "INFO", "replication"))), /role:master/)
    }))
})

describe("an address of another kind of server", () => {
  it.live("is rejected with the kind to use", () =>
    Effect.gen(function*() {
      const server = yield* redisServer("--cluster-enabled", "yes")
      const reject = (url: string) =>
        Effect.map(
          Effect.flip(Effect.scoped(storeNode(server, "one", { url: Redacted.make(url) }))),
          ({ message }) => message
        )
      assert.include(yield* reject(`redis+sentinel://127.0.0.1:${server.port}/main`), "are no sentinels")
      const plain = yield* redisServer()
      assert.include(yield* reject(`redis+cluster://127.0.0.1:${plain.port}`), "are no cluster: use redis://")
    }))
})
