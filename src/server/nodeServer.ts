/**
 * The node HTTP server: listens, limits connections, and drains when its scope ends.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpServer from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import { createServer, type IncomingMessage, type Server } from "node:http"
import * as https from "node:https"
import { Server as SocketServer } from "node:net"
import { Nodes } from "../admin/nodes/Nodes.ts"
import { listenForced, Shutdown, whenForced } from "../config/clock/Shutdown.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import { limitRanges } from "../domain/limits.ts"
import { watchConnections, withinLimits } from "./connections/Connections.ts"
import { Lifecycle } from "./Lifecycle.ts"
import { cannotListen, type ListenOptions } from "./listen.ts"
import { followTls, type ListenTls } from "./tls.ts"
import { CurrentMachine } from "./workers/Machine.ts"

/** Longer than the idle timeout of common load balancers, so that they close first. */
const keepAliveTimeout = 65_000

/** Timeout of a request's head and the interval of node's check, in milliseconds; maximum size of a head in bytes. */
const headersTimeout = 15_000
const connectionsCheckingInterval = 1000
const maxHeaderSize = 16 * 1024

/** Unlimited, because `limits` bounds the time of a body (`http/BodyPace.ts`). */
const requestTimeout = 0

/** Time for aborted requests to notify their callers and the upstream. */
const notifyTime = "3 seconds"

/** Seconds of `drain.notice` with a shared store: a load balancer has other nodes, and needs time to turn to them. */
export const sharedNotice = 5

/** Node reports no address for an inherited local socket; uses `name` instead. */
const nameAddress = (node: Server, name: string): void => {
  const address = node.address.bind(node)
  node.address = () => address() ?? name
}

/**
 * Keeps the requests that arrive before the gateway serves them: the socket listens before the routes are built, and Node never answers a
 * request without a listener. They are bounded by the connections of the server.
 */
const keepEarly = (node: Server, kind: "request" | "upgrade"): void => {
  const early: Array<ReadonlyArray<unknown>> = []
  const keep = (...request: ReadonlyArray<unknown>) => void early.push(request)
  const serve = (event: string, listener: (...request: ReadonlyArray<unknown>) => void) => {
    if (event !== kind) return
    node.off("newListener", serve)
    node.off(kind, keep)
    // The listener is added after this event.
    process.nextTick(() => early.forEach((request) => listener.apply(node, [...request])))
  }
  node.on(kind, keep)
  node.on("newListener", serve)
}

/** The bounds of WebSocket connections. `limits.body_bytes` is at most this, and the connection itself applies it. */
const websocket = {
  maxPayload: limitRanges.body_bytes.maximum,
  /** Milliseconds that a closing connection waits for its client to close it too. */
  closeTimeout: 2000,
  /** No subprotocol is chosen. */
  handleProtocols: () => false as const
}

/** Whether a request opens a WebSocket where the gateway has one. */
const opensWebSocket = ({ headers, method, url = "" }: IncomingMessage): boolean =>
  method === "GET" && headers.upgrade?.toLowerCase() === "websocket" && /^\/v1\/responses\/?(?:\?|$)/.test(url)

/** Makes a listening server and its drain. Build `drain` after the layer that serves, so that it ends first. */
export const NodeServer = (
  options: ListenOptions,
  shutdown: Shutdown = new Shutdown(),
  tls: ListenTls | undefined = undefined
) => {
  const http = {
    keepAliveTimeout,
    headersTimeout,
    connectionsCheckingInterval,
    maxHeaderSize,
    requestTimeout,
    // Refuses other upgrades: the request is answered over HTTP, on a socket that node still watches.
    shouldUpgradeCallback: opensWebSocket
  }
  const secure = tls && https.createServer({
    ...http,
    ...tls,
    rejectUnauthorized: false,
    handshakeTimeout: headersTimeout,
    ALPNProtocols: ["http/1.1"]
  })
  const node: Server = secure ?? createServer(http)
  if (options.descriptor !== undefined) nameAddress(node, `descriptor ${options.descriptor}`)
  const connections = watchConnections(node)
  keepEarly(node, "request")
  keepEarly(node, "upgrade")
  const listening = NodeHttpServer.layerServer(() => node, {
    ...(options.descriptor === undefined ? { port: options.port, host: options.host } : { fd: options.descriptor }),
    gracefulShutdownTimeout: "1 seconds",
    websocket
  }).pipe(
    Layer.catchTag(
      "ServeError",
      ({ cause }) => Layer.effect(HttpServer.HttpServer, Effect.fail(cannotListen(options, cause)))
    )
  )
  const server = Layer.merge(listening, NodeHttpServer.layerHttpServices)
  /**
   * Retires a worker that another one replaces. It accepts no more connections. Each reply closes its connection; idle connections
   * close at the announced keep-alive timeout, and the rest after 66 s.
   */
  const retire = Effect.fnUntraced(function*(lifecycle: Lifecycle["Service"]) {
    lifecycle.leave()
    yield* Effect.logInfo("Replaced by another worker: closing this worker's connections")
    // An HTTP server's own `close` closes idle connections immediately, on which a client may be sending a request.
    const closed = Effect.callback<void>((resume) => {
      SocketServer.prototype.close.call(node, () => resume(Effect.void))
    })
    yield* Effect.timeoutOption(closed, keepAliveTimeout + connectionsCheckingInterval)
  })
  /**
   * Drains at the end of the scope, after the notice, in which it serves and reports that it is not ready. The socket stays open, so that late requests get a reply, until the active requests
   * finish or the timeout passes.
   */
  const drain: Layer.Layer<never, never, Lifecycle | ConfigStore | Nodes> = Layer.effectDiscard(
    Effect.gen(function*() {
      const lifecycle = yield* Lifecycle
      const config = yield* ConfigStore
      const nodes = yield* Nodes
      yield* withinLimits(connections)
      if (secure !== undefined) yield* followTls(secure)
      const machine = yield* CurrentMachine
      if (machine !== undefined) {
        yield* machine.retired.pipe(
          Effect.andThen(retire(lifecycle)),
          Effect.andThen(Effect.sync(machine.end)),
          Effect.forkScoped
        )
      }
      const forced = yield* listenForced
      /** Serves for a while after the stop signal. A worker that another one replaces, or whose parent is gone, has no clients to notify. */
      const giveNotice = Effect.suspend(() => {
        const seconds = config.now().drain.notice ?? (nodes.store() === undefined ? 0 : sharedNotice)
        if (seconds === 0 || lifecycle.isLeaving() || machine?.hasParent() === false) return Effect.void
        lifecycle.announceStop()
        return Effect.logInfo(`Stopping: serving for ${seconds} s more, while /readyz is 503`).pipe(
          Effect.andThen(Effect.raceFirst(Effect.sleep(Duration.seconds(seconds)), whenForced(forced)))
        )
      })
      yield* Effect.addFinalizer(() =>
        Effect.gen(function*() {
          yield* giveNotice
          const limit = Duration.seconds(config.now().request_timeouts.drain)
          const logOpen = (what: string) => {
            const open = lifecycle.active()
            return Effect.annotateLogs(Effect.logInfo(`${what}: ${open} open requests`), { open_requests: open })
          }
          yield* logOpen("Draining")
          connections.closeIdle()
          yield* Effect.raceFirst(Effect.timeoutOption(lifecycle.drain, limit), whenForced(forced))
          if (lifecycle.active() > 0) {
            yield* Effect.logWarning(`Ending ${lifecycle.active()} requests that are still open`)
            shutdown.force()
            yield* Effect.timeoutOption(lifecycle.drain, notifyTime)
          }
          node.closeIdleConnections()
          yield* logOpen("Drained")
        })
      )
    })
  )
  return { server, drain }
}
