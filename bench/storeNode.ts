/**
 * A node of the store's benchmark, in the benchmark's process or in its own (`node bench/storeNode.ts URL ID`). It starts when it reads a
 * line, and prints the number of its leases and their seconds.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import { hash } from "node:crypto"
import { once } from "node:events"
import { type AccountPool, Accounts, anywhere, type Caller } from "../src/accounts/Accounts.ts"
import { Store } from "../src/cluster/store/Store.ts"
import { ConfigStore } from "../src/config/ConfigStore.ts"
import { Environment } from "../src/config/Environment.ts"
import { Upstreams } from "../src/upstream/Upstreams.ts"
import { idleDriver } from "./idleDriver.ts"

const key = "a-business-key"
export const caller: Caller = { _tag: "Managed", owner: hash("sha256", key), target: undefined }

/** A node with a pool over the store at an address. */
export const node = Effect.fnUntraced(function*(url: string, id: string, accounts: number, global?: number) {
  const config = {
    keys: [key],
    accounts: Array.from({ length: accounts }, (_, i) => ({ email: `user${i}@example.com`, password: "secret" })),
    ...(global === undefined ? {} : { runtime: { global_max_inflight: global, account_max_queue: 100 } })
  }
  const store = Store.layerRedis({
    url: Redacted.make(url),
    key: Redacted.make("the key of a benchmark"),
    nodeId: id
  })
  const context = yield* Layer.build(
    Accounts.layerShared.pipe(
      Layer.provideMerge(ConfigStore.layerShared),
      Layer.provideMerge(store),
      Layer.provide(Upstreams.layerOf(idleDriver)),
      Layer.provide(Environment.layer),
      Layer.provide(
        ConfigProvider.layer(ConfigProvider.fromEnvRecord({ GATEWAY_CONFIG_JSON: JSON.stringify(config) }))
      ),
      Layer.provide(NodeServices.layer)
    )
  )
  return { pool: Context.get(context, Accounts), store: Context.get(context, Store) }
})

/** Concurrent leases. */
const atOnce = 16

/** Acquires and releases leases. Returns the seconds. */
export const takeLeases = Effect.fnUntraced(function*(pool: AccountPool, times: number) {
  const began = performance.now()
  // A store that shares its core may exceed its time limit now and then.
  const once = Effect.retry(Effect.scoped(pool.lease(caller, anywhere)), {
    while: ({ code }) => code === "store_unavailable",
    schedule: Schedule.spaced("50 millis")
  })
  yield* Effect.all(
    Array.from({ length: atOnce }, () => Effect.repeat(once, { times: times / atOnce - 1 })),
    { concurrency: "unbounded" }
  )
  return (performance.now() - began) / 1_000
})

/** Accounts of the benchmark by nodes, and leases of each node. */
export const accountsOfMany = 1_000
export const leasesOfEach = 2_400

const main = Effect.gen(function*() {
  const [url = "", id = ""] = process.argv.slice(2)
  const { pool } = yield* node(url, id, accountsOfMany)
  yield* takeLeases(pool, 480)
  process.stdout.write("ready\n")
  yield* Effect.promise(() => once(process.stdin, "data"))
  process.stdout.write(`${yield* takeLeases(pool, leasesOfEach)}\n`)
  process.stdin.destroy()
}).pipe(Effect.scoped, Effect.provide(Logger.layer([])))

if (import.meta.main) await Effect.runPromise(main)
