/**
 * Redis servers that name their primary: three sentinels over a primary and its replica, and a cluster of three nodes with a
 * replica of the node that has the gateway's keys. The scope's end removes them.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { command, connect, findServer, freePort, type RedisServer, redisServer } from "./redisServer.ts"
import { untilHolds } from "./until.ts"

/** Allows tests to make a server sleep. */
const debugging = ["--enable-debug-command", "yes"]

/** The options of a server that replicates a primary. */
export const replicaOf = (primary: RedisServer): ReadonlyArray<string> => [
  ...debugging,
  "--replicaof",
  `127.0.0.1 ${primary.port}`
]

/** A process of Redis, and its password if it has one. */
interface Asked {
  readonly socket: string
  readonly password?: string
}

/** Sends a command to a process over a connection of its own. */
export const ask = async ({ password, socket }: Asked, ...args: ReadonlyArray<string>): Promise<unknown> => {
  const client = await connect(socket, password)
  try {
    return await command(client, ...args)
  } finally {
    client.destroy()
  }
}

/** A server that others name. */
export interface RedisGroup {
  /** The address as it is shown, and what it ends with besides. */
  readonly url: string
  readonly query: string
  /** The primary at the start, and its replica. */
  readonly first: RedisServer
  readonly second: RedisServer
  /** Hands over to the replica, as an operator does. */
  readonly handOver: () => Promise<void>
  /** Whether the others name a server as the primary, and it is. */
  readonly isPrimary: (server: RedisServer) => Promise<boolean>
  /** Waits until the servers name the replica as the primary, and it is. */
  readonly untilHandedOver: () => Promise<void>
}

interface Sentinel extends Asked {
  readonly port: number
}

const isPrimary = async (server: RedisServer): Promise<boolean> =>
  /role:master/.test(String(await ask(server, "INFO", "replication").catch(() => "")))

/** Whether a replica has the data of its primary. */
export const isConnected = async (replica: RedisServer): Promise<boolean> =>
  /master_link_status:up/.test(String(await ask(replica, "INFO", "replication")))

const startSentinel = (of: RedisServer, password: string): Effect.Effect<Sentinel, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const folder = mkdtempSync(path.join(tmpdir(), "gateway-sentinel-"))
        const port = await freePort()
        const socket = path.join(folder, "sentinel.sock")
        const file = path.join(folder, "sentinel.conf")
        writeFileSync(
          file,
          [
            `port ${port}`,
            "bind 127.0.0.1",
            `unixsocket ${socket}`,
            `dir ${folder}`,
            `sentinel monitor main 127.0.0.1 ${of.port} 2`,
            "sentinel down-after-milliseconds main 1000",
            "sentinel failover-timeout main 5000",
            `requirepass ${password}`,
            `sentinel sentinel-pass ${password}`,
            ""
          ].join("\n")
        )
        const process = spawn(findServer(), [file, "--sentinel"], { stdio: "ignore" })
        await untilHolds(async () => (await ask({ password, socket }, "PING").catch(() => "")) === "PONG")
        return { folder, port, process, socket }
      }),
      ({ folder, process }) =>
        Effect.promise(async () => {
          const ended = once(process, "exit")
          process.kill("SIGKILL")
          await ended
          rmSync(folder, { recursive: true, force: true })
        })
    ),
    ({ port, socket }) => ({ password, port, socket })
  )

/** Three sentinels with a password, over a primary and its replica. */
export const sentinelGroup: Effect.Effect<RedisGroup, never, Scope.Scope> = Effect.gen(function*() {
  const first = yield* redisServer(...debugging)
  const second = yield* redisServer(...replicaOf(first))
  const password = "hidden"
  const sentinels = yield* Effect.all([1, 2, 3].map(() => startSentinel(first, password)), { concurrency: 3 })
  const named = (sentinel: Sentinel) =>
    ask(sentinel, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main").then((reply) => Number((reply as Array<string>)[1]))
  yield* Effect.promise(async () => {
    await untilHolds(() => isConnected(second))
    for (const sentinel of sentinels) {
      await untilHolds(async () => {
        const facts = String(await ask(sentinel, "INFO", "sentinel"))
        return facts.includes("slaves=1,sentinels=3")
      })
    }
  })
  const isNamed = async (server: RedisServer): Promise<boolean> => {
    const names = await Promise.all(sentinels.map(named))
    return names.filter((port) => port === server.port).length >= 2 && await isPrimary(server)
  }
  return {
    url: `redis+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(",")}/main`,
    query: `?sentinel_password=${password}`,
    first,
    second,
    handOver: async () => {
      await untilHolds(async () => (await ask(sentinels[0]!, "SENTINEL", "FAILOVER", "main").catch(() => "")) === "OK")
    },
    isPrimary: isNamed,
    untilHandedOver: () => untilHolds(() => isNamed(second))
  }
})

/** The hash slot of the gateway's keys. */
const slot = "12501"

/** A cluster of three nodes, and a replica of the one that has the gateway's keys. */
export const clusterGroup: Effect.Effect<RedisGroup, never, Scope.Scope> = Effect.gen(function*() {
  const options = [
    "--cluster-enabled",
    "yes",
    "--cluster-node-timeout",
    "2000",
    "--cluster-replica-validity-factor",
    "0"
  ]
  const buses = yield* Effect.promise(() => Promise.all([1, 2, 3, 4].map(freePort)))
  const nodes = yield* Effect.all(
    buses.map((bus) => redisServer(...debugging, ...options, "--cluster-port", String(bus))),
    { concurrency: 4 }
  )
  const [one, two, first, second] = nodes as [RedisServer, RedisServer, RedisServer, RedisServer]
  yield* Effect.promise(async () => {
    const ranges = [["0", "5460"], ["5461", "10922"], ["10923", "16383"]] as const
    for (const [i, node] of [one, two, first].entries()) {
      await ask(node, "CLUSTER", "ADDSLOTSRANGE", ...ranges[i]!)
      await ask(node, "CLUSTER", "SET-CONFIG-EPOCH", String(i + 1))
    }
    const met = [String(one.port), String(buses[0])]
    for (const node of [two, first, second]) await ask(node, "CLUSTER", "MEET", "127.0.0.1", ...met)
    for (const node of nodes) {
      await untilHolds(async () => {
        const lines = String(await ask(node, "CLUSTER", "NODES")).trim().split("\n")
        return lines.length === 4 && lines.every((line) => line.includes(" connected") && !line.includes("handshake"))
      })
    }
    const id = String(await ask(first, "CLUSTER", "MYID"))
    await untilHolds(async () => (await ask(second, "CLUSTER", "REPLICATE", id).catch(() => "")) === "OK")
    await untilHolds(() => isConnected(second))
    for (const node of nodes) {
      await untilHolds(async () => {
        const [state, list] = [String(await ask(node, "CLUSTER", "INFO")), String(await ask(node, "CLUSTER", "NODES"))]
        return state.includes("cluster_state:ok") && list.includes(`slave ${id}`)
      })
    }
  })
  const isNamed = async (server: RedisServer): Promise<boolean> => {
    const moved = await ask(two, "GET", "gw:{main}:epoch").catch((error: unknown) => String(error))
    return String(moved).includes(`MOVED ${slot} 127.0.0.1:${server.port}`) && await isPrimary(server)
  }
  return {
    url: `redis+cluster://127.0.0.1:${one.port},127.0.0.1:${two.port}`,
    query: "",
    first,
    second,
    handOver: async () => {
      await untilHolds(async () => (await ask(second, "CLUSTER", "FAILOVER").catch(() => "")) === "OK")
    },
    isPrimary: isNamed,
    untilHandedOver: () => untilHolds(() => isNamed(second))
  }
})
