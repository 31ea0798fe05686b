import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { runSync } from "../../src/domain/stream/cooperative.ts"
import { Pools, type PoolsRequest } from "../../src/placement/Pools.ts"
import type { LeaseRequest, Refusal, Waiter } from "../../src/placement/PoolState.ts"
import { runs } from "../support/effort.ts"
import { patience } from "./interleavings.ts"
import type { Outcomes } from "./naivePool.ts"
import { type NaiveConfig, NaivePools, type NaiveRequest } from "./naivePools.ts"
import { asked, configured, keys, limit, names, toConfig } from "./poolsInterleavings.ts"

type Op =
  | { readonly _tag: "Request"; readonly asked: NaiveRequest }
  | { readonly _tag: "Close" | "Widen"; readonly nth: number }
  | { readonly _tag: "Drop"; readonly nth: number; readonly name: string }
  | { readonly _tag: "Suspend"; readonly key: string; readonly state: "cooling" | "out"; readonly delay: number }
  | { readonly _tag: "Restore"; readonly key: string }
  | { readonly _tag: "Skip"; readonly name: string; readonly skipped: "no" | "probe" | "yes" }
  | { readonly _tag: "Advance"; readonly by: number }
  | { readonly _tag: "Configure"; readonly pools: ReadonlyMap<string, NaiveConfig>; readonly limit: number }

const key = fc.constantFrom(...keys)
const nth = fc.nat(30)

const op: fc.Arbitrary<Op> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ _tag: fc.constant("Request" as const), asked }) },
  { weight: 8, arbitrary: fc.record({ _tag: fc.constant("Close" as const), nth }) },
  { weight: 3, arbitrary: fc.record({ _tag: fc.constant("Widen" as const), nth }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("Drop" as const), nth, name: fc.constantFrom(...names) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      _tag: fc.constant("Suspend" as const),
      key,
      state: fc.constantFrom("cooling" as const, "out" as const),
      delay: fc.integer({ min: 0, max: 90 })
    })
  },
  { weight: 2, arbitrary: fc.record({ _tag: fc.constant("Restore" as const), key }) },
  {
    weight: 3,
    arbitrary: fc.record({
      _tag: fc.constant("Skip" as const),
      name: fc.constantFrom(...names),
      skipped: fc.constantFrom("no" as const, "probe" as const, "yes" as const)
    })
  },
  { weight: 3, arbitrary: fc.record({ _tag: fc.constant("Advance" as const), by: fc.integer({ min: 1, max: 60 }) }) },
  { weight: 2, arbitrary: fc.record({ _tag: fc.constant("Configure" as const), pools: configured, limit }) }
)

/** Runs the same operations on the pools and on the plain model, and compares grants, refusals and counts after each. */
const compare = (first: ReadonlyMap<string, NaiveConfig>, firstLimit: number, ops: ReadonlyArray<Op>) => {
  const pools = new Pools<string>()
  const naive = new NaivePools()
  const waiters = new Map<number, Waiter<string>>()
  /** The requests that hold a slot, by the notifications alone. */
  const holding = new Set<number>()
  let outcomes: Outcomes = { given: [], refused: new Map() }
  let now = 0
  let ids = 0

  const configure = (config: ReadonlyMap<string, NaiveConfig>, limit: number) => {
    runSync(pools.configure(new Map(Array.from(config, ([name, pool]) => [name, toConfig(pool)])), limit))
    naive.configure(config, limit)
  }
  const request = (id: number, { leaseRequest, ...asked }: NaiveRequest) => {
    const note = (refusal: Refusal | undefined) => {
      assert.isFalse(holding.has(id))
      if (refusal === undefined) {
        holding.add(id)
        outcomes.given.push([id, waiters.get(id)!.slot?.key])
      } else outcomes.refused.set(id, refusal._tag)
    }
    const waiter = pools.request(
      { preferred: undefined, needs: undefined, ...asked, request: leaseRequest, now, patience, about: "" },
      note
    )
    if ("_tag" in waiter) return note(waiter)
    waiters.set(id, waiter)
    if (waiter.state === "granted") note(undefined)
  }
  const live = () => [...naive.all.flatMap((pool) => [...pool.running.keys()]), ...naive.waiters.map(({ id }) => id)]

  configure(first, firstLimit)
  for (const op of ops) {
    outcomes = { given: [], refused: new Map() }
    naive.outcomes = { given: [], refused: new Map() }
    switch (op._tag) {
      case "Request": {
        const id = ids++
        request(id, op.asked)
        naive.request(id, op.asked, now, patience)
        break
      }
      case "Close":
      case "Widen":
      case "Drop": {
        const all = op._tag === "Close" ? live() : naive.waiters.map(({ id }) => id)
        const id = all[op.nth % all.length]
        if (id === undefined) break
        const waiter = waiters.get(id)!
        if (op._tag === "Widen") {
          pools.widen(waiter)
          naive.widen(id)
        } else if (op._tag === "Drop") {
          pools.drop(waiter, op.name)
          naive.drop(id, op.name)
        } else {
          holding.delete(id)
          pools.close(waiter)
          naive.close(id)
          // Closing again does nothing.
          pools.close(waiter)
        }
        break
      }
      case "Suspend":
      case "Restore": {
        const name = op.key.split("/")[0]!
        const pool = pools.get(name)
        const slot = pool?.get(op.key)
        if (pool !== undefined && slot !== undefined) {
          if (op._tag === "Suspend") pool.suspend(slot, op.state, now + op.delay)
          else pool.restore(slot)
        }
        if (op._tag === "Suspend") naive.setState(name, op.key, op.state, now + op.delay)
        else naive.setState(name, op.key, "ready", 0)
        break
      }
      case "Skip": {
        pools.skip(op.name, op.skipped)
        naive.skip(op.name, op.skipped)
        break
      }
      case "Advance": {
        now += op.by
        const due = naive.recover(now)
        assert.sameMembers(pools.recover(now).map((slot) => slot.key), [...due])
        assert.isAbove(pools.nextRecovery, now)
        break
      }
      case "Configure": {
        configure(op.pools, op.limit)
        break
      }
    }
    assert.deepStrictEqual(outcomes, naive.outcomes)
    assert.strictEqual(pools.inUse, naive.inUse)
    assert.strictEqual(holding.size, naive.inUse)
    assert.strictEqual(pools.waiting, naive.waiters.length)
    assert.sameMembers([...pools.leaving], naive.leaving.map(({ name }) => name))
    assert.deepStrictEqual(
      Array.from(pools.queued(), ({ pools, since }) => [since, pools]),
      naive.waiters.map(({ deadline, places }) => [deadline - patience, places.map(({ name }) => name)])
    )
    for (const model of naive.pools) {
      const pool = pools.get(model.name)!
      assert.strictEqual(pool.inUse, model.inUse)
      assert.strictEqual(pool.waiting, model.waiters.length)
      // A call grants no slot above a limit; one that a change of limits has put above it only shrinks.
      if (outcomes.given.some(([, key]) => key?.startsWith(model.name))) assert.isAtMost(pool.inUse, pool.limits.global)
    }
    if (outcomes.given.length > 0) assert.isAtMost(pools.inUse, naive.limit)
  }
  return { pools, waiters }
}

/** Pools of one account each, with as many slots as given, 10 places in the queue and no common limit. */
const poolsOf = (slots: Readonly<Record<string, number>>, limit = 100) => {
  const pools = new Pools<string>()
  const configure = (slots: Readonly<Record<string, number>>, disabled: ReadonlyArray<string> = []) =>
    runSync(pools.configure(
      new Map(
        Object.entries(slots).map(([name, count]) => [name, {
          choice: undefined,
          accounts: new Map([[`${name}/a`, name]]),
          limits: { perAccount: count, global: count, queue: 10, direct: 1 },
          disabled: new Set<string>(),
          enabled: !disabled.includes(name)
        }])
      ),
      limit
    ))
  configure(slots)
  const order: Array<string> = []
  const request = (id: string, names: ReadonlyArray<string>, options: Partial<PoolsRequest<string>> = {}) => {
    const note = (refusal: Refusal | undefined) => {
      const granted = "_tag" in waiter ? undefined : waiter.granted
      order.push(`${id} ${refusal?._tag ?? granted?.name}`)
    }
    const asked = { request: any, now: 0, patience, about: "", spread: "order" as const, hold: false }
    const waiter: Waiter<string> | Refusal = pools.request(
      { pools: names, preferred: undefined, needs: undefined, ...asked, ...options },
      note
    )
    if ("_tag" in waiter) throw new Error(waiter._tag)
    return waiter
  }
  return { pools, request, order, configure }
}

const any: LeaseRequest = { _tag: "Any", avoid: new Set() }

describe("Pools", () => {
  it("grant and refuse like the plain model under any interleaving, and leave no place behind", () => {
    fc.assert(
      fc.property(configured, limit, fc.array(op, { maxLength: 120, size: "max" }), (first, limit, ops) => {
        const { pools, waiters } = compare(first, limit, ops)
        for (const waiter of waiters.values()) pools.close(waiter)
        assert.deepStrictEqual([pools.inUse, pools.waiting, [...pools.leaving]], [0, 0, []])
        for (const name of names) {
          const pool = pools.get(name)
          assert.deepStrictEqual([pool?.inUse ?? 0, pool?.waiting ?? 0, pool?.holding.size ?? 0], [0, 0, 0])
        }
      }),
      { numRuns: runs(300) }
    )
  })

  it("a request waits in every queue, counts once, and takes the first slot that frees", () => {
    const { order, pools, request } = poolsOf({ gpu: 1, hosted: 1 })
    const one = request("one", ["gpu", "hosted"])
    const two = request("two", ["gpu", "hosted"])
    assert.deepStrictEqual([one.granted?.name, two.granted?.name], ["gpu", "hosted"])
    request("three", ["gpu", "hosted"])
    request("four", ["hosted"])
    assert.strictEqual(pools.waiting, 2)
    assert.deepStrictEqual([pools.get("gpu")?.waiting, pools.get("hosted")?.waiting], [1, 2])
    pools.close(two)
    assert.deepStrictEqual(order, ["three hosted"])
    assert.deepStrictEqual([pools.get("gpu")?.waiting, pools.get("hosted")?.waiting], [0, 1])
    pools.close(one)
    assert.deepStrictEqual(order, ["three hosted"])
  })

  it("spread evenly, a request takes the pool with the largest share of free slots", () => {
    const { request } = poolsOf({ gpu: 2, hosted: 4 })
    const taken = Array.from(
      { length: 6 },
      (_, i) => request(`${i}`, ["gpu", "hosted"], { spread: "even" }).granted?.name
    )
    assert.deepStrictEqual(taken, ["gpu", "hosted", "hosted", "gpu", "hosted", "hosted"])
  })

  it("a request stays at a full first pool until it is widened, and then comes before later arrivals", () => {
    const { order, pools, request } = poolsOf({ gpu: 1, hosted: 1 })
    request("gpu", ["gpu"])
    const hosted = request("hosted", ["hosted"])
    const held = request("held", ["gpu", "hosted"], { hold: true })
    request("later", ["hosted"])
    pools.close(hosted)
    assert.deepStrictEqual(order, ["later hosted"])
    request("last", ["hosted"])
    pools.widen(held)
    const later = pools.get("hosted")!
    assert.strictEqual(later.waiting, 2)
    assert.deepStrictEqual(Array.from(pools.queued(), ({ pools }) => pools), [["gpu", "hosted"], ["hosted"]])
  })

  it("a first pool that is out of rotation does not hold a request", () => {
    const { order, pools, request } = poolsOf({ gpu: 1, hosted: 1 })
    request("one", ["gpu"])
    request("held", ["gpu", "hosted"], { hold: true })
    const gpu = pools.get("gpu")!
    gpu.suspend(gpu.get("gpu/a")!, "cooling", 10)
    assert.deepStrictEqual(order, ["held hosted"])
  })

  it("a skipped pool serves requests without another one, and one request more while it is probed", () => {
    const { order, pools, request } = poolsOf({ gpu: 4, hosted: 1 })
    const busy = request("busy", ["hosted"])
    pools.skip("gpu", "yes")
    request("both", ["gpu", "hosted"])
    request("last", ["gpu", "hosted"])
    assert.strictEqual(request("alone", ["gpu"]).granted?.name, "gpu")
    assert.deepStrictEqual([order, pools.waiting, pools.get("gpu")?.waiting], [[], 2, 2])
    pools.skip("gpu", "probe")
    assert.deepStrictEqual(order, ["both gpu"])
    pools.close(busy)
    assert.deepStrictEqual(order, ["both gpu", "last hosted"])
    request("new", ["gpu", "hosted"])
    pools.skip("gpu", "no")
    assert.deepStrictEqual(order, ["both gpu", "last hosted", "new gpu"])
  })

  it("the grant that ends a probe lets waiters use the pools that are skipped, if these are all that they have", () => {
    const pools = new Pools<string>()
    const limits = { perAccount: 1, global: 9, queue: 9, direct: 1 }
    const config = (...keys: ReadonlyArray<string>) => toConfig({ keys, limits, disabled: [], enabled: true })
    runSync(pools.configure(new Map([["gpu", config("gpu/a")], ["hosted", config("hosted/a", "hosted/b")]]), 9))
    const ask = (names: ReadonlyArray<string>, request: LeaseRequest) =>
      pools.request(
        {
          pools: names,
          request,
          now: 0,
          patience,
          about: "",
          spread: "order",
          hold: false,
          preferred: undefined,
          needs: undefined
        },
        () => {}
      ) as Waiter<string>
    ask(["hosted"], { _tag: "Pinned", key: "hosted/b" })
    pools.skip("gpu", "yes")
    // It waits for the account that it does not avoid.
    const waiter = ask(["gpu", "hosted"], { _tag: "Any", avoid: new Set(["hosted/a"]) })
    pools.skip("hosted", "probe")
    assert.strictEqual(waiter.state, "waiting")
    ask(["hosted"], any)
    assert.strictEqual(waiter.granted?.name, "gpu")
  })

  it("a disabled or removed upstream gives up the places, and a request without another one ends", () => {
    const { configure, order, pools, request } = poolsOf({ gpu: 1, hosted: 1 })
    const one = request("one", ["gpu"])
    const two = request("two", ["hosted"])
    request("both", ["gpu", "hosted"])
    request("hosted", ["hosted"])
    configure({ gpu: 1, hosted: 1 }, ["hosted"])
    assert.deepStrictEqual(order, ["hosted Unavailable"])
    configure({ hosted: 1 }, ["hosted"])
    assert.deepStrictEqual(order, ["hosted Unavailable", "both Unavailable"])
    assert.deepStrictEqual([pools.inUse, [...pools.leaving]], [2, ["gpu"]])
    pools.close(one)
    pools.close(two)
    assert.deepStrictEqual([pools.inUse, [...pools.leaving]], [0, []])
  })

  it("the limit of all pools bounds their sum, and goes to the oldest waiter of any pool", () => {
    const { order, pools, request } = poolsOf({ gpu: 2, hosted: 2 }, 2)
    const one = request("one", ["gpu"])
    const two = request("two", ["gpu"])
    request("three", ["hosted"])
    request("four", ["gpu"])
    assert.deepStrictEqual(order, [])
    pools.close(one)
    pools.close(two)
    assert.deepStrictEqual(order, ["three hosted", "four gpu"])
  })

  it("5,000 requests that are widened in reverse are served in the order of their arrival", () => {
    const pools = new Pools<string>()
    const limits = { perAccount: 1, global: 1, queue: 50_000, direct: 1 }
    const config = (name: string) => ({
      choice: undefined,
      accounts: new Map([[name, name]]),
      limits,
      disabled: new Set<string>(),
      enabled: true
    })
    runSync(pools.configure(new Map([["gpu", config("gpu")], ["hosted", config("hosted")]]), 2))
    const order: Array<number> = []
    const ask = (i: number, names: ReadonlyArray<string>) => {
      const waiter = pools.request(
        {
          pools: names,
          request: any,
          now: 0,
          patience,
          about: "",
          spread: "order",
          hold: true,
          preferred: undefined,
          needs: undefined
        },
        () => {
          order.push(i)
          pools.close(waiter as Waiter<string>)
        }
      )
      return waiter as Waiter<string>
    }
    ask(-1, ["gpu"])
    const busy = ask(-2, ["hosted"])
    const waiters = Array.from({ length: 5_000 }, (_, i) => ask(i, ["gpu", "hosted"]))
    for (const waiter of waiters.toReversed()) pools.widen(waiter)
    pools.close(busy)
    assert.deepStrictEqual(order, waiters.map((_, i) => i))
    assert.strictEqual(pools.waiting, 0)
  })
})
