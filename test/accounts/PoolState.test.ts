import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { type LeaseRequest, type Limits, PoolState, type Refusal, type Waiter } from "../../src/accounts/PoolState.ts"
import { runSync } from "../../src/domain/stream/cooperative.ts"
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
        if (slot !== undefined) pool.suspend(slot, op.state, now + op.delay)
        expected = naive.setState(op.key, op.state, now + op.delay)
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
