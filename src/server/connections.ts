/**
 * The sockets of node's server: how many there may be, which are idle, and which of them take nothing.
 *
 * Node's own way to close idle connections also closes those whose first request is only just arriving, whose sender then
 * never hears why. Its timeouts take what a client sends for life; here only what it reads counts.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"

/** What is known of a client's socket. */
interface Known {
  /** Requests under way; `undefined` before the first one. */
  requests: number | undefined
  /** Bytes that the socket has passed on whole, and what the system still has of the piece that it is at. */
  passed: number
  queued: number
  /** Since when nothing has been taken although bytes wait; `undefined` where none do. */
  stuckSince: number | undefined
}

export interface Connections {
  /** Closes idle connections, and all others once they are idle. */
  readonly closeIdle: () => void
  /** Disconnects clients that have taken no byte for `patience` although bytes wait. Times are monotonic milliseconds. */
  readonly sweep: (now: number, patience: number) => void
  /** How many connections there may be, from now on; `refused` is called for each one beyond. */
  readonly limit: (most: () => number, refused: () => void) => void
}

/** Bytes of the piece in work that the system has not taken: libuv's own count, which node's timeouts go by too. */
const queuedBytes = (socket: Socket): number => {
  const handle: unknown = Reflect.get(socket, "_handle")
  const size: unknown = typeof handle === "object" && handle !== null
    ? Reflect.get(handle, "writeQueueSize")
    : undefined
  return typeof size === "number" ? size : 0
}

/** Watches a server that has no connections yet. */
export const watchConnections = (server: Server): Connections => {
  const sockets = new Map<Socket, Known>()
  let closing = false
  let most = () => Number.POSITIVE_INFINITY
  let refused = () => {}
  server.on("connection", (socket: Socket) => {
    if (sockets.size >= most()) {
      socket.destroy()
      refused()
      return
    }
    sockets.set(socket, { requests: undefined, passed: 0, queued: 0, stuckSince: undefined })
    socket.once("close", () => sockets.delete(socket))
  })
  const begun = ({ socket }: IncomingMessage, response: ServerResponse) => {
    const known = sockets.get(socket)
    if (known === undefined) return
    known.requests = (known.requests ?? 0) + 1
    response.once("close", () => {
      known.requests = (known.requests ?? 1) - 1
      if (closing && known.requests === 0) socket.destroySoon()
    })
  }
  // Of a request that asks first whether its body is wanted node tells in another way.
  server.on("request", begun)
  server.on("checkContinue", begun)
  return {
    closeIdle() {
      closing = true
      for (const [socket, { requests }] of sockets) {
        if (requests === 0) socket.destroySoon()
      }
    },
    sweep(now, patience) {
      for (const [socket, known] of sockets) {
        const queued = queuedBytes(socket)
        const passed = socket.bytesWritten - socket.writableLength
        if (socket.writableLength === 0 && queued === 0) {
          known.stuckSince = undefined
        } else if (known.stuckSince === undefined || passed !== known.passed || queued !== known.queued) {
          known.stuckSince = now
        } else if (now - known.stuckSince >= patience) {
          socket.destroy()
        }
        known.passed = passed
        known.queued = queued
      }
    },
    limit(bound, told) {
      most = bound
      refused = told
    }
  }
}
