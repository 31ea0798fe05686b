/**
 * The connection to the store's server: bounded in time, never given up.
 *
 * The client is loaded only here, so that a gateway without a store never loads it.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import type { StoreAddress } from "./address.ts"
import { StoreInvalid } from "./StoreError.ts"

/** One connection for commands; subscriptions open their own beside it. */
export interface Connection {
  readonly redis: Redis.Redis["Service"]
  /** Whether commands can be written at all. */
  readonly isReady: () => boolean
  /** Closes it at once, whatever is unanswered. */
  readonly close: Effect.Effect<void>
}

const longestPause = 1_000

/** What the server says when it refuses who asks. */
const refusal = /^(WRONGPASS|NOAUTH|NOPERM)\b/

/** The text of an error of the client or the server. */
export const textOf = (error: unknown): string => {
  if (error instanceof Redis.RedisError) return textOf(error.cause)
  return error instanceof Error ? (error.cause === undefined ? error.message : textOf(error.cause)) : String(error)
}

/** Connects; waits for as long as nobody answers. Fails where the server refuses the credentials. */
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
    // The store says itself when it is lost and when it is back.
    Effect.provideService(References.MinimumLogLevel, "None"),
    Effect.onError(() => Scope.close(scope, Exit.void)),
    Effect.mapError((error) =>
      new StoreInvalid({
        message: refusal.test(textOf(error))
          ? "the store refuses the credentials of GATEWAY_STORE_URL"
          : "the store of GATEWAY_STORE_URL cannot be used"
      })
    )
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
