/**
 * What is answered without a route: 404, or 405 with `Allow` where another method would do, as the path's family words it.
 */
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { uncached } from "../admin/edgeLayers.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import { gatewayError } from "../domain/GatewayError.ts"
import { errorResponse } from "../http/edge.ts"
import { styles } from "../styles/styles.ts"
import { GatewayApi } from "./Api.ts"
import { edgesOfPaths } from "./edgeOfPath.ts"

const edgeOfPath = edgesOfPaths(GatewayApi)

/** An error as a reply of the family that a path belongs to, with the headers that all replies of the family have. */
export const errorOfPath = (
  path: string,
  error: GatewayError,
  requestId: string
): HttpServerResponse.HttpServerResponse => {
  const { errors, idHeader, uncached: isUncached } = edgeOfPath(path)
  const response = errorResponse(errors, error, requestId)
  const named = idHeader === undefined ? response : HttpServerResponse.setHeader(response, idHeader, requestId)
  return isUncached === true ? uncached(named) : named
}

interface Known {
  readonly method: string
  readonly pattern: RegExp
  /** The path ends with a method of the model that it names: `…/models/:model:generateContent`. */
  readonly calls: boolean
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
      routes.push({
        method: endpoint.method,
        pattern: pattern(endpoint.path),
        calls: /:\w+:\w+$/.test(endpoint.path)
      })
    }
  })
  return routes
}

const routes = knownRoutes()

const fitting = (path: string): ReadonlyArray<Known> => {
  const all = routes.filter((route) => route.pattern.test(path))
  const calls = all.filter((route) => route.calls)
  return calls.length > 0 ? calls : all
}

/**
 * True where a model is asked for by a path that calls a method of it. The router takes the method for a part of the name,
 * which may have colons.
 */
export const asksMethod = (method: string, path: string): boolean =>
  (method === "GET" || method === "HEAD") && path.includes(":") && fitting(path).some((route) => route.calls)

/** A word in the place of a response's id that is not an id: an operation of the vendor's, such as `compact`. */
const unknownOperation = /^\/v1\/responses\/(?!resp_)[^/]+\/?$/

/** A path that would call a method of a model or an operation on responses, if there were one of that name. */
const callsUnknown = (path: string): boolean =>
  unknownOperation.test(path) ||
  (/\/models\/[^/]*:[^/]*$/.test(path) && !fitting(path).some((route) => route.calls))

const allowed = (path: string): ReadonlyArray<string> => {
  const methods = new Set(fitting(path).map((route) => route.method))
  if (methods.has("GET")) methods.add("HEAD")
  return [...methods]
}

/** What clients add to their base address by themselves. */
const prefixes = [...new Set(styles.flatMap(({ basePaths }) => basePaths))]

/** What is wrong with a client's base address, where that is what it looks like. */
const addressHint = (path: string): string => {
  for (const prefix of prefixes) {
    if (path.startsWith(`${prefix}/`) && fitting(path.slice(prefix.length)).length > 0) {
      return `: the client adds ${prefix} to its base address itself; drop it there`
    }
  }
  const missing = prefixes.find((prefix) => fitting(prefix + path).length > 0)
  return missing === undefined ? "" : `: add ${missing} to the client's base address`
}

/**
 * The reply to a request that no route takes. A path that is known by this method too has a part that no route takes: one
 * that is too long, or no valid encoding.
 */
export const unrouted = (method: string, path: string, requestId: string): HttpServerResponse.HttpServerResponse => {
  const methods = method === "POST" && callsUnknown(path) ? [] : allowed(path)
  if (methods.length === 0 || methods.includes(method)) {
    const error = gatewayError("not_found", `There is no route ${method} ${path.slice(0, 200)}${addressHint(path)}`)
    return errorOfPath(path, error, requestId)
  }
  const error = gatewayError("method_not_allowed", `${method} is not allowed here; use ${methods.join(" or ")}`)
  return HttpServerResponse.setHeader(errorOfPath(path, error, requestId), "allow", methods.join(", "))
}
