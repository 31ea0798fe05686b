/** The lists of what can be asked for: what callers see of it, and all that the catalogue has. */
import { type AllowedRoutes, isAllowed } from "./allowedRoutes.ts"
import { familyBeginnings, type Model, natives, normalizeModelName } from "./models.ts"
import {
  familyRoute,
  findConfigured,
  findNamed,
  isEnabled,
  resolveRoute,
  type Route,
  type RouteConfig,
  type RouteTable,
  routeTo,
  targetName
} from "./routes.ts"

/** The list of the server behind names without an upstream; `undefined` if it is not known or names nothing. */
const serverList = ({ listed, unnamed }: RouteConfig): ReadonlyMap<string, Model> | undefined => {
  const list = listed?.get(unnamed)
  return list === undefined || list.size === 0 ? undefined : list
}

/**
 * Whether requests for a route reach a model, once one of its targets is enabled. A native name that no entry maps is sent to a server as it is, and no model of the server
 * has it if the server's list does not.
 */
export const reachesModel = ({ config }: RouteTable, { targets }: Pick<Route, "targets">): boolean => {
  const list = serverList(config)
  return list === undefined ||
    targets.some(({ model: { id }, upstream }) =>
      upstream !== config.unnamed || !natives.has(id) || list.has(id) ||
      config.upstreams.some(({ models, name }) =>
        name === upstream && models.some((model) => normalizeModelName(model.id) === id)
      )
    )
}

/**
 * The server's names that can be asked for beside the ids of the configuration. Those of configured models are among them, unless these are
 * hidden.
 */
export const serverModels = (table: RouteTable, allowed?: AllowedRoutes): ReadonlyArray<Route> =>
  reachedServerModels(table).filter((route) =>
    route.hidden !== true && isAllowed(allowed, { ...route, id: route.name })
  )

/** A server's name with the route that it stands for. */
interface ServerRoute extends Route {
  /** The id of the route itself. */
  readonly name: string
}

const reachedServerModels = (table: RouteTable): ReadonlyArray<ServerRoute> => {
  const shown: Array<ServerRoute> = []
  for (const [name, { id }] of serverList(table.config) ?? []) {
    const route = table.routes.has(name) ? undefined : resolveRoute(table, "usual", name)
    if (route !== undefined) shown.push({ ...route, ...route.targets[0]!.model, id, name: route.id })
  }
  return shown
}

/** All that can be asked for without the name of an upstream, in the order of lists, hidden models included. */
export const cataloguedRoutes = (table: RouteTable): ReadonlyArray<Route> => [
  ...[...table.routes.values()].filter((route) => isEnabled(route) && reachesModel(table, route)),
  ...reachedServerModels(table)
]

/** A name that stands for a model or a route: an alias, or the beginning of the names of a family with a `*`. */
export interface OtherName {
  readonly name: string
  readonly kind: "alias" | "family"
  readonly route: Route
}

/** The names that callers may use beside those of `cataloguedRoutes`. What other words a family's name has may choose another model. */
export const otherNames = (table: RouteTable): ReadonlyArray<OtherName> => {
  const found: Array<OtherName> = []
  const add = (name: string, kind: OtherName["kind"], route: Route | undefined) => {
    if (route !== undefined && isEnabled(route) && reachesModel(table, route)) found.push({ name, kind, route })
  }
  for (const name of table.config.aliases.keys()) {
    if (findNamed(table, name) === undefined) add(name, "alias", findConfigured(table, name))
  }
  for (const beginning of familyBeginnings) add(`${beginning}*`, "family", familyRoute(table, beginning))
  return found
}

/**
 * The entries of a list of models, which is what can be asked for and is not hidden: native models, other models and routes; the server's
 * names; then the targets that the key names.
 */
export const listedRoutes = (table: RouteTable, allowed?: AllowedRoutes): ReadonlyArray<Route> => {
  const shown: Array<Route> = []
  for (const route of table.routes.values()) {
    const isShown = route.hidden !== true && (allowed === undefined || allowed.names.has(route.id)) && isEnabled(route)
    if (isShown && reachesModel(table, route)) shown.push(route)
  }
  shown.push(...serverModels(table, allowed))
  if (allowed === undefined || (allowed.named.size === 0 && allowed.upstreams.size === 0)) return shown
  for (const [upstream, targets] of table.upstreams) {
    for (const target of targets.values()) {
      const id = targetName(target)
      if (target.hidden === true || !target.enabled || !(allowed.upstreams.has(upstream) || allowed.named.has(id))) {
        continue
      }
      shown.push(routeTo(id, [target], "target"))
    }
  }
  return shown
}
