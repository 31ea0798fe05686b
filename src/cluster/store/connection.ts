/**
 * The address of the store's server and the connection to it, which reconnects for as long as the scope is open.
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
import { StoreInvalid } from "./StoreShape.ts"

export interface StoreAddress {
  readonly socket:
    | { readonly path: string; readonly tls: false }
    | { readonly host: string; readonly port: number; readonly tls: boolean }
  readonly username: string | undefined
  readonly password: string | undefined
  readonly database: number
  /** The address without its credentials, for output. */
  readonly shown: string
}

const databaseOf = (text: string): number | undefined =>
  text === "" ? 0 : /^\d{1,5}$/.test(text) ? Number(text) : undefined

const decoded = (text: string | undefined): string | undefined => {
  if (text === undefined || text === "") return undefined
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/**
 * Parses `redis://[user:password@]host[:port][/db]`, `rediss://…` (TLS) and `unix://[user:password@]/socket[?db=n]`;
 * `undefined` for another form.
 */
export const parseStoreAddress = (text: string): StoreAddress | undefined => {
  const unix = /^unix:\/\/(?:([^:@/]*)(?::([^@]*))?@)?(\/[^?]+)(?:\?db=(\d+))?$/.exec(text)
  if (unix !== null) {
    const [, username, password, path = "", db = ""] = unix
    const database = databaseOf(db)
    if (database === undefined) return undefined
    return {
      socket: { path, tls: false },
      username: decoded(username),
      password: decoded(password),
      database,
      shown: `unix://${path}${database === 0 ? "" : `?db=${database}`}`
    }
  }
  if (!/^rediss?:\/\//.test(text) || !URL.canParse(text)) return undefined
  const url = new URL(text)
  const database = databaseOf(url.pathname.replace(/^\//, ""))
  if (url.hostname === "" || database === undefined) return undefined
  const port = url.port === "" ? 6379 : Number(url.port)
  return {
    socket: { host: url.hostname.replace(/^\[(.*)\]$/, "$1"), port, tls: url.protocol === "rediss:" },
    username: decoded(url.username),
    password: decoded(url.password),
    database,
    shown: `${url.protocol}//${url.hostname}:${port}${database === 0 ? "" : `/${database}`}`
  }
}

/** A connection for commands; subscriptions open their own. */
export interface Connection {
  readonly redis: Redis.Redis["Service"]
  /** Whether commands can be written. */
  readonly isReady: () => boolean
  /** Closes the connection without waiting for replies. */
  readonly close: Effect.Effect<void>
}

const longestPause = 1_000

/** Server errors for rejected credentials. */
const refusal = /^(WRONGPASS|NOAUTH|NOPERM)\b/

/** The message of an error of the client or the server. */
export const textOf = (error: unknown): string => {
  if (error instanceof Redis.RedisError) return textOf(error.cause)
  return error instanceof Error ? (error.cause === undefined ? error.message : textOf(error.cause)) : String(error)
}

/** Converts an error of the first contact with the server. */
export const unusable = (error: unknown): StoreInvalid =>
  new StoreInvalid({
    message: refusal.test(textOf(error))
      ? "the store refuses the credentials of GATEWAY_STORE_URL"
      : "the store of GATEWAY_STORE_URL cannot be used"
  })

/** Connects; waits until the server answers. Fails if it rejects the credentials. */
export const connect = Effect.fnUntraced(function*(address: StoreAddress): Effect.fn.Return<Connection, StoreInvalid> {
  const NodeRedis = yield* Effect.promise(() => import("@effect/platform-node/NodeRedis"))
  const scope = yield* Scope.make()
  let connected = false
  const reconnectStrategy = (retries: number, cause: Error): number | Error => {
    if (!connected && refusal.test(cause.message)) return cause
    return Math.min(50 * 2 ** Math.min(retries, 10), longestPause) * (0.75 + Math.random() / 2)
  }
  const { database, password, socket, username } = address
  const layer = NodeRedis.layer({
    socket: "path" in socket
      ? { ...socket, reconnectStrategy }
      : { host: socket.host, port: socket.port, ...(socket.tls ? { tls: true } : {}), reconnectStrategy },
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
    Effect.mapError(unusable)
  )
  connected = true
  const { client } = Context.get(context, NodeRedis.NodeRedis)
  return {
    redis: Context.get(context, Redis.Redis),
    isReady: () => client.isReady,
    close: Effect.andThen(
      Effect.sync(() => {
        if (client.isOpen) client.destroy()
      }),
      Scope.close(scope, Exit.void)
    )
  }
})
