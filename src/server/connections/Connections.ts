/**
 * The sockets of a node server: their number, the bytes held for all of them, and which are idle or stalled.
 *
 * Node's `closeIdleConnections` also closes connections whose first request is still arriving, without a reply. Node's timeouts
 * count what a client sends as activity; here only what it reads counts.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import type * as Scope from "effect/Scope"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { Turns } from "../../config/clock/cooperative.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { type BufferedBytes, CurrentBufferedBytes } from "../../config/limits.ts"
import { monotonicMillis } from "../../domain/time.ts"
import { type Common, Connection } from "./Connection.ts"

export interface ConnectionBounds {
  /** Maximum number of connections. */
  readonly connections: () => number
  /** Maximum sum of held bytes. */
  readonly bufferedBytes: () => number
  readonly sum: BufferedBytes
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** Called for each connection that is closed because there are too many. */
  readonly refused: () => void
}

export interface Connections {
  /** Closes idle connections now, and the others when they become idle. */
  readonly closeIdle: () => void
  /**
   * Disconnects clients that have stalled for `patience`. If the held bytes exceed their limit, also disconnects those
   * that have stalled longest. Times are monotonic milliseconds.
   */
  readonly sweep: (now: number, patience: number) => void
  readonly bound: (bounds: ConnectionBounds) => void
}

/** A client that has stalled for less than this (milliseconds) is not closed to free memory. */
const grace = 1000

/** Connections beyond the limit that may be in their TLS handshake. */
const mostHandshakes = 1000

/** Pipelining connections that are served in one turn of the event loop. */
const mostInTurn = 8

/** Watches a server without connections. */
export const watchConnections = (server: Server): Connections => {
  const connections = new Map<Socket, Connection>()
  const common: Common = { turns: new Turns(mostInTurn), sum: { used: 0 }, now: () => performance.now() }
  let closing = false
  let most = () => Number.POSITIVE_INFINITY
  let mostBytes = () => Number.POSITIVE_INFINITY
  let refused = () => {}
  const opened = (socket: Socket) => {
    if (connections.size >= most()) {
      socket.destroy()
      refused()
      return
    }
    const connection = new Connection(socket, common)
    connections.set(socket, connection)
    socket.once("close", () => {
      connections.delete(socket)
      connection.closed()
    })
  }
  const begun = (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request
    const connection = connections.get(socket)
    if (connection === undefined) return
    connection.begun(request, response)
    response.once("close", () => {
      connection.replied(request)
      if (closing && connection.requests === 0) socket.destroySoon()
    })
  }
  // A TLS server emits another event for a ready socket.
  const isSecure = "setSecureContext" in server
  server.on(isSecure ? "secureConnection" : "connection", opened)
  // Requests with `Expect: 100-continue` have their own event.
  server.on("request", begun)
  server.on("checkContinue", begun)
  // Node answers unknown expectations without an event of the request, unless there is a listener.
  server.on("checkExpectation", (request: IncomingMessage, response: ServerResponse) => {
    begun(request, response)
    if (server.listenerCount("checkExpectation") === 1) response.writeHead(417).end()
  })
  /** Closes stalled clients until the held bytes and the last refused reply fit the limit. */
  const makeRoom = (now: number) => {
    const { sum } = common
    let over = sum.used + (sum.refused ?? 0) - mostBytes()
    sum.refused = 0
    if (over <= 0) return
    const stuck = [...connections.values()]
      .filter(({ held, stuckSince }) => held > 0 && stuckSince !== undefined && now - stuckSince >= grace)
      .sort((a, b) => a.stuckSince! - b.stuckSince!)
    for (const { held, socket } of stuck) {
      if (over <= 0) return
      over -= held
      socket.destroy()
    }
  }
  return {
    closeIdle() {
      closing = true
      for (const [socket, { requests }] of connections) {
        if (requests === 0) socket.destroySoon()
      }
    },
    sweep(now, patience) {
      if (isSecure) server.maxConnections = most() + mostHandshakes
      for (const [socket, connection] of connections) {
        connection.look(now)
        const { stuckSince } = connection
        if (stuckSince !== undefined && now - stuckSince >= patience) socket.destroy()
      }
      makeRoom(now)
    },
    bound(bounds) {
      most = bounds.connections
      mostBytes = bounds.bufferedBytes
      refused = bounds.refused
      common.now = bounds.now
      common.sum = bounds.sum
    }
  }
}

const refusedConnections = Metric.counter("gateway_connections_refused_total", {
  description: "Connections that were closed immediately because there were too many",
  incremental: true
})

/**
 * Interval between sweeps, in milliseconds: an eighth of the stall timeout within these bounds. A client that was refused
 * for lack of memory retries after seconds, when a sweep has freed some.
 */
const sweepEvery = (patience: number): number => Math.min(1000, Math.max(20, patience / 8))

/** Applies the configured limits and sweeps the connections until the scope closes. */
export const withinLimits = (connections: Connections): Effect.Effect<void, never, ConfigStore | Scope.Scope> =>
  Effect.gen(function*() {
    const config = yield* ConfigStore
    const clock = yield* Clock.Clock
    const metrics = yield* Effect.context<never>()
    connections.bound({
      connections: () => config.now().limits.connections,
      bufferedBytes: () => config.now().limits.buffered_bytes,
      sum: yield* CurrentBufferedBytes,
      now: () => monotonicMillis(clock),
      refused: () => refusedConnections.updateUnsafe(1, metrics)
    })
    const patience = () => config.now().request_timeouts.client * 1000
    yield* Effect.suspend(() => Effect.sleep(sweepEvery(patience()))).pipe(
      Effect.andThen(Effect.sync(() => connections.sweep(monotonicMillis(clock), patience()))),
      Effect.forever,
      Effect.forkScoped
    )
  })

/** Keeps the connections of an app's node server within the configured limits. The server is not listening yet. */
export const limitConnections = (server: Server): Layer.Layer<never, never, ConfigStore> =>
  Layer.effectDiscard(Effect.suspend(() => withinLimits(watchConnections(server))))
