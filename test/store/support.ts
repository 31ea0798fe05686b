/** Nodes of a store, in the test's own process. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { Store, type StoreOptions } from "../../src/store/Store.ts"
import { command, connect, type RedisServer, redisServer } from "../support/redisServer.ts"

export const storeKey = "a key of the store, long enough"

export const storeLayer = (server: RedisServer, node: string, options: Partial<StoreOptions> = {}) =>
  Store.layerRedis({
    url: Redacted.make(server.url),
    key: Redacted.make(storeKey),
    nodeId: node,
    timeoutMillis: 1_500,
    ...options
  })

/** A server that has data: its nodes wait for nobody who might bring some back. */
export const settledServer = Effect.tap(redisServer(), (server) =>
  Effect.promise(async () => {
    const client = await connect(server.socket)
    await command(client, "SET", "gw:{main}:epoch", "of-the-test")
    client.destroy()
  }))

/** A store's node with the lines that it has heard. */
export const storeNode = Effect.fnUntraced(
  function*(server: RedisServer, node: string, options: Partial<StoreOptions> = {}) {
    const store = Context.get(yield* Layer.build(storeLayer(server, node, options)), Store)
    const heard: Array<string> = []
    store.listen((kind, rest) => heard.push(`${kind} ${rest}`.trim()))
    return { store, heard }
  }
)
