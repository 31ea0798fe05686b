/**
 * The sockets of a node server: how many there may be, what all of them hold, which are idle, and which of them take nothing.
 *
 * Node's own way to close idle connections also closes those whose first request is only just arriving, whose sender then
 * never hears why. Its timeouts take what a client sends for life; here only what it reads counts.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { Turns } from "../../config/clock/Turns.ts"
import type { BufferedBytes } from "../../config/CurrentLimits.ts"
import { type Common, Connection } from "./Connection.ts"

/** What connections are kept within. */
export interface ConnectionBounds {
  /** Connections that there may be. */
  readonly connections: () => number
  /** Bytes that may be held in sum. */
  readonly bufferedBytes: () => number
  /** The sum that they count into. */
  readonly sum: BufferedBytes
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** Called for each connection that is closed because there are too many. */
  readonly refused: () => void
}

export interface Connections {
  /** Closes idle connections, and all others once they are idle. */
  readonly closeIdle: () => void
  /**
   * Disconnects clients that have taken no byte for `patience` although bytes wait, and where too much is held also those that
   * have taken nothing for longest. Times are monotonic milliseconds.
   */
  readonly sweep: (now: number, patience: number) => void
  /** What connections are kept within from now on. */
  readonly bound: (bounds: ConnectionBounds) => void
}

/** A client that has taken something within so many milliseconds is not closed to make room. */
const grace = 1000

/** Connections that have sent ahead and are served in one turn of the event loop. */
const mostInTurn = 8

/** Watches a server that has no connections yet. */
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
  // A server of TLS has another event for a socket that is ready.
  server.on("setSecureContext" in server ? "secureConnection" : "connection", opened)
  // Of a request that asks first whether its body is wanted node tells in another way.
  server.on("request", begun)
  server.on("checkContinue", begun)
  /** Closes clients that take nothing until what is held, with the reply that was refused last, is within the bound. */
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
