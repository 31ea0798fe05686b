/**
 * Two nodes over a store that comes back with older data: a snapshot, or a replica that missed the latest writes.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { Store } from "../../src/cluster/store/Store.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { makeSharedResponses } from "../../src/styles/responses/store/sharedResponses.ts"
import { KeyLimits } from "../../src/usage/KeyLimits.ts"
import { accounts, ask, hold, makeDriver } from "../accounts/support.ts"
import { command, connect, type RedisServer, redisServer } from "../support/redisServer.ts"
import { until, untilTrue } from "../support/until.ts"
import { idle, poolNode } from "./poolNode.ts"

const key = "k"
const id = keyId(key, sha256Hex)
const most = 12
/** 1.5, in units of 10^-9. */
const cost = 1_500_000_000n
const tokens = 100

const two = Effect.gen(function*() {
  const server = yield* redisServer()
  const { calls, driver } = makeDriver()
  const config = {
    accounts: accounts("a"),
    runtime: { account_max_inflight: 2, account_max_queue: 10 },
    key_records: { [id]: { limits: [{ window: "month", requests: most, cost: 1_000 }] } }
  }
  const one = yield* poolNode(server, "one", config, driver)
  const other = yield* poolNode(server, "other", config, driver)
  return { calls, server, nodes: [one, other] as const }
})

const save = (server: RedisServer) =>
  Effect.promise(async () => {
    const client = await connect(server.socket)
    await command(client, "SAVE")
    client.destroy()
  })

type Node = Effect.Success<ReturnType<typeof poolNode>>

/** The store comes back with what was saved last; `then` runs on each node as soon as that node has it. */
const returnOlder = <A, E, R>(
  server: RedisServer,
  nodes: ReadonlyArray<Node>,
  then: (node: Node) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function*() {
    yield* Effect.promise(() => server.crash())
    yield* until(() => nodes.every(({ store }) => !store.isUp()))
    yield* Effect.promise(() => server.start())
    return yield* Effect.forEach(
      nodes,
      (node) => Effect.andThen(until(() => node.store.isUp()), then(node)),
      { concurrency: "unbounded" }
    )
  })

/** Waits until everything that may be granted has been. */
const quietEnds = ({ store }: Node) =>
  untilTrue(Effect.map(store.send("EXISTS", "gw:{main}:quiet"), (count) => count === 0))

/**
 * The limits of keys on each node until it stops, with the scopes of the admitted requests, which use `tokens` and `cost`.
 */
const limitsOf = Effect.fnUntraced(function*(nodes: ReadonlyArray<Node>) {
  const scopes = new Map(
    yield* Effect.forEach(nodes, (node) => Effect.map(Scope.make(), (scope) => [node, scope] as const))
  )
  yield* Effect.addFinalizer(() => close([...scopes.values()]))
  const limits = new Map(
    yield* Effect.forEach(nodes, (node) =>
      Effect.map(
        KeyLimits.makeShared.pipe(
          Effect.provideService(ConfigStore, node.configuration),
          Effect.provideService(Store, node.store),
          Scope.provide(scopes.get(node)!)
        ),
        (made) => [node, made] as const
      ))
  )
  const open: Array<Scope.Closeable> = []
  return {
    open,
    stop: (node: Node) => close([scopes.get(node)!]),
    admit: Effect.fnUntraced(function*(node: Node) {
      const scope = yield* Scope.make()
      const used = () => ({ counted: true, tokens, cost })
      const admitted = yield* Effect.exit(
        Scope.provide(
          limits.get(node)!.admit({
            key: id,
            promptTokens: () => 1,
            used,
            model: undefined,
            bounds: undefined,
            takesFallback: false,
            entered: undefined
          }),
          scope
        )
      )
      open.push(scope)
      return Exit.isSuccess(admitted)
    }),
    usage: (node: Node) =>
      Effect.map(limits.get(node)!.usageOf([id]), ([usage]) => ({
        inFlight: usage?.inFlight,
        month: usage?.windows.find(({ window }) => window === "month")
      }))
  }
})

const close = (scopes: ReadonlyArray<Scope.Closeable>) =>
  Effect.forEach(scopes, (scope) => Scope.close(scope, Exit.void), { discard: true })

describe("a store that comes back with older data", () => {
  it.live("grants no slot that a node holds, and keeps tokens and places in the queue", () =>
    Effect.gen(function*() {
      const { calls, nodes, server } = yield* two
      const [one, other] = nodes
      yield* save(server)
      const first = yield* hold(one.pool)
      const second = yield* hold(other.pool)
      assert.strictEqual(yield* first.lease.credential.token, "a-1")
      const waiting = yield* ask(one.pool)
      yield* untilTrue(Effect.map(other.pool.status, ({ waiting }) => waiting === 1))
      const later = yield* returnOlder(server, nodes, (node) => Effect.forkScoped(hold(node.pool)))
      yield* quietEnds(one)
      const { in_use, waiting: places } = yield* other.pool.status
      assert.deepStrictEqual({ in_use, places }, { in_use: 2, places: 3 })
      for (const fiber of [waiting, ...later]) assert.isUndefined(fiber.pollUnsafe())
      yield* first.free
      const next = yield* Fiber.join(waiting)
      for (const fiber of later) assert.isUndefined(fiber.pollUnsafe())
      assert.strictEqual(yield* next.lease.credential.token, "a-1")
      yield* Effect.all([second.free, next.free])
      for (const fiber of later) {
        const { free, lease } = yield* Fiber.join(fiber)
        assert.strictEqual(yield* lease.credential.token, "a-1")
        yield* free
      }
      assert.deepStrictEqual(calls, ["login a"])
      yield* idle(one.pool)
    }))

  it.live("keeps the counts of keys with limits, running requests included", () =>
    Effect.gen(function*() {
      const { nodes, server } = yield* two
      const { admit, open, usage } = yield* limitsOf(nodes)
      const [one, other] = nodes
      for (let i = 0; i < 4; i++) assert.deepStrictEqual([yield* admit(one), yield* admit(other)], [true, true])
      yield* save(server)
      // Half of them end before the loss, and half after the return.
      yield* close(open.splice(0, 6))
      yield* Effect.all([usage(one), usage(other)])
      // The store's replies to these have what the others cost.
      for (let i = 0; i < 2; i++) assert.deepStrictEqual([yield* admit(one), yield* admit(other)], [true, true])
      const later = yield* returnOlder(server, nodes, (node) =>
        Effect.all([admit(node), admit(node)], { concurrency: 2 }))
      assert.deepStrictEqual(later, [[false, false], [false, false]])
      yield* close(open)
      yield* untilTrue(Effect.map(usage(one), ({ inFlight }) =>
        inFlight === 0))
      const { month } = yield* usage(other)
      assert.deepStrictEqual([month?.requests, month?.cost], [most, cost * BigInt(most)])
    }))

  it.live("keeps what requests have used that end after the last admission of their key, or while the store is lost", () =>
    Effect.gen(function*() {
      const { nodes, server } = yield* two
      const { admit, open, stop, usage } = yield* limitsOf(nodes)
      const [one, other] = nodes
      for (let i = 0; i < 3; i++) assert.deepStrictEqual([yield* admit(one), yield* admit(other)], [true, true])
      yield* save(server)
      for (let i = 0; i < 2; i++) assert.deepStrictEqual([yield* admit(one), yield* admit(other)], [true, true])
      // Of before and after the snapshot, on each node.
      const ended = [open[0]!, open[1]!, open[6]!, open[7]!]
      yield* close(ended)
      yield* untilTrue(Effect.map(usage(one), ({ inFlight }) => inFlight === 6))
      yield* untilTrue(Effect.map(usage(other), ({ inFlight }) => inFlight === 6))
      const left = open.filter((scope) => !ended.includes(scope))
      yield* Effect.promise(() => server.crash())
      yield* until(() => nodes.every(({ store }) => !store.isUp()))
      // One of after the snapshot on each node, and two of before.
      yield* close(left.splice(2))
      yield* Effect.promise(() => server.start())
      yield* until(() => nodes.some(({ store }) => store.isUp()))
      yield* close(left)
      yield* until(() => nodes.every(({ store }) => store.isUp()))
      // Its last requests count, although the other nodes are still returning.
      yield* stop(other)
      yield* quietEnds(one)
      const { inFlight, month } = yield* usage(one)
      assert.deepInclude(month, { requests: 10, tokens: 10 * tokens, cost: 10n * cost })
      assert.strictEqual(inFlight, 0)
    }))

  it.live("gets the newest configuration back before it grants anything, and ended logins, but no stored responses", () =>
    Effect.gen(function*() {
      const { nodes, server } = yield* two
      const [one, other] = nodes
      yield* save(server)
      const now = Math.floor(Date.now() / 1000)
      yield* one.endedLogins.end({ jti: "ended", issuedAt: now, expiresAt: now + 3_600 })
      const responses = makeSharedResponses(other.store, other.configuration, () => undefined)
      yield* responses.put("alice", { id: "resp_1", body: "{}", items: [] })
      assert.isDefined(yield* responses.get("alice", "resp_1"))
      const held = yield* hold(one.pool)
      yield* other.change({ accounts: accounts("a", "b"), runtime: { account_max_inflight: 1, account_max_queue: 10 } })
      yield* until(() => one.configuration.now().accounts.length === 2)
      const revision = one.store.membership.revision()
      const [next, last] = yield* returnOlder(server, nodes, (node) => Effect.forkScoped(hold(node.pool)))
      const second = yield* Effect.raceFirst(Fiber.join(next!), Fiber.join(last!))
      assert.strictEqual(second.lease.account?.identifier, "b@x.org")
      assert.strictEqual(Number(yield* one.store.send("HGET", "gw:{main}:config", "revision")), revision)
      assert.strictEqual((yield* one.pool.status).in_use, 2)
      assert.strictEqual(yield* one.store.send("ZCARD", "gw:{main}:marks:ended-logins"), 1)
      assert.isUndefined(yield* responses.get("alice", "resp_1"))
      yield* Effect.all([held.free, second.free])
      for (const fiber of [next!, last!]) yield* Effect.flatMap(Fiber.join(fiber), ({ free }) => free)
      yield* idle(one.pool)
    }))
})
