import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"
import { parseStoreAddress, storeAddressFault } from "../../src/cluster/store/address.ts"
import { makeEncryption } from "../../src/cluster/store/encryption.ts"
import { makeStore } from "../../src/cluster/store/makeStore.ts"
import { collectLogs } from "../config/support.ts"
import { closedPort } from "../several/support.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import { command, connect, redisServer } from "../support/redisServer.ts"
import { pageText } from "../support/snippets.ts"
import { until, untilTrue } from "../support/until.ts"
import { claimOf } from "./scripts.ts"
import { poolsPlace, settledServer, storedPool, storeKey, storeNode } from "./support.ts"

describe("the address of a store", () => {
  it("is logged and shown without credentials", () => {
    const address = parseStoreAddress("rediss://ann:se%2Fcret@store.example:7000/3")
    assert.deepStrictEqual(address, {
      socket: { host: "store.example", port: 7000, tls: true },
      username: "ann",
      password: "se/cret",
      database: 3,
      shown: "rediss://store.example:7000/3"
    })
    assert.deepStrictEqual(parseStoreAddress("unix://:pw@/run/redis.sock?db=2"), {
      socket: { path: "/run/redis.sock", tls: false },
      username: undefined,
      password: "pw",
      database: 2,
      shown: "unix:///run/redis.sock?db=2"
    })
  })

  it("lists sentinels with the name of the primary, or nodes of a cluster", () => {
    const sentinels = parseStoreAddress(
      "rediss+sentinel://ann:se%2Fcret@one:7000,two,[::1]:7002/main/3?sentinel_user=bob&sentinel_password=hidden%26"
    )
    assert.deepStrictEqual(sentinels, {
      guides: [{ host: "one", port: 7000 }, { host: "two", port: 26379 }, { host: "::1", port: 7002 }],
      tls: true,
      sentinel: { name: "main", username: "bob", password: "hidden&" },
      username: "ann",
      password: "se/cret",
      database: 3,
      shown: "rediss+sentinel://one:7000,two:26379,[::1]:7002/main/3"
    })
    assert.deepStrictEqual(parseStoreAddress("redis+cluster://:p@ss@one,two:7001"), {
      guides: [{ host: "one", port: 6379 }, { host: "two", port: 7001 }],
      tls: false,
      sentinel: undefined,
      username: undefined,
      password: "p@ss",
      database: 0,
      shown: "redis+cluster://one:6379,two:7001"
    })
  })

  it("has the forms of the documentation", () => {
    const addresses = pageText("docs/operate/store.md").match(/rediss?(?:\+\w+)?:\/\/[^'\s]+/g) ?? []
    assert.isAtLeast(addresses.length, 3)
    for (const address of addresses) assert.isDefined(parseStoreAddress(address), address)
  })

  it("is rejected in an unknown form, with a message that shows nothing of it", () => {
    const faults = {
      "redis+sentinel://:hidden@one:26379": "must name the primary as the sentinels do",
      "redis+sentinel://one/hidden/x": "must end with /NAME or /NAME/db",
      "redis+sentinel://one,/main": "must list its servers as host:port",
      "redis+sentinel://one:hidden/main": "must list its servers as host:port",
      "redis+sentinel://one/main?password=hidden": "takes sentinel_user and sentinel_password",
      "redis+cluster://:hidden@one/1": "a cluster has only database 0",
      "redis+cluster://:hidden@": "must list its servers as host:port",
      "http://:hidden@one": "must be redis://"
    }
    for (const [address, fault] of Object.entries(faults)) {
      assert.isUndefined(parseStoreAddress(address), address)
      assert.include(storeAddressFault(address), fault)
      assert.notInclude(storeAddressFault(address), "hidden")
    }
    for (const text of ["", "store", "http://store", "redis://", "redis://h/x", "unix://relative"]) {
      assert.isUndefined(parseStoreAddress(text), text)
    }
  })
})

describe("encryption of values in the store", () => {
  it("decrypts a value only at its place and with its key", () => {
    const seals = makeEncryption("the key", undefined)
    const sealed = seals.seal("here", "a secret ü")
    assert.strictEqual(seals.open("here", sealed), "a secret ü")
    assert.notInclude(Buffer.from(sealed, "base64url").toString("latin1"), "secret")
    assert.notStrictEqual(seals.seal("here", "a secret ü"), sealed)
    assert.isUndefined(seals.open("there", sealed))
    assert.isUndefined(makeEncryption("another key", undefined).open("here", sealed))
    const other = sealed.at(-2) === "A" ? "B" : "A"
    assert.isUndefined(seals.open("here", sealed.slice(0, -2) + other + sealed.slice(-1)))
    assert.isUndefined(seals.open("here", ""))
  })

  it("decrypts and recognizes values of the previous key", () => {
    const old = makeEncryption("old", "new")
    const rotated = makeEncryption("new", "old")
    const sealed = old.seal("here", "text")
    assert.strictEqual(rotated.open("here", sealed), "text")
    assert.isTrue(rotated.isOld("here", sealed))
    assert.isFalse(rotated.isOld("here", rotated.seal("here", "text")))
    assert.strictEqual(old.open("here", rotated.seal("here", "text")), "text")
  })
})

describe("a node of a store", () => {
  it.live("shares pseudonyms with other nodes and has a unique id", () =>
    Effect.gen(function*() {
      const server = yield* redisServer()
      const one = yield* storeNode(server, "one")
      const two = yield* storeNode(server, "two", { url: Redacted.make(`unix://${server.socket}`) })
      assert.strictEqual(two.store.status().url, `unix://${server.socket}`)
      assert.strictEqual(one.store.secrets.nameOf("account"), two.store.secrets.nameOf("account"))
      assert.deepInclude(one.store.status(), { state: "up", url: server.url })
      const taken = yield* Effect.flip(Effect.scoped(storeNode(server, "one")))
      assert.strictEqual(
        taken.message,
        "GATEWAY_NODE_ID one is in use by a running node: stop that one, or choose another name"
      )
      // The running node is not affected by the rejected one.
      yield* one.store.run("cleaned", "nothing")
      yield* until(() => two.heard.includes("cleaned nothing"))
    }))

  it.effect("logs after a second why it waits for its server, and gives up after 30 seconds", () =>
    Effect.gen(function*() {
      const url = `redis://127.0.0.1:${closedPort}`
      const logs: Array<string> = []
      const starting = yield* Effect.forkChild(
        Effect.flip(makeStore({ url: Redacted.make(url), key: Redacted.make(storeKey) })).pipe(
          Effect.provide(collectLogs(logs))
        )
      )
      yield* TestClock.adjust("999 millis")
      assert.deepStrictEqual(logs, [])
      // The refusal of the real connection has no clock of the test: the warning has it, or comes before it.
      yield* TestClock.adjust("1 millis")
      assert.lengthOf(logs, 1)
      assert.match(logs[0]!, new RegExp(`^Waiting for the store: cannot connect to the store at ${url}`))
      yield* TestClock.adjust("30 seconds")
      assert.match((yield* Fiber.join(starting)).message, new RegExp(`^cannot connect to the store at ${url}`))
      assert.lengthOf(logs, 1)
    }).pipe(Effect.scoped))

  it.live("is rejected with another key, by data of another format, or if the server may evict keys", () =>
    Effect.gen(function*() {
      const server = yield* redisServer()
      yield* Effect.scoped(storeNode(server, "one"))
      const error = yield* Effect.flip(
        Effect.scoped(storeNode(server, "two", { key: Redacted.make("0123456789abcdef") }))
      )
      assert.include(error.message, "store key does not decrypt")
      const client = yield* Effect.promise(() => connect(server.socket))
      const format = ["HINCRBY", "gw:{main}:lim", "format"]
      yield* Effect.promise(() => client.sendCommand([...format, "1"]))
      assert.strictEqual(
        (yield* Effect.flip(Effect.scoped(storeNode(server, "two")))).message,
        "the data of the store has format 2, and this version reads format 1: start the version that wrote it, or use an empty store"
      )
      yield* Effect.promise(() => client.sendCommand([...format, "-1"]))
      // Without a memory limit the server evicts nothing.
      yield* Effect.promise(() => client.sendCommand(["CONFIG", "SET", "maxmemory-policy", "volatile-lru"]))
      yield* Effect.scoped(storeNode(server, "two"))
      yield* Effect.promise(() => client.sendCommand(["CONFIG", "SET", "maxmemory", "100mb"]))
      for (const policy of ["allkeys-lru", "volatile-lru", "volatile-ttl", "volatile-random"]) {
        yield* Effect.promise(() => client.sendCommand(["CONFIG", "SET", "maxmemory-policy", policy]))
        const evicting = yield* Effect.flip(Effect.scoped(storeNode(server, "two")))
        assert.include(evicting.message, `may evict keys (maxmemory-policy ${policy}): use noeviction`)
      }
      client.destroy()
    }))

  it.live("reports within a minute that the server may evict keys", () =>
    Effect.gen(function*() {
      const clock = makeMovedClock()
      const logs: Array<string> = []
      const server = yield* settledServer
      yield* Effect.gen(function*() {
        const { heard, store } = yield* storeNode(server, "one")
        const beats = () => heard.filter((event) => event === "beat").length
        const client = yield* Effect.promise(() => connect(server.socket))
        const set = (setting: string, value: string) =>
          Effect.promise(() => command(client, "CONFIG", "SET", setting, value))
        yield* set("maxmemory-policy", "volatile-lru")
        clock.move(60_000)
        yield* untilTrue(Effect.promise(async () =>
          String(await command(client, "INFO", "commandstats")).includes("cmdstat_info:calls=2")
        ))
        // The node has read the answer before its next beat: a minute that passes earlier would not count.
        const before = beats()
        yield* until(() =>
          beats() > before
        )
        // Without a memory limit the server evicts nothing.
        assert.isUndefined(store.status().detail)
        yield* set("maxmemory", "100mb")
        clock.move(60_000)
        const detail = "The store may evict keys (maxmemory-policy volatile-lru): use noeviction"
        yield* until(() => store.status().detail === detail)
        assert.include(logs, detail)
        yield* set("maxmemory-policy", "noeviction")
        clock.move(60_000)
        yield* until(() => store.status().detail === undefined)
        client.destroy()
      }).pipe(Effect.provideService(Clock.Clock, clock), Effect.provide(collectLogs(logs)))
    }))

  it.live("works while the key is rotated, one node after another", () =>
    Effect.gen(function*() {
      const server = yield* redisServer()
      const [old, next] = [Redacted.make("the old key, long enough"), Redacted.make("the new key, long enough")]
      const first = yield* storeNode(server, "one", { key: old })
      const ready = yield* storeNode(server, "two", { key: old, previousKey: next })
      const rotated = yield* storeNode(server, "three", { key: next, previousKey: old })
      const name = first.store.secrets.nameOf("account")
      assert.strictEqual(ready.store.secrets.nameOf("account"), name)
      assert.strictEqual(rotated.store.secrets.nameOf("account"), name)
      assert.strictEqual(ready.store.secrets.open("place", rotated.store.secrets.seal("place", "text")), "text")
      // All values are encrypted with the new key, so the old one is no longer needed.
      const last = yield* storeNode(server, "four", { key: next })
      assert.strictEqual(last.store.secrets.nameOf("account"), name)
    }))

  it.live("detects the loss of the store, and reattaches with or without its data", () =>
    Effect.gen(function*() {
      const server = yield* redisServer()
      const { heard, store } = yield* storeNode(server, "one")
      const name = store.secrets.nameOf("account")
      store.membership.holds(
        () => ({
          leases: [["t1", name, 7, "default"]],
          tickets: [["t2", 3, 5, claimOf([{ pool: "default", request: "A" }])]]
        }),
        () => ({
          leases: 1,
          tickets: 1,
          unsettled: 0
        })
      )
      yield* Effect.promise(() => server.stop(true))
      yield* until(() => heard.includes("lost"))
      assert.strictEqual((yield* Effect.flip(store.run("cleaned", "x")))._tag, "StoreUnavailable")
      yield* Effect.promise(() => server.start())
      yield* until(() => heard.includes("up"))
      assert.notInclude(heard, "restored")
      yield* Effect.promise(() => server.stop())
      yield* until(() => heard.filter((line) => line === "lost").length === 2)
      yield* Effect.promise(() => server.start())
      yield* until(() => heard.filter((line) => line === "up").length === 2)
      assert.include(heard, "restored")
      assert.strictEqual(store.secrets.nameOf("account"), name)
      assert.deepInclude(storedPool(yield* store.send("HGET", poolsPlace, "default")), { in_use: 1, waiting: 1 })
      assert.deepStrictEqual(yield* store.send("HMGET", "gw:{main}:sum", "given", "numbered"), ["7", "3"])
    }))
})

describe("a node whose subscription is refused", () => {
  it.live("subscribes as soon as it is permitted", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const operator = yield* Effect.promise(() => connect(server.socket))
      const say = (...args: ReadonlyArray<string>) => Effect.promise(() => command(operator, ...args))
      yield* say("ACL", "SETUSER", "operator", "on", "nopass", "allkeys", "allchannels", "+@all")
      yield* say("AUTH", "operator", "any")
      const { heard, store } = yield* storeNode(server, "one")
      yield* say("ACL", "SETUSER", "default", "resetchannels")
      // The data is gone, so the node subscribes to another channel.
      yield* say("FLUSHALL")
      yield* until(() => heard.includes("restored"))
      yield* say("ACL", "SETUSER", "default", "allchannels")
      yield* untilTrue(Effect.map(say("PUBSUB", "CHANNELS"), (channels) => String(channels).includes(":one")))
      yield* store.run("tell", "*", "cleaned nothing")
      yield* until(() => heard.includes("cleaned nothing"))
      operator.destroy()
    }))
})
