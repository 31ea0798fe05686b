/**
 * TLS of the gateway's own port. Its files are read again when they change: new connections have the new certificate, open ones stay. A wrong
 * file leaves the certificate as it is.
 */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import type { IncomingMessage } from "node:http"
import { createSecureContext, type SecureContextOptions, type SecureVersion, type Server, TLSSocket } from "node:tls"
import { ConfigStore } from "../config/ConfigStore.ts"
import { fileStamp, readRegularFile } from "../config/regularFile.ts"
import type { ServerGroup } from "../config/schema.ts"
import { CannotListen } from "./listen.ts"

type TlsGroup = NonNullable<typeof ServerGroup.Type["tls"]>

/** The TLS that a server starts with. */
export interface ListenTls extends SecureContextOptions {
  readonly minVersion: SecureVersion
  /** Asks callers for a certificate. Which paths need one is decided by request. */
  readonly requestCert: boolean
}

/** The most bytes of a file. */
const longestFile = 1024 * 1024

/** Milliseconds between two looks at the files. */
const pollInterval = 2000

/** Reads and checks the files. Fails with a sentence that names the setting. */
const readTls = Effect.fnUntraced(function*(group: TlsGroup) {
  const read = (field: "cert" | "key" | "client_ca", path: string) =>
    Effect.mapError(
      readRegularFile(path, longestFile),
      ({ message }) => new CannotListen({ message: `server.tls.${field}: ${message}` })
    )
  const cert = yield* read("cert", group.cert)
  const key = yield* read("key", group.key)
  const ca = group.client_ca === undefined ? undefined : yield* read("client_ca", group.client_ca)
  const context: SecureContextOptions = { cert, key, ca, minVersion: group.min_version }
  const wrong = (message: string) => () => new CannotListen({ message: `server.tls.${message}` })
  const ofPair = {
    try: () => createSecureContext({ cert, key }),
    catch: wrong("key: must be the private key of cert, both in PEM")
  }
  yield* Effect.try(ofPair)
  yield* Effect.try({ try: () => createSecureContext({ ca }), catch: wrong("client_ca: must be certificates in PEM") })
  return { ...context, minVersion: group.min_version, requestCert: ca !== undefined } satisfies ListenTls
})

/** The TLS of the configuration at the start; `undefined` without one. */
export const startTls = Effect.gen(function*() {
  const { tls } = (yield* ConfigStore).now().server
  return tls === undefined ? undefined : yield* readTls(tls)
})

/** Settings and state of the files, which differ after a change. */
const stampOf = (group: TlsGroup): Effect.Effect<string> =>
  Effect.map(
    Effect.forEach([group.cert, group.key, group.client_ca ?? ""], fileStamp),
    (stamps) => JSON.stringify([group, stamps])
  )

/** Follows the files and the settings until the scope ends. */
export const followTls = (server: Pick<Server, "setSecureContext">) =>
  Effect.gen(function*() {
    const config = yield* ConfigStore
    const stampNow = Effect.suspend(() => {
      const { tls } = config.now().server
      return tls === undefined ? Effect.succeed("") : stampOf(tls)
    })
    let seen = yield* stampNow
    const look = Effect.gen(function*() {
      const { tls } = config.now().server
      const stamp = yield* stampNow
      if (stamp === seen || tls === undefined) return
      seen = stamp
      server.setSecureContext(yield* readTls(tls))
      yield* Effect.logInfo("The certificate of the gateway's port was read again: new connections have it")
    }).pipe(
      Effect.catchTag("CannotListen", ({ message }) => Effect.logError(`${message}: the certificate stays as it is`))
    )
    yield* Effect.sleep(pollInterval).pipe(Effect.andThen(look), Effect.forever, Effect.forkScoped)
  })

/** Whether the connection of a request has a certificate of the configured authority; true where none is asked for. */
export const ClientCertificates = Context.Reference<(request: HttpServerRequest.HttpServerRequest) => boolean>(
  "model-gateway/server/ClientCertificates",
  { defaultValue: () => () => true }
)

/** Asks the socket of a request. The gateway's own requests have none. */
export const hasCertificate = (request: HttpServerRequest.HttpServerRequest): boolean => {
  const { socket } = NodeHttpServerRequest.toIncomingMessage(request) as Partial<IncomingMessage>
  return socket === undefined || (socket instanceof TLSSocket && socket.authorized)
}

/** Escapes, repeated slashes and the address of a proxy's request lead to the same endpoint: the router ignores them too. */
const isAdminPath = (path: string): boolean => {
  let decoded = path
  try {
    decoded = decodeURIComponent(path)
  } catch {
    // The router knows no path with such an escape.
  }
  return /^(?:[a-z][a-z0-9+.-]*:\/\/[^/]*)?\/+(?:admin|console|metrics)(?:[/;]|$)/i.test(decoded)
}

/** Whether the configuration asks callers of a path for a certificate. */
export const needsCertificate = ({ tls }: typeof ServerGroup.Type, path: string): boolean =>
  tls?.client_ca !== undefined &&
  (tls.client_paths === "both" || (tls.client_paths === "admin") === isAdminPath(path))
