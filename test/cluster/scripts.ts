/** The pool's scripts on a real server, run as several nodes that listen, at times that the test gives. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { readFileSync } from "node:fs"
import { type LeaseEnd, nothingSeen } from "../../src/accounts/shared/poolScripts.ts"
import { poolScript, type Script, scripts } from "../../src/cluster/store/scripts.ts"
import type { ClaimTarget, StoreClaim } from "../../src/cluster/store/StoreShape.ts"
import type { SharedPool, SharedPools } from "../../src/config/sharedAccounts.ts"
import type { LeaseRequest } from "../../src/placement/PoolState.ts"
import { connect, listOf, type RedisClient, redisServer } from "../support/redisServer.ts"

/** Single operations of the scripts. */
export const oracle = poolScript("oracle", readFileSync(new URL("./oracle.lua", import.meta.url), "utf8"))

/** Several nodes request in turn: their waiters form one queue. */
export const nodes = ["one", "two", "three"]

/** The outcome of a ticket: its account (`undefined` without one), or the reason of its refusal. */
export type Outcome = readonly [id: number, outcome: string | undefined, refusal?: string | undefined]

export const grantsOf = (outcomes: ReadonlyArray<Outcome>) => outcomes.filter(([, , refusal]) => refusal === undefined)
export const refusalsOf = (outcomes: ReadonlyArray<Outcome>) =>
  outcomes.filter(([, , refusal]) => refusal !== undefined)

/** A request for a lease as the scripts take it. */
export const leaseRequestText = (leaseRequest: LeaseRequest): string => {
  if (leaseRequest._tag === "Direct") return "D"
  if (leaseRequest._tag === "Pinned") return `P:${leaseRequest.key}`
  return leaseRequest.avoid.size === 0 ? "A" : `A:${[...leaseRequest.avoid].sort().join(",")}`
}

/** A request with targets, as the scripts take it. */
export const claimOf = (targets: ReadonlyArray<ClaimTarget>, facts: Partial<StoreClaim> = {}): StoreClaim => ({
  style: "chat",
  patience: 60_000,
  targets,
  spread: "order",
  holds: false,
  fallback: [],
  sticky: "",
  stays: false,
  prefers: [],
  thread: "",
  ...facts
})

/** The end of a lease at a node that can delete sessions, as `release` takes it. */
export const endOf = (facts: Partial<LeaseEnd>): string => JSON.stringify({ ...nothingSeen, cleans: true, ...facts })

/** A pool as `configure` takes it. */
export const poolOf = (name: string, accounts: ReadonlyArray<string>, facts: Partial<SharedPool> = {}): SharedPool => ({
  name,
  enabled: true,
  per: 1,
  global: 1,
  queue: 9,
  direct: 0,
  reserve: 0,
  resets: false,
  accounts,
  renewed: [],
  disabled: [],
  choose: "rotate",
  ranks: [],
  ...facts
})

/** The argument of `configure` for a document that replaces the revision before. */
export const configOf = (
  revision: number,
  facts: Partial<SharedPools> & { readonly expected?: string }
): string =>
  JSON.stringify({
    expected: String(revision - 1),
    revision,
    deadline: Number.MAX_SAFE_INTEGER,
    document: "document",
    proof: "",
    total: 99,
    budgets: [],
    ...facts
  })

export class ScriptNodes {
  now = 0
  readonly #client: RedisClient
  readonly #close: () => Promise<void>
  readonly #sent = new Map<string, number>()

  private constructor(client: RedisClient, close: () => Promise<void>) {
    this.#client = client
    this.#close = close
  }

  static async start(): Promise<ScriptNodes> {
    const scope = Effect.runSync(Scope.make())
    const server = await Effect.runPromise(Scope.provide(redisServer(), scope))
    const client = await connect(server.socket)
    const listeners: Array<RedisClient> = []
    for (const node of nodes) {
      const listener = await connect(server.socket)
      await listener.subscribe(`gw:{main}:e:${node}`, () => undefined)
      listeners.push(listener)
    }
    return new ScriptNodes(client, async () => {
      for (const open of [client, ...listeners]) open.destroy()
      await Effect.runPromise(Scope.close(scope, Exit.void))
    })
  }

  stop(): Promise<void> {
    return this.#close()
  }

  /** Begins with an empty store, whose nodes never die by themselves. */
  async open(): Promise<void> {
    this.now = 0
    await this.send("FLUSHALL")
    await this.send("SET", "gw:{main}:epoch", "e")
    for (const node of nodes) await this.attach(node, "1", [], [])
  }

  send(...args: ReadonlyArray<string>): Promise<ReadonlyArray<string>> {
    return listOf(this.#client, ...args)
  }

  async run(script: Script, node: string, ...args: ReadonlyArray<string>): Promise<ReadonlyArray<string>> {
    const reply: unknown = await this.#client.sendCommand([
      "EVAL",
      script.lua,
      "0",
      String(this.now),
      node,
      node,
      ...args
    ])
    assert.isTrue(Array.isArray(reply))
    return (reply as ReadonlyArray<unknown>).map(String)
  }

  /** Asks for a lease. `learned` are accounts with windows of their quotas. */
  acquire(node: string, ticket: string, claim: StoreClaim, learned: ReadonlyArray<readonly [string, string]> = []) {
    return this.run(scripts.acquire, node, ticket, JSON.stringify(claim), JSON.stringify(learned))
  }

  /** Attaches a node with the claims that it has. */
  async attach(node: string, starts: "0" | "1", leases: ReadonlyArray<unknown>, tickets: ReadonlyArray<unknown>) {
    const claims = [leases, tickets].map((list) => JSON.stringify(list))
    const reply = await this.run(scripts.attach, node, starts, "e", "e", "test", "0", ...claims)
    await this.send("ZADD", "gw:{main}:nodes", "inf", node)
    this.#sent.set(node, 0)
    return reply
  }

  /** The messages to a node since the last call. */
  async messages(node: string): Promise<ReadonlyArray<string>> {
    const seen = this.#sent.get(node)!
    const items = await this.send("LRANGE", `gw:{main}:out:${node}`, String(seen), "-1")
    this.#sent.set(node, seen + items.length)
    return items
  }

  /** The messages to the nodes since the last call: grants in the order of their fences, then refusals. */
  async told(): Promise<ReadonlyArray<Outcome>> {
    const grants: Array<{ readonly fence: number; readonly outcome: Outcome }> = []
    const refusals: Array<Outcome> = []
    for (const node of nodes) {
      for (const item of await this.messages(node)) {
        const [kind, ticket, first, second] = item.split(" ")
        if (kind === "grant") {
          grants.push({ fence: Number(second), outcome: [Number(ticket), first === "" ? undefined : first] })
        } else if (kind === "refuse") refusals.push([Number(ticket), undefined, first])
      }
    }
    grants.sort((a, b) => a.fence - b.fence)
    return [...grants.map(({ outcome }) => outcome), ...refusals]
  }

  /** Runs an operation of `oracle.lua`. */
  async oracle(...args: ReadonlyArray<string>) {
    const reply = await this.run(oracle, "one", ...args)
    return { reply, told: await this.told() }
  }
}
