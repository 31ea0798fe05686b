/**
 * The middleware of every request: its id, cross-origin headers, preflights, the memory of its reply, its place in the
 * count that drain waits for, and the rejection of new requests during a drain and of unknown routes.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Headers from "effect/http/Headers"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerError from "effect/http/HttpServerError"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Scope from "effect/Scope"
import { shuttingDown } from "../accounts/refusals.ts"
import { type Request, startRequest } from "../completion/Request.ts"
import { CurrentRequestWatch, type RequestWatch } from "../completion/RequestStats.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import { CurrentBufferedBytes, CurrentLimits, HeldBytes } from "../config/limits.ts"
import { shownAddress } from "../domain/addresses.ts"
import { type ErrorCode, gatewayError } from "../domain/GatewayError.ts"
import { monotonicMillis } from "../domain/time.ts"
import { clientAddress } from "../http/clientAddress.ts"
import { endRequest } from "../http/endpointMiddleware.ts"
import { CurrentRequest } from "../http/RequestContext.ts"
import { consoleHeaders, isConsolePath } from "./console/headers.ts"
import { asksMethod, errorOfPath, unrouted } from "./fallback.ts"
import { Lifecycle } from "./Lifecycle.ts"
import { RequestMetrics } from "./observability/requestMetrics.ts"
import { framingHeaders, originHeaders, preflights } from "./replyHeaders.ts"
import { withRoom } from "./roomForReply.ts"
import { ClientCertificates, needsCertificate } from "./tls.ts"

const everyReply = { ...originHeaders, ...framingHeaders }

/** The headers of every reply. A page with its own policy keeps it. */
const pageHeaders = ({ headers }: HttpServerResponse.HttpServerResponse) => {
  const policy = headers["content-security-policy"]
  return policy === undefined ? everyReply : { ...everyReply, "content-security-policy": policy }
}

/** Valid caller-defined ids; others are replaced. */
const acceptableId = /^[\w.:-]{1,128}$/

const requestId = (headers: Headers.Headers): string => {
  const given = headers["x-request-id"]
  return given !== undefined && acceptableId.test(given) ? given : `req_${crypto.randomUUID().replaceAll("-", "")}`
}

const pathOf = (url: string): string => {
  const question = url.indexOf("?")
  return question === -1 ? url : url.slice(0, question)
}

/** Paths whose rest is the name of a model. */
const modelPaths = ["/v1/models/", "/v1beta/models/", "/msgcompat/v1/models/"]

/** The address with each slash in the name of a model as `%2F`: routes have one segment for a name. */
const withModelSegment = (url: string): string => {
  const prefix = modelPaths.find((path) => url.startsWith(path))
  if (prefix === undefined) return url
  const path = pathOf(url)
  const name = path.slice(prefix.length).replace(/\/$/, "")
  return name.includes("/") ? prefix + name.replaceAll("/", "%2F") + url.slice(path.length) : url
}

const isProbe = (path: string): boolean => path === "/healthz" || path === "/readyz"

const isRouteNotFound = (error: unknown): boolean =>
  HttpServerError.isHttpServerError(error) && error.reason._tag === "RouteNotFound"

const ending = ({ stats }: Request, watch: RequestWatch) => () => watch.ended(stats, undefined)

/** Records that the request was rejected before it was routed. */
const refused = (
  request: Request,
  path: string,
  response: HttpServerResponse.HttpServerResponse,
  code: ErrorCode,
  watch: RequestWatch
) => {
  const { followers, stats } = request
  stats.path = path
  stats.status = response.status
  stats.error = code
  followers.ended = ending(request, watch)
  return response
}

const withoutCertificate = gatewayError(
  "authentication_failed",
  "This gateway serves callers with a client certificate (server.tls.client_ca): present one"
)

/** Rejects a request without a route. */
const refuse = (method: string, path: string, request: Request, watch: RequestWatch) => {
  const response = unrouted(method, path, request.id)
  return refused(request, path, response, response.status === 404 ? "not_found" : "method_not_allowed", watch)
}

/** Applies to all requests of a dedicated router. */
export const EveryRequest = HttpRouter.middleware(
  Effect.gen(function*() {
    const config = yield* ConfigStore
    const lifecycle = yield* Lifecycle
    const metrics = yield* RequestMetrics
    const bytes = yield* CurrentBufferedBytes
    const hasCertificate = yield* ClientCertificates
    /**
     * Adds the headers. While the gateway drains or a worker is replaced, connections close after their reply; the `connection`
     * header stops clients from reusing them.
     */
    const named = (response: HttpServerResponse.HttpServerResponse, id: string, path: string) => {
      const withHeaders = HttpServerResponse.setHeaders(
        response,
        lifecycle.isLeaving()
          ? { ...pageHeaders(response), "x-request-id": id, connection: "close" }
          : { ...pageHeaders(response), "x-request-id": id }
      )
      return isConsolePath(path) ? HttpServerResponse.setHeaders(withHeaders, consoleHeaders) : withHeaders
    }
    return (httpEffect) =>
      Effect.withFiber((fiber) => {
        const { context } = fiber
        const source = Context.getUnsafe(context, HttpServerRequest.HttpServerRequest)
        const { headers, method } = source
        const url = withModelSegment(source.url)
        const path = pathOf(url)
        const watch = fiber.getRef(CurrentRequestWatch)
        const { privacy, server } = config.now()
        const id = requestId(headers)
        const request = startRequest({
          id,
          startedAt: monotonicMillis(fiber.getRef(Clock.Clock)),
          client: shownAddress(clientAddress(source, server), privacy.client_address),
          held: new HeldBytes(bytes, fiber.getRef(CurrentLimits))
        })
        // A browser shows a rejection only after a successful preflight.
        const isRefused = lifecycle.isDraining() && !isProbe(path) && method !== "OPTIONS"
        const isUnknown = !isProbe(path) && needsCertificate(server, path) && !hasCertificate(source)
        const end = isRefused || isProbe(path) ? () => undefined : lifecycle.begin()
        // A separate scope holds the request's resources, so that its record ends after them. The library's scopes close a
        // single finalizer without a generator.
        const needed = Scope.makeUnsafe()
        const over = (exit: Exit.Exit<unknown, unknown>) => {
          const closing = Scope.closeUnsafe(needed, exit) ?? Effect.void
          const ended = () => {
            if (request.followers.ended === undefined) return Effect.sync(end)
            const recorded = endRequest(request)
            metrics.count(request.stats)
            return Effect.map(recorded, end)
          }
          return Exit.isExit(closing) ? ended() : Effect.ensuring(closing, Effect.suspend(ended))
        }
        return Effect.flatMap(Scope.addFinalizerExit(Context.getUnsafe(context, Scope.Scope), over), () => {
          if (isRefused || isUnknown) {
            const error = isRefused ? shuttingDown : withoutCertificate
            return Effect.succeed(
              named(refused(request, path, errorOfPath(path, error, id), error.code, watch), id, path)
            )
          }
          if (asksMethod(method, path)) return Effect.succeed(named(refuse(method, path, request, watch), id, path))
          const handled = method === "OPTIONS" ? preflights(httpEffect) : httpEffect
          const within = Effect.updateContext(
            handled,
            (context: Context.Context<HttpServerRequest.HttpServerRequest>) => {
              const named = url === source.url
                ? context
                : Context.add(context, HttpServerRequest.HttpServerRequest, source.modify({ url }))
              const own = Context.add(Context.add(named, CurrentRequest, request), Scope.Scope, needed)
              // The router of an app does not provide the gateway's services.
              return Context.getOrUndefined(own, CurrentBufferedBytes) === bytes
                ? own
                : Context.add(own, CurrentBufferedBytes, bytes)
            }
          )
          return Effect.matchEffect(within, {
            onSuccess: (response) =>
              Effect.mapEager(withRoom(fiber, response, method, path, request), (given) => named(given, id, path)),
            onFailure: (error) =>
              isRouteNotFound(error)
                ? Effect.succeed(named(refuse(method, path, request, watch), id, path))
                : Effect.fail(error)
          })
        })
      })
  }),
  { global: true }
)
