/**
 * The store of a soak with several nodes: a primary, its replica and three sentinels, whose primary fails again and again.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { ask, isConnected, type RedisGroup, replicaOf, sentinelGroup } from "../../test/support/redisGroups.ts"
import type { RedisServer } from "../../test/support/redisServer.ts"
import { expectSoon } from "./until.ts"

/** Seconds for which a sleeping primary does not answer: it wakes up after its failover. */
const asleep = "8"

/** How the primary fails, in this order. */
const causes: Readonly<Record<string, (group: RedisGroup, primary: RedisServer) => Promise<void>>> = {
  "handed over": (group) => group.handOver(),
  killed: (_, primary) => primary.crash(),
  asleep: async (_, primary) => {
    void ask(primary, "DEBUG", "SLEEP", asleep).catch(() => undefined)
  }
}

/** The kinds of failover, in their order. */
export const failovers: ReadonlyArray<string> = Object.keys(causes)

export class SoakStore {
  private readonly group: RedisGroup
  private readonly scope: Scope.Closeable
  private primary: RedisServer
  private replica: RedisServer
  private killed = false

  private constructor(group: RedisGroup, scope: Scope.Closeable) {
    this.group = group
    this.scope = scope
    this.primary = group.first
    this.replica = group.second
  }

  static async start(): Promise<SoakStore> {
    const scope = Scope.makeUnsafe()
    return new SoakStore(await Effect.runPromise(Scope.provide(sentinelGroup, scope)), scope)
  }

  get url(): string {
    return this.group.url + this.group.query
  }

  /** Makes the primary fail. Resolves when most sentinels name the replica, and it answers as the primary. */
  async failOver(kind: string): Promise<void> {
    await causes[kind]!(this.group, this.primary)
    await expectSoon("the replica is the primary", () => this.group.isPrimary(this.replica))
    const failed = this.primary
    this.primary = this.replica
    this.replica = failed
    this.killed = kind === "killed"
  }

  /** Starts a killed server again, and waits until the former primary is a replica with all data. */
  async settle(): Promise<void> {
    if (this.killed) await this.replica.start(...replicaOf(this.primary))
    this.killed = false
    await expectSoon("the former primary is a replica", () => isConnected(this.replica).catch(() => false))
  }

  /** Bytes that the data of the primary occupy. */
  async memory(): Promise<number> {
    return Number(/used_memory:(\d+)/.exec(String(await ask(this.primary, "INFO", "memory")))?.[1])
  }

  async stop(): Promise<void> {
    await Effect.runPromise(Scope.close(this.scope, Exit.void))
  }
}
