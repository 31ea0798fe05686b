/**
 * The pool that nodes share over a store, compared with the server's own time: a real redis-server and two nodes in this process.
 *
 * Expected: at most two scripts per attempt, a lease within about one round trip, grants independent of the number of accounts, and a
 * released slot at another node's waiter within about two round trips.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Scope from "effect/Scope"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { availableParallelism } from "node:os"
import path from "node:path"
import { anywhere } from "../src/accounts/Accounts.ts"
import { command, connect, type RedisServer, redisServer } from "../test/support/redisServer.ts"
import { accountsOfMany, caller, leasesOfEach, node, takeLeases } from "./storeNode.ts"
import { type Row, table } from "./table.ts"

const median = (values: Array<number>): number =>
  values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

/** Milliseconds of an effect: the median of `times` runs. */
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

/** One row of the table, for a store with this number of accounts. */
const measure = Effect.fnUntraced(function*(accounts: number) {
  const server = yield* redisServer()
  const { pool, store } = yield* node(server.url, "one", accounts)
  const ping = yield* timed(500, store.send("PING"))
  const lease = yield* timed(
    500,
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      yield* Scope.provide(pool.lease(caller, anywhere), scope)
      return scope
    }).pipe(Effect.flatMap((scope) => Effect.andThen(Scope.close(scope, Exit.void), Effect.yieldNow)))
  )
  const attempts = 4_000
  const before = yield* Effect.promise(() => scriptsRun(server))
  const seconds = yield* takeLeases(pool, attempts)
  const scripts = (yield* Effect.promise(() => scriptsRun(server))) - before
  return { ping, lease, grants: attempts / seconds, scripts: scripts / attempts }
}, Effect.scoped)

/** Grants per second of several nodes together, each in a separate process. */
const byNodes = Effect.fnUntraced(function*(count: number) {
  const server = yield* redisServer()
  return yield* Effect.promise(async () => {
    const nodes = Array.from(
      { length: count },
      (_, i) =>
        spawn(process.execPath, [path.join(import.meta.dirname, "storeNode.ts"), server.url, `n${i}`], {
          stdio: ["pipe", "pipe", "inherit"]
        })
    )
    try {
      /** The next line of a node; `undefined` if the node ends. */
      const line = async (one: typeof nodes[number]) => {
        const [said]: Array<unknown> = await Promise.race([once(one.stdout, "data"), once(one, "exit").then(() => [])])
        if (said === undefined) throw new Error("a node of the benchmark has ended")
        return String(said)
      }
      for (const one of nodes) await line(one)
      const told = nodes.map(async (one) => Number(await line(one)))
      for (const { stdin } of nodes) stdin.write("go\n")
      return count * leasesOfEach / Math.max(...await Promise.all(told))
    } finally {
      for (const { stdin } of nodes) stdin.end()
      await Promise.all(nodes.map((each) => each.exitCode === null ? once(each, "exit") : undefined))
    }
  })
}, Effect.scoped)

/** Milliseconds from the release of a slot on one node to its grant on the other. */
const handOff = Effect.gen(function*() {
  const server = yield* redisServer()
  const one = yield* node(server.url, "one", 1, 1)
  const other = yield* node(server.url, "other", 1, 1)
  const ping = yield* timed(200, one.store.send("PING"))
  const taken: Array<number> = []
  for (let i = 0; i < 100; i++) {
    const scope = yield* Scope.make()
    yield* Scope.provide(one.pool.lease(caller, anywhere), scope)
    let given = 0
    const waiting = yield* Effect.forkChild(Effect.scoped(
      Effect.map(other.pool.lease(caller, anywhere), () => {
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
  const many: Array<Row> = []
  for (const count of [1, 2, 4]) many.push([String(count), await Effect.runPromise(byNodes(count))])
  const { handOff: handed, ping } = await Effect.runPromise(quiet(handOff))
  process.stdout.write(
    `A pool in a store: medians in milliseconds, grants a second (16 concurrently).\n\n${
      table(["accounts", "scripts an attempt", "PING", "lease", "lease - PING", "grants/s"], rows)
    }\n\nNodes as processes of their own, ${accountsOfMany} accounts, 16 concurrently on each; they and the server share this ` +
      `machine's ${availableParallelism()} cores.\n\n${
        table(["nodes", "grants/s"], many)
      }\n\nA slot that is given back to a waiter on another node: ${handed.toFixed(2)} ms, PING ${
        ping.toFixed(2)
      } ms.\n`
  )
}

if (import.meta.main) await storeBench()
