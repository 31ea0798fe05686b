/** Proxies for tests, on real sockets. Every host that they are asked for is the test's own machine. */
import { createServer as createHttpServer, type IncomingMessage, request, type RequestListener } from "node:http"
import { createServer as createHttpsServer } from "node:https"
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net"
import { createServer as createTlsServer, type TlsOptions } from "node:tls"
import type { Certificate } from "./certificates.ts"

export type ProxyKind = "http" | "https" | "socks5"

export interface ProxyOptions {
  readonly kind: ProxyKind
  /** Everyone may use it without. */
  readonly credentials?: { readonly username: string; readonly password: string } | undefined
  /** Of an https proxy. */
  readonly certificate?: Certificate | undefined
  /** What it says to requests: the HTTP status, or the reply of the SOCKS protocol. `hang`: nothing. `close`: it hangs up. */
  readonly refuse?: number | "hang" | "close" | undefined
}

export interface ProxyServer {
  readonly kind: ProxyKind
  readonly port: number
  /** The address without credentials. */
  readonly address: string
  /** The address with credentials, percent-encoded. */
  readonly url: string
  /** What it was asked for, in order: `tunnel upstream.test:443`, `GET http://upstream.test/`, `no credentials`. */
  readonly asked: ReadonlyArray<string>
  /** Headers of the requests that it passed on itself, as they came. */
  readonly headers: ReadonlyArray<IncomingMessage["headers"]>
  readonly stop: () => Promise<void>
}

const listen = async (server: Server): Promise<{ readonly port: number; readonly stop: () => Promise<void> }> => {
  const sockets = new Set<Socket>()
  server.on("connection", (socket: Socket) => {
    sockets.add(socket)
    socket.on("error", () => {}).on("close", () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    port: (server.address() as AddressInfo).port,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      })
  }
}

const join = (one: Socket, other: Socket) => {
  one.on("error", () => other.destroy()).on("close", () => other.destroy()).pipe(other)
  other.on("error", () => one.destroy()).on("close", () => one.destroy()).pipe(one)
}

const portOf = (authority: string): number => Number(authority.slice(authority.lastIndexOf(":") + 1))

const httpProxy = (
  { certificate, credentials, kind, refuse }: ProxyOptions,
  asked: Array<string>,
  headers: Array<IncomingMessage["headers"]>
): Server => {
  const expected = credentials === undefined
    ? undefined
    : `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString("base64")}`
  /** The status of a refusal. */
  const refusal = (message: IncomingMessage): number | undefined => {
    if (message.headers["proxy-authorization"] === expected) {
      if (typeof refuse !== "number") return undefined
      asked.push("refused")
      return refuse
    }
    asked.push("no credentials")
    return 407
  }
  const forward: RequestListener = (message, response) => {
    const status = refusal(message)
    if (status !== undefined) return void response.writeHead(status).end("refused by the proxy")
    asked.push(`${message.method} ${message.url}`)
    headers.push(message.headers)
    if (refuse === "hang") return
    if (refuse === "close") return void message.socket.destroy()
    const { host, pathname, search } = new URL(message.url!)
    const { "proxy-authorization": _, ...passed } = message.headers
    const onward = request(
      {
        host: "127.0.0.1",
        port: portOf(host),
        method: message.method,
        path: pathname + search,
        headers: passed,
        maxHeaderSize: 128 * 1024
      },
      (answer) => {
        response.writeHead(answer.statusCode!, answer.headers)
        answer.pipe(response)
      }
    )
    onward.on("error", () => response.destroy())
    message.pipe(onward)
  }
  const server = kind === "https" ? createHttpsServer({ ...certificate }, forward) : createHttpServer(forward)
  server.on("connect", (message: IncomingMessage, socket: Socket) => {
    socket.on("error", () => {})
    const status = refusal(message)
    if (status !== undefined) return void socket.end(`HTTP/1.1 ${status} Refused\r\ncontent-length: 0\r\n\r\n`)
    asked.push(`tunnel ${message.url}`)
    if (refuse === "hang") return
    if (refuse === "close") return void socket.destroy()
    const onward = connect(portOf(message.url!), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection established\r\nproxy-agent: test\r\n\r\n")
      join(socket, onward)
    })
    onward.on("error", () => socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n"))
  })
  return server
}

/** Bytes of a socket, as they are needed. */
const reader = (socket: Socket) => {
  const need = async (count: number): Promise<Buffer> => {
    for (;;) {
      const bytes = socket.read(count) as Buffer | null
      if (bytes !== null) return bytes
      await new Promise((resolve, reject) => socket.once("readable", resolve).once("close", reject))
    }
  }
  return need
}

const serveSocks = async (
  { credentials, refuse }: ProxyOptions,
  asked: Array<string>,
  socket: Socket
): Promise<void> => {
  const need = reader(socket)
  const [, methods = 0] = await need(2)
  const offered = await need(methods)
  const method = credentials === undefined ? 0 : 2
  if (!offered.includes(method)) {
    asked.push("no credentials")
    return void socket.end(Buffer.from([5, 0xff]))
  }
  // Answers arrive in pieces.
  socket.write(Buffer.from([5]))
  socket.write(Buffer.from([method]))
  if (credentials !== undefined) {
    const [, userLength = 0] = await need(2)
    const username = (await need(userLength)).toString()
    const [passwordLength = 0] = await need(1)
    const password = (await need(passwordLength)).toString()
    const isKnown = username === credentials.username && password === credentials.password
    socket.write(Buffer.from([1, isKnown ? 0 : 1]))
    if (!isKnown) {
      asked.push("no credentials")
      return void socket.end()
    }
  }
  const [, , , kind] = await need(4)
  const host = kind === 1
    ? [...await need(4)].join(".")
    : kind === 4
    ? (await need(16)).toString("hex")
    : (await need((await need(1))[0]!)).toString()
  const port = (await need(2)).readUInt16BE(0)
  asked.push(`tunnel ${host}:${port}`)
  if (refuse === "hang") return
  if (refuse === "close") return void socket.destroy()
  if (refuse !== undefined) return void socket.end(Buffer.from([5, refuse, 0, 1, 0, 0, 0, 0, 0, 0]))
  const onward = connect(port, "127.0.0.1", () => {
    socket.write(Buffer.from([5, 0, 0, 3, 4, 0x74, 0x65, 0x73, 0x74, 0, 80]))
    join(socket, onward)
  })
  onward.on("error", () => socket.end(Buffer.from([5, 5, 0, 1, 0, 0, 0, 0, 0, 0])))
}

/** Starts a proxy on a free port. */
export const startProxy = async (options: ProxyOptions): Promise<ProxyServer> => {
  const asked: Array<string> = []
  const headers: Array<IncomingMessage["headers"]> = []
  const server = options.kind === "socks5"
    ? createServer((socket) => void serveSocks(options, asked, socket).catch(() => socket.destroy()))
    : httpProxy(options, asked, headers)
  const { port, stop } = await listen(server)
  const { credentials, kind } = options
  const user = credentials === undefined
    ? ""
    : `${encodeURIComponent(credentials.username)}:${encodeURIComponent(credentials.password)}@`
  const address = `${kind}://127.0.0.1:${port}`
  return { kind, port, address, url: `${kind}://${user}127.0.0.1:${port}`, asked, headers, stop }
}

/** A server that adds TLS before a server on another port. */
export const startTlsFront = async (options: TlsOptions, behind: number) => {
  /** The names of clients' certificates. */
  const clients: Array<string | undefined> = []
  const server = createTlsServer({ ...options, ALPNProtocols: ["http/1.1"] }, (socket) => {
    clients.push(socket.getPeerCertificate().subject?.CN?.toString())
    join(socket, connect(behind, "127.0.0.1"))
  })
  server.on("tlsClientError", (_, socket) => socket.destroy())
  return { ...await listen(server), clients }
}
