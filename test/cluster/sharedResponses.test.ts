/** Stored responses of two nodes over one store. */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as fc from "fast-check"
import { pieceBytes } from "../../src/cluster/store/encryption.ts"
import type { StoreOptions, StoreShape } from "../../src/cluster/store/Store.ts"
import { StoreUnavailable } from "../../src/cluster/store/StoreShape.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { ResponsesStore } from "../../src/styles/responses/store/ResponsesStore.ts"
import { layerSharedResponses, makeSharedResponses } from "../../src/styles/responses/store/sharedResponses.ts"
import { runs } from "../support/effort.ts"
import { command, connect, listOf, type RedisServer } from "../support/redisServer.ts"
import { sentDuring, settledServer, storeKey, storeLayer, storeNode } from "./support.ts"

const responses = (
  server: RedisServer,
  node: string,
  limits: { readonly stored_responses?: number; readonly stored_bytes?: number } = {},
  options: Partial<StoreOptions> = {}
) =>
  Effect.map(
    Layer.build(
      layerSharedResponses.pipe(
        Layer.provide(storeLayer(server, node, options)),
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

/** The stored responses of a node with a modified store. */
const responsesOver = (store: StoreShape, other: Partial<StoreShape>) =>
  Effect.map(
    Layer.build(ConfigStore.layerJson({ responses: { store_ttl_seconds: 30 } })),
    (context) => makeSharedResponses({ ...store, ...other }, Context.get(context, ConfigStore), () => undefined)
  )

const unavailable = Effect.fail(new StoreUnavailable({ message: "The store does not answer" }))

/** A body of two chunks. */
const ofTwoPieces = `${"x".repeat(pieceBytes)}${"y".repeat(9)}`

/** The chunks on the server. */
const piecesAt = (server: RedisServer) =>
  Effect.promise(async () => {
    const client = await connect(server.socket)
    const pieces = await listOf(client, "KEYS", "gw:{main}:item:*")
    client.destroy()
    return pieces
  })

describe("stored responses of two nodes", () => {
  it.live("are read, continued and removed on every node, by their owner only", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
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

  it.live("say by which account a server has them too, whatever their bodies end with", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const one = yield* responses(server, "one")
      const other = yield* responses(server, "other")
      const heldBy = (organization?: string) => ({ upstream: "gpu", account: "0123456789ab", organization })
      const bodies = [
        "{\"status\":\"completed\"}",
        "{\"a\":1,\"held_by\":[\"x\",\"y\"]}",
        "{\"a\":1,\"held_by\":null}",
        "{\"a\":1,\"held_by\":3}",
        "{\"a\":{\"b\":1,\"held_by\":[\"x\",\"y\"]}}"
      ]
      for (const [i, body] of bodies.entries()) {
        for (const holder of [undefined, heldBy(), heldBy("a \"team\",\"held_by\":null}")]) {
          const id = `resp_${i}`
          const stored = response(id, body)
          const expected = holder === undefined ? stored : { ...stored, heldBy: holder }
          yield* one.put("alice", expected)
          assert.deepStrictEqual(yield* other.get("alice", id), expected)
          const open = one.openUnsafe("alice", stored)
          open.finalizeUnsafe(body, holder)
          yield* open.written()!
          assert.deepStrictEqual(yield* other.get("alice", id), expected)
        }
      }
    }))

  it.live("are stored before their id is sent, and stored again before the final event is sent", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const one = yield* responses(server, "one")
      const other = yield* responses(server, "other")
      const open = one.openUnsafe("alice", response("resp_1", "in progress"))
      assert.isUndefined(yield* other.get("alice", "resp_1"))
      yield* open.written() ?? Effect.die("nothing to do")
      assert.strictEqual((yield* other.get("alice", "resp_1"))?.body, "in progress")
      open.finalizeUnsafe("completed")
      yield* open.written() ?? Effect.die("nothing to do")
      assert.isUndefined(open.written())
      assert.strictEqual((yield* other.get("alice", "resp_1"))?.body, "completed")
      // A response that was removed in between is not restored.
      const removed = one.openUnsafe("alice", response("resp_2"))
      yield* removed.written() ?? Effect.void
      yield* other.remove("alice", "resp_2")
      removed.finalizeUnsafe("completed")
      yield* removed.written() ?? Effect.void
      assert.isUndefined(yield* one.get("alice", "resp_2"))
    }))

  it.live("are bounded over all nodes: the oldest are removed first, and all expire", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const one = yield* responses(server, "one", { stored_responses: 10 })
      const other = yield* responses(server, "other", { stored_responses: 10 })
      for (let i = 0; i < 12; i++) yield* (i % 2 === 0 ? one : other).put("alice", response(`resp_${i}`))
      assert.strictEqual((yield* one.held).count, 10)
      assert.isUndefined(yield* one.get("alice", "resp_1"))
      assert.isDefined(yield* one.get("alice", "resp_2"))
      const client = yield* Effect.promise(() => connect(server.socket))
      const keys = yield* Effect.promise(async () => [
        ...await listOf(client, "KEYS", "gw:{main}:resp:*"),
        ...await listOf(client, "KEYS", "gw:{main}:item:*")
      ])
      assert.isAtLeast(keys.length, 12)
      for (const key of keys) {
        const seconds = Number(yield* Effect.promise(() => command(client, "TTL", key)))
        assert.isTrue(seconds > 0 && seconds <= 30)
      }
      client.destroy()
    }))

  it.live("store the items of a conversation once, however often it is continued, until no response refers to them", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const one = yield* responses(server, "one")
      const other = yield* responses(server, "other")
      const item = (i: number) => ({ role: "user", content: `${i} ${"x".repeat(1_000)}` })
      const items = Array.from({ length: 200 }, (_, i) => item(i))
      const put = (store: typeof one, turns: number) =>
        store.put("alice", { id: `resp_${turns}`, body: "{}", items: items.slice(0, turns) })
      const bytes = Effect.map(one.held, (held) => held.bytes)
      yield* put(one, 100)
      const first = yield* bytes
      // Ten more turns, each with the whole conversation, from alternating nodes.
      for (let turns = 110; turns <= 200; turns += 10) yield* put(turns % 20 === 0 ? one : other, turns)
      assert.isBelow(yield* bytes, 3.5 * first)
      for (const turns of [100, 150, 200]) {
        assert.deepStrictEqual((yield* other.get("alice", `resp_${turns}`))?.items, items.slice(0, turns))
      }
      // Another owner's equal items are separate.
      yield* one.put("bob", { id: "resp_bob", body: "{}", items: items.slice(0, 100) })
      yield* one.remove("bob", "resp_bob")
      for (let turns = 100; turns < 200; turns += 10) yield* other.remove("alice", `resp_${turns}`)
      assert.deepStrictEqual((yield* one.get("alice", "resp_200"))?.items, items)
      yield* one.remove("alice", "resp_200")
      assert.deepStrictEqual(yield* one.held, { count: 0, bytes: 0 })
      // A node writes chunks again that the store has lost.
      yield* put(one, 100)
      assert.lengthOf((yield* other.get("alice", "resp_100"))?.items ?? [], 100)
      yield* one.remove("alice", "resp_100")
      const client = yield* Effect.promise(() => connect(server.socket))
      const left = yield* Effect.promise(() => command(client, "KEYS", "gw:{main}:*"))
      client.destroy()
      const own = (left as ReadonlyArray<string>).filter((key) => /:(?:resp|items?|share)/.test(key))
      assert.deepStrictEqual(own, ["gw:{main}:resp-bytes"])
    }))

  it.live("are readable with the new store key if they were stored with it, also those that continue older ones", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const next = Redacted.make("the next key of the store")
      const before = yield* responses(server, "one", {}, { previousKey: next })
      const rolled = yield* responses(server, "two", {}, { key: next, previousKey: Redacted.make(storeKey) })
      yield* before.put("alice", response("resp_1"))
      yield* rolled.put("alice", response("resp_2"))
      assert.isDefined(yield* before.get("alice", "resp_2"))
      assert.isDefined(yield* rolled.get("alice", "resp_1"))
      const last = yield* responses(server, "three", {}, { key: next })
      assert.isUndefined(yield* last.get("alice", "resp_1"))
      assert.deepStrictEqual(yield* last.get("alice", "resp_2"), response("resp_2"))
    }))

  it.live("are written and read in chunks, on a connection that scripts do not use", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const one = yield* responses(server, "one")
      const other = yield* responses(server, "other")
      const text = (count: number) => Array.from({ length: count }, (_, i) => `${i} ü 🜁 `).join("")
      const large = {
        id: "resp_1",
        body: JSON.stringify({ output: text(200_000) }),
        items: [
          { role: "user", content: text(100_000) },
          ...Array.from({ length: 20_000 }, (_, i) => ({ role: "user", content: `${i}` }))
        ]
      }
      const sent = yield* sentDuring(
        server,
        Effect.gen(function*() {
          const open = one.openUnsafe("alice", { ...large, body: "in progress" })
          yield* open.written() ?? Effect.void
          open.finalizeUnsafe(large.body)
          yield* open.written() ?? Effect.void
          assert.deepStrictEqual(yield* other.get("alice", "resp_1"), large)
        })
      )
      const longest = (args: ReadonlyArray<string>) => Math.max(0, ...args.map((arg) => arg.length))
      const scripts = sent.filter(({ name }) => name === "EVALSHA")
      const writes = sent.filter(({ name }) => name === "SET")
      const reads = sent.filter(({ name }) => name === "GET")
      assert.isAbove(writes.length, 10)
      assert.lengthOf(reads, writes.length - 1)
      for (const { args } of scripts) assert.isBelow(longest(args), 16_384)
      // A chunk with its nonce and tag, in Base64.
      for (const { args } of sent) assert.isAtMost(longest(args), Math.ceil((pieceBytes + 28) * 4 / 3))
      const running = new Set(scripts.map(({ from }) => from))
      for (const { from } of [...writes, ...reads]) assert.isFalse(running.has(from))
      yield* one.remove("alice", "resp_1")
      assert.deepStrictEqual(yield* one.held, { count: 0, bytes: 0 })
    }))

  it.live("are visible once all chunks are stored; the chunks of a node that stops in between expire", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const { store } = yield* storeNode(server, "one")
      const other = yield* responses(server, "other")
      let left = 1
      const dying = yield* responsesOver(store, {
        bulk: (commands) => left-- > 0 ? store.bulk(commands) : unavailable,
        run: () => unavailable
      })
      yield* dying.put("alice", { ...response("resp_1"), body: ofTwoPieces })
      assert.isUndefined(yield* other.get("alice", "resp_1"))
      assert.deepStrictEqual(yield* other.held, { count: 0, bytes: 0 })
      const pieces = yield* piecesAt(server)
      assert.lengthOf(pieces, 1)
      const client = yield* Effect.promise(() => connect(server.socket))
      const seconds = Number(yield* Effect.promise(() => command(client, "TTL", pieces[0]!)))
      assert.isTrue(seconds > 0 && seconds <= 120)
      client.destroy()
      // Remaining chunks are reused.
      yield* other.put("alice", { ...response("resp_1"), body: ofTwoPieces })
      assert.strictEqual((yield* other.get("alice", "resp_1"))?.body, ofTwoPieces)
    }))

  it.live("leave no chunk behind if storing fails", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const { store } = yield* storeNode(server, "one")
      const other = yield* responses(server, "other")
      // Removed while it was generated.
      const removed = other.openUnsafe("alice", response("resp_1", "in progress"))
      yield* removed.written() ?? Effect.void
      yield* other.remove("alice", "resp_1")
      removed.finalizeUnsafe(ofTwoPieces)
      yield* removed.written() ?? Effect.void
      assert.deepStrictEqual(yield* piecesAt(server), [])
      // The store rejects the next chunk, or the request is aborted.
      for (const ending of [unavailable, Effect.interrupt]) {
        let left = 1
        const one = yield* responsesOver(store, { bulk: (commands) => left-- > 0 ? store.bulk(commands) : ending })
        yield* Effect.exit(one.put("alice", { ...response("resp_2"), body: ofTwoPieces }))
        assert.isBelow(left, 0)
        assert.deepStrictEqual(yield* piecesAt(server), [])
      }
    }))

  it.live("are read in their new version if they change during the read", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const { store } = yield* storeNode(server, "one")
      const other = yield* responses(server, "other")
      const open = other.openUnsafe("alice", response("resp_1", "in progress"))
      yield* open.written() ?? Effect.void
      open.finalizeUnsafe("completed")
      const settling = Effect.suspend(() => open.written() ?? Effect.void)
      const reader = yield* responsesOver(store, { bulk: (commands) => Effect.andThen(settling, store.bulk(commands)) })
      assert.strictEqual((yield* reader.get("alice", "resp_1"))?.body, "completed")
    }))

  it.live("make room for large ones by removing from the owner with the most bytes", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const one = yield* responses(server, "one", { stored_bytes: 1_048_576 })
      yield* one.put("bob", response("resp_bob"))
      for (let i = 0; i < 10; i++) {
        yield* one.put("alice", response(`resp_${i}`, `${i}`.repeat(300_000)))
        assert.isAtMost((yield* one.held).bytes, 1_048_576)
      }
      assert.isDefined(yield* one.get("bob", "resp_bob"))
      assert.isDefined(yield* one.get("alice", "resp_9"))
      assert.isUndefined(yield* one.get("alice", "resp_7"))
      // Two bodies of two chunks each, one small body, and an item of each owner.
      assert.lengthOf(yield* piecesAt(server), 7)
    }))

  it.live("make room for many in several bounded calls", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const many = yield* responses(server, "one")
      const few = yield* responses(server, "other", { stored_responses: 10 })
      yield* Effect.forEach(Array.from({ length: 400 }, (_, i) => response(`resp_${i}`, `${i}`)), (each) =>
        many.put("alice", each))
      yield* few.put("alice", response("resp_last"))
      assert.strictEqual((yield* few.held).count, 10)
    }))

  it.live("make room by removing from the owner with the most responses", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const one = yield* responses(server, "one", { stored_responses: 10 })
      yield* one.put("bob", response("resp_bob"))
      for (let i = 0; i < 30; i++) yield* one.put("alice", response(`resp_${i}`))
      assert.isDefined(yield* one.get("bob", "resp_bob"))
      // Callers without a key have one share: each new response removes their oldest one.
      for (let i = 0; i < 30; i++) yield* one.put(`stranger ${i}`, response(`resp_s${i}`), "direct")
      assert.isDefined(yield* one.get("bob", "resp_bob"))
      assert.isDefined(yield* one.get("alice", "resp_29"))
      assert.isDefined(yield* one.get("stranger 29", "resp_s29"))
      assert.strictEqual((yield* one.held).count, 10)
    }))

  it.live(
    "are read as they were stored, and leave no data behind, under any interleaving",
    () =>
      Effect.gen(function*() {
        const server = yield* settledServer
        const nodes = [yield* responses(server, "one"), yield* responses(server, "other")]
        const step = fc.record({
          node: fc.nat({ max: 1 }),
          owner: fc.constantFrom("alice", "bob"),
          id: fc.nat({ max: 5 }),
          // Conversations with common beginnings, so that chunks are shared, repeated and removed.
          items: fc.tuple(fc.nat({ max: 70 }), fc.constantFrom("a", "b")),
          act: fc.constantFrom("put", "put", "settle", "remove")
        })
        yield* Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(fc.array(step, { maxLength: 30 }), (steps) =>
              Effect.runPromise(Effect.gen(function*() {
                const model = new Map<string, { readonly body: string; readonly items: ReadonlyArray<string> }>()
                for (const { act, id, items: [count, kind], node, owner } of steps) {
                  const store = nodes[node]!
                  const name = `resp_${owner}_${id}`
                  if (act === "remove") {
                    assert.strictEqual(yield* store.remove(owner, name), model.delete(name))
                    continue
                  }
                  const items = Array.from({ length: count }, (_, i) => i < 40 ? "same" : `${kind}${i}`)
                  const open = store.openUnsafe(owner, { id: name, body: "open", items })
                  if (act === "settle") open.finalizeUnsafe("settled")
                  yield* open.written() ?? Effect.void
                  model.set(name, { body: act === "settle" ? "settled" : "open", items })
                }
                for (const owner of ["alice", "bob"]) {
                  for (let id = 0; id <= 5; id++) {
                    const name = `resp_${owner}_${id}`
                    const known = model.get(name)
                    const found = yield* nodes[id % 2]!.get(owner, name)
                    assert.deepStrictEqual(found, known === undefined ? undefined : { id: name, ...known })
                    yield* nodes[0]!.remove(owner, name)
                  }
                }
                assert.deepStrictEqual(yield* nodes[1]!.held, { count: 0, bytes: 0 })
              }))),
            { numRuns: runs(30) }
          )
        )
      }),
    60_000
  )

  it.live("a reply succeeds although its stored copy is lost", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const one = yield* responses(server, "one")
      yield* Effect.promise(() => server.stop())
      yield* one.put("alice", response("resp_1"))
      const error = yield* Effect.flip(one.get("alice", "resp_1"))
      assert.deepInclude(error, { code: "store_unavailable", retryAfter: 1 })
    }))
})
