/**
 * Nodes of a store in the test's process.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { Store, type StoreOptions } from "../../src/cluster/store/Store.ts"
import { command, connect, type RedisServer, redisServer } from "../support/redisServer.ts"
import { until } from "../support/until.ts"

export const storeKey = "a key of the store, long enough"

export const storeLayer = (server: RedisServer, node: string, options: Partial<StoreOptions> = {}) =>
  Store.layerRedis({
    url: Redacted.make(server.url),
    key: Redacted.make(storeKey),
    nodeId: node,
    timeoutMillis: 1_500,
    ...options
  })

/** The store of a node that receives no announcements of a configuration. */
export const deafStoreLayer = (server: RedisServer, node: string) =>
  Layer.effect(
    Store,
    Effect.map(Store, (store): Store["Service"] => ({
      ...store,
      listen: (listener) => store.listen((event) => event._tag === "config" ? undefined : listener(event))
    }))
  ).pipe(Layer.provide(storeLayer(server, node)))

/** A server with data, so that its nodes skip the quiet period. */
export const settledServer = Effect.tap(redisServer(), (server) =>
  Effect.promise(async () => {
    const client = await connect(server.socket)
    await command(client, "SET", "gw:{main}:epoch", "of-the-test")
    client.destroy()
  }))

/** A node with the messages that it has received. */
export const storeNode = Effect.fnUntraced(
  function*(server: RedisServer, node: string, options: Partial<StoreOptions> = {}) {
    const store = Context.get(yield* Layer.build(storeLayer(server, node, options)), Store)
    const heard: Array<string> = []
    store.listen((event) => heard.push(Object.values(event).join(" ")))
    return { store, heard }
  }
)

/** The place of the pools in a store, and what it has of one. */
export const poolsPlace = "gw:{main}:pools"
export const storedPool = (text: unknown) => JSON.parse(String(text)) as Readonly<Record<string, unknown>>

/** What a store has of a lease; `null` without one. */
export const storedLease = (text: unknown) =>
  JSON.parse(String(text)) as
    | { readonly account: string; readonly fence: number; readonly pool: string; readonly model: number }
    | null

/** The commands that the server received while an effect ran: sender, command and arguments. */
export const sentDuring = Effect.fnUntraced(function*<A, E>(server: RedisServer, effect: Effect.Effect<A, E>) {
  const lines: Array<string> = []
  const monitor = yield* Effect.promise(() => connect(server.socket))
  yield* Effect.promise(() => monitor.monitor((line) => lines.push(String(line))))
  yield* effect
  yield* Effect.promise(async () => {
    const client = await connect(server.socket)
    await command(client, "ECHO", "the end")
    client.destroy()
  })
  yield* until(() => lines.some((line) => line.includes("the end")))
  monitor.destroy()
  return lines.flatMap((line) => {
    const [, from = "", sent = ""] = /\[\d+ ([^\]]+)\] (.*)$/.exec(line) ?? []
    const [name = "", ...args] = Array.from(sent.matchAll(/"((?:[^"\\]|\\.)*)"/g), ([, arg = ""]) => arg)
    return from === "lua" ? [] : [{ from, name: name.toUpperCase(), args }]
  })
})
