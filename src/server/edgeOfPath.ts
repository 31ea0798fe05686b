/**
 * Which edge a path would have: that of the route that is most like it.
 */
import * as HttpApi from "effect/http-api/HttpApi"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import { type EdgeFacts, edgeOf } from "../http/edgeFacts.ts"

interface Route {
  readonly segments: ReadonlyArray<string>
  readonly edge: EdgeFacts
}

const segmentsOf = (path: string): Array<string> => path.split("/").filter((segment) => segment !== "")

/** A segment that calls a method of what it names: `:model:generateContent`. */
const isCall = (segment: string): boolean => /^:\w+:\w+$/.test(segment)

/** How much a segment of a path is like one of a route, or 0 when it is not. */
const likeness = (route: string, path: string): number => {
  if (isCall(route)) return /:[A-Za-z]+$/.test(path) ? 2 : 0
  return route.startsWith(":") || route === path ? 1 : 0
}

/** How far a path goes along a route, and how much it is like it there: more where the route has no more. */
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
 * Gives the edge for a path that no route takes: that of the route along which it goes furthest; of several, the one that it
 * is most like; else the API's first.
 */
export const edgesOfPaths = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>
): (path: string) => EdgeFacts => {
  const routes: Array<Route> = []
  HttpApi.reflect(api, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint }) => {
      routes.push({ segments: segmentsOf(endpoint.path), edge: edgeOf(endpoint) })
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
    return best.edge
  }
}
