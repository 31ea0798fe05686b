/** What an exchange asks of a server, and how a transport connects to it. */
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type * as Stream from "effect/Stream"
import type { UpstreamTls } from "../config/tls.ts"
import type { GatewayError } from "../domain/GatewayError.ts"

/** A request body; a stream's bytes come while they are sent. */
export type RequestBody = string | Uint8Array | Stream.Stream<Uint8Array, GatewayError>

/** How a transport connects to a server. One object serves all exchanges of a driver. */
export interface ConnectionSettings {
  /** The account's own proxy: an address or `direct`. */
  readonly accountProxy: Redacted.Redacted<string> | undefined
  /** The upstream's. */
  readonly proxy: Redacted.Redacted<string> | undefined
  readonly tls: UpstreamTls | undefined
  /** Milliseconds that a connection may take, with proxy and TLS handshakes. */
  readonly connect: number
}

/** The headers of a request's signature. It is of the request as it leaves, whose headers and body are written. */
export type Sign = (request: ExchangeRequest) => Effect.Effect<Readonly<Record<string, string>>>

/** An HTTP request. */
export interface ExchangeRequest {
  readonly method: "DELETE" | "GET" | "POST"
  /** Scheme, host and port. */
  readonly origin: string
  /** Path and query. */
  readonly path: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: RequestBody | undefined
  /** How to connect to the server; set by `withConnection`. A transport over an app's own client uses that client's connection settings. */
  readonly connection: ConnectionSettings | undefined
  /** Signs the request each time that it is sent; `undefined` for one whose headers have its credential. */
  readonly sign: Sign | undefined
}
