/**
 * Commands and scripts with timeouts, and whether the store answers.
 *
 * A command that timed out may still run, so commands must tolerate a late or repeated run. Large values have a separate
 * connection, so that other commands do not wait behind them.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Metric from "effect/Metric"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { ServerAddress, StoreAddress } from "./address.ts"
import { connect, type Connection, textOf } from "./connection.ts"
import { makePrimarySearch } from "./primary.ts"
import type { Script } from "./scripts.ts"
import { retryWhileUnavailable, type StoreCommand, type StoreInvalid, StoreUnavailable } from "./StoreShape.ts"

/** Consecutive failures after which the store counts as lost. An answer that the server is not the primary counts as many. */
const failuresToLose = 3

/** Timeout of commands with large values in milliseconds, unless the store is lost first. */
const bulkPatience = 5_000

export interface StoreClient {
  /** Sends a command; replies are RESP2 values. */
  readonly send: (command: string, ...args: ReadonlyArray<string>) => Effect.Effect<unknown, StoreUnavailable>
  /** Runs a script; its reply is a flat array of strings. */
  readonly run: (
    script: Script,
    args: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyArray<string>, StoreUnavailable>
  /**
   * Sends commands with large values together, on a separate connection. A slow or failed one does not mark the store as
   * lost.
   */
  readonly bulk: (commands: ReadonlyArray<StoreCommand>) => Effect.Effect<ReadonlyArray<unknown>, StoreUnavailable>
  /** The current connection, for subscriptions. */
  readonly connection: () => Connection
  /** Differs after each connect to the store: another server may answer then. */
  readonly generation: () => number
  /** Whether sentinels or a cluster name another server than the connected one. */
  readonly isMoved: Effect.Effect<boolean>
  /** Connects again, to the server that is named now, and abandons pending commands. */
  readonly replace: Effect.Effect<void>
  /** True after `failuresToLose` consecutive failures, or while there is no connection. */
  readonly isFailing: () => boolean
  /** Round trip of the last command, in milliseconds. */
  readonly roundTrip: () => number
  /** Number of runs by script. */
  readonly counts: () => { readonly scripts: ReadonlyMap<string, number> }
}

const roundTrips = Metric.histogram("gateway_store_round_trip_seconds", {
  description: "Time that the shared store took to answer a command or a script",
  boundaries: [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 2.5]
})

const unavailable = new StoreUnavailable({ message: "The store does not answer" })

/** Lets pending input be read. */
const turn = Effect.callback<void>((resume) => {
  const immediate = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(immediate))
})

/** A timer that is late by this much shows that this process was busy, not the store; milliseconds. */
const lag = 50

/** Fails after a timeout, not counting time in which this process was busy. */
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

/** Errors of a server that is not the primary, or not yet. */
const notPrimary =
  /^(?:READONLY|MOVED|ASK|LOADING|CLUSTERDOWN|MASTERDOWN|NOREPLICAS)\b|attempted to access a non local key/

/** Finds the server of a connection. */
type Search = Effect.Effect<ServerAddress["socket"], StoreInvalid | StoreUnavailable>

const searchOf = Effect.fnUntraced(function*(
  address: StoreAddress,
  patience: number,
  failed: (error: unknown) => void
): Effect.fn.Return<Search, never, Scope.Scope> {
  if (!("guides" in address)) return Effect.succeed(address.socket)
  const { tls } = address
  return Effect.map(yield* makePrimarySearch(address, patience, failed), (endpoint) => ({ ...endpoint, tls }))
})

/** A replaceable connection to the server that `search` finds; the scope closes it. */
const makeLine = Effect.fnUntraced(function*(
  address: StoreAddress,
  search: Search,
  failed: (error: unknown) => void
): Effect.fn.Return<
  {
    readonly connection: () => Connection
    /** Whether the last attempt to connect failed. */
    readonly isClosed: () => boolean
    readonly replace: Effect.Effect<void>
    readonly isMoved: Effect.Effect<boolean>
  },
  StoreInvalid | StoreUnavailable,
  Scope.Scope
> {
  const one = "guides" in address ? "one" : undefined
  const opened = Effect.map(
    Effect.flatMap(
      Effect.suspend(() => named === undefined ? search : Effect.succeed(named)),
      (socket) => Effect.map(connect({ ...address, socket }, failed, one), (made) => ({ made, socket }))
    ),
    ({ made, socket }) => {
      connection = made
      server = socket
      isClosed = false
    }
  )
  let isClosed = true
  /** The other server that was found last. */
  let named: ServerAddress["socket"] | undefined
  let connection: Connection
  let server: ServerAddress["socket"]
  yield* one === undefined ? opened : retryWhileUnavailable(opened)
  yield* Effect.addFinalizer(() => Effect.suspend(() => connection.close))
  const replacing = yield* Semaphore.make(1)
  return {
    connection: () => connection,
    isClosed: () => isClosed,
    replace: Effect.suspend(() => {
      isClosed = true
      return Effect.andThen(Effect.exit(connection.close), Effect.exit(opened))
    }).pipe(replacing.withPermitsIfAvailable(1), Effect.asVoid),
    isMoved: one === undefined
      ? Effect.succeed(false)
      : Effect.suspend(() =>
        Effect.match(search, {
          onFailure: () => false,
          onSuccess: (found) => {
            named = isClosed || !Equal.equals(found, server) ? found : undefined
            return named !== undefined
          }
        })
      )
  }
})

/**
 * Connects; the scope closes the connections. `commandPatience` is the timeout of a command in milliseconds. `failed` receives the error of
 * each connection that does not come about.
 */
export const makeClient = Effect.fnUntraced(function*(
  address: StoreAddress,
  commandPatience: number,
  failed: (error: unknown) => void = () => undefined
) {
  const search = yield* searchOf(address, commandPatience, failed)
  const [line, bulkLine] = yield* Effect.all([makeLine(address, search, failed), makeLine(address, search, failed)])
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
          const text = error._tag === "RedisError" ? textOf(error) : ""
          if (text.startsWith("NOSCRIPT")) return "NOSCRIPT"
          failures = notPrimary.test(text) ? failuresToLose : failures + 1
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
          Effect.tapError(() => bulkLine.isClosed() ? Effect.forkIn(bulkLine.replace, scope) : Effect.void),
          Effect.raceFirst(Effect.tapError(
            expired(bulkPatience, () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6),
            // Pending commands would delay all later ones.
            () => Effect.forkIn(bulkLine.replace, scope)
          ))
        )
      }),
    connection: line.connection,
    generation: () => line.connection().generation(),
    isMoved: line.isMoved,
    // The connection for large values is ready when the store accepts it again.
    replace: Effect.andThen(Effect.forkIn(bulkLine.replace, scope), line.replace),
    isFailing: () => failures >= failuresToLose || !line.connection().isReady(),
    roundTrip: () => roundTrip,
    counts: () => ({ scripts })
  }
  return client
})
