/**
 * The listening sockets of the workers. The parent opens and keeps them, and accepts no connection itself. A connection that waits in a
 * socket survives the worker that it waits for, because the worker's successor takes the same socket.
 *
 * Where the system spreads the connections of a port over several sockets (`SO_REUSEPORT`), each worker has its own. Elsewhere, and with
 * the socket of a service manager, all workers share one.
 */
import * as Effect from "effect/Effect"
import type { AddressInfo } from "node:net"
import * as net from "node:net"
import { CannotListen, cannotListen, type ListenOptions } from "../listen.ts"

/** A bound socket. Workers inherit its descriptor. */
export interface WorkerSocket {
  readonly descriptor: number
  readonly close: () => void
}

export interface WorkerSockets {
  /** A socket for a worker: its own, or the shared one. Throws if the port cannot be opened again. */
  readonly open: () => WorkerSocket
  /** Closes the socket of a worker that ended, so that no connection waits in it. Keeps the shared one. */
  readonly close: (socket: WorkerSocket) => void
}

/** The address that a name stands for, and a free port for 0. Fails if another process listens there. */
const addressOf = (listen: ListenOptions): Effect.Effect<AddressInfo, CannotListen> =>
  Effect.callback((resume) => {
    const probe = net.createServer()
    probe.once("error", (cause) => resume(Effect.fail(cannotListen(listen, cause))))
    probe.listen({ port: listen.port, host: listen.host }, () => {
      const address = probe.address() as AddressInfo
      probe.close(() => resume(Effect.succeed(address)))
    })
  })

const shared = (socket: WorkerSocket): WorkerSockets => ({ open: () => socket, close: () => undefined })

const bind = (options: net.BoundSocketOptions): WorkerSocket => {
  const bound = new net.BoundSocket(options)
  return { descriptor: bound.fd(), close: () => bound.close() }
}

/** Whether the system spreads the connections of this address over several sockets. */
const spreads = (address: net.BoundSocketOptions): boolean => {
  try {
    bind({ ...address, reusePort: true }).close()
    return true
  } catch {
    return false
  }
}

/** Opens one port for workers. */
export const makeSockets = Effect.fnUntraced(function*(listen: ListenOptions) {
  const { descriptor } = listen
  if (descriptor !== undefined) return shared({ descriptor, close: () => undefined })
  if (net.BoundSocket === undefined || process.platform === "win32") {
    return yield* new CannotListen({
      message: "Several workers need Node 26.4 or later, on another system than Windows"
    })
  }
  const { address: host, port } = yield* addressOf(listen)
  if (!spreads({ host, port })) {
    return shared(
      yield* Effect.try({ try: () => bind({ host, port }), catch: (cause) => cannotListen(listen, cause) })
    )
  }
  const sockets: WorkerSockets = {
    open: () => bind({ host, port, reusePort: true }),
    close: (socket) => socket.close()
  }
  return sockets
})
