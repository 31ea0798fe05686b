/**
 * What holds for every request, whatever route it takes: its id, its place in the count that drain waits for, and the
 * refusal of new ones while the gateway drains, and of those that no route takes.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Headers from "effect/http/Headers"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerError from "effect/http/HttpServerError"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Scope from "effect/Scope"
import { shuttingDown } from "../accounts/refusals.ts"
import { makeRequestStats } from "../completion/RequestStats.ts"
import type { ErrorCode } from "../domain/GatewayError.ts"
import { monotonicMillis } from "../domain/monotonicMillis.ts"
import { CurrentRequestWatch } from "../http/edge.ts"
import { consoleHeaders, isConsolePath } from "./console/headers.ts"
import { asksMethod, errorOfPath, unrouted } from "./fallback.ts"
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

/** Notes in a record of its own that a request was refused before it had a route. */
const refused = Effect.fnUntraced(function*(
  path: string,
  id: string,
  response: HttpServerResponse.HttpServerResponse,
  code: ErrorCode
) {
  const stats = makeRequestStats(id, monotonicMillis(yield* Clock.Clock))
  stats.path = path
  stats.status = response.status
  stats.error = code
  const watch = yield* CurrentRequestWatch
  yield* Effect.addFinalizer(() => watch.ended(stats, undefined))
  return response
})

/** Answers what no route takes. */
const refuse = (method: string, path: string, id: string) => {
  const response = unrouted(method, path, id)
  return refused(path, id, response, response.status === 404 ? "not_found" : "method_not_allowed")
}

/** Applies to all requests of a router that the gateway has to itself. */
export const EveryRequest = HttpRouter.middleware(
  Effect.gen(function*() {
    const lifecycle = yield* Lifecycle
    /** Connections close while the gateway drains: who is told so sends no further request on one that is about to. */
    const named = (response: HttpServerResponse.HttpServerResponse, id: string, path: string) => {
      const told = HttpServerResponse.setHeaders(
        response,
        lifecycle.isDraining() ? { "x-request-id": id, connection: "close" } : { "x-request-id": id }
      )
      return isConsolePath(path) ? HttpServerResponse.setHeaders(told, consoleHeaders) : told
    }
    return (httpEffect) =>
      Effect.withFiber((fiber) => {
        const request = Context.getUnsafe(fiber.context, HttpServerRequest.HttpServerRequest)
        const id = requestId(request.headers)
        const path = pathOf(request.url)
        const known = request.headers["x-request-id"] === id
          ? request
          : request.modify({ headers: Headers.set(request.headers, "x-request-id", id) })
        const routed = Effect.provideService(
          Effect.catchIf(httpEffect, isRouteNotFound, () => refuse(request.method, path, id)),
          HttpServerRequest.HttpServerRequest,
          known
        )
        const answer = (effect: typeof routed) => Effect.map(effect, (response) => named(response, id, path))
        if (isProbe(path)) return answer(routed)
        if (lifecycle.isDraining()) {
          return answer(refused(path, id, errorOfPath(path, shuttingDown, id), shuttingDown.code))
        }
        if (asksMethod(request.method, path)) return answer(refuse(request.method, path, id))
        const end = lifecycle.begin()
        return Effect.flatMap(
          Scope.addFinalizer(Context.getUnsafe(fiber.context, Scope.Scope), Effect.sync(end)),
          () => answer(routed)
        )
      })
  }),
  { global: true }
)
