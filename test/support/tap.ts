/** A tap before a server: it passes on what arrives, and keeps the bytes of the callers as they are without TLS. */
import { connect, createServer, type Server, type Socket } from "node:net"
import { createServer as createTlsServer, type TlsOptions } from "node:tls"

export interface Tap {
  readonly port: number
  /** Everything that callers have sent. */
  readonly sent: () => string
  /** Forgets what callers have sent. */
  readonly clear: () => void
  readonly stop: () => Promise<void>
}

/** Starts a tap before a port of this machine, on a free port. With `tls` it ends the callers' TLS. */
export const startTap = async (behind: number, tls?: TlsOptions): Promise<Tap> => {
  let pieces: Array<Buffer> = []
  const sockets = new Set<Socket>()
  const pass = (socket: Socket) => {
    const onward = connect(behind, "127.0.0.1")
    sockets.add(socket).add(onward)
    socket.on("data", (bytes: Buffer) => pieces.push(bytes))
    socket.on("error", () => onward.destroy()).on("close", () => onward.destroy()).pipe(onward)
    onward.on("error", () => socket.destroy()).on("close", () => socket.destroy()).pipe(socket)
  }
  const server: Server = tls === undefined
    ? createServer(pass)
    : createTlsServer({ ...tls, ALPNProtocols: ["http/1.1"] }, pass).on(
      "tlsClientError",
      (_, socket) => socket.destroy()
    )
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    sent: () => Buffer.concat(pieces).toString("latin1"),
    clear: () => {
      pieces = []
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      })
  }
}
