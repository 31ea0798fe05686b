/** The error for a name that stands for nothing, with what the caller may have meant. */
import { type AllowedRoutes, isAllowed } from "./allowedRoutes.ts"
import { type GatewayError, gatewayError } from "./GatewayError.ts"
import { normalizeModelName } from "./models.ts"
import { nearest } from "./nearest.ts"
import { listedRoutes } from "./routeLists.ts"
import { addressed, resolveRoute, type RouteTable, routeTo, targetName } from "./routes.ts"

/** The most names that are suggested for an unknown one. */
const mostSuggested = 3

/** The most models of an upstream that an error names. */
const mostNamed = 20

const quoted = (names: Iterable<string>): Array<string> => Array.from(names, (name) => `"${name}"`)

/** The models of an upstream that a caller may use by their names as targets. */
const modelsOf = (
  { upstreams }: RouteTable,
  upstream: string,
  allowed: AllowedRoutes | undefined
): ReadonlyArray<string> =>
  Array.from(upstreams.get(upstream)?.values() ?? []).flatMap((target) =>
    target.enabled && target.hidden !== true && isAllowed(allowed, routeTo(targetName(target), [target], "target"))
      ? [target.model.id]
      : []
  )

/** The nearest names that a caller may use. */
const suggestion = (table: RouteTable, allowed: AllowedRoutes | undefined, requested: string): string => {
  const { aliases, listed, mapped, unnamed } = table.config
  const others = [...aliases.keys(), ...(listed?.has(unnamed) ? [] : mapped?.keys() ?? [])].filter((name) => {
    const route = resolveRoute(table, "usual", name)
    return route !== undefined && isAllowed(allowed, route)
  })
  const known = [...listedRoutes(table, allowed).map(({ id }) => id), ...others]
  const near = quoted(nearest(requested.trim(), known, mostSuggested))
  return near.length === 0 ? "; GET /v1/models lists the models" : `; did you mean ${near.join(" or ")}?`
}

const hintFor = (table: RouteTable, allowed: AllowedRoutes | undefined, requested: string): string => {
  const upstream = addressed(table, normalizeModelName(requested))
  const models = upstream === undefined ? [] : modelsOf(table, upstream, allowed)
  if (models.length === 0) return suggestion(table, allowed, requested)
  const more = models.length - mostNamed
  const named = quoted(models.slice(0, mostNamed)).join(", ")
  return `: the upstream "${upstream}" has ${named}${more > 0 ? ` and ${more} more` : ""}`
}

/**
 * The error for a name that is unknown, or that the caller may not see. It names models that the caller may use alone: those of the upstream
 * that the name addresses, or the nearest ones. `inPath`: the name is all that the request is about.
 */
export const routeNotFound = (
  table: RouteTable,
  allowed: AllowedRoutes | undefined,
  requested: string,
  { inPath, param = "model" }: { readonly param?: string; readonly inPath?: true } = {}
): GatewayError =>
  gatewayError(
    "model_not_found",
    `The model "${requested.slice(0, 200)}" does not exist${hintFor(table, allowed, requested)}`,
    { param, inPath }
  )
