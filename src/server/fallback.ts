/**
 * Replies to requests that match no route: 404, or 405 with `Allow` where another method exists, in the error format of the most
 * similar route.
 */
import * as HttpApi from "effect/http-api/HttpApi"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { uncached } from "../admin/middlewareLayers.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import { type EndpointPolicy, policyOf } from "../http/EndpointPolicy.ts"
import { errorResponse } from "../http/reply.ts"
import { styles } from "../styles/styles.ts"
import { GatewayApi } from "./Api.ts"

interface Route {
  readonly segments: ReadonlyArray<string>
  readonly policy: EndpointPolicy
}

const segmentsOf = (path: string): Array<string> => path.split("/").filter((segment) => segment !== "")

/** Whether a segment calls a method: `:model:generateContent`. */
const isCall = (segment: string): boolean => /^:\w+:\w+$/.test(segment)

/** Similarity of a path segment to a route segment; 0 if they differ. */
const likeness = (route: string, path: string): number => {
  if (isCall(route)) return /:[A-Za-z]+$/.test(path) ? 2 : 0
  return route.startsWith(":") || route === path ? 1 : 0
}

/** Number of matching segments, and their similarity: one more for a complete route. */
const along = (route: ReadonlyArray<string>, path: ReadonlyArray<string>): readonly [length: number, like: number] => {
  let like = 0
  let length = 0
  for (const segment of route) {
    const one = length < path.length ? likeness(segment, path[length]!) : 0
    if (one === 0) break
    like += one
    length += 1
  }
  return [length, length === route.length ? like + 1 : like]
}

/**
 * Finds the policy for a path without a route: that of the route with the most matching segments, then with the highest
 * similarity, else the API's first one.
 */
export const policiesOfPaths = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>
): (path: string) => EndpointPolicy => {
  const routes: Array<Route> = []
  HttpApi.reflect(api, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint }) => {
      routes.push({ segments: segmentsOf(endpoint.path), policy: policyOf(endpoint) })
    }
  })
  return (path) => {
    const segments = segmentsOf(path)
    let best: Route | undefined
    let [furthest, most] = [-1, 0]
    for (const route of routes) {
      const [length, like] = along(route.segments, segments)
      if (length > furthest || (length === furthest && like > most)) {
        best = route
        furthest = length
        most = like
      }
    }
    if (best === undefined) throw new Error("The API has no endpoint")
    return best.policy
  }
}

const policyOfPath = policiesOfPaths(GatewayApi)

/** Formats an error as the most similar route would, with its headers. */
export const errorOfPath = (
  path: string,
  error: GatewayError,
  requestId: string
): HttpServerResponse.HttpServerResponse => {
  const { errors, idHeader, uncached: isUncached } = policyOfPath(path)
  const response = errorResponse(errors, error, requestId)
  const named = idHeader === undefined ? response : HttpServerResponse.setHeader(response, idHeader, requestId)
  return isUncached === true ? uncached(named) : named
}

interface Known {
  readonly method: string
  readonly pattern: RegExp
  /** The path calls a method of a model: `…/models/:model:generateContent`. */
  readonly calls: boolean
}

/**
 * Converts a route's path to a pattern. A colon at the start of a segment marks a parameter; later ones are literal.
 */
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
 * True for a `GET` of a model method. The router would read the method as part of the model's name, which may contain
 * colons.
 */
export const asksMethod = (method: string, path: string): boolean =>
  (method === "GET" || method === "HEAD") && path.includes(":") && fitting(path).some((route) => route.calls)

/** Paths of vendors' contracts that the gateway does not serve, with what it has instead. */
const elsewhere: ReadonlyArray<readonly [path: RegExp, hint: string]> = [
  [
    /^\/v1\/conversations(?:\/|$)/,
    "the gateway keeps no conversations; send the history, or previous_response_id, to /v1/responses"
  ],
  [
    /^\/v1\/files(?:\/|$)/,
    "the gateway keeps no files; send a file within the request to /v1/chat/completions or /v1/responses"
  ],
  [
    /^\/v1\/batches(?:\/|$)/,
    "the gateway runs no batches; send each request to its own endpoint, such as /v1/chat/completions"
  ],
  [
    /^\/v1\/realtime(?:\/|$)/,
    "the gateway has no realtime sessions; use /v1/responses with stream, /v1/audio/transcriptions and /v1/audio/speech"
  ]
]

/** A word instead of a response id: an operation of the vendor's API, such as `cancel`. */
const unknownOperation = /^\/v1\/responses\/(?!resp_)[^/]+\/?$/

/** Whether a path calls an unknown method of a model or an unknown operation on responses. */
const callsUnknown = (path: string): boolean =>
  unknownOperation.test(path) ||
  (/\/models\/[^/]*:[^/]*$/.test(path) && !fitting(path).some((route) => route.calls))

const allowed = (path: string): ReadonlyArray<string> => {
  const methods = new Set(fitting(path).map((route) => route.method))
  if (methods.has("GET")) methods.add("HEAD")
  return [...methods]
}

/** Prefixes that clients add to their base URL. */
const prefixes = [...new Set(styles.flatMap(({ basePaths }) => basePaths))]

/** A hint for a client whose base URL seems wrong. */
const addressHint = (path: string): string => {
  const other = elsewhere.find(([pattern]) => pattern.test(path))
  if (other !== undefined) return `: ${other[1]}`
  for (const prefix of prefixes) {
    if (path.startsWith(`${prefix}/`) && fitting(path.slice(prefix.length)).length > 0) {
      return `: the client adds ${prefix} to its base URL itself; drop it there`
    }
  }
  const missing = prefixes.find((prefix) => fitting(prefix + path).length > 0)
  return missing === undefined ? "" : `: add ${missing} to the client's base URL`
}

/**
 * The reply to a request without a route. If the path and method are known, a parameter is too long or malformed, so the
 * reply is 404.
 */
export const unrouted = (method: string, path: string, requestId: string): HttpServerResponse.HttpServerResponse => {
  const methods = method === "POST" && callsUnknown(path) ? [] : allowed(path)
  if (methods.length === 0 || methods.includes(method)) {
    const error = gatewayError("not_found", `There is no endpoint ${method} ${path.slice(0, 200)}${addressHint(path)}`)
    return errorOfPath(path, error, requestId)
  }
  const error = gatewayError("method_not_allowed", `${method} is not allowed here; use ${methods.join(" or ")}`)
  return HttpServerResponse.setHeader(errorOfPath(path, error, requestId), "allow", methods.join(", "))
}
