/**
 * The connection to a server, which reconnects to it for as long as it is open.
 *
 * The Redis client is loaded only here, so that a gateway without a store never loads it.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import { causeClass, codeOf } from "../../domain/FailureCause.ts"
import type { ServerAddress, StoreAddress } from "./address.ts"
import { StoreInvalid, StoreUnavailable } from "./StoreShape.ts"

/** A connection for commands; subscriptions open their own. */
export interface Connection {
  readonly redis: Redis.Redis["Service"]
  /** Whether commands can be written. */
  readonly isReady: () => boolean
  /** Differs after each connect: the server behind the same address may be another one then. */
  readonly generation: () => number
  /** Closes the connection without waiting for replies. */
  readonly close: Effect.Effect<void>
}

const longestPause = 1_000

/** Timeout of a single try to connect, in milliseconds. */
const connectTimeout = 1_000

/** Server errors for rejected credentials. */
const refusal = /^(WRONGPASS|NOAUTH|NOPERM)\b/

/** The message of an error of the client or the server. */
export const textOf = (error: unknown): string => {
  if (error instanceof Redis.RedisError) return textOf(error.cause)
  return error instanceof Error ? (error.cause === undefined ? error.message : textOf(error.cause)) : String(error)
}

/** Whether the server rejects the credentials. */
export const isRefusal = (error: unknown): boolean => refusal.test(textOf(error))

/** The reason of a failed connection in words; `undefined` if the network tells none. */
const reasonOf = (error: unknown): string | undefined => {
  const code = codeOf(error)
  return code === undefined ? undefined : causeClass({ code }) ?? code
}

const check = "check GATEWAY_STORE_URL, and that a Redis or Valkey server runs there"

/** The fault of a store that has not answered. `error` is the latest one of a connection to it. */
export const silent = ({ shown }: Pick<StoreAddress, "shown">, error: unknown): StoreInvalid => {
  const reason = reasonOf(error)
  return new StoreInvalid({
    message: reason === undefined
      ? `the store at ${shown} does not answer: ${check}`
      : `cannot connect to the store at ${shown}: ${reason}; ${check}`
  })
}

/** Converts an error of the first contact with the server. */
export const unusable = ({ shown }: Pick<StoreAddress, "shown">) => (error: unknown): StoreInvalid =>
  new StoreInvalid({
    message: isRefusal(error)
      ? `the store at ${shown} refuses the credentials of GATEWAY_STORE_URL`
      : `the server at ${shown} cannot be used as the store: ${check}`
  })

const unreachable = new StoreUnavailable({ message: "The store's server cannot be reached" })

/** How often a connection of this process has become ready. */
let connects = 0

/**
 * Connects. Waits until the server answers, unless it has `one` try. Fails if the server rejects the credentials. `failed` receives the
 * error of each try.
 */
export const connect = Effect.fnUntraced(function*(
  address: Pick<ServerAddress, "socket" | "username" | "password" | "database" | "shown">,
  failed: (error: unknown) => void,
  one?: "one"
): Effect.fn.Return<Connection, StoreInvalid | StoreUnavailable> {
  const NodeRedis = yield* Effect.promise(() => import("@effect/platform-node/NodeRedis"))
  const scope = yield* Scope.make()
  let connected = false
  const reconnectStrategy = (retries: number, cause: Error): number | Error => {
    if (!connected) failed(cause)
    if (!connected && (one === "one" || refusal.test(cause.message))) return cause
    return Math.min(50 * 2 ** Math.min(retries, 10), longestPause) * (0.75 + Math.random() / 2)
  }
  const { database, password, socket, username } = address
  const layer = NodeRedis.layer({
    socket: "path" in socket
      ? { ...socket, reconnectStrategy }
      : {
        host: socket.host,
        port: socket.port,
        ...(socket.tls ? { tls: true } : {}),
        ...(one === "one" ? { connectTimeout } : {}),
        reconnectStrategy
      },
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    database,
    RESP: 2,
    disableOfflineQueue: true,
    commandsQueueMaxLength: 10_000,
    maintNotifications: "disabled"
  })
  const context = yield* Layer.buildWithScope(layer, scope).pipe(
    // The store logs itself when it is lost and when it is back.
    Effect.provideService(References.MinimumLogLevel, "None"),
    Effect.onError(() => Scope.close(scope, Exit.void)),
    Effect.mapError((error) => one === "one" && !isRefusal(error) ? unreachable : unusable(address)(error))
  )
  connected = true
  const { client } = Context.get(context, NodeRedis.NodeRedis)
  let generation = ++connects
  client.on("ready", () => {
    generation = ++connects
  })
  return {
    redis: Context.get(context, Redis.Redis),
    isReady: () => client.isReady,
    generation: () => generation,
    close: Effect.andThen(
      Effect.sync(() => {
        if (client.isOpen) client.destroy()
      }),
      Scope.close(scope, Exit.void)
    )
  }
})
