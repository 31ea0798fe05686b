/**
 * What a requested name stands for: a route with its targets, as a pure function of the configuration.
 *
 * An upstream lists models. A target is a model of one upstream, written `upstream/model`. A route has targets in order: the
 * configured ones, or every upstream that lists the name. Ids of models and names of routes are one name space, in which a
 * configured route comes first.
 *
 * `makeRouteTable` costs one pass over the configuration; a look-up costs a few accesses to maps.
 */
import { hasNatives, isServer } from "../contracts/drivers.ts"
import { type GatewayError, gatewayError } from "./GatewayError.ts"
import type { ModelFacts } from "./modelFacts.ts"
import {
  embeddingModel,
  familyBeginnings,
  familyModel,
  isServersOwnName,
  mappedModel,
  type MessagesMapping,
  type Model,
  nativeModels,
  normalizeModelName,
  relayedModel
} from "./models.ts"
import { nearest } from "./nearest.ts"
import type { AlsoOn } from "./nextTry.ts"

/** What lists tell about a model beside its flags. */
export interface Listing {
  /** The server's own name, where it is another one than the id. */
  readonly served: string | undefined
  /** The facts of the model's entry. */
  readonly facts: ModelFacts | undefined
  /** True for a model that is in no list. Its name can be asked for all the same. */
  readonly hidden: boolean | undefined
}

/** A model of the configuration. */
export interface RoutedModel extends Model, Partial<Listing> {}

/** A model that a server lists. */
export interface ListedModel extends Model {
  /** What the list says about it. */
  readonly facts?: ModelFacts | undefined
  /** True where the server sets the window itself, so that only the server knows it. */
  readonly setsWindow?: boolean | undefined
}

/** A model of a server's list: its name alone, or with what the list says about it. */
export type ServersModel = string | Pick<ListedModel, "facts" | "id" | "setsWindow">

/** The name of a model of a list. */
export const listedName = (model: ServersModel): string => typeof model === "string" ? model : model.id

/** An upstream as far as routes depend on it. */
export interface RoutedUpstream {
  /** In lower case, without `/`. */
  readonly name: string
  readonly driver: string
  /** False while the operator has disabled it: models that only it has are unknown to callers. */
  readonly enabled: boolean
  /** The configured models, in order. */
  readonly models: ReadonlyArray<RoutedModel>
}

/** How a request chooses among the targets of its route. */
export interface RouteOptions {
  /** Milliseconds at a full first target before the others count. */
  readonly wait: number
  /** Refusals of the request itself that go to the next target too. */
  readonly alsoOn: ReadonlyArray<AlsoOn>
  /**
   * `order`: the first target with a free slot. `even`: the one with the largest share of free slots. `weighted`: each by its weight, exactly
   * while all have free slots.
   */
  readonly spread: "order" | "even" | "weighted"
  /** Whether a conversation prefers the account that answered it last, and the target too; `undefined` for the general setting. */
  readonly sticky: boolean | "auto" | "target" | undefined
}

const plainOptions: RouteOptions = { wait: 0, alsoOn: [], spread: "order", sticky: undefined }

/** A target as a route names it: `upstream/model`, or `upstream` for the model with the route's name. Its weight is 1 unless it has one. */
export type WrittenTarget = string | { readonly target: string; readonly weight: number }

/** What a target is written as, without its weight. */
export const targetText = (written: WrittenTarget): string => typeof written === "string" ? written : written.target

/** A configured route. */
export interface ConfiguredRoute extends Partial<RouteOptions> {
  readonly name: string
  readonly targets: ReadonlyArray<WrittenTarget>
  /** Its words for people. */
  readonly facts?: ModelFacts | undefined
  /** True for a route that is in no list. */
  readonly hidden?: boolean | undefined
}

/** The parts of the configuration that decide what a name stands for. */
export interface RouteConfig {
  /** In the order of the file. */
  readonly upstreams: ReadonlyArray<RoutedUpstream>
  /** The upstream that names without an upstream mean: it has the native names, and models that no entry lists. */
  readonly unnamed: string
  readonly routes: ReadonlyArray<ConfiguredRoute>
  /** By names in normal form. */
  readonly aliases: ReadonlyMap<string, string>
  readonly mapping: MessagesMapping
  /** Names of well-known families stand for native models. */
  readonly families: boolean
  /** The names that the server of `unnamed` has for configured models. Absent if it is no server with names of its own. */
  readonly mapped: ReadonlyMap<string, Model> | undefined
  /** The models that the servers of upstreams list, as last read, by the upstream's name. Names mean those of `unnamed` alone. */
  readonly listed: Listed | undefined
}

/** The models that servers list, by the name of the upstream, then by their names in normal form. */
export type Listed = ReadonlyMap<string, ReadonlyMap<string, ListedModel>>

/** A model of an upstream. */
export interface Target extends Listing {
  readonly upstream: string
  /** The id within the upstream, and the flags of a reply. */
  readonly model: Model
  readonly enabled: boolean
  /** Its share of the requests of a route whose `spread` is `weighted`. */
  readonly weight: number
}

/** A target that its upstream has no entry for. */
export const plainTarget = { weight: 1, served: undefined, facts: undefined, hidden: undefined }

/** What a name stands for. The flags come from the first enabled target. */
export interface Route extends Model {
  /** The id of the model, the route's name or the target's name, as configured. */
  readonly id: string
  /** In order; at least one. Disabled ones are included. */
  readonly targets: ReadonlyArray<Target>
  readonly options: RouteOptions
  /** The words of a configured route for people. */
  readonly facts: ModelFacts | undefined
  /** True for a route that is in no list. */
  readonly hidden: boolean
  /** `listed`: a model that upstreams list. `configured`: a route of the configuration. `target`: one target by its name. */
  readonly kind: "listed" | "configured" | "target"
}

/**
 * The kind of a request: some names have a meaning of their own in it. `mapped`: requests in which the configured mapping counts.
 * `relayed`: requests that go through as they are, for which names of families mean nothing; in those of `relayedText` they do.
 */
export type NameFamily = "usual" | "mapped" | "embeddings" | "relayed" | "relayedText"

/** The configuration, indexed. */
export interface RouteTable {
  readonly config: RouteConfig
  /** Upstreams by name, with the targets by their ids in normal form. */
  readonly upstreams: ReadonlyMap<string, ReadonlyMap<string, Target>>
  /** Routes and listed models by their names in normal form, in the order of lists. */
  readonly routes: ReadonlyMap<string, Route>
  /** Whether the names of upstreams appear. Names with `/` have a meaning of their own then. */
  readonly showsUpstreams: boolean
}

const natives: ReadonlyMap<string, Model> = new Map(nativeModels.map((model) => [model.id, model]))

/** The name of a target. */
export const targetName = ({ model, upstream }: Target): string => `${upstream}/${model.id}`

const routeTo = (
  id: string,
  targets: ReadonlyArray<Target>,
  kind: Route["kind"],
  { alsoOn, facts, hidden, spread, sticky, wait }: Partial<RouteOptions> & Pick<ConfiguredRoute, "facts" | "hidden"> =
    plainOptions
): Route => ({
  ...(targets.find(({ enabled }) => enabled) ?? targets[0]!).model,
  id,
  targets,
  kind,
  facts,
  hidden: hidden ?? (kind !== "configured" && targets.every((target) => target.hidden === true || !target.enabled)),
  options: { wait: wait ?? 0, alsoOn: alsoOn ?? [], spread: spread ?? "order", sticky }
})

/** Whether an upstream still has a model. One may have models that no table lists. */
export const servesModel = ({ config, upstreams }: RouteTable, upstream: string, model: string): boolean =>
  upstream === config.unnamed || upstreams.get(upstream)?.has(normalizeModelName(model)) === true

const targetsOf = ({ driver, enabled, models, name }: RoutedUpstream, unnamed: string): Map<string, Target> => {
  const targets = new Map<string, Target>()
  const add = ({ facts, hidden, served, ...model }: RoutedModel) => {
    const id = normalizeModelName(model.id)
    if (targets.has(id)) return
    targets.set(id, { upstream: name, model: natives.get(id) ?? model, enabled, weight: 1, served, facts, hidden })
  }
  if (name === unnamed || hasNatives(driver)) {
    for (const native of nativeModels) add(models.find(({ id }) => normalizeModelName(id) === native.id) ?? native)
  }
  models.forEach(add)
  return targets
}

/** Splits a name before its first slash. `model` is `undefined` without a slash. */
const splitTarget = (name: string): { readonly upstream: string; readonly model: string | undefined } => {
  const slash = name.indexOf("/")
  return slash === -1
    ? { upstream: normalizeModelName(name), model: undefined }
    : { upstream: normalizeModelName(name.slice(0, slash)), model: normalizeModelName(name.slice(slash + 1)) }
}

/** The name of the upstream of a target as it is written. */
export const upstreamOfTarget = (written: string): string => splitTarget(written).upstream

type Upstreams = RouteTable["upstreams"]

const findTarget = (upstreams: Upstreams, written: string, route: string): Target | undefined => {
  const { model = normalizeModelName(route), upstream } = splitTarget(written)
  return upstreams.get(upstream)?.get(model)
}

/** The target as an answer to a native name: a reply has reasoning and sources even where the native model has them. */
const answering = (target: Target, name: string): Target => {
  const native = natives.get(name)
  if (native === undefined) return target
  const { id, reasoning, search } = target.model
  const flags = { reasoning: native.reasoning === true ? true : reasoning, search: native.search || search }
  return { ...target, model: { ...target.model, id, ...flags } }
}

/** The parts of a configuration that decide which targets have names. */
type Named = Pick<RouteConfig, "routes" | "unnamed" | "upstreams">

/**
 * Whether the names of upstreams appear: in names of models, views, metrics and headers. A configuration of the unnamed upstream alone shows
 * none.
 */
const showsUpstreams = ({ routes, unnamed, upstreams }: Named): boolean =>
  routes.length > 0 || upstreams.some(({ name }) => name !== unnamed)

const upstreamsOf = ({ unnamed, upstreams }: Named): Upstreams =>
  new Map(upstreams.map((upstream) => [upstream.name, targetsOf(upstream, unnamed)]))

/** Indexes a configuration. Targets that name no model of an upstream are left out, as are routes without any target. */
export const makeRouteTable = (config: RouteConfig): RouteTable => {
  const upstreams = upstreamsOf(config)
  const listed = new Map<string, Array<Target>>()
  for (const targets of upstreams.values()) {
    for (const [id, target] of targets) {
      const others = listed.get(id)
      if (others === undefined) listed.set(id, [target])
      else others.push(target)
    }
  }
  const configured = new Map<string, Route>()
  for (const entry of config.routes) {
    const { name, targets } = entry
    const key = normalizeModelName(name)
    const found = targets.flatMap((written) => {
      const target = findTarget(upstreams, targetText(written), name)
      if (target === undefined) return []
      return [{ ...answering(target, key), weight: typeof written === "string" ? 1 : written.weight }]
    })
    if (found.length > 0 && !configured.has(key)) {
      configured.set(key, routeTo(name.trim(), found, "configured", entry))
    }
  }
  const routes = new Map<string, Route>()
  const list = (key: string) => {
    const targets = listed.get(key)
    const route = configured.get(key) ??
      (targets && routeTo(targets[0]!.model.id, targets, "listed"))
    if (route !== undefined) routes.set(key, route)
  }
  for (const key of [...natives.keys(), ...listed.keys(), ...configured.keys()]) {
    if (!routes.has(key)) list(key)
  }
  return { config, upstreams, routes, showsUpstreams: showsUpstreams(config) }
}

/** Resolves a name in normal form that is an id, a route or a target. */
const findNamed = ({ routes, showsUpstreams, upstreams }: RouteTable, name: string): Route | undefined => {
  const route = routes.get(name)
  if (route !== undefined) return route
  const target = showsUpstreams && name.includes("/") ? findTarget(upstreams, name, "") : undefined
  return target && routeTo(targetName(target), [target], "target")
}

/** Resolves a name in normal form that is an id, a route, a target or an alias of one of these. */
const findConfigured = (table: RouteTable, name: string): Route | undefined => {
  const alias = table.config.aliases.get(name)
  return findNamed(table, name) ?? (alias === undefined ? undefined : findNamed(table, normalizeModelName(alias)))
}

/** Tells whether a name belongs to a target. */
export const targetsNamed = (config: Named): (name: string) => boolean => {
  const targets = upstreamsOf(config)
  return (name) => showsUpstreams(config) && name.includes("/") && findTarget(targets, name, "") !== undefined
}

/** The upstream that a name addresses; `undefined` for other names. */
const addressed = ({ showsUpstreams, upstreams }: RouteTable, name: string): string | undefined => {
  if (!showsUpstreams || !name.includes("/")) return undefined
  const { upstream } = splitTarget(name)
  return upstreams.has(upstream) ? upstream : undefined
}

/** A model that only the unnamed upstream may serve: one of a closed list, or one that its server lists. */
const byDefault = (table: RouteTable, model: Model | undefined): Route | undefined => {
  const upstream = model && table.config.upstreams.find(({ name }) => name === table.config.unnamed)
  if (model === undefined || upstream === undefined) return undefined
  return table.routes.get(normalizeModelName(model.id)) ??
    routeTo(model.id, [{ ...plainTarget, upstream: upstream.name, model, enabled: upstream.enabled }], "listed")
}

/** The model by its server's own name. Without a tag, a name means `latest`, as servers with tags read it. */
const served = (config: RouteConfig, name: string): Model | undefined => {
  const { mapped } = config
  const listed = config.listed?.get(config.unnamed)
  const latest = `${name}:latest`
  return mapped?.get(name) ?? listed?.get(name) ?? mapped?.get(latest) ?? listed?.get(latest)
}

const wellKnown = (family: NameFamily, name: string): Model | undefined => {
  if (family === "embeddings") return embeddingModel(name)
  return family === "relayed" || family === "relayedText" ? relayedModel(name) : undefined
}

/**
 * The native model's route that a name of a well-known family stands for. Where a server answers first, the names of open models are
 * names of that server.
 */
const familyRoute = ({ config, routes }: RouteTable, name: string): Route | undefined => {
  const native = config.families ? familyModel(name) : undefined
  const route = native && routes.get(native.id)
  if (route === undefined || !isServersOwnName(name)) return route
  const first = config.upstreams.find((upstream) => upstream.name === route.targets[0]!.upstream)
  return first !== undefined && isServer(first.driver) ? undefined : route
}

/** Whether one of a route's targets is enabled. */
const isEnabled = ({ targets }: Pick<Route, "targets">): boolean => targets.some(({ enabled }) => enabled)

/** Resolves a requested name (`meantRoute`). A name of which every target is disabled stands for nothing. */
export const resolveRoute = (table: RouteTable, family: NameFamily, requested: string): Route | undefined => {
  const route = meantRoute(table, family, requested)
  return route !== undefined && isEnabled(route) ? route : undefined
}

/**
 * What a name stands for by the configuration, disabled targets included, in this order: an id or a route, a target, an alias, the server's
 * own name, a well-known model of the endpoint, the mapping (messages), the families. A name that addresses an upstream has none of the last
 * four meanings.
 */
export const meantRoute = (table: RouteTable, family: NameFamily, requested: string): Route | undefined => {
  const name = normalizeModelName(requested)
  const route = resolveName(table, family, name)
  return route === undefined && name.startsWith(claudePrefix)
    ? resolveName(table, family, normalizeModelName(name.slice(claudePrefix.length)))
    : route
}

/**
 * The beginning that Claude Code gets before an id in which neither `claude` nor `anthropic` stands: it lists no other ids. A name that has
 * these letters by itself comes first.
 */
export const claudePrefix = "claude:"

const resolveName = (table: RouteTable, family: NameFamily, name: string): Route | undefined => {
  const { config } = table
  const found = findConfigured(table, name)
  if (found !== undefined || addressed(table, name) !== undefined) return found
  const own = byDefault(table, served(config, name) ?? wellKnown(family, name))
  if (own !== undefined || family === "relayed") return own
  const mapped = family === "mapped" ? mappedModel(config.mapping, name) : undefined
  if (mapped !== undefined) return findNamed(table, normalizeModelName(mapped))
  return familyRoute(table, name)
}

/** The table with the models that the server of an upstream lists. */
export const withListed = (
  { config }: RouteTable,
  listed: ReadonlyArray<ServersModel>,
  upstream: string = config.unnamed
): RouteTable => {
  const models = listed.map((entry): [string, ListedModel] => {
    const listing = typeof entry === "string" ? { id: entry } : entry
    return [normalizeModelName(listing.id), { facts: undefined, ...listing, reasoning: "auto", search: false }]
  })
  return makeRouteTable({ ...config, listed: new Map([...config.listed ?? [], [upstream, new Map(models)]]) })
}

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

/** A fault of a configured route, with the place of the target that has it. */
export interface RouteFault {
  readonly route: string
  readonly target: number | undefined
  readonly message: string
}

/** The faults of the configured routes. */
export const routeFaults = (config: RouteConfig): ReadonlyArray<RouteFault> => {
  const { upstreams } = makeRouteTable({ ...config, routes: [] })
  const faults: Array<RouteFault> = []
  const names = new Set<string>()
  for (const { name: route, targets } of config.routes) {
    const report = (message: string, target?: number) => faults.push({ route, target, message })
    const key = normalizeModelName(route)
    if (key === "") report("must have a name")
    if (names.has(key)) report("is named twice, but for case and blanks")
    names.add(key)
    if (key.includes("/") && upstreams.has(splitTarget(key).upstream)) report("must not begin with an upstream's name")
    const seen = new Set<string>()
    targets.forEach((written, place) => {
      const { model = key, upstream } = splitTarget(targetText(written))
      const id = `${upstream}/${model}`
      if (!upstreams.has(upstream)) report("must be upstream/model or an upstream of the configuration", place)
      else if (upstreams.get(upstream)?.has(model) !== true) report(`names no model of the upstream ${upstream}`, place)
      else if (seen.has(id)) report("is the same target twice", place)
      seen.add(id)
    })
  }
  return faults
}
