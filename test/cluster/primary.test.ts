import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { type GuidedAddress, parseStoreAddress } from "../../src/cluster/store/address.ts"
import {
  majorityOf,
  makePrimarySearch,
  newestOf,
  readCluster,
  readSentinel,
  searchesToOverrule
} from "../../src/cluster/store/primary.ts"
import { collectLogs } from "../config/support.ts"
import { type Guide, sentinelReply, startGuide } from "../support/guides.ts"
import { ask, sentinelGroup } from "../support/redisGroups.ts"
import { redisServer } from "../support/redisServer.ts"
import { until, untilTrue } from "../support/until.ts"
import { claimOf } from "./scripts.ts"
import { poolsPlace, storedLease, storedPool, storeNode } from "./support.ts"

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

  it("is named by a majority if more than half of all servers name it, those without an answer included", () => {
    const [old, next] = [1, 2].map((epoch) => ({ primary: { host: `of ${epoch}`, port: 1 }, epoch, others: [] }))
    const newerOld = { ...old!, epoch: 7 }
    assert.strictEqual(majorityOf([next, old, newerOld]), newerOld)
    assert.isUndefined(majorityOf([undefined, undefined, old]))
    assert.isUndefined(majorityOf([old, next]))
    assert.strictEqual(majorityOf([undefined, old, old]), old)
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

/**
 * Searches the primary of an address; the result is the port of the primary, or `undefined` without one. Each server answers or refuses
 * the connection, so no answer is waited for in vain, however slow the machine is.
 */
const searchOf = (url: string) =>
  Effect.map(
    makePrimarySearch(parseStoreAddress(url) as GuidedAddress, 60_000),
    (search) => Effect.match(search, { onFailure: () => undefined, onSuccess: ({ port }) => port })
  )

const times = <A>(count: number, effect: Effect.Effect<A>) =>
  Effect.forEach(Array.from({ length: count }), () => effect)

const [older, newer] = [1, 2]

/** A node's line in the reply of a cluster. */
const line = ({ port }: Guide, epoch: number, slots = "") =>
  `id${port} 127.0.0.1:${port}@1 master - 0 0 ${epoch} connected ${slots}`
const all = "0-16383"

describe("a search that most servers answer in another way than the newest answer", () => {
  const startSentinels = Effect.gen(function*() {
    const guides = yield* Effect.all([startGuide, startGuide, startGuide])
    const search = yield* searchOf(`redis+sentinel://${guides.map(({ port }) => `127.0.0.1:${port}`).join(",")}/main`)
    return { guides, search }
  })

  it.live("follows the majority once the sentinel with the newer epoch is dead, and logs it once", () => {
    const logs: Array<string> = []
    return Effect.gen(function*() {
      const { guides: [first, ...others], search } = yield* startSentinels
      first!.says(sentinelReply(older, 9))
      for (const other of others) other.says(sentinelReply(older, 8))
      assert.strictEqual(yield* search, older)
      for (const other of others) other.says(sentinelReply(newer, 8))
      first!.dies()
      const found = yield* times(searchesToOverrule + 3, search)
      assert.deepStrictEqual(found.slice(0, searchesToOverrule - 1), Array(searchesToOverrule - 1).fill(undefined))
      assert.deepStrictEqual(found.slice(searchesToOverrule - 1), Array(4).fill(newer))
      assert.lengthOf(logs, 1)
      assert.include(logs[0], "most servers name")
    }).pipe(Effect.scoped, Effect.provide(collectLogs(logs)))
  })

  it.live("follows the majority against a sentinel that is cut off from the others, even when that one returns", () => {
    const logs: Array<string> = []
    return Effect.gen(function*() {
      const { guides: [first, ...others], search } = yield* startSentinels
      first!.says(sentinelReply(older, 9))
      for (const other of others) other.says(sentinelReply(newer, 8))
      const found = yield* times(searchesToOverrule, search)
      assert.deepStrictEqual(found, [...Array(searchesToOverrule - 1).fill(older), newer])
      assert.deepStrictEqual(yield* times(3, search), [newer, newer, newer])
      first!.says("nothing")
      assert.strictEqual(yield* search, newer)
      first!.says(sentinelReply(older, 9))
      assert.strictEqual(yield* search, newer)
      assert.lengthOf(logs, 1)
      // A failover is news.
      first!.says(sentinelReply(older, 10))
      assert.strictEqual(yield* search, older)
    }).pipe(Effect.scoped, Effect.provide(collectLogs(logs)))
  })

  it.live("follows a failover immediately that one sentinel knows first", () =>
    Effect.gen(function*() {
      const { guides: [first, ...others], search } = yield* startSentinels
      for (const other of [first!, ...others]) other.says(sentinelReply(older, 8))
      assert.strictEqual(yield* search, older)
      first!.says(sentinelReply(newer, 9))
      assert.deepStrictEqual(yield* times(searchesToOverrule - 1, search), Array(searchesToOverrule - 1).fill(newer))
      for (const other of others) other.says(sentinelReply(newer, 9))
      assert.deepStrictEqual(yield* times(searchesToOverrule, search), Array(searchesToOverrule).fill(newer))
    }).pipe(Effect.scoped))

  it.live("does not wait for a dead node of a cluster that the others have removed", () =>
    Effect.gen(function*() {
      const guides = yield* Effect.all([startGuide, startGuide, startGuide])
      const [listed, , removed] = guides
      for (const { says } of guides) says([line(guides[0]!, 1), line(guides[1]!, 2), line(removed!, 9, all)].join("\n"))
      const search = yield* searchOf(`redis+cluster://127.0.0.1:${listed!.port}`)
      assert.deepStrictEqual(yield* times(2, search), [removed!.port, removed!.port])
      removed!.dies()
      for (const { says } of guides) says([line(guides[0]!, 1, all), line(guides[1]!, 2)].join("\n"))
      assert.strictEqual(yield* search, listed!.port)
    }).pipe(Effect.scoped))

  it.live("stays with the newer primary of a cluster while a single node that is cut off names the older one", () =>
    Effect.gen(function*() {
      const guides = yield* Effect.all([startGuide, startGuide, startGuide])
      const [listed, next, third] = guides
      for (const { says } of guides) says([line(listed!, 1), line(next!, 2, all), line(third!, 0)].join("\n"))
      const search = yield* searchOf(`redis+cluster://127.0.0.1:${listed!.port}`)
      assert.deepStrictEqual(yield* times(2, search), [next!.port, next!.port])
      next!.dies()
      third!.dies()
      listed!.says(line(listed!, 1, all))
      const found = yield* times(2 * searchesToOverrule, search)
      assert.deepStrictEqual(found, Array(2 * searchesToOverrule).fill(undefined))
    }).pipe(Effect.scoped))
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
      one.store.membership.holds(
        () => ({
          leases: [["t1", "one", 7, "default"]],
          tickets: [["t2", 3, 5, claimOf([{ pool: "default", request: "A" }])]]
        }),
        () => ({
          leases: 1,
          tickets: 1,
          unsettled: 0
        })
      )
      let data = 0
      two.store.membership.bringsBack(({ at, isEmpty }) =>
        Effect.sync(() => {
          data = isEmpty ? 0 : at
        })
      )
      yield* Effect.promise(() => group.handOver())
      yield* Effect.promise(() => group.untilHandedOver())
      yield* until(() => one.heard.includes("up") && two.heard.includes("up"))
      yield* untilTrue(Effect.map(one.store.send("EXISTS", "gw:{main}:quiet"), (count) => count === 0))
      assert.isAbove(data, 0)
      assert.deepInclude(storedLease(yield* two.store.send("HGET", "gw:{main}:leases:one", "t1")), {
        account: "one",
        fence: 7,
        pool: "default"
      })
      assert.deepInclude(storedPool(yield* two.store.send("HGET", poolsPlace, "default")), { in_use: 1, waiting: 1 })
      // New numbers are beyond all that the lost writes may have given.
      const [given] = (yield* two.store.send("HMGET", "gw:{main}:sum", "given")) as ReadonlyArray<string>
      assert.isAbove(Number(given), 1_000_000)
      yield* one.store.run("tell", "*", "cleaned nothing")
      yield* until(() => two.heard.includes("cleaned nothing"))
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
