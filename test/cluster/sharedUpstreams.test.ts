/**
 * Two nodes in one process over a real server and two upstreams: a request holds one slot of one of them, whatever happens.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import type { PlacementRequest } from "../../src/accounts/Accounts.ts"
import type { UpstreamActivity } from "../../src/accounts/UpstreamActivity.ts"
import type { Store } from "../../src/cluster/store/Store.ts"
import type { RawConfig } from "../../src/config/json.ts"
import type { Driver } from "../../src/upstream/Upstream.ts"
import { anywhere, ask, errorOf, hold, makeDriver, managed } from "../accounts/support.ts"
import { untilTrue } from "../support/until.ts"
import { idle, poolNode } from "./poolNode.ts"
import { poolsPlace, settledServer, storedPool, storeLayer } from "./support.ts"

/** A server that needs no key. */
const keyless: Driver = {
  ...makeDriver({}, { login: undefined, sessions: undefined }).driver,
  name: "openai",
  isAnonymous: true
}
const named = new Map([["gpu", keyless], ["hosted", keyless]])

const upstream = (max_inflight: number, fields: RawConfig = {}): RawConfig => ({
  driver: "openai",
  base_url: "http://127.0.0.1:9/v1",
  models: { m: "m" },
  max_inflight,
  ...fields
})

const two = Effect.fnUntraced(function*(gpu: RawConfig = upstream(1), hosted: RawConfig = upstream(1)) {
  const server = yield* settledServer
  const config = { upstreams: { gpu, hosted }, runtime: { account_max_queue: 500 } }
  const node = (id: string) => poolNode(server, id, config, keyless, storeLayer(server, id), named)
  const one = yield* node("one")
  const other = yield* node("other")
  return { one, other, node }
})

const target = (name: string) => ({ upstream: name, model: "m" })
const both: PlacementRequest = { ...anywhere, targets: [target("gpu"), target("hosted")] }
const onlyGpu: PlacementRequest = { ...anywhere, targets: [target("gpu")] }

const gpuAt = (pool: UpstreamActivity["Service"]) =>
  Effect.map(pool.upstreams, (facts) => facts.find(({ name }) => name === "gpu"))

const waitingAt = (pool: UpstreamActivity["Service"], expected: Readonly<Record<string, number>>) =>
  untilTrue(
    Effect.map(pool.upstreams, (facts) => facts.every(({ name, waiting }) => waiting === (expected[name] ?? waiting)))
  )

/** Ends the time of a cooling in the store. */
const endCooling = Effect.fnUntraced(function*(store: Store["Service"], pool: string) {
  const cooled = storedPool(yield* store.send("HGET", poolsPlace, pool))
  yield* store.send("HSET", poolsPlace, pool, JSON.stringify({ ...cooled, till: 1 }))
})

describe("two upstreams that two nodes share", () => {
  it.live("serve the first target with a free slot, and a request that waits at both by the slot that frees first", () =>
    Effect.gen(function*() {
      const { one, other } = yield* two()
      const first = yield* hold(one.pool, managed(), both)
      const second = yield* hold(other.pool, managed(), both)
      assert.deepStrictEqual([first.lease.upstream, second.lease.upstream], ["gpu", "hosted"])
      const waiting = yield* ask(one.pool, managed(), both)
      const behind = yield* ask(other.pool, managed(), onlyGpu)
      yield* waitingAt(other.pool, { gpu: 2, hosted: 1 })
      assert.deepInclude(yield* other.pool.status, { in_use: 2, waiting: 2 })
      yield* second.free
      const third = yield* Fiber.join(waiting)
      assert.strictEqual(third.lease.upstream, "hosted")
      // Its place at the other upstream has gone in the same step.
      yield* waitingAt(one.pool, { gpu: 1, hosted: 0 })
      yield* first.free
      const fourth = yield* Fiber.join(behind)
      assert.strictEqual(fourth.lease.upstream, "gpu")
      yield* Effect.all([third.free, fourth.free])
      yield* idle(one.pool)
    }))

  it.live("hold a request at a full first target until its time is over, and count its arrival then", () =>
    Effect.gen(function*() {
      const { one, other } = yield* two()
      const gpu = yield* hold(one.pool, managed(), both)
      const hosted = yield* hold(one.pool, managed(), both)
      const held = yield* ask(one.pool, managed(), { ...both, wait: 300 })
      yield* waitingAt(one.pool, { gpu: 1, hosted: 0 })
      const later = yield* ask(other.pool, managed(), { ...anywhere, targets: [target("hosted")] })
      yield* waitingAt(one.pool, { gpu: 1, hosted: 2 })
      yield* hosted.free
      const widened = yield* Fiber.join(held)
      assert.strictEqual(widened.lease.upstream, "hosted")
      yield* Effect.all([gpu.free, widened.free])
      yield* (yield* Fiber.join(later)).free
      yield* idle(other.pool)
    }))

  it.live("leave a cooled upstream out on every node, and let one request probe it", () =>
    Effect.gen(function*() {
      const { one, other } = yield* two(upstream(4), upstream(4))
      const failed = yield* hold(one.pool, managed(), { ...both, request: "r1" })
      assert.strictEqual(failed.lease.upstream, "gpu")
      yield* failed.lease.report("none", 600, "connection")
      yield* failed.free
      yield* untilTrue(Effect.map(gpuAt(other.pool), (gpu) => gpu?.state === "cooled"))
      const gpu = yield* gpuAt(other.pool)
      assert.strictEqual(gpu?.reason, "no connection to it could be made")
      assert.isAbove(gpu?.cooled_ms ?? 0, 500_000)
      const instead = yield* hold(other.pool, managed(), both)
      assert.strictEqual(instead.lease.upstream, "hosted")
      // A request without another target goes to it all the same.
      const alone = yield* hold(other.pool, managed(), onlyGpu)
      assert.strictEqual(alone.lease.upstream, "gpu")
      // Its time is over.
      yield* endCooling(one.store, "gpu")
      const probe = yield* hold(other.pool, managed(), both)
      const meanwhile = yield* hold(one.pool, managed(), both)
      assert.deepStrictEqual([probe.lease.upstream, meanwhile.lease.upstream], ["gpu", "hosted"])
      yield* probe.lease.report(undefined, undefined)
      // The upstream is back at the first event, before the probe ends.
      const next = yield* hold(one.pool, managed(), both)
      assert.strictEqual(next.lease.upstream, "gpu")
      yield* Effect.forEach([instead, alone, probe, meanwhile, next], ({ free }) => free)
      yield* idle(one.pool)
    }))

  it.live("void the probe of a node that leaves, and free its slots and both of its places", () =>
    Effect.gen(function*() {
      const { node, one } = yield* two()
      const scope = yield* Scope.make()
      const gone = yield* Scope.provide(node("gone"), scope)
      const failed = yield* hold(one.pool, managed(), onlyGpu)
      yield* failed.lease.report("none", 600, "connection")
      yield* failed.free
      yield* untilTrue(Effect.map(gpuAt(gone.pool), (gpu) => gpu?.state === "cooled" && gpu.in_use === 0))
      yield* endCooling(one.store, "gpu")
      const probe = yield* Effect.forkChild(
        Effect.scoped(Effect.andThen(gone.pool.lease(managed(), both), Effect.never))
      )
      yield* untilTrue(Effect.map(gpuAt(one.pool), (gpu) => gpu?.in_use === 1))
      const hosted = yield* hold(one.pool, managed(), both)
      assert.strictEqual(hosted.lease.upstream, "hosted")
      const lost = yield* Effect.forkChild(Effect.exit(hold(gone.pool, managed(), both)))
      yield* waitingAt(one.pool, { gpu: 1, hosted: 1 })
      const waiting = yield* ask(one.pool, managed(), both)
      yield* waitingAt(one.pool, { gpu: 2, hosted: 2 })
      yield* Scope.close(scope, Exit.void)
      // The slot of the void probe goes to the next request, which probes the upstream.
      const next = yield* Fiber.join(waiting)
      assert.strictEqual(next.lease.upstream, "gpu")
      yield* waitingAt(one.pool, { gpu: 0, hosted: 0 })
      yield* Effect.all([hosted.free, next.free, Fiber.interrupt(probe), Fiber.interrupt(lost)])
      yield* idle(one.pool)
    }))

  it.live("give up the places of an upstream that is disabled or loses its model, and refuse a request without any", () =>
    Effect.gen(function*() {
      const { one, other } = yield* two()
      const gpu = yield* hold(one.pool, managed(), both)
      const hosted = yield* hold(one.pool, managed(), both)
      const atBoth = yield* ask(other.pool, managed(), both)
      const alone = yield* ask(other.pool, managed(), onlyGpu)
      yield* waitingAt(one.pool, { gpu: 2, hosted: 1 })
      yield* one.change({ upstreams: { gpu: upstream(1, { models: { other: "m" } }), hosted: upstream(1) } })
      assert.strictEqual(yield* errorOf(Fiber.join(alone)), "no_account_available")
      yield* waitingAt(one.pool, { gpu: 0, hosted: 1 })
      yield* one.change({ upstreams: { gpu: upstream(1), hosted: upstream(1, { enabled: false }) } })
      assert.strictEqual(yield* errorOf(Fiber.join(atBoth)), "no_account_available")
      yield* Effect.all([gpu.free, hosted.free])
      yield* idle(other.pool)
    }))

  it.live("never exceed a limit under 200 concurrent requests with cancels and changes of the configuration", () =>
    Effect.gen(function*() {
      const { one, other } = yield* two(upstream(4), upstream(3))
      const pools = [one.pool, other.pool]
      const inUse = new Map<string, number>()
      const most = new Map<string, number>()
      let served = 0
      const count = (name: string, by: number) => {
        const now = (inUse.get(name) ?? 0) + by
        inUse.set(name, now)
        most.set(name, Math.max(most.get(name) ?? 0, now))
      }
      const request = (i: number) =>
        Effect.scoped(Effect.gen(function*() {
          const options: PlacementRequest = {
            ...(i % 5 === 0 ? onlyGpu : both),
            spread: i % 3 === 0 ? "even" : "order",
            ...(i % 4 === 0 ? { wait: 20 } : {})
          }
          // On a busy machine the store seems not to answer.
          const lease = yield* Effect.retry(pools[i % 2]!.lease(managed(), options), {
            while: ({ code }) => code === "store_unavailable"
          })
          yield* Effect.acquireRelease(
            Effect.sync(() => count(lease.upstream, 1)),
            () => Effect.sync(() => count(lease.upstream, -1))
          )
          for (let turns = yield* Random.nextIntBetween(1, 20); turns > 0; turns--) yield* Effect.yieldNow
          yield* lease.report(undefined, undefined)
          served++
        }))
      const fibers = yield* Effect.forEach(
        Array.from({ length: 200 }, (_, i) => i),
        (i) => Effect.forkChild(Effect.exit(request(i)))
      )
      yield* untilTrue(Effect.map(one.pool.status, ({ waiting }) => waiting > 20))
      for (const fiber of fibers.filter((_, i) => i % 10 === 9)) yield* Fiber.interrupt(fiber)
      for (let round = 0; round < 4; round++) {
        const hosted = upstream(round % 2 === 0 ? 2 : 3)
        const change = pick(round, one, other).change({ upstreams: { gpu: upstream(4 - round % 2), hosted } })
        yield* Effect.retry(change, { while: ({ _tag }) => _tag === "StoreUnavailable" })
      }
      const exits = yield* Effect.forEach(fibers, Fiber.await)
      const finished = exits.flatMap((exit) => Exit.isSuccess(exit) ? [exit.value] : [])
      for (const exit of finished) assert.isTrue(Exit.isSuccess(exit), String(exit))
      assert.isAtLeast(served, 180)
      assert.isAtMost(most.get("gpu") ?? 0, 4)
      assert.isAtMost(most.get("hosted") ?? 0, 3)
      assert.deepStrictEqual([...inUse.values()], [0, 0])
      yield* idle(one.pool)
      for (const { in_use, waiting } of yield* other.pool.upstreams) assert.deepStrictEqual([in_use, waiting], [0, 0])
    }))
})

const pick = <A>(round: number, one: A, other: A): A => round % 2 === 0 ? one : other
