/** What the `models` of a key allow. */
import { normalizeModelName } from "./models.ts"
import { addressed, meantRoute, type NameFamily, type Route, type RouteTable, splitTarget } from "./routes.ts"

const nameFamilies: ReadonlyArray<NameFamily> = ["usual", "mapped", "embeddings", "relayed"]

/** What the `models` of a key allow. */
export interface AllowedRoutes {
  /** Names of routes and models. */
  readonly names: ReadonlySet<string>
  /** Targets that the key names. */
  readonly named: ReadonlySet<string>
  /** Upstreams of which every target is allowed: `upstream/*`. */
  readonly upstreams: ReadonlySet<string>
}

/**
 * Reads the `models` of a key, each name as every style resolves it. `upstream/*` allows all targets of an upstream; any other name
 * allows itself alone. The name of a route does not allow its targets by their own names: the route decides which one serves.
 */
export const allowedRoutes = (table: RouteTable, models: Iterable<string>): AllowedRoutes => {
  const names = new Set<string>()
  const named = new Set<string>()
  const upstreams = new Set<string>()
  for (const written of models) {
    const upstream = addressed(table, normalizeModelName(written))
    if (upstream !== undefined && splitTarget(written).model === "*") upstreams.add(upstream)
    for (const family of nameFamilies) {
      const route = meantRoute(table, family, written)
      if (route === undefined) continue
      if (route.kind === "target") named.add(route.id)
      else names.add(route.id)
    }
  }
  return { names, named, upstreams }
}

/** Whether a name in the `models` of a key allows anything. */
export const allowsSome = (table: RouteTable, written: string): boolean => {
  const { named, names, upstreams } = allowedRoutes(table, [written])
  return named.size > 0 || names.size > 0 || upstreams.size > 0
}

/** Whether a key allows what its caller asked for. */
export const allowsRoute = (allowed: AllowedRoutes, { id, kind, targets }: Route): boolean =>
  kind === "target"
    ? allowed.named.has(id) || allowed.upstreams.has(targets[0]!.upstream)
    : allowed.names.has(id)

/** Whether a caller may use a route, whose key may allow all models. */
export const isAllowed = (allowed: AllowedRoutes | undefined, route: Route): boolean =>
  allowed === undefined || allowsRoute(allowed, route)
