/**
 * What holds for every request, whatever route it takes: its id, its place in the count that drain waits for, and the
 * refusal of new ones while the gateway drains, and of those that no route takes.
 */
import * as Effect from "effect/Effect"
import * as Headers from "effect/http/Headers"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerError from "effect/http/HttpServerError"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { asksMethod, errorOfPath, unrouted } from "./fallback.ts"
import { shuttingDown } from "./health.ts"
import { Lifecycle } from "./Lifecycle.ts"

/** Ids that callers may choose for themselves; anything else is replaced. */
const acceptableId = /^[\w.:-]{1,128}$/

const requestId = (headers: Headers.Headers): string => {
  const given = headers["x-request-id"]
  return given !== undefined && acceptableId.test(given) ? given : `req_${crypto.randomUUID().replaceAll("-", "")}`
}

const pathOf = (url: string): string => {
  const question = url.indexOf("?")
  return question === -1 ? url : url.slice(0, question)
}

const isProbe = (path: string): boolean => path === "/healthz" || path === "/readyz"

const isRouteNotFound = (error: unknown): boolean =>
  HttpServerError.isHttpServerError(error) && error.reason._tag === "RouteNotFound"

/** Applies to all requests of a router that the gateway has to itself. */
export const EveryRequest = HttpRouter.middleware(
  Effect.gen(function*() {
    const lifecycle = yield* Lifecycle
    /** Connections close while the gateway drains: who is told so sends no further request on one that is about to. */
    const named = (response: HttpServerResponse.HttpServerResponse, id: string) =>
      HttpServerResponse.setHeaders(
        response,
        lifecycle.isDraining() ? { "x-request-id": id, connection: "close" } : { "x-request-id": id }
      )
    return (httpEffect) =>
      Effect.gen(function*() {
        const request = yield* HttpServerRequest.HttpServerRequest
        const id = requestId(request.headers)
        const path = pathOf(request.url)
        if (isProbe(path)) return named(yield* httpEffect, id)
        if (lifecycle.isDraining()) return named(errorOfPath(path, shuttingDown, id), id)
        if (asksMethod(request.method, path)) return named(unrouted(request.method, path, id), id)
        const end = lifecycle.begin()
        yield* Effect.addFinalizer(() => Effect.sync(end))
        const response = yield* Effect.provideService(
          Effect.catchIf(httpEffect, isRouteNotFound, () => Effect.succeed(unrouted(request.method, path, id))),
          HttpServerRequest.HttpServerRequest,
          request.modify({ headers: Headers.set(request.headers, "x-request-id", id) })
        )
        return named(response, id)
      })
  }),
  { global: true }
)
