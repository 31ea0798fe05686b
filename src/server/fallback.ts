/**
 * What no route answers: 404, or 405 with `Allow` where another method would, in the shape of the path's family.
 */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import { gatewayError } from "../domain/GatewayError.ts"
import { errorResponse } from "../http/edge.ts"
import { shapeOfPath } from "../http/errorShapes.ts"
import { GatewayApi } from "./Api.ts"

interface Known {
  readonly method: string
  readonly pattern: RegExp
}

/** A route's path as a pattern: a parameter stands at a segment's start, a colon further on is a literal. */
const pattern = (path: string): RegExp =>
  new RegExp(
    `^${
      path.split("/").map((segment) =>
        segment.startsWith(":")
          ? `[^/]+?${segment.slice(1).replace(/^\w+/, "").replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")}`
          : segment.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")
      ).join("/")
    }/?$`
  )

const knownRoutes = (): ReadonlyArray<Known> => {
  const routes: Array<Known> = []
  HttpApi.reflect(GatewayApi, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint }) => {
      routes.push({ method: endpoint.method, pattern: pattern(endpoint.path) })
    }
  })
  return routes
}

const routes = knownRoutes()

const allowed = (path: string): ReadonlyArray<string> => {
  const methods = new Set(routes.filter((route) => route.pattern.test(path)).map((route) => route.method))
  if (methods.has("GET")) methods.add("HEAD")
  return [...methods]
}

const answer = (method: string, path: string): HttpServerResponse.HttpServerResponse => {
  const shape = shapeOfPath(path)
  const methods = allowed(path)
  if (methods.length === 0) {
    return errorResponse(shape, gatewayError("not_found", `There is no route ${method} ${path.slice(0, 200)}`))
  }
  const error = gatewayError("method_not_allowed", `${method} is not allowed here; use ${methods.join(" or ")}`)
  return HttpServerResponse.setHeader(errorResponse(shape, error), "allow", methods.join(", "))
}

const catchAll = (method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE") =>
  HttpRouter.add(method, "/*", (request) => {
    const question = request.url.indexOf("?")
    return Effect.succeed(answer(method, question === -1 ? request.url : request.url.slice(0, question)))
  })

/**
 * The catch-all routes. One a method and never HEAD: the router answers HEAD from GET only while no route of its own
 * matches.
 */
export const Fallback = Layer.mergeAll(
  catchAll("GET"),
  catchAll("POST"),
  catchAll("PUT"),
  catchAll("PATCH"),
  catchAll("DELETE")
)
