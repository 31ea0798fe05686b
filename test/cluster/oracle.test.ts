/**
 * Compares the pool's scripts on a real server with `PoolState`: the same operations give the same results in the same
 * order.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as fc from "fast-check"
import { readFileSync } from "node:fs"
import {
  type LeaseRequest as Wish,
  type Limits,
  PoolState,
  type Refusal,
  type Waiter as Ticket
} from "../../src/accounts/PoolState.ts"
import { poolScript, type Script, scripts } from "../../src/cluster/store/scripts.ts"
import { runSync } from "../../src/domain/stream/cooperative.ts"
import { limits, names, type Op, op as operation, patience } from "../accounts/interleavings.ts"
import { runs } from "../support/effort.ts"
import { connect, type RedisClient, type RedisServer, redisServer } from "../support/redisServer.ts"

const oracle = poolScript("oracle", readFileSync(new URL("./oracle.lua", import.meta.url), "utf8"))
/** Several nodes request in turn: their waiters form one queue. */
const nodes = ["one", "two", "three"]

/** The outcome of a ticket: its account (`undefined` without one), or the reason of its refusal. */
type Outcome = readonly [id: number, outcome: string | undefined, refusal?: string | undefined]

let scope: Scope.Closeable
let server: RedisServer
let client: RedisClient
const listeners: Array<RedisClient> = []

const run = async (script: Script, now: number, node: string, ...args: ReadonlyArray<string>) => {
  const reply: unknown = await client.sendCommand(["EVAL", script.lua, "0", String(now), node, node, ...args])
  assert.isTrue(Array.isArray(reply))
  return (reply as ReadonlyArray<unknown>).map(String)
}

const wishText = (wish: Wish): string => {
  if (wish._tag === "Direct") return "D"
  if (wish._tag === "Pinned") return `P:${wish.key}`
  return wish.avoid.size === 0 ? "A" : `A:${[...wish.avoid].sort().join(",")}`
}

/** The scripts with the pool's interface. Every call returns the outcomes that it caused, in order. */
class SharedPool {
  now = 0
  #sent = new Map<string, number>()
  /** The nodes of tickets. */
  readonly owners = new Map<number, string>()
  revision = 0

  async open(limits: Limits) {
    await client.sendCommand(["FLUSHALL"])
    await client.sendCommand(["SET", "gw:{main}:epoch", "e"])
    for (const node of nodes) {
      await run(scripts.attach, 0, node, "1", "e", "", "test", "0", "[]", "[]")
      await client.sendCommand(["ZADD", "gw:{main}:nodes", "inf", node])
      this.#sent.set(node, 0)
    }
    await this.configure(names, limits, [])
  }

  /** The messages to the nodes since the last call; grants in the order of their fences. */
  async #told(): Promise<ReadonlyArray<Outcome>> {
    const grants: Array<{ readonly fence: number; readonly outcome: Outcome }> = []
    const refusals: Array<Outcome> = []
    for (const node of nodes) {
      const seen = this.#sent.get(node)!
      const items: unknown = await client.sendCommand(["LRANGE", `gw:{main}:out:${node}`, String(seen), "-1"])
      for (const item of items as ReadonlyArray<string>) {
        const [kind, ticket, first, second] = item.split(" ")
        if (kind === "grant") {
          grants.push({ fence: Number(second), outcome: [Number(ticket), first === "" ? undefined : first] })
        } else refusals.push([Number(ticket), undefined, first])
      }
      this.#sent.set(node, seen + (items as ReadonlyArray<string>).length)
    }
    grants.sort((a, b) => a.fence - b.fence)
    return [...grants.map(({ outcome }) => outcome), ...refusals]
  }

  async request(id: number, wish: Wish): Promise<ReadonlyArray<Outcome>> {
    const node = nodes[id % nodes.length]!
    this.owners.set(id, node)
    const ask = () => run(scripts.acquire, this.now, node, String(id), wishText(wish), String(patience), "", "chat")
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
    await run(scripts.release, this.now, this.owners.get(id)!, String(id), "0", "", "", "", "", "", "", "", "")
    return this.#told()
  }

  async oracle(...args: ReadonlyArray<string>) {
    const reply = await run(oracle, this.now, "one", ...args)
    return { reply, told: await this.#told() }
  }

  async configure(keys: ReadonlyArray<string>, limits: Limits, disabled: ReadonlyArray<string>) {
    const { direct, global, perAccount, queue } = limits
    const expected = String(this.revision++)
    const bounds = [perAccount, global, queue, direct].map(String)
    await run(
      scripts.configure,
      this.now,
      "one",
      expected,
      String(this.revision),
      "document",
      ...bounds,
      "0",
      "[]",
      JSON.stringify(keys),
      JSON.stringify(disabled)
    )
    return this.#told()
  }
}

/** Runs the same operations on both and compares the outcomes. */
const compare = async (first: Limits, ops: ReadonlyArray<Op>) => {
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
  const configure = (keys: ReadonlyArray<string>, limits: Limits, disabled: ReadonlyArray<string> = []) =>
    runSync(pool.configure(new Map(keys.map((key) => [key, key])), limits, new Set(disabled)))

  configure(names, first)
  await shared.open(first)
  for (const op of ops) {
    expected = []
    let actual: ReadonlyArray<Outcome> = []
    switch (op._tag) {
      case "Request": {
        const id = ids++
        live.push(id)
        const ticket = pool.request(op.wish, now, patience, (refusal) => note(id, refusal))
        if ("_tag" in ticket) note(id, ticket)
        else {
          tickets.set(id, ticket)
          if (ticket.state === "granted") note(id, undefined)
        }
        actual = await shared.request(id, op.wish)
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
        if (slot !== undefined) pool.suspend(slot, op.state, until)
        actual = (await shared.oracle("suspend", op.key, op.state, String(until))).told
        break
      }
      case "Restore": {
        const slot = pool.get(op.key)
        if (slot !== undefined) pool.restore(slot)
        actual = (await shared.oracle("restore", op.key)).told
        break
      }
      case "Advance": {
        now += op.by
        shared.now = now
        const due = pool.recover(now).map((slot) => slot.key)
        const { reply, told } = await shared.oracle("recover")
        assert.sameMembers(reply.slice(1), due)
        actual = told
        break
      }
      case "Clean": {
        const slot = pool.get(op.key)
        if (slot !== undefined) {
          pool.setCleaning(slot, op.cleaning)
          actual = (await shared.oracle("clean", op.key, op.cleaning ? "1" : "0")).told
        }
        break
      }
      case "Configure": {
        configure(op.keys, op.limits, op.disabled)
        // Accounts that are enabled again may be due at once.
        const due = pool.recover(now).map((slot) => slot.key)
        const told = await shared.configure(op.keys, op.limits, op.disabled)
        const recovered = await shared.oracle("recover")
        assert.sameMembers(recovered.reply.slice(1), due)
        actual = [...told, ...recovered.told]
        break
      }
    }
    const grants = (outcomes: ReadonlyArray<Outcome>) => outcomes.filter(([, , refusal]) => refusal === undefined)
    const refusals = (outcomes: ReadonlyArray<Outcome>) => outcomes.filter(([, , refusal]) => refusal !== undefined)
    assert.deepStrictEqual(grants(actual), grants(expected), op._tag)
    assert.sameDeepMembers(refusals(actual), refusals(expected), op._tag)
    const [inUse, waiting, available, draining] = (await shared.oracle("look")).reply
    assert.deepStrictEqual([inUse, waiting, available], [pool.inUse, pool.waiting, pool.available].map(String), op._tag)
    assert.sameMembers(draining!.split(" ").filter((name) => name !== ""), [...pool.draining.keys()])
  }
  for (const id of live) await shared.close(id)
  const [inUse, waiting] = (await shared.oracle("look")).reply
  assert.deepStrictEqual([inUse, waiting], ["0", "0"])
}

describe("the pool's scripts for the store", () => {
  beforeAll(async () => {
    scope = Effect.runSync(Scope.make())
    server = await Effect.runPromise(Scope.provide(redisServer(), scope))
    client = await connect(server.socket)
    for (const node of nodes) {
      const listener = await connect(server.socket)
      await listener.subscribe(`gw:{main}:e:${node}`, () => undefined)
      listeners.push(listener)
    }
  })
  afterAll(async () => {
    for (const open of [client, ...listeners]) open.destroy()
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  it("give the same results as PoolState under any interleaving", async () => {
    await fc.assert(
      fc.asyncProperty(limits, fc.array(operation, { maxLength: 120, size: "max" }), compare),
      { numRuns: runs(60) }
    )
  })
})
