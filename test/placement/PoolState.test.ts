import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { runSync } from "../../src/domain/stream/cooperative.ts"
import type { Choose } from "../../src/placement/choice.ts"
import { type LeaseRequest, type Limits, PoolState, type Refusal, type Waiter } from "../../src/placement/PoolState.ts"
import { runs } from "../support/effort.ts"
import { limits, names, type Op, op, patience } from "./interleavings.ts"
import { NaivePool, type Outcomes } from "./naivePool.ts"

/** Runs the same operations on the pool and on the plain model, and compares their grants and rejections. */
const compare = (first: Limits, ops: ReadonlyArray<Op>) => {
  const pool = new PoolState<string>(first)
  const naive = new NaivePool(first)
  const tickets = new Map<number, Waiter<string>>()
  let outcomes: Outcomes = { given: [], refused: new Map() }
  let now = 0
  let ids = 0

  const configure = (keys: ReadonlyArray<string>, limits: Limits, disabled: ReadonlyArray<string> = []) =>
    runSync(pool.configure(new Map(keys.map((key) => [key, key])), limits, new Set(disabled)))

  const request = (id: number, leaseRequest: LeaseRequest) => {
    const note = (refusal: Refusal | undefined) => {
      if (refusal === undefined) outcomes.given.push([id, tickets.get(id)!.slot?.key])
      else outcomes.refused.set(id, refusal._tag)
    }
    const ticket = pool.request(leaseRequest, now, patience, note)
    if ("_tag" in ticket) return note(ticket)
    tickets.set(id, ticket)
    if (ticket.state === "granted") note(undefined)
  }

  configure(names, first)
  naive.configure(names, first)
  for (const op of ops) {
    outcomes = { given: [], refused: new Map() }
    let expected: Outcomes = { given: [], refused: new Map() }
    switch (op._tag) {
      case "Request": {
        const id = ids++
        request(id, op.leaseRequest)
        expected = naive.request(id, op.leaseRequest, now, patience)
        break
      }
      case "Close": {
        const live = [...naive.running.keys(), ...naive.waiters.map((waiter) => waiter.id)]
        const id = live[op.nth % live.length]
        if (id === undefined) break
        pool.close(tickets.get(id)!)
        expected = naive.close(id)
        // Closing again does nothing.
        pool.close(tickets.get(id)!)
        break
      }
      case "Suspend": {
        const slot = pool.get(op.key)
        const stated = now + op.delay + op.further
        if (slot !== undefined) pool.suspend(slot, op.state, now + op.delay, stated)
        expected = naive.setState(op.key, op.state, now + op.delay, stated)
        break
      }
      case "Restore": {
        const slot = pool.get(op.key)
        if (slot !== undefined) pool.restore(slot)
        expected = naive.setState(op.key, "ready", 0)
        break
      }
      case "Advance": {
        now += op.by
        const { due, outcomes } = naive.recover(now)
        assert.sameMembers(pool.recover(now).map((slot) => slot.key), due)
        assert.isAbove(pool.nextRecovery, now)
        expected = outcomes
        break
      }
      case "Clean": {
        const slot = pool.get(op.key)
        if (slot !== undefined) pool.setCleaning(slot, op.cleaning)
        naive.setCleaning(op.key, op.cleaning)
        break
      }
      case "Configure": {
        configure(op.keys, op.limits, op.disabled)
        expected = naive.configure(op.keys, op.limits, op.disabled)
        break
      }
    }
    assert.deepStrictEqual(outcomes, expected)
    assert.strictEqual(pool.inUse, naive.inUse)
    assert.strictEqual(pool.waiting, naive.waiters.length)
    assert.strictEqual(pool.available, naive.available.length)
    const enabled = naive.accounts.filter((account) => account.enabled)
    const count = (state: string) => enabled.filter((account) => account.state === state).length
    assert.deepStrictEqual(
      [pool.size, pool.disabled, pool.cooling, pool.out],
      [enabled.length, naive.accounts.length - enabled.length, count("cooling"), count("out")]
    )
    assert.deepStrictEqual(
      Array.from(pool.queued(), ({ pinned, since }) => [since, pinned?.key]),
      naive.waiters.map((
        { deadline, leaseRequest }
      ) => [deadline - patience, leaseRequest._tag === "Pinned" ? leaseRequest.key : undefined])
    )
    assert.sameMembers(Array.from(pool.slots(), (slot) => slot.key), naive.accounts.map((account) => account.key))
    assert.sameMembers([...pool.draining.keys()], naive.draining.map((account) => account.key))
  }
  return { pool, tickets }
}

describe("PoolState", () => {
  it("grants and rejects like the plain model under any interleaving", () => {
    fc.assert(
      fc.property(limits, fc.array(op, { maxLength: 120, size: "max" }), (first, ops) => {
        const { pool, tickets } = compare(first, ops)
        for (const ticket of tickets.values()) pool.close(ticket)
        assert.strictEqual(pool.inUse, 0)
        assert.strictEqual(pool.waiting, 0)
        assert.strictEqual(pool.draining.size, 0)
        for (const slot of pool.slots()) assert.strictEqual(slot.inUse, 0)
      }),
      { numRuns: runs(500) }
    )
  })

  it("50,000 waiters can call it from their notify callbacks", () => {
    const pool = new PoolState<string>({ perAccount: 1, global: 2, queue: 60_000, direct: 1 })
    runSync(pool.configure(new Map([["a", "a"], ["b", "b"]]), pool.limits))
    const order: Array<number> = []
    const first = pool.request({ _tag: "Pinned", key: "a" }, 0, patience, () => {})
    assert.isFalse("_tag" in first)
    for (let i = 0; i < 50_000; i++) {
      const ticket = pool.request({ _tag: "Pinned", key: "a" }, 0, patience, () => {
        order.push(i)
        if (!("_tag" in ticket)) pool.close(ticket)
      })
    }
    assert.strictEqual(pool.waiting, 50_000)
    // Requests that are pinned to the busy account do not block another request.
    const other = pool.request({ _tag: "Any", avoid: new Set() }, 0, patience, () => {})
    assert.strictEqual("_tag" in other ? other._tag : other.slot?.key, "b")
    if (!("_tag" in first)) pool.close(first)
    assert.deepStrictEqual(order, Array.from({ length: 50_000 }, (_, i) => i))
    assert.strictEqual(pool.inUse, 1)
  })
})

describe("the choice among free accounts", () => {
  const roomy: Limits = { perAccount: 1_000, global: 100_000, queue: 0, direct: 0 }

  /** A pool of accounts with their ranks, and what grants one and gives back the slots of others. */
  const choosing = (
    choose: Choose,
    ranks: ReadonlyArray<{ readonly priority?: number; readonly weight?: number }>,
    limits = roomy
  ) => {
    const pool = new PoolState<number>(limits)
    const accounts = new Map(ranks.map((_, i) => [`a${i}`, i]))
    const of = (i: number) => ({ priority: 0, weight: 1, ...ranks[i] })
    runSync(pool.configure(accounts, limits, new Set(), { choose, of }))
    const held: Array<Waiter<number>> = []
    return {
      pool,
      slot: (i: number) => pool.get(`a${i}`)!,
      grant: (request: LeaseRequest = { _tag: "Any", avoid: new Set() }) => {
        const waiter = pool.request(request, 0, 0, () => undefined)
        if ("_tag" in waiter) return undefined
        held.push(waiter)
        return waiter.slot?.account
      },
      free: () => {
        for (const waiter of held.splice(0)) pool.close(waiter)
      }
    }
  }

  it("by weight gives each account its share of any number of grants, rounded up or down", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 1_000 })), {
          minLength: 1,
          maxLength: 9
        }),
        fc.integer({ min: 1, max: 300 }),
        (weights, grants) => {
          const { free, grant } = choosing("weighted", weights.map((weight) => ({ weight })))
          const sum = weights.reduce((all, weight) => all + weight, 0)
          const counts = weights.map(() => 0)
          for (let n = 1; n <= grants; n++) {
            counts[grant()!]!++
            free()
            for (const [i, weight] of weights.entries()) {
              // Whole numbers: the share is n * weight / sum.
              assert.isTrue(
                counts[i]! * sum > n * weight - sum && counts[i]! * sum < n * weight + sum,
                `${i} after ${n}`
              )
            }
          }
        }
      ),
      { numRuns: runs(150) }
    )
  })

  it("by weight shares among those that are left, without making up for a pause", () => {
    const { free, grant, pool, slot } = choosing("weighted", [{ weight: 3 }, { weight: 1 }, { weight: 4 }])
    const count = (grants: number) => {
      const counts = [0, 0, 0]
      for (let n = 0; n < grants; n++) {
        counts[grant()!]!++
        free()
      }
      return counts
    }
    assert.deepStrictEqual(count(80), [30, 10, 40])
    pool.suspend(slot(2), "cooling", 1_000)
    assert.deepStrictEqual(count(80), [60, 20, 0])
    pool.recover(1_000)
    const [a, b, c] = count(80) as [number, number, number]
    assert.isTrue(Math.abs(a - 30) <= 1 && Math.abs(b - 10) <= 1 && Math.abs(c - 40) <= 1, `${a} ${b} ${c}`)
  })

  it("by priority fills the first account, then the next in the order of the file", () => {
    const ranks = [{ priority: 0 }, { priority: 5 }, { priority: -1 }, { priority: 5 }]
    const { free, grant, pool, slot } = choosing("fill_first", ranks, { ...roomy, perAccount: 2 })
    assert.deepStrictEqual(Array.from({ length: 9 }, () => grant()), [1, 1, 3, 3, 0, 0, 2, 2, undefined])
    free()
    pool.suspend(slot(1), "cooling", 1_000)
    assert.deepStrictEqual([grant(), grant(), grant()], [3, 3, 0])
    assert.strictEqual(grant({ _tag: "Any", avoid: new Set(["a0", "a3"]) }), 2)
  })

  it("by reset takes accounts of which nothing is known, then the earliest reset", () => {
    const { free, grant, pool, slot } = choosing("spend_soonest_reset", [{}, {}, {}])
    assert.deepStrictEqual([grant(), grant(), grant()], [0, 1, 2])
    free()
    pool.setReset(slot(0), 1_800_000_000_000)
    pool.setReset(slot(1), 1_700_000_000_000)
    assert.deepStrictEqual([grant(), grant()], [2, 2])
    pool.setReset(slot(2), 1_900_000_000_000)
    assert.deepStrictEqual([grant(), grant()], [1, 1])
    pool.setReset(slot(1), undefined)
    assert.strictEqual(grant(), 1)
  })
})
