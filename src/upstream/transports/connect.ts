/**
 * Opens connections to servers: directly, by the `CONNECT` of an http or https proxy, or through a SOCKS5 proxy, which resolves names.
 *
 * One time limit covers connection, handshakes and TLS. What fails before a proxy has passed the connection on is the proxy's failure.
 * undici's own agents for proxies are not used: they limit the phases apart or not at all, keep heads of 16 KiB, and do not say whose
 * failure it was.
 */
import { buildConnector, errors } from "@effect/platform-node/Undici"
import { isIP, isIPv4, isIPv6, Socket } from "node:net"
import type { Deadlines } from "../../config/clock/Deadlines.ts"
import { basicCredentials, type Proxy } from "../../config/proxies.ts"
import type { UpstreamTls } from "../../config/tls.ts"
import { codeOf } from "../../domain/FailureCause.ts"

/** How a proxy failed: no connection, TLS, the time limit, its refusal of the credentials, and any other refusal. */
type ProxyFailureCode =
  | "UND_ERR_PRX_CONN"
  | "UND_ERR_PRX_TLS"
  | "UND_ERR_PRX_TIMEOUT"
  | "UND_ERR_PRX_AUTH"
  | "UND_ERR_PRX_REFUSED"

/** A proxy failed. */
export class ProxyFailure extends Error {
  readonly code: ProxyFailureCode
  /** HTTP status of its answer. */
  readonly status: number | undefined
  /** The system's code, or the reply of the SOCKS protocol. */
  readonly reason: string | undefined

  constructor(code: ProxyFailureCode, facts: { readonly status?: number; readonly reason?: string | undefined } = {}) {
    super("The proxy of the upstream failed")
    this.code = code
    this.status = facts.status
    this.reason = facts.reason
  }
}

/** The most bytes of a proxy's answer. */
const longestAnswer = 16 * 1024

/** What a proxy that answers with something else says. */
const refused = (reason?: string) => new ProxyFailure("UND_ERR_PRX_REFUSED", { reason })

const tlsCode =
  /^(?:CERT_|ERR_TLS_|ERR_SSL_|EPROTO$|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH$|INVALID_CA$)/

/** The failure of a proxy from an error before it passed the connection on. */
const proxyFailure = (error: unknown): ProxyFailure => {
  if (error instanceof ProxyFailure) return error
  const reason = codeOf(error)
  if (error instanceof errors.ConnectTimeoutError) return new ProxyFailure("UND_ERR_PRX_TIMEOUT")
  return new ProxyFailure(reason !== undefined && tlsCode.test(reason) ? "UND_ERR_PRX_TLS" : "UND_ERR_PRX_CONN", {
    reason
  })
}

/** Reads an answer whose length `lengthOf` finds once enough bytes are there. Later bytes stay in the socket. */
const answerOf = (socket: Socket, lengthOf: (bytes: Buffer) => number | undefined): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    let bytes: Buffer = Buffer.alloc(0)
    const stop = () => {
      socket.off("data", take).off("error", fail).off("end", ended).off("close", ended).pause()
    }
    const fail = (error: Error) => {
      stop()
      reject(error)
    }
    const ended = () => fail(new ProxyFailure("UND_ERR_PRX_CONN", { reason: "ECONNRESET" }))
    const take = (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk])
      const length = lengthOf(bytes)
      if (length === undefined && bytes.length <= longestAnswer) return
      stop()
      if (length === undefined) return reject(refused())
      if (bytes.length > length) socket.unshift(bytes.subarray(length))
      resolve(bytes.subarray(0, length))
    }
    socket.on("data", take).on("error", fail).on("end", ended).on("close", ended).resume()
  })

const endOfHead = (bytes: Buffer): number | undefined => {
  const at = bytes.indexOf("\r\n\r\n")
  return at === -1 ? undefined : at + 4
}

/** The header with which a proxy knows its user; none without a user. */
export const proxyAuthorization = (proxy: Proxy): { readonly [name: string]: string } =>
  proxy.username === "" && proxy.password === "" ? {} : { "proxy-authorization": `Basic ${basicCredentials(proxy)}` }

/** Asks an http or https proxy for a tunnel (RFC 9110 9.3.6). */
const tunnel = async (socket: Socket, proxy: Proxy, hostname: string, port: number): Promise<void> => {
  const authority = `${isIPv6(hostname) ? `[${hostname}]` : hostname}:${port}`
  const headers = Object.entries({ host: authority, ...proxyAuthorization(proxy) })
  const head = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("")
  socket.write(`CONNECT ${authority} HTTP/1.1\r\n${head}\r\n`)
  const answer = await answerOf(socket, endOfHead)
  const status = Number(/^HTTP\/1\.[01] (\d{3})\b/.exec(answer.toString("latin1"))?.[1])
  if (status === 200) return
  if (Number.isNaN(status)) throw refused()
  throw new ProxyFailure(status === 407 ? "UND_ERR_PRX_AUTH" : "UND_ERR_PRX_REFUSED", { status })
}

/** The sixteen bytes of an address. */
const bytesOfIPv6 = (address: string): Buffer => {
  // The URL parser turns an IPv4 tail into groups.
  const [before = "", after] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::")
  const groups = (text: string) => text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16))
  const [first, last] = [groups(before), groups(after ?? "")]
  const all = [...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last]
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]))
}

const prefixed = (bytes: Buffer): Buffer => Buffer.from([bytes.length, ...bytes])

const socksAddress = (hostname: string): Buffer => {
  if (isIPv4(hostname)) return Buffer.from([1, ...hostname.split(".").map(Number)])
  if (isIPv6(hostname)) return Buffer.from([4, ...bytesOfIPv6(hostname)])
  const name = Buffer.from(hostname)
  if (name.length > 255) throw refused()
  return Buffer.from([3, ...prefixed(name)])
}

const twoBytes = (bytes: Buffer): number | undefined => bytes.length < 2 ? undefined : 2

/** Bytes of a reply by the kind of its address (RFC 1928 6). */
const endOfReply = (bytes: Buffer): number | undefined => {
  if (bytes.length < 5) return undefined
  const length = bytes[3] === 1 ? 10 : bytes[3] === 4 ? 22 : bytes[3] === 3 ? 7 + bytes[4]! : 4
  return bytes.length < length ? undefined : length
}

/** Asks a SOCKS5 proxy for a connection (RFC 1928, RFC 1929). */
const socks = async (socket: Socket, proxy: Proxy, hostname: string, port: number): Promise<void> => {
  const hasUser = proxy.username !== "" || proxy.password !== ""
  socket.write(Buffer.from(hasUser ? [5, 2, 0, 2] : [5, 1, 0]))
  const [version, method] = await answerOf(socket, twoBytes)
  if (version !== 5) throw refused()
  if (method === 0xff) throw new ProxyFailure("UND_ERR_PRX_AUTH")
  if (method === 2 && hasUser) {
    const user = prefixed(Buffer.from(proxy.username))
    const password = prefixed(Buffer.from(proxy.password))
    socket.write(Buffer.from([1, ...user, ...password]))
    const [, status] = await answerOf(socket, twoBytes)
    if (status !== 0) throw new ProxyFailure("UND_ERR_PRX_AUTH")
  } else if (method !== 0) throw refused()
  socket.write(Buffer.from([5, 1, 0, ...socksAddress(hostname), port >> 8, port & 0xff]))
  const [, reply] = await answerOf(socket, endOfReply)
  if (reply !== 0) throw refused(`SOCKS5_REPLY_${reply}`)
}

/** How connections are opened. */
export interface Opening {
  readonly proxy: Proxy | undefined
  /** The proxy takes the requests themselves: connections end there. */
  readonly isForwarded: boolean
  readonly tls: UpstreamTls | undefined
  /** Milliseconds. */
  readonly limit: number
}

/** Opens connections within their time limit. */
export const connectWithin = (
  deadlines: Deadlines["Service"],
  { isForwarded, limit, proxy, tls }: Opening
): buildConnector.connector => {
  const toServer = buildConnector({ timeout: 0, ...(tls === undefined ? {} : { secureContext: tls.context }) })
  const toProxy = buildConnector({ timeout: 0, allowH2: false })
  return (options, callback) => {
    let current: Socket | undefined
    const opened = (connector: buildConnector.connector, target: buildConnector.Options) =>
      new Promise<Socket>((resolve, reject) => {
        // The connector returns the socket, which its type omits.
        const socket: unknown = connector(
          target,
          (...[error, socket]) => error === null ? resolve(socket) : reject(error)
        )
        if (socket instanceof Socket) current = socket
      })
    const serverName = tls?.serverName ?? options.servername
    const atServer = (httpSocket?: Socket) =>
      opened(toServer, {
        ...options,
        ...(serverName === undefined ? {} : { servername: serverName }),
        ...(httpSocket === undefined ? {} : { httpSocket })
      })
    const atProxy = async ({ hostname, port, protocol }: Proxy): Promise<Socket> => {
      const socket = await opened(toProxy, {
        hostname,
        host: isIPv6(hostname) ? `[${hostname}]` : hostname,
        protocol: protocol === "https" ? "https:" : "http:",
        port: String(port),
        ...(isIP(hostname) === 0 ? { servername: hostname } : {})
      })
      if (isForwarded) return socket
      const ownPort = Number(options.port || (options.protocol === "https:" ? 443 : 80))
      await (protocol === "socks5" ? socks : tunnel)(socket, proxy!, options.hostname, ownPort)
      return socket
    }
    const whole = async (): Promise<Socket> => {
      if (proxy === undefined) return atServer()
      const socket = await atProxy(proxy).catch((error: unknown) => {
        current?.destroy()
        throw proxyFailure(error)
      })
      return isForwarded || options.protocol !== "https:" ? socket : atServer(socket)
    }
    const deadline = deadlines.add(deadlines.now() + limit, () => current?.destroy(new errors.ConnectTimeoutError()))
    whole().finally(() => deadline.cancel()).then(
      (socket) => callback(null, socket),
      (error: unknown) => callback(error instanceof Error ? error : new Error("No connection", { cause: error }), null)
    )
  }
}
