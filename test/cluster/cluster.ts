/**
 * Gateways as processes over one store and one reference upstream, whose report is the ground truth.
 */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import type { RawConfig } from "../../src/config/json.ts"
import type { Report } from "../../src/testing/CallLog.ts"
import type { ReferenceOptions } from "../../src/testing/Provider.ts"
import { make, type Reference } from "../../src/testing/Reference.ts"
import { admin } from "../gateway/support.ts"
import { type Running, start } from "../server/cli/process.ts"
import { adminKey, businessKey } from "../support/gateway.ts"
import { command, connect, listOf, type RedisClient, type RedisServer, redisServer } from "../support/redisServer.ts"
import { untilHolds } from "../support/until.ts"
import { poolsPlace, storedPool } from "./support.ts"

/** The store key. */
export const clusterKey = "the key of the store of the tests"

/** A gateway's process. */
export interface ClusterNode {
  readonly id: string
  readonly url: string
  readonly running: Running
  readonly signal: (signal: NodeJS.Signals) => void
  /** Kills the process and waits for its end. */
  readonly kill: () => Promise<void>
}

export interface Cluster {
  readonly store: RedisServer
  readonly client: () => Promise<RedisClient>
  readonly reference: Reference["Service"]
  readonly nodes: Array<ClusterNode>
  readonly report: () => Promise<Report>
  readonly until: (predicate: (report: Report) => boolean) => Promise<Report>
  readonly add: (id: string, env?: Readonly<Record<string, string>>) => Promise<ClusterNode>
  readonly stop: () => Promise<void>
}

export interface ClusterOptions {
  readonly nodes: number
  readonly config: RawConfig
  readonly reference?: ReferenceOptions
  /** Timeouts in seconds, by their names in the configuration. */
  readonly timeouts?: Readonly<Record<string, number>>
  /** Timeout of a store command; by default the maximum, because the machine may be busy. */
  readonly storeTimeoutMillis?: number
  /** A replacement for the plain store: its address, and what the nodes need for it. */
  readonly store?: Effect.Effect<
    { readonly server: RedisServer; readonly url: string; readonly env: Readonly<Record<string, string>> },
    never,
    Scope.Scope
  >
}

/** Starts a store, an upstream, and the gateways `n1`, `n2` … */
export const startCluster = async (options: ClusterOptions): Promise<Cluster> => {
  const scope = Scope.makeUnsafe()
  const plain = Effect.map(redisServer(), (server) => ({ server, url: server.url, env: {} }))
  const { env: storeEnv, server: store, url: storeUrl } = await Effect.runPromise(
    Scope.provide(options.store ?? plain, scope)
  )
  const reference = await Effect.runPromise(make(options.reference))
  const baseUrl = await Effect.runPromise(Scope.provide(reference.listen(), scope))
  const folder = mkdtempSync(path.join(tmpdir(), "gateway-nodes-"))
  const clients: Array<RedisClient> = []
  const nodes: Array<ClusterNode> = []
  const config = {
    keys: [businessKey],
    upstream: { driver: "session", base_url: baseUrl, timeouts: options.timeouts ?? {} },
    drain: { notice: 0 },
    ...options.config
  }

  const add = async (id: string, env: Readonly<Record<string, string>> = {}): Promise<ClusterNode> => {
    const running = start([], {
      PORT: "0",
      GATEWAY_CONFIG_JSON: JSON.stringify(config),
      GATEWAY_ADMIN_KEY: adminKey,
      GATEWAY_DATA_DIR: path.join(folder, id),
      GATEWAY_STORE_URL: storeUrl,
      GATEWAY_STORE_KEY: clusterKey,
      GATEWAY_STORE_TIMEOUT_MS: String(options.storeTimeoutMillis ?? 1_500),
      GATEWAY_NODE_ID: id,
      ...storeEnv,
      ...env
    })
    const [, url = ""] = await running.printed(/listens on (https?:\S+)/)
    const node: ClusterNode = {
      id,
      url,
      running,
      signal: (signal) => void running.child.kill(signal),
      kill: async () => {
        running.child.kill("SIGKILL")
        await running.ended
      }
    }
    nodes.push(node)
    return node
  }

  const cluster: Cluster = {
    store,
    client: async () => {
      const client = await connect(store.socket)
      clients.push(client)
      return client
    },
    reference,
    nodes,
    report: () => Effect.runPromise(reference.report),
    until: (predicate) => Effect.runPromise(reference.until(predicate)),
    add,
    stop: async () => {
      await Promise.all(nodes.map(async (node) => {
        node.signal("SIGCONT")
        await node.kill()
      }))
      for (const client of clients) client.destroy()
      await Effect.runPromise(Scope.close(scope, Exit.void))
      rmSync(folder, { recursive: true, force: true })
    }
  }
  try {
    await Promise.all(Array.from({ length: options.nodes }, (_, i) => add(`n${i + 1}`)))
  } catch (error) {
    await cluster.stop()
    throw error
  }
  nodes.sort((a, b) => a.id < b.id ? -1 : 1)
  return cluster
}

/** The queue as a node reports it. */
export const queueAt = ({ url }: ClusterNode) => admin(url, "GET", "/admin/queue/status")

/** Polls a node until the queue matches, because a change of the queue causes no event. */
export const untilQueueAt = async (node: ClusterNode, expected: Readonly<Record<string, unknown>>): Promise<void> => {
  await untilHolds(async () => {
    const status = await queueAt(node).catch(() => ({} as Record<string, unknown>))
    return Object.entries(expected).every(([field, value]) => status[field] === value)
  })
}

/** Waits until no slot is in use and the queue is empty, at the upstream and on every node. */
export const untilIdle = async (cluster: Cluster): Promise<Report> => {
  const living = cluster.nodes.filter(({ running }) =>
    running.child.exitCode === null && running.child.signalCode === null
  )
  for (const node of living) await untilQueueAt(node, { in_use: 0, waiting: 0 })
  const report = await cluster.until(({ open, streams }) => open === 0 && streams === 0)
  const client = await cluster.client()
  const pools = (await listOf(client, "HVALS", poolsPlace)).map(storedPool)
  assert.isNotEmpty(pools)
  for (const pool of pools) assert.deepInclude(pool, { in_use: 0, waiting: 0, direct_in_use: 0, direct_waiting: 0 })
  const ofPools = pools.flatMap(({ name }) => ["used", "lines", "blocked"].map((key) => `pool:${String(name)}:${key}`))
  for (const key of ["queue", "tickets:n1", "leases:n1", ...ofPools]) {
    assert.strictEqual(await command(client, "EXISTS", `gw:{main}:${key}`), 0, key)
  }
  return report
}

/** Waits until a node accepts requests. */
export const untilReady = ({ url }: ClusterNode): Promise<void> =>
  untilHolds(async () => (await fetch(`${url}/readyz`)).status === 200)
