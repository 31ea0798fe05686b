/**
 * Compares the scripts of several pools with `Pools` and `UpstreamCooling`: the same operations of several nodes, which die as
 * well, give the same results in the same order. A request never holds more than one slot.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { jitter } from "../../src/accounts/backOff.ts"
import { scripts } from "../../src/cluster/store/scripts.ts"
import { runSync } from "../../src/domain/stream/cooperative.ts"
import { Pools } from "../../src/placement/Pools.ts"
import type { Refusal, Waiter } from "../../src/placement/PoolState.ts"
import { UpstreamCooling, type UpstreamFault, type UpstreamTry } from "../../src/placement/UpstreamCooling.ts"
import { further, patience } from "../placement/interleavings.ts"
import type { NaiveConfig, NaiveRequest } from "../placement/naivePools.ts"
import { asked, configured, keys, limit, names, toConfig } from "../placement/poolsInterleavings.ts"
import { runs } from "../support/effort.ts"
import {
  claimOf,
  configOf,
  endOf,
  grantsOf,
  leaseRequestText,
  nodes,
  type Outcome,
  poolOf,
  refusalsOf,
  ScriptNodes
} from "./scripts.ts"
import { storedLease } from "./support.ts"

/** What a request saw of its upstream. */
interface Seen {
  readonly verdict: "" | "ok" | UpstreamFault
  readonly retryAfter: number | undefined
  readonly random: number
}

type Op =
  | { readonly _tag: "Request"; readonly asked: NaiveRequest }
  | { readonly _tag: "Close"; readonly nth: number; readonly seen: Seen }
  | { readonly _tag: "Widen" | "Late" | "Works"; readonly nth: number }
  | { readonly _tag: "Drop"; readonly nth: number; readonly name: string }
  | {
    readonly _tag: "Suspend"
    readonly key: string
    readonly state: "cooling" | "out"
    readonly delay: number
    readonly further: number
  }
  | { readonly _tag: "Restore"; readonly key: string }
  | { readonly _tag: "Spend"; readonly key: string; readonly delay: number }
  | { readonly _tag: "SpendAll"; readonly name: string; readonly delay: number }
  | { readonly _tag: "Advance"; readonly by: number }
  | { readonly _tag: "Configure"; readonly pools: ReadonlyMap<string, NaiveConfig>; readonly limit: number }
  | { readonly _tag: "Die" | "Leave" | "Attach"; readonly node: string }

const key = fc.constantFrom(...keys)
const nth = fc.nat(30)
/** Milliseconds until the window of a budget ends; 0 once it has something left. */
const delay = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 90 }))

const seen: fc.Arbitrary<Seen> = fc.record({
  verdict: fc.constantFrom("" as const, "ok" as const, "connection" as const, "trouble" as const, "trouble" as const),
  retryAfter: fc.option(fc.integer({ min: 0, max: 700 }), { nil: undefined, freq: 5 }),
  random: fc.integer({ min: 0, max: 3 }).map((quarters) => quarters / 4)
})

const op: fc.Arbitrary<Op> = fc.oneof(
  { weight: 14, arbitrary: fc.record({ _tag: fc.constant("Request" as const), asked }) },
  { weight: 9, arbitrary: fc.record({ _tag: fc.constant("Close" as const), nth, seen }) },
  { weight: 3, arbitrary: fc.record({ _tag: fc.constant("Widen" as const), nth }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("Late" as const), nth }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("Works" as const), nth }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("Drop" as const), nth, name: fc.constantFrom(...names) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      _tag: fc.constant("Suspend" as const),
      key,
      state: fc.constantFrom("cooling" as const, "out" as const),
      delay: fc.integer({ min: 1, max: 90 }),
      further
    })
  },
  { weight: 2, arbitrary: fc.record({ _tag: fc.constant("Restore" as const), key }) },
  { weight: 3, arbitrary: fc.record({ _tag: fc.constant("Spend" as const), key, delay }) },
  {
    weight: 2,
    arbitrary: fc.record({ _tag: fc.constant("SpendAll" as const), name: fc.constantFrom(...names), delay })
  },
  {
    weight: 4,
    arbitrary: fc.record({
      _tag: fc.constant("Advance" as const),
      by: fc.oneof(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 900, max: 2_600 }), fc.constant(3_600_000))
    })
  },
  { weight: 2, arbitrary: fc.record({ _tag: fc.constant("Configure" as const), pools: configured, limit }) },
  {
    weight: 2,
    arbitrary: fc.record({
      _tag: fc.constantFrom("Die" as const, "Leave" as const, "Attach" as const),
      node: fc.constantFrom("two", "three")
    })
  }
)

/** The request of a ticket: several tickets are tries of one. */
const requestOf = (id: number) => `r${id % 4}`
const nodeOf = (id: number) => nodes[id % nodes.length]!

let cluster: ScriptNodes

/** The scripts with the interface of `Pools`. Every call returns the outcomes that it caused, in order. */
class SharedPools {
  #revision = 0

  async configure(pools: ReadonlyMap<string, NaiveConfig>, limit: number) {
    const all = Array.from(pools, ([name, { disabled, enabled, keys, limits }]) => {
      const { direct, global, perAccount: per, queue } = limits
      return poolOf(name, keys, { enabled, per, global, queue, direct, disabled })
    })
    await cluster.run(scripts.configure, "one", configOf(++this.#revision, { pools: all, total: limit }))
    return cluster.told()
  }

  async request(id: number, { hold, pools, spread, leaseRequest }: NaiveRequest): Promise<ReadonlyArray<Outcome>> {
    const request = leaseRequestText(leaseRequest)
    const claim = claimOf(pools.map((pool) => ({ pool, request })), { spread, holds: hold, patience })
    const ask = () => cluster.acquire(nodeOf(id), String(id), claim)
    const reply = await ask()
    // A repeated ticket gets the same result.
    if (reply[0] !== "refused") assert.deepStrictEqual(await ask(), reply)
    const told = await cluster.told()
    if (reply[0] === "waiting") return told
    const [, account] = reply
    return reply[0] === "granted"
      ? [[id, account === "" ? undefined : account], ...told]
      : [[id, undefined, account], ...told]
  }

  /** The lease of a ticket as its node knows it. */
  async lease(id: number) {
    const [held] = await cluster.send("HMGET", `gw:{main}:leases:${nodeOf(id)}`, String(id))
    const lease = storedLease(held ?? null)
    return lease === null ? undefined : [lease.account, lease.fence, lease.pool] as const
  }

  async close(id: number, { random, retryAfter, verdict }: Seen, coolings: number) {
    const upstream = verdict === "" ? undefined : {
      verdict,
      coolings: String(coolings),
      request: requestOf(id),
      retry: retryAfter,
      random: jitter * random
    }
    await cluster.run(scripts.release, nodeOf(id), String(id), endOf({ upstream }))
    return cluster.told()
  }
}

/** `Pools` with the coolings of their upstreams, as a process drives them. */
class Oracle {
  readonly pools = new Pools<string>()
  readonly waiters = new Map<number, Waiter<string>>()
  readonly asked = new Map<number, NaiveRequest>()
  readonly #coolings = new Map<string, UpstreamCooling>()
  readonly tries = new Map<number, UpstreamTry>()
  config: ReadonlyMap<string, NaiveConfig> = new Map()
  limit = 0
  now = 0
  live: Array<number> = []
  outcomes: Array<Outcome> = []
  /** Granted requests whose tries have not begun. */
  #granted: Array<number> = []

  cooling(name: string): UpstreamCooling {
    const known = this.#coolings.get(name) ?? new UpstreamCooling()
    this.#coolings.set(name, known)
    return known
  }

  skipOf(name: string): "no" | "probe" | "yes" {
    const cooling = this.cooling(name)
    return cooling.until === undefined ? "no" : cooling.isSkipped(this.now) ? "yes" : "probe"
  }

  /** Begins the tries of new grants, and skips the pools as the coolings say. */
  settle(): void {
    for (const id of this.#granted.splice(0)) {
      const name = this.waiters.get(id)!.granted!.name
      this.tries.set(id, this.cooling(name).begin(requestOf(id), this.now))
    }
    for (const name of names) {
      const pool = this.pools.get(name)
      if (pool === undefined || pool.skipped === this.skipOf(name)) continue
      this.pools.skip(name, this.skipOf(name))
      this.settle()
    }
  }

  note(id: number, refusal: Refusal | undefined): void {
    if (refusal === undefined) {
      this.#granted.push(id)
      this.outcomes.push([id, this.waiters.get(id)!.slot?.key])
    } else {
      this.outcomes.push([id, undefined, refusal._tag])
      this.live.splice(this.live.indexOf(id), 1)
    }
  }

  request(id: number, asked: NaiveRequest): void {
    this.live.push(id)
    this.asked.set(id, asked)
    const { leaseRequest, ...choice } = asked
    const waiter = this.pools.request(
      { preferred: undefined, needs: undefined, ...choice, request: leaseRequest, now: this.now, patience, about: "" },
      (refusal) => this.note(id, refusal)
    )
    if ("_tag" in waiter) return this.note(id, waiter)
    this.waiters.set(id, waiter)
    if (waiter.state !== "granted") return
    // The request itself comes before the waiters that its grant lets use skipped pools.
    this.#granted.unshift(id)
    this.outcomes.unshift([id, waiter.slot?.key])
  }

  configure(pools: ReadonlyMap<string, NaiveConfig>, limit: number): void {
    this.config = pools
    this.limit = limit
    // A new configuration settles the budgets before it serves anybody.
    this.#apply(0)
    for (const pool of this.pools.configured()) {
      for (const slot of pool.slots()) pool.spend(slot, 0)
      pool.spendAll(0)
    }
    this.#apply(this.limit)
    // The coolings of removed upstreams are forgotten.
    for (const name of names) {
      if (pools.has(name)) continue
      this.cooling(name).succeeded()
    }
    this.#forgetCoolings()
    // A single upstream is never skipped.
    if (this.isAlone()) { for (const name of pools.keys()) this.cooling(name).succeeded() }
  }

  #apply(limit: number): void {
    runSync(this.pools.configure(new Map(Array.from(this.config, ([name, one]) => [name, toConfig(one)])), limit))
  }

  see(id: number, { random, retryAfter, verdict }: Seen): void {
    const name = this.waiters.get(id)?.granted?.name
    const attempt = this.tries.get(id)
    if (name === undefined || attempt === undefined || !this.config.has(name) || verdict === "") return
    if (this.isAlone()) return
    if (verdict === "ok") this.cooling(name).succeeded()
    else this.cooling(name).failed(attempt, { fault: verdict, retryAfter, now: this.now, random })
    this.settle()
  }

  isAlone(): boolean {
    return this.config.size === 1
  }

  close(id: number): void {
    const waiter = this.waiters.get(id)!
    const attempt = this.tries.get(id)
    const name = waiter.granted?.name
    this.live.splice(this.live.indexOf(id), 1)
    // Its slot is free as soon as another request may probe the upstream.
    if (attempt !== undefined && name !== undefined) this.cooling(name).ended(attempt)
    this.pools.close(waiter)
    this.#forgetCoolings()
  }

  #forgetCoolings(): void {
    for (const name of names) {
      if (!this.config.has(name) && ![...this.pools.leaving].includes(name)) this.#coolings.delete(name)
    }
  }

  /** Closes the requests of a node, and serves the others when that is done. */
  die(node: string): void {
    this.#apply(0)
    for (const id of this.live.filter((id) => nodeOf(id) === node)) this.close(id)
    this.settle()
    this.#apply(this.limit)
  }
}

/** Lets accounts return on both sides whose time has come, and compares those that are due for a try. Returns the outcomes. */
const recover = async (own: Oracle): Promise<ReadonlyArray<Outcome>> => {
  const due = own.pools.recover(own.now).map((slot) => slot.key)
  own.settle()
  const { reply, told } = await cluster.oracle("recover")
  assert.sameMembers(reply.slice(1), due)
  return told
}

/** Runs the same operations on both and compares the outcomes. */
const compare = async (first: ReadonlyMap<string, NaiveConfig>, firstLimit: number, ops: ReadonlyArray<Op>) => {
  const own = new Oracle()
  const shared = new SharedPools()
  let ids = 0
  const waiting = () => own.live.filter((id) => own.waiters.get(id)?.state === "waiting")
  const granted = () => own.live.filter((id) => own.waiters.get(id)?.state === "granted")

  await cluster.open()
  own.configure(first, firstLimit)
  await shared.configure(first, firstLimit)
  for (const op of ops) {
    own.outcomes = []
    let actual: ReadonlyArray<Outcome> = []
    switch (op._tag) {
      case "Request": {
        const id = ids++
        own.request(id, op.asked)
        actual = await shared.request(id, op.asked)
        break
      }
      case "Close": {
        const id = own.live[op.nth % own.live.length]
        if (id === undefined) break
        const coolings = own.tries.get(id)?.epoch ?? 0
        own.see(id, op.seen)
        own.close(id)
        actual = await shared.close(id, op.seen, coolings)
        // A repeated close does nothing.
        assert.deepStrictEqual(await shared.close(id, op.seen, coolings), [])
        break
      }
      case "Works": {
        const id = granted()[op.nth % granted().length]
        if (id === undefined) break
        own.see(id, { verdict: "ok", retryAfter: undefined, random: 0 })
        await cluster.run(scripts.places, nodeOf(id), "works", String(id))
        actual = await cluster.told()
        break
      }
      case "Widen":
      case "Late":
      case "Drop": {
        const id = waiting()[op.nth % waiting().length]
        if (id === undefined) break
        const node = nodeOf(id)
        const waiter = own.waiters.get(id)!
        if (op._tag === "Widen") {
          own.pools.widen(waiter)
          await cluster.run(scripts.places, node, "widen", String(id))
        } else if (op._tag === "Drop") {
          own.pools.drop(waiter, op.name)
          await cluster.run(scripts.places, node, "drop", String(id), op.name)
        } else {
          const refusal = own.pools.late(waiter)
          own.close(id)
          assert.deepStrictEqual((await cluster.run(scripts.late, node, String(id))).slice(0, 2), [
            "refused",
            refusal._tag
          ])
        }
        actual = await cluster.told()
        break
      }
      case "Suspend":
      case "Restore": {
        const pool = own.pools.get(op.key.split("/")[0]!)
        const slot = pool?.get(op.key)
        if (op._tag === "Suspend") {
          const until = own.now + op.delay
          if (slot !== undefined) pool?.suspend(slot, op.state, until, until + op.further)
          actual = (await cluster.oracle("suspend", op.key, op.state, String(until), String(until + op.further))).told
        } else {
          if (slot !== undefined) pool?.restore(slot)
          const { told } = await cluster.oracle("restore", op.key)
          // The window of its budget may be over by now.
          actual = [...told, ...await recover(own)]
        }
        break
      }
      case "Spend":
      case "SpendAll": {
        const until = op.delay === 0 ? 0 : own.now + op.delay
        if (op._tag === "SpendAll") {
          own.pools.get(op.name)?.spendAll(until)
          actual = (await cluster.oracle("spend_all", op.name, String(until))).told
        } else {
          const pool = own.pools.get(op.key.split("/")[0]!)
          const slot = pool?.get(op.key)
          if (slot !== undefined) pool?.spend(slot, until)
          actual = (await cluster.oracle("spend", op.key, String(until))).told
        }
        break
      }
      case "Advance": {
        own.now += op.by
        cluster.now = own.now
        actual = await recover(own)
        break
      }
      case "Configure": {
        own.configure(op.pools, op.limit)
        own.settle()
        const told = await shared.configure(op.pools, op.limit)
        actual = [...told, ...await recover(own)]
        break
      }
      case "Die":
      case "Leave": {
        own.die(op.node)
        if (op._tag === "Leave") await cluster.run(scripts.leave, op.node)
        else await cluster.send("ZADD", "gw:{main}:nodes", "-inf", op.node)
        actual = (await cluster.oracle("pools")).told
        await cluster.attach(op.node, "1", [], [])
        break
      }
      case "Attach": {
        // The node has lost its connection, and has what the store has.
        const leases: Array<unknown> = []
        const tickets: Array<unknown> = []
        for (const id of own.live.filter((id) => nodeOf(id) === op.node)) {
          const lease = await shared.lease(id)
          if (lease !== undefined) leases.push([String(id), ...lease])
          else tickets.push([String(id), 1 + id, 0, claimOf([{ pool: "default", request: "A" }], { patience })])
        }
        await cluster.attach(op.node, "0", leases, tickets)
        actual = await cluster.told()
        break
      }
    }
    own.settle()
    assert.deepStrictEqual(grantsOf(actual), grantsOf(own.outcomes), op._tag)
    assert.sameDeepMembers(refusalsOf(actual), refusalsOf(own.outcomes), op._tag)
    const [inUse, waiters, ...each] = (await cluster.oracle("pools")).reply.slice(0)
    assert.deepStrictEqual([inUse, waiters], [own.pools.inUse, own.pools.waiting].map(String), op._tag)
    const expected = names.flatMap((name) => {
      const pool = own.pools.get(name)
      if (pool === undefined) return []
      const { until } = own.cooling(name)
      const facts = [pool.inUse, pool.waiting, pool.available, own.skipOf(name), until ?? "-", pool.inUse]
      return [`${name} ${facts.join(" ")} configured`]
    })
    assert.sameMembers(each.filter((one) => one.endsWith("configured")), expected, op._tag)
    const leaving = each.filter((one) => one.endsWith("leaving"))
    assert.sameMembers(leaving.map((one) => one.split(" ")[0]), [...own.pools.leaving], op._tag)
  }
  for (const id of own.live) await shared.close(id, { verdict: "", retryAfter: undefined, random: 0 }, 0)
  await shared.configure(new Map(), 1)
  const [inUse, waiters, ...left] = (await cluster.oracle("pools")).reply
  assert.deepStrictEqual([inUse, waiters, left.length], ["0", "0", 0])
  const keysLeft = await cluster.send("KEYS", "gw:{main}:*")
  const own_keys = /^gw:\{main\}:(?:pool:|queue|accounts|tickets:|leases:)/
  assert.deepStrictEqual(keysLeft.filter((key) => own_keys.test(key)), [])
}

describe("the scripts of several pools", () => {
  beforeAll(async () => {
    cluster = await ScriptNodes.start()
  })
  afterAll(() => cluster.stop())

  it("give the same results as Pools and UpstreamCooling under any interleaving, and leave nothing behind", async () => {
    await fc.assert(
      fc.asyncProperty(configured, limit, fc.array(op, { maxLength: 100, size: "max" }), compare),
      { numRuns: runs(40) }
    )
  })
})
