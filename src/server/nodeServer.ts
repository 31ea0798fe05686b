/**
 * The node HTTP server: listens, drains when its scope ends, closes idle connections meanwhile.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import { createServer } from "node:http"
import { ConfigStore } from "../config/ConfigStore.ts"
import { Lifecycle } from "./Lifecycle.ts"

/** Where to listen; port 0 lets the system choose. */
export interface ListenOptions {
  readonly port: number
  readonly host: string
}

/** Longer than the idle time of the usual load balancers, so that they close first. */
const keepAliveTimeout = 65_000

/**
 * A listening server. Give it to the layer that serves; drain comes from `Drain`, which must be built after that one so
 * that it ends first.
 */
export const NodeServer = (options: ListenOptions) => {
  const node = createServer({ keepAliveTimeout })
  const server = NodeHttpServer.layer(() => node, {
    port: options.port,
    host: options.host,
    gracefulShutdownTimeout: "1 seconds"
  })
  /**
   * When the scope ends: the socket goes on accepting, so that late requests are told, until the requests under way are
   * over or their time is.
   */
  const drain: Layer.Layer<never, never, Lifecycle | ConfigStore> = Layer.effectDiscard(
    Effect.gen(function*() {
      const lifecycle = yield* Lifecycle
      const config = yield* ConfigStore
      yield* Effect.addFinalizer(() =>
        Effect.gen(function*() {
          const limit = Duration.seconds(config.unsafeCurrent().upstream.timeouts.drain)
          if (lifecycle.active() > 0) {
            yield* Effect.logInfo(`Draining: ${lifecycle.active()} requests under way`)
          }
          yield* lifecycle.drain.pipe(
            Effect.raceFirst(
              Effect.repeat(Effect.sync(() => node.closeIdleConnections()), Schedule.spaced("100 millis"))
            ),
            Effect.timeoutOption(limit)
          )
          node.closeIdleConnections()
        })
      )
    })
  )
  return { server, drain }
}
