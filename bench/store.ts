/**
 * The pool that nodes share over a store, beside what the server itself takes: a real redis-server, two nodes in this process.
 *
 * What to look at: at most two scripts an attempt, a lease that waits for little more than one round trip, grants that do not
 * depend on how many accounts there are, and a slot that is at a waiter of another node within little more than two.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import { hash } from "node:crypto"
import { Accounts, type Caller, type LeaseOptions } from "../src/accounts/Accounts.ts"
import { ConfigStore } from "../src/config/ConfigStore.ts"
import { Environment } from "../src/config/Environment.ts"
import { Store } from "../src/store/Store.ts"
import { type Driver, Upstream } from "../src/upstream/Upstream.ts"
import { command, connect, type RedisServer, redisServer } from "../test/support/redisServer.ts"
import { type Row, table } from "./table.ts"

const key = "a-business-key"
const caller: Caller = { _tag: "Managed", owner: hash("sha256", key), target: undefined }
const options: LeaseOptions = { avoid: new Set(), stay: undefined }

const unused = Effect.die("not called")
const driver: Driver = {
  name: "embedded",
  capabilities: { login: true, sessions: true, anonymous: true, sampling: true },
  models: [],
  login: () => Effect.succeed("token"),
  verify: () => Effect.void,
  complete: () => unused,
  createSession: () => unused,
  listSessions: () => unused,
  deleteSession: () => unused,
  deleteAllSessions: () => unused
}

const node = Effect.fnUntraced(function*(server: RedisServer, id: string, accounts: number, global?: number) {
  const config = {
    keys: [key],
    accounts: Array.from({ length: accounts }, (_, i) => ({ email: `user${i}@example.com`, password: "secret" })),
    ...(global === undefined ? {} : { runtime: { global_max_inflight: global, account_max_queue: 100 } })
  }
  const store = Store.layerRedis({
    url: Redacted.make(server.url),
    key: Redacted.make("the key of a benchmark"),
    nodeId: id
  })
  const context = yield* Layer.build(
    Accounts.layerShared.pipe(
      Layer.provideMerge(ConfigStore.layerShared),
      Layer.provideMerge(store),
      Layer.provide(Layer.succeed(Upstream, Upstream.of({ driver: Effect.succeed(driver) }))),
      Layer.provide(Environment.layer),
      Layer.provide(
        ConfigProvider.layer(ConfigProvider.fromEnvRecord({ GATEWAY_CONFIG_JSON: JSON.stringify(config) }))
      ),
      Layer.provide(NodeServices.layer)
    )
  )
  return { pool: Context.get(context, Accounts), store: Context.get(context, Store) }
})

const median = (values: Array<number>): number =>
  values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

/** Milliseconds of an effect, the median of `times` runs. */
const timed = Effect.fnUntraced(function*<A, E>(times: number, effect: Effect.Effect<A, E>) {
  const taken: Array<number> = []
  for (let i = 0; i < times; i++) {
    const began = performance.now()
    yield* effect
    taken.push(performance.now() - began)
  }
  return median(taken)
})

const scriptsRun = async (server: RedisServer): Promise<number> => {
  const client = await connect(server.socket)
  const info = String(await command(client, "INFO", "commandstats"))
  client.destroy()
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(info)?.[1] ?? 0)
}

/** One row: a store with so many accounts. */
const measure = Effect.fnUntraced(function*(accounts: number) {
  const server = yield* redisServer()
  const { pool, store } = yield* node(server, "one", accounts)
  const ping = yield* timed(500, store.send("PING"))
  const lease = yield* timed(
    500,
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      yield* Scope.provide(pool.lease(caller, options), scope)
      return scope
    }).pipe(Effect.flatMap((scope) => Effect.andThen(Scope.close(scope, Exit.void), Effect.yieldNow)))
  )
  const attempts = 4_000
  const before = yield* Effect.promise(() => scriptsRun(server))
  const began = performance.now()
  const once = Effect.scoped(pool.lease(caller, options))
  yield* Effect.all(
    Array.from({ length: 16 }, () => Effect.repeat(once, { times: attempts / 16 - 1 })),
    { concurrency: "unbounded" }
  )
  const seconds = (performance.now() - began) / 1_000
  const scripts = (yield* Effect.promise(() => scriptsRun(server))) - before
  return { ping, lease, grants: attempts / seconds, scripts: scripts / attempts }
}, Effect.scoped)

/** Milliseconds from giving a slot back on one node to having it on the other. */
const handOff = Effect.gen(function*() {
  const server = yield* redisServer()
  const one = yield* node(server, "one", 1, 1)
  const other = yield* node(server, "other", 1, 1)
  const ping = yield* timed(200, one.store.send("PING"))
  const taken: Array<number> = []
  for (let i = 0; i < 100; i++) {
    const scope = yield* Scope.make()
    yield* Scope.provide(one.pool.lease(caller, options), scope)
    let given = 0
    const waiting = yield* Effect.forkChild(Effect.scoped(
      Effect.map(other.pool.lease(caller, options), () => {
        given = performance.now()
      })
    ))
    while ((yield* one.pool.status).waiting < 1) yield* Effect.yieldNow
    const began = performance.now()
    yield* Scope.close(scope, Exit.void)
    yield* Fiber.join(waiting)
    taken.push(given - began)
    while ((yield* one.pool.status).in_use > 0) yield* Effect.yieldNow
  }
  return { ping, handOff: median(taken) }
}).pipe(Effect.scoped)

/** Runs the benchmark and prints its tables. */
export const storeBench = async (): Promise<void> => {
  const quiet = Effect.provide(Logger.layer([]))
  const rows: Array<Row> = []
  for (const accounts of [10, 1_000, 10_000]) {
    const { grants, lease, ping, scripts } = await Effect.runPromise(quiet(measure(accounts)))
    rows.push([accounts.toLocaleString("en"), scripts, ping, lease, lease - ping, grants])
  }
  const { handOff: handed, ping } = await Effect.runPromise(quiet(handOff))
  process.stdout.write(
    `A pool in a store: medians in milliseconds, grants a second (16 at once).\n\n${
      table(["accounts", "scripts an attempt", "PING", "lease", "lease - PING", "grants/s"], rows)
    }\n\nA slot that is given back to a waiter on another node: ${handed.toFixed(2)} ms, PING ${ping.toFixed(2)} ms.\n`
  )
}

if (import.meta.main) await storeBench()
