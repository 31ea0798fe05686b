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
import type { ModelFacts } from "./modelFacts.ts"
import {
  embeddingModel,
  familyModel,
  isServersOwnName,
  mappedModel,
  type MessagesMapping,
  type Model,
  nativeModels,
  natives,
  normalizeModelName,
  relayedModel
} from "./models.ts"
import type { AlsoOn } from "./tries.ts"

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
  /** Its server is the vendor's own, so that all that is known of the vendor's models is true of it. */
  readonly isHome: boolean
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
  /** `required`: a request with a strict schema goes to no target but those that are known to bind it. `preferred`: to those first. */
  readonly schemas: "preferred" | "required"
  /** Whether a conversation prefers the account that answered it last, and the target too; `undefined` for the general setting. */
  readonly sticky: boolean | "auto" | "target" | undefined
}

const plainOptions: RouteOptions = { wait: 0, alsoOn: [], spread: "order", schemas: "preferred", sticky: undefined }

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

/** The name of a target. */
export const targetName = ({ model, upstream }: Target): string => `${upstream}/${model.id}`

export const routeTo = (
  id: string,
  targets: ReadonlyArray<Target>,
  kind: Route["kind"],
  { facts, hidden, ...options }: Partial<RouteOptions> & Pick<ConfiguredRoute, "facts" | "hidden"> = plainOptions
): Route => ({
  ...(targets.find(({ enabled }) => enabled) ?? targets[0]!).model,
  id,
  targets,
  kind,
  facts,
  hidden: hidden ?? (kind !== "configured" && targets.every((target) => target.hidden === true || !target.enabled)),
  options: {
    wait: options.wait ?? plainOptions.wait,
    alsoOn: options.alsoOn ?? plainOptions.alsoOn,
    spread: options.spread ?? plainOptions.spread,
    schemas: options.schemas ?? plainOptions.schemas,
    sticky: options.sticky
  }
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
export const splitTarget = (name: string): { readonly upstream: string; readonly model: string | undefined } => {
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
export const findNamed = ({ routes, showsUpstreams, upstreams }: RouteTable, name: string): Route | undefined => {
  const route = routes.get(name)
  if (route !== undefined) return route
  const target = showsUpstreams && name.includes("/") ? findTarget(upstreams, name, "") : undefined
  return target && routeTo(targetName(target), [target], "target")
}

/** Resolves a name in normal form that is an id, a route, a target or an alias of one of these. */
export const findConfigured = (table: RouteTable, name: string): Route | undefined => {
  const alias = table.config.aliases.get(name)
  return findNamed(table, name) ?? (alias === undefined ? undefined : findNamed(table, normalizeModelName(alias)))
}

/** Tells whether a name belongs to a target. */
export const targetsNamed = (config: Named): (name: string) => boolean => {
  const targets = upstreamsOf(config)
  return (name) => showsUpstreams(config) && name.includes("/") && findTarget(targets, name, "") !== undefined
}

/** The upstream that a name addresses; `undefined` for other names. */
export const addressed = ({ showsUpstreams, upstreams }: RouteTable, name: string): string | undefined => {
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
export const familyRoute = ({ config, routes }: RouteTable, name: string): Route | undefined => {
  const native = config.families ? familyModel(name) : undefined
  const route = native && routes.get(native.id)
  if (route === undefined || !isServersOwnName(name)) return route
  const first = config.upstreams.find((upstream) => upstream.name === route.targets[0]!.upstream)
  return first !== undefined && isServer(first.driver) ? undefined : route
}

/** Whether one of a route's targets is enabled. */
export const isEnabled = ({ targets }: Pick<Route, "targets">): boolean => targets.some(({ enabled }) => enabled)

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
