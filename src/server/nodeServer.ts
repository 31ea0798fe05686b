/**
 * The node HTTP server: listens, limits connections, and drains when its scope ends.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpServer from "effect/http/HttpServer"
import type { ServeError } from "effect/http/HttpServerError"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http"
import { CurrentForcedShutdown, Shutdown } from "../config/clock/Shutdown.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import { watchConnections, withinLimits } from "./connections/Connections.ts"
import { Lifecycle } from "./Lifecycle.ts"

/** Where to listen. The system chooses a port for 0. */
export interface ListenOptions {
  readonly port: number
  readonly host: string
  /** Descriptor of an inherited listening socket, instead of host and port. */
  readonly descriptor?: number | undefined
}

/** Listening failed: the address or port is in use or unavailable. */
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
    return new CannotListen({ message: `Cannot listen on descriptor ${descriptor}, which was inherited: ${code}` })
  }
  return new CannotListen({ message: `Cannot listen on ${host} port ${port}: ${reasons[code] ?? code}` })
}

/** Longer than the idle timeout of common load balancers, so that they close first. */
const keepAliveTimeout = 65_000

/** Timeout of a request's head and the interval of node's check, in milliseconds; maximum size of a head in bytes. */
const headersTimeout = 15_000
const connectionsCheckingInterval = 1000
const maxHeaderSize = 16 * 1024

/** Unlimited, because `limits.body_seconds` limits pauses in a body. */
const requestTimeout = 0

/** Time for aborted requests to notify their callers and the upstream. */
const notifyTime = "3 seconds"

/** Node reports no address for an inherited local socket; uses `name` instead. */
const nameAddress = (node: Server, name: string): void => {
  const address = node.address.bind(node)
  node.address = () => address() ?? name
}

/**
 * Keeps the requests that arrive before the gateway serves them: the socket listens before the routes are built, and Node never answers a
 * request without a listener. They are bounded by the connections of the server.
 */
const keepEarlyRequests = (node: Server): void => {
  const early: Array<[IncomingMessage, ServerResponse<IncomingMessage> & { req: IncomingMessage }]> = []
  const keep: RequestListener = (...request) => void early.push(request)
  const serve = (event: string, listener: RequestListener) => {
    if (event !== "request") return
    node.off("newListener", serve)
    node.off("request", keep)
    // The listener is added after this event.
    process.nextTick(() => early.forEach(([request, response]) => listener.call(node, request, response)))
  }
  node.on("request", keep)
  node.on("newListener", serve)
}

/** Makes a listening server and its drain. Build `drain` after the layer that serves, so that it ends first. */
export const NodeServer = (options: ListenOptions, shutdown: Shutdown = new Shutdown()) => {
  const node = createServer({
    keepAliveTimeout,
    headersTimeout,
    connectionsCheckingInterval,
    maxHeaderSize,
    requestTimeout,
    // Refuses upgrades: the request is answered over HTTP, on a socket that node still watches.
    shouldUpgradeCallback: () => false
  })
  if (options.descriptor !== undefined) nameAddress(node, `descriptor ${options.descriptor}`)
  const connections = watchConnections(node)
  keepEarlyRequests(node)
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
   * Drains at the end of the scope. The socket stays open, so that late requests get a reply, until the active requests
   * finish or the timeout passes.
   */
  const drain: Layer.Layer<never, never, Lifecycle | ConfigStore> = Layer.effectDiscard(
    Effect.gen(function*() {
      const lifecycle = yield* Lifecycle
      const config = yield* ConfigStore
      yield* withinLimits(connections)
      const forced = yield* CurrentForcedShutdown
      const wasForced = Effect.callback<void>((resume) => {
        const unwatch = forced.watch(() => resume(Effect.void))
        return Effect.sync(unwatch)
      })
      // Registers a permanent listener, so that a second signal forces the shutdown.
      yield* Effect.acquireRelease(
        Effect.sync(() => forced.watch(() => undefined)),
        (unwatch) => Effect.sync(unwatch)
      )
      yield* Effect.addFinalizer(() =>
        Effect.gen(function*() {
          const limit = Duration.seconds(config.now().upstream.timeouts.drain)
          if (lifecycle.active() > 0) {
            yield* Effect.logInfo(`Draining: ${lifecycle.active()} active requests`)
          }
          connections.closeIdle()
          yield* Effect.raceFirst(Effect.timeoutOption(lifecycle.drain, limit), wasForced)
          if (lifecycle.active() > 0) {
            yield* Effect.logWarning(`Ending ${lifecycle.active()} requests that are still active`)
            shutdown.force()
            yield* Effect.timeoutOption(lifecycle.drain, notifyTime)
          }
          node.closeIdleConnections()
        })
      )
    })
  )
  return { server, drain }
}
