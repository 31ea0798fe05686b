/**
 * Redis servers that name their primary, by the recipes of docs/operate/store.md: three sentinels over a primary and its replica, and
 * a cluster of three nodes with a replica each. The scope's end removes them.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { promisify } from "node:util"
import {
  command,
  connect,
  findServer,
  freePort,
  makeCertificate,
  type RedisServer,
  redisServer
} from "./redisServer.ts"
import { pageText, snippetsOf } from "./snippets.ts"
import { untilHolds } from "./until.ts"

const recipes = pageText("docs/operate/store.md")
const [serverConf, sentinelConf, clusterConf, clusterCommand] = [
  "conf server",
  "conf sentinel",
  "conf cluster",
  "sh cluster"
]
  .map((info) => snippetsOf(recipes, info)[0]!.text) as [string, string, string, string]
const [sentinelAddress, clusterAddress] = snippetsOf(recipes, "sh store")
  .map(({ text }) => /'(.*)'/.exec(text)![1]!) as [string, string]
const replicaConf = /`(replicaof [^`]+)`/.exec(recipes)![1]!

/** A part of a recipe with local ports in place of its addresses, which are given in their order. */
const withPorts = (text: string, addresses: ReadonlyArray<string>, servers: ReadonlyArray<{ readonly port: number }>) =>
  text.replaceAll(/(10\.0\.0\.\d)([: ])(\d+)/g, (_, host: string, between: string, port: string) => {
    const { port: local } = servers[addresses.indexOf(`${host}:${port}`)]!
    return `127.0.0.1${between}${local}`
  })

/** The lines of a configuration as options of a server. Tests may make a server sleep. */
const optionsOf = (conf: string): ReadonlyArray<string> =>
  `${conf.trim()}\nenable-debug-command yes`.split("\n").flatMap((line) => {
    const [name = "", ...values] = line.split(" ")
    return [`--${name}`, values.join(" ")]
  })

/** The rights that a page lists for a user of the store. */
export const documentedRights = (first: string): ReadonlyArray<string> =>
  pageText("docs/operate/store-connection.md").split("`").find((code) => code.startsWith(first))!.split(/\s+/)

/** The options of a server that replicates a primary. */
export const replicaOf = (primary: RedisServer): ReadonlyArray<string> =>
  optionsOf(withPorts(`${serverConf}${replicaConf}`, ["10.0.0.1:6379"], [primary]))

/** A process of Redis, and its password if it has one. */
interface Asked {
  readonly socket: string
  readonly password?: string | undefined
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
  /** The address, what it ends with besides, and the environment of nodes. */
  readonly url: string
  readonly query: string
  readonly env: Readonly<Record<string, string>>
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

/** A certificate of all servers, and the lines of a configuration that use it. */
interface TlsFiles {
  readonly cert: string
  readonly lines: ReadonlyArray<string>
}

const tlsFiles: Effect.Effect<TlsFiles, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(path.join(tmpdir(), "gateway-tls-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  ),
  (folder) => {
    const { cert, key } = makeCertificate(folder)
    const files = [`tls-cert-file ${cert}`, `tls-key-file ${key}`, `tls-ca-cert-file ${cert}`]
    return { cert, lines: [...files, "tls-auth-clients no"] }
  }
)

/** The user of the gateway at a server with TLS, who has the documented rights. */
const user = "gateway:a-password"

const securing = ({ port }: RedisServer, tls: TlsFiles | undefined): ReadonlyArray<string> => {
  if (tls === undefined) return []
  const [name = "", password = ""] = user.split(":")
  return [
    ...optionsOf(["port 0", `tls-port ${port}`, "tls-replication yes", "tls-cluster yes", ...tls.lines].join("\n")),
    "--user",
    name,
    "on",
    `>${password}`,
    ...documentedRights("~gw:"),
    ...documentedRights("+cluster")
  ]
}

const addressOf = (address: string, tls: TlsFiles | undefined): string =>
  tls === undefined ? address : address.replace("redis+", "rediss+").replace(/:[^:@]*@/, `${user}@`)

const envOf = (tls: TlsFiles | undefined) => tls === undefined ? {} : { NODE_EXTRA_CA_CERTS: tls.cert }

/** The password of the sentinels, for one another and for the gateway. */
const sentinelPassword = "hidden"

const startSentinel = (of: RedisServer, tls: TlsFiles | undefined): Effect.Effect<Sentinel, never, Scope.Scope> =>
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
            `${tls === undefined ? "" : "tls-"}port ${port}`,
            ...tls === undefined ? [] : ["port 0", "tls-replication yes", ...tls.lines],
            "bind 127.0.0.1",
            `unixsocket ${socket}`,
            `dir ${folder}`,
            withPorts(sentinelConf, ["10.0.0.1:6379"], [of]),
            `requirepass ${sentinelPassword}`,
            `sentinel sentinel-pass ${sentinelPassword}`,
            `user gateway on >${sentinelPassword} -@all ${documentedRights("+sentinel").join(" ")}`,
            ""
          ].join("\n")
        )
        const process = spawn(findServer(), [file, "--sentinel"], { stdio: "ignore" })
        const one = { port, socket, password: sentinelPassword }
        await untilHolds(async () => (await ask(one, "PING").catch(() => "")) === "PONG")
        return { folder, one, process }
      }),
      ({ folder, process }) =>
        Effect.promise(async () => {
          const ended = once(process, "exit")
          process.kill("SIGKILL")
          await ended
          rmSync(folder, { recursive: true, force: true })
        })
    ),
    ({ one }) => one
  )

/** Three sentinels with a password, over a primary and its replica. */
const makeSentinelGroup = Effect.fnUntraced(
  function*(tls?: TlsFiles): Effect.fn.Return<RedisGroup, never, Scope.Scope> {
    const first = yield* redisServer((server) => [...optionsOf(serverConf), ...securing(server, tls)])
    const second = yield* redisServer((server) => [...replicaOf(first), ...securing(server, tls)])
    const sentinels = yield* Effect.all([1, 2, 3].map(() => startSentinel(first, tls)), { concurrency: 3 })
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
      url: addressOf(withPorts(sentinelAddress, [1, 2, 3].map((host) => `10.0.0.${host}:26379`), sentinels), tls),
      env: envOf(tls),
      query: `?sentinel_user=gateway&sentinel_password=${sentinelPassword}`,
      first,
      second,
      handOver: async () => {
        await untilHolds(async () =>
          (await ask(sentinels[0]!, "SENTINEL", "FAILOVER", "main").catch(() => "")) === "OK"
        )
      },
      isPrimary: isNamed,
      untilHandedOver: () => untilHolds(() => isNamed(second))
    }
  }
)

/** The hash slot of the gateway's keys, and a node that has it. */
const slot = "12501"
const isOwner = (line: string): boolean =>
  line.includes("master") && line.split(" ").slice(8).some((range) => {
    const [from = 0, to = from] = range.split("-").map(Number)
    return from <= Number(slot) && Number(slot) <= to
  })

/** A cluster of three nodes with a replica each. `first` has the gateway's keys. */
const makeClusterGroup = Effect.fnUntraced(function*(tls?: TlsFiles): Effect.fn.Return<RedisGroup, never, Scope.Scope> {
  const buses = yield* Effect.promise(() => Promise.all([1, 2, 3, 4, 5, 6].map(freePort)))
  const nodes = yield* Effect.all(
    buses.map((bus) =>
      redisServer((server) => [...optionsOf(clusterConf), "--cluster-port", String(bus), ...securing(server, tls)])
    ),
    { concurrency: 6 }
  )
  const addresses = [6379, 6380].flatMap((port) => [1, 2, 3].map((host) => `10.0.0.${host}:${port}`))
  const linesAt = async (node: RedisServer) => String(await ask(node, "CLUSTER", "NODES")).trim().split("\n")
  const at = (line: string) => nodes.find(({ port }) => line.includes(`:${port}@`))!
  const [first, second] = yield* Effect.promise(async () => {
    const command = withPorts(clusterCommand, addresses, nodes)
    const secured = tls === undefined ? command : command.replace("redis-cli", `redis-cli --tls --cacert ${tls.cert}`)
    await promisify(execFile)("sh", ["-euc", secured])
    for (const node of nodes) {
      await untilHolds(async () => {
        const state = String(await ask(node, "CLUSTER", "INFO"))
        return state.includes("cluster_state:ok") &&
          (await linesAt(node)).filter((line) => line.includes("slave")).length === 3
      })
    }
    const lines = await linesAt(nodes[0]!)
    const owner = lines.find(isOwner)!
    const replica = at(lines.find((line) => line.includes(`slave ${owner.split(" ")[0]}`))!)
    await untilHolds(() => isConnected(replica))
    return [at(owner), replica] as const
  })
  const other = nodes.find((node) => node !== first && node !== second)!
  const isNamed = async (server: RedisServer): Promise<boolean> => {
    const moved = await ask(other, "GET", "gw:{main}:epoch").catch((error: unknown) => String(error))
    return String(moved).includes(`MOVED ${slot} 127.0.0.1:${server.port}`) && await isPrimary(server)
  }
  return {
    url: addressOf(withPorts(clusterAddress, addresses, nodes), tls),
    query: "",
    env: envOf(tls),
    first,
    second,
    handOver: async () => {
      await untilHolds(async () => (await ask(second, "CLUSTER", "FAILOVER").catch(() => "")) === "OK")
    },
    isPrimary: isNamed,
    untilHandedOver: () => untilHolds(() => isNamed(second))
  }
})

export const sentinelGroup = makeSentinelGroup()
export const clusterGroup = makeClusterGroup()
/** The same with TLS, and for a user with the documented rights. */
export const securedSentinelGroup = Effect.flatMap(tlsFiles, makeSentinelGroup)
export const securedClusterGroup = Effect.flatMap(tlsFiles, makeClusterGroup)
