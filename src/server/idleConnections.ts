/**
 * Which connections of a node server have nothing under way, so that a drain can close them.
 *
 * Node's own `closeIdleConnections` also closes connections whose first request is only just arriving, whose sender then
 * never hears why.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"

/** Watches a server that has no connections yet. What is returned closes idle connections, and all others once they are idle. */
export const watchConnections = (server: Server): () => void => {
  /** Requests under way, by connections that have had one. */
  const requests = new Map<Socket, number>()
  let closing = false
  server.on("connection", (socket: Socket) => {
    socket.once("close", () => requests.delete(socket))
  })
  server.on("request", ({ socket }: IncomingMessage, response: ServerResponse) => {
    requests.set(socket, (requests.get(socket) ?? 0) + 1)
    response.once("close", () => {
      const left = requests.get(socket)
      if (left === undefined) return
      requests.set(socket, left - 1)
      if (closing && left === 1) socket.destroySoon()
    })
  })
  return () => {
    closing = true
    for (const [socket, count] of requests) {
      if (count === 0) socket.destroySoon()
    }
  }
}
