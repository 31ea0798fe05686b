/**
 * Compares the pool's scripts on a real server with `PoolState`: the same operations give the same results in the same
 * order.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { scripts } from "../../src/cluster/store/scripts.ts"
import { runSync } from "../../src/domain/stream/cooperative.ts"
import {
  type LeaseRequest,
  type Limits,
  PoolState,
  type Refusal,
  type Waiter as Ticket
} from "../../src/placement/PoolState.ts"
import {
  type Choosing,
  choosing,
  limits,
  names,
  type Op,
  op as operation,
  orderedOp,
  patience
} from "../placement/interleavings.ts"
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

let cluster: ScriptNodes

/** The scripts with the pool's interface. Every call returns the outcomes that it caused, in order. */
class SharedPool {
  /** The nodes of tickets. */
  readonly owners = new Map<number, string>()
  revision = 0

  async open(limits: Limits, choosing: Choosing | undefined) {
    await cluster.open()
    await this.configure(names, limits, [], choosing)
  }

  async request(id: number, leaseRequest: LeaseRequest): Promise<ReadonlyArray<Outcome>> {
    const node = nodes[id % nodes.length]!
    this.owners.set(id, node)
    const claim = claimOf([{ pool: "default", request: leaseRequestText(leaseRequest) }], { patience })
    const ask = () => cluster.acquire(node, String(id), claim)
    const reply = await ask()
    if (reply[0] === "waiting") {
      // A repeated ticket gets the same result.
      assert.deepStrictEqual(await ask(), reply)
      return []
    }
    if (reply[0] === "granted") {
      assert.deepStrictEqual(await ask(), reply)
      return [[id, reply[1] === "" ? undefined : reply[1]]]
    }
    return [[id, undefined, reply[1]]]
  }

  async close(id: number) {
    await cluster.run(scripts.release, this.owners.get(id)!, String(id), endOf({}))
    return cluster.told()
  }

  async configure(keys: ReadonlyArray<string>, limits: Limits, disabled: ReadonlyArray<string>, choosing?: Choosing) {
    const { direct, global, perAccount: per, queue } = limits
    const { choose, ranks } = choosing ?? { choose: "rotate" as const, ranks: {} }
    const pool = poolOf("default", keys, {
      per,
      global,
      queue,
      direct,
      disabled,
      choose,
      ranks: choosing === undefined ? [] : keys.map((key) => [ranks[key]!.priority, ranks[key]!.weight] as const)
    })
    await cluster.run(scripts.configure, "one", configOf(++this.revision, { pools: [pool], total: 999 }))
    return cluster.told()
  }
}

/** Runs the same operations on both and compares the outcomes. */
const compare = async (first: Limits, ops: ReadonlyArray<Op>, firstChoosing?: Choosing) => {
  const pool = new PoolState<string>(first)
  const shared = new SharedPool()
  const tickets = new Map<number, Ticket<string>>()
  const live: Array<number> = []
  let expected: Array<Outcome> = []
  let now = 0
  let ids = 0
  const note = (id: number, refusal: Refusal | undefined) => {
    if (refusal === undefined) expected.push([id, tickets.get(id)!.slot?.key])
    else {
      expected.push([id, undefined, refusal._tag])
      live.splice(live.indexOf(id), 1)
    }
  }
  const configure = (
    keys: ReadonlyArray<string>,
    limits: Limits,
    disabled: ReadonlyArray<string>,
    choosing: Choosing | undefined
  ) => {
    const choice = choosing && { choose: choosing.choose, of: (key: string) => choosing.ranks[key]! }
    runSync(pool.configure(new Map(keys.map((key) => [key, key])), limits, new Set(disabled), choice))
  }

  configure(names, first, [], firstChoosing)
  await shared.open(first, firstChoosing)
  for (const op of ops) {
    expected = []
    let actual: ReadonlyArray<Outcome> = []
    switch (op._tag) {
      case "Request": {
        const id = ids++
        live.push(id)
        const ticket = pool.request(op.leaseRequest, now, patience, (refusal) => note(id, refusal))
        if ("_tag" in ticket) note(id, ticket)
        else {
          tickets.set(id, ticket)
          if (ticket.state === "granted") note(id, undefined)
        }
        actual = await shared.request(id, op.leaseRequest)
        break
      }
      case "Close": {
        const id = live[op.nth % live.length]
        if (id === undefined) break
        live.splice(live.indexOf(id), 1)
        pool.close(tickets.get(id)!)
        actual = await shared.close(id)
        // A repeated close does nothing.
        assert.deepStrictEqual(await shared.close(id), [])
        break
      }
      case "Suspend": {
        const slot = pool.get(op.key)
        // Every script recovers due accounts; the pool does so on request.
        const until = now + Math.max(1, op.delay)
        if (slot !== undefined) pool.suspend(slot, op.state, until, until + op.further)
        actual = (await cluster.oracle("suspend", op.key, op.state, String(until), String(until + op.further))).told
        break
      }
      case "Restore": {
        const slot = pool.get(op.key)
        if (slot !== undefined) pool.restore(slot)
        actual = (await cluster.oracle("restore", op.key)).told
        break
      }
      case "Advance": {
        now += op.by
        cluster.now = now
        const due = pool.recover(now).map((slot) => slot.key)
        const { reply, told } = await cluster.oracle("recover")
        assert.sameMembers(reply.slice(1), due)
        actual = told
        break
      }
      case "Clean": {
        const slot = pool.get(op.key)
        if (slot !== undefined) {
          pool.setCleaning(slot, op.cleaning)
          actual = (await cluster.oracle("clean", op.key, op.cleaning ? "1" : "0")).told
        }
        break
      }
      case "Reset": {
        const slot = pool.get(op.key)
        if (slot === undefined) break
        pool.setReset(slot, op.reset)
        actual = (await cluster.oracle("reset", op.key, String(op.reset ?? ""))).told
        break
      }
      case "Configure": {
        configure(op.keys, op.limits, op.disabled, op.choosing)
        // Accounts that are enabled again may be due at once.
        const due = pool.recover(now).map((slot) => slot.key)
        const told = await shared.configure(op.keys, op.limits, op.disabled, op.choosing)
        const recovered = await cluster.oracle("recover")
        assert.sameMembers(recovered.reply.slice(1), due)
        actual = [...told, ...recovered.told]
        break
      }
    }
    assert.deepStrictEqual(grantsOf(actual), grantsOf(expected), op._tag)
    assert.sameDeepMembers(refusalsOf(actual), refusalsOf(expected), op._tag)
    const [inUse, waiting, available, draining] = (await cluster.oracle("look")).reply
    assert.deepStrictEqual([inUse, waiting, available], [pool.inUse, pool.waiting, pool.available].map(String), op._tag)
    assert.sameMembers(draining!.split(" ").filter((name) => name !== ""), [...pool.draining.keys()])
  }
  for (const id of live) await shared.close(id)
  const [inUse, waiting] = (await cluster.oracle("look")).reply
  assert.deepStrictEqual([inUse, waiting], ["0", "0"])
}

describe("the pool's scripts for the store", () => {
  beforeAll(async () => {
    cluster = await ScriptNodes.start()
  })
  afterAll(() => cluster.stop())

  it("give the same results as PoolState under any interleaving", async () => {
    await fc.assert(
      fc.asyncProperty(
        limits,
        fc.array(operation, { maxLength: 120, size: "max" }),
        (limits, ops) => compare(limits, ops)
      ),
      { numRuns: runs(60) }
    )
  })

  it("give the same results as PoolState for each choice of accounts", async () => {
    await fc.assert(
      fc.asyncProperty(limits, fc.array(orderedOp, { maxLength: 120, size: "max" }), choosing, compare),
      { numRuns: runs(40) }
    )
  })
})
