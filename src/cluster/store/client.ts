/**
 * Commands and scripts with a time limit each, and whether the store is there.
 *
 * The one thing to know: a command that took too long may still run. What is sent must therefore be good to run late or twice.
 * Large values have a connection of their own, so that no other command waits behind them.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import * as Semaphore from "effect/Semaphore"
import type { StoreAddress } from "./address.ts"
import { connect, type Connection, textOf } from "./connection.ts"
import type { Script } from "./scripts.ts"
import { StoreUnavailable } from "./StoreError.ts"

/** So many failures in a row mean that the store is lost. */
const failuresToLose = 3

/** Milliseconds that commands with large values may take, unless the store is lost meanwhile. */
const bulkPatience = 5_000

/** A command and its arguments. */
export type StoreCommand = readonly [command: string, ...args: ReadonlyArray<string>]

export interface StoreClient {
  /** Sends a command; replies are RESP2 values. */
  readonly send: (command: string, ...args: ReadonlyArray<string>) => Effect.Effect<unknown, StoreUnavailable>
  /** Runs a script; its reply is a flat array of texts. */
  readonly run: (
    script: Script,
    args: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyArray<string>, StoreUnavailable>
  /**
   * Sends commands with large values together, on a connection of their own. One that is slow or fails is not a sign that
   * the store is lost.
   */
  readonly bulk: (commands: ReadonlyArray<StoreCommand>) => Effect.Effect<ReadonlyArray<unknown>, StoreUnavailable>
  /** The connection at this moment, for subscriptions. */
  readonly connection: () => Connection
  /** Connects anew, giving up what the old connections had under way. */
  readonly replace: Effect.Effect<void>
  /** True once so many commands in a row have failed that the store counts as lost, or while there is no connection. */
  readonly isFailing: () => boolean
  /** Milliseconds that the last command took. */
  readonly roundTrip: () => number
  /** Scripts that were run, by name. */
  readonly counts: () => { readonly scripts: ReadonlyMap<string, number> }
}

const roundTrips = Metric.histogram("gateway_store_round_trip_seconds", {
  description: "Time that the shared store took to answer a command or a script",
  boundaries: [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 2.5]
})

const unavailable = new StoreUnavailable({ message: "The store does not answer" })

/** Lets what has come in meanwhile be read. */
const turn = Effect.callback<void>((resume) => {
  const immediate = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(immediate))
})

/** A timer that comes late by so much tells of this process's own business, not of the store, in milliseconds. */
const lag = 50

/** Fails when a command has had its time: time in which this process was busy itself does not count. */
const expired = (patience: number, now: () => number): Effect.Effect<never, StoreUnavailable> =>
  Effect.suspend(() => {
    const began = now()
    return Effect.sleep(patience).pipe(
      Effect.andThen(turn),
      Effect.andThen(
        Effect.suspend(() => now() - began > patience + lag ? expired(patience, now) : Effect.fail(unavailable))
      )
    )
  })

/** A connection that can be given up for a new one; the scope closes it. */
const makeLine = Effect.fnUntraced(function*(address: StoreAddress) {
  let connection: Connection = yield* connect(address)
  yield* Effect.addFinalizer(() => Effect.suspend(() => connection.close))
  const replacing = yield* Semaphore.make(1)
  return {
    connection: () => connection,
    /** Does nothing while it is being replaced. */
    replace: Effect.gen(function*() {
      yield* Effect.exit(connection.close)
      const exit = yield* Effect.exit(connect(address))
      if (Exit.isSuccess(exit)) connection = exit.value
    }).pipe(replacing.withPermitsIfAvailable(1), Effect.asVoid)
  }
})

/** Connects; the scope closes the connections. A command that takes longer than `commandPatience` (milliseconds) has failed. */
export const makeClient = Effect.fnUntraced(function*(address: StoreAddress, commandPatience: number) {
  const [line, bulkLine] = yield* Effect.all([makeLine(address), makeLine(address)])
  const scope = yield* Effect.scope
  let failures = 0
  let roundTrip = 0
  const scripts = new Map<string, number>()

  const raw = (
    command: string,
    args: ReadonlyArray<string>,
    patience = commandPatience
  ): Effect.Effect<unknown, StoreUnavailable | "NOSCRIPT"> =>
    Effect.flatMap(Clock.Clock, (clock) => {
      const began = clock.monotonicTimeNanosUnsafe()
      return line.connection().redis.send<unknown>(command, ...args).pipe(
        Effect.raceFirst(expired(patience, () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6)),
        Effect.mapError((error): StoreUnavailable | "NOSCRIPT" => {
          if (error._tag === "RedisError" && textOf(error).startsWith("NOSCRIPT")) return "NOSCRIPT"
          failures++
          return unavailable
        }),
        Effect.tap(() => {
          failures = 0
          roundTrip = Number(clock.monotonicTimeNanosUnsafe() - began) / 1e6
          return Metric.update(roundTrips, roundTrip / 1_000)
        })
      )
    })

  const send: StoreClient["send"] = (command, ...args) => Effect.mapError(raw(command, args), () => unavailable)

  const client: StoreClient = {
    send,
    run: (script, args) =>
      Effect.suspend(() => {
        scripts.set(script.name, (scripts.get(script.name) ?? 0) + 1)
        const patience = Math.max(commandPatience, script.patience)
        return raw("EVALSHA", [script.sha1, "0", ...args], patience).pipe(
          Effect.catch((error) =>
            error === "NOSCRIPT" ? raw("EVAL", [script.lua, "0", ...args], patience) : Effect.fail(error)
          ),
          Effect.mapError(() => unavailable),
          Effect.map((reply) => Array.isArray(reply) ? reply.map(String) : [String(reply)])
        )
      }),
    bulk: (commands) =>
      Effect.flatMap(Clock.Clock, (clock) => {
        const { redis } = bulkLine.connection()
        return Effect.forEach(commands, ([command, ...args]) => redis.send<unknown>(command, ...args), {
          concurrency: "unbounded"
        }).pipe(
          Effect.mapError(() => unavailable),
          Effect.raceFirst(Effect.tapError(
            expired(bulkPatience, () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6),
            // What is still under way there would delay all that follows.
            () => Effect.forkIn(bulkLine.replace, scope)
          ))
        )
      }),
    connection: line.connection,
    // The large values have theirs back when the store takes a new connection.
    replace: Effect.andThen(Effect.forkIn(bulkLine.replace, scope), line.replace),
    isFailing: () => failures >= failuresToLose || !line.connection().isReady(),
    roundTrip: () => roundTrip,
    counts: () => ({ scripts })
  }
  return client
})
