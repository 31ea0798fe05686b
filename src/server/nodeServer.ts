/**
 * The node HTTP server: listens, keeps clients within bounds, drains when its scope ends, closes idle connections meanwhile.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpServer from "effect/http/HttpServer"
import type { ServeError } from "effect/http/HttpServerError"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { createServer, type Server } from "node:http"
import { CurrentHurry, Shutdown } from "../config/clock/Shutdown.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import { watchConnections } from "./connections/Connections.ts"
import { withinLimits } from "./connections/withinLimits.ts"
import { Lifecycle } from "./Lifecycle.ts"

/** Where to listen; port 0 lets the system choose. */
export interface ListenOptions {
  readonly port: number
  readonly host: string
  /** A listening socket that was handed over, by its descriptor: it takes the place of host and port. */
  readonly descriptor?: number | undefined
}

/** The address or the port is not to be had. */
export class CannotListen extends Schema.TaggedError<CannotListen>()("CannotListen", { message: Schema.String }) {}

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "another process listens there already; set PORT to another port",
  EACCES: "ports below 1024 need more rights; set PORT to another port",
  EADDRNOTAVAIL: "this machine has no such address; set HOST to one that it has",
  ENOTFOUND: "there is no such name; set HOST to an address of this machine"
}

const cannotListen = ({ descriptor, host, port }: ListenOptions, { cause }: ServeError): CannotListen => {
  const code = Predicate.hasProperty(cause, "code") ? String(cause.code) : String(cause)
  if (descriptor !== undefined) {
    return new CannotListen({ message: `Cannot listen on descriptor ${descriptor}, which was handed over: ${code}` })
  }
  return new CannotListen({ message: `Cannot listen on ${host} port ${port}: ${reasons[code] ?? code}` })
}

/** Longer than the idle time of the usual load balancers, so that they close first. */
const keepAliveTimeout = 65_000

/** Milliseconds in which a request's head has to come, and how often node looks at that; its largest size in bytes. */
const headersTimeout = 15_000
const connectionsCheckingInterval = 1000
const maxHeaderSize = 16 * 1024

/** A body may take as long as it goes on coming (`limits.body_seconds`). */
const requestTimeout = 0

/** How long requests that are ended have to tell their callers and the upstream so. */
const telling = "3 seconds"

/** Node knows no address of a local socket that was handed over: `name` stands in for it. */
const nameAddress = (node: Server, name: string): void => {
  const address = node.address.bind(node)
  node.address = () => address() ?? name
}

/**
 * A listening server. Give it to the layer that serves; drain comes from `drain`, which must be built after that one so
 * that it ends first.
 */
export const NodeServer = (options: ListenOptions, shutdown: Shutdown = new Shutdown()) => {
  const node = createServer({
    keepAliveTimeout,
    headersTimeout,
    connectionsCheckingInterval,
    maxHeaderSize,
    requestTimeout,
    // Nobody here speaks another protocol: who offers one is answered in this, on a socket that stays node's to watch.
    shouldUpgradeCallback: () => false
  })
  if (options.descriptor !== undefined) nameAddress(node, `descriptor ${options.descriptor}`)
  const connections = watchConnections(node)
  const listening = NodeHttpServer.layerServer(() => node, {
    ...(options.descriptor === undefined ? { port: options.port, host: options.host } : { fd: options.descriptor }),
    gracefulShutdownTimeout: "1 seconds"
  }).pipe(
    Layer.catchTag(
      "ServeError",
      (error) => Layer.effect(HttpServer.HttpServer, Effect.fail(cannotListen(options, error)))
    )
  )
  const server = Layer.merge(listening, NodeHttpServer.layerHttpServices)
  /**
   * When the scope ends: the socket goes on accepting, so that late requests are told, until the requests under way are
   * over or their time is.
   */
  const drain: Layer.Layer<never, never, Lifecycle | ConfigStore> = Layer.effectDiscard(
    Effect.gen(function*() {
      const lifecycle = yield* Lifecycle
      const config = yield* ConfigStore
      yield* withinLimits(connections)
      const hurry = yield* CurrentHurry
      const hurried = Effect.callback<void>((resume) => {
        const unwatch = hurry.watch(() => resume(Effect.void))
        return Effect.sync(unwatch)
      })
      // From now on there is somebody whom a second signal tells.
      yield* Effect.acquireRelease(
        Effect.sync(() => hurry.watch(() => undefined)),
        (unwatch) => Effect.sync(unwatch)
      )
      yield* Effect.addFinalizer(() =>
        Effect.gen(function*() {
          const limit = Duration.seconds(config.unsafeCurrent().upstream.timeouts.drain)
          if (lifecycle.active() > 0) {
            yield* Effect.logInfo(`Draining: ${lifecycle.active()} requests under way`)
          }
          connections.closeIdle()
          yield* Effect.raceFirst(Effect.timeoutOption(lifecycle.drain, limit), hurried)
          if (lifecycle.active() > 0) {
            yield* Effect.logWarning(`Ending ${lifecycle.active()} requests that are still under way`)
            shutdown.now()
            yield* Effect.timeoutOption(lifecycle.drain, telling)
          }
          node.closeIdleConnections()
        })
      )
    })
  )
  return { server, drain }
}
