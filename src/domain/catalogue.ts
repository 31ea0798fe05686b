/**
 * The catalogue of models: the facts of every target and route, each from the first source that has it. Pure.
 *
 * The sources, in their order: the model's entry, the server's own list, `model_facts`, the product's table of well-known models.
 */
import { isServer } from "../contracts/drivers.ts"
import type { Windows } from "./fits.ts"
import { knownModels } from "./knownModels.ts"
import { factsOfRoute, mergeFacts, type ModelFacts, plainFacts, type SourcedFacts, withoutFact } from "./modelFacts.ts"
import { normalizeModelName } from "./models.ts"
import { findNamed, findOfVendor, type NameTable } from "./nameTable.ts"
import { type ListedModel, type Route, type RouteTable, type Target, targetName } from "./routes.ts"

/** The entry of a server's list. Without a tag, a name means `latest`. */
const listedIn = (list: ReadonlyMap<string, ListedModel> | undefined, name: string): ListedModel | undefined =>
  list?.get(name) ?? list?.get(`${name}:latest`)

/** The catalogue of one configuration. Facts are merged when they are first asked for, and kept: they are as many as the targets. */
export class Catalogue {
  readonly #table: RouteTable
  readonly #given: NameTable<ModelFacts>
  readonly #facts = new Map<string, SourcedFacts>()
  /** Upstreams that are servers, whose names of models are the vendors'. */
  readonly #servers: ReadonlySet<string>
  /** Upstreams whose servers are the vendors' own. */
  readonly #homes: ReadonlySet<string>
  /** Upstreams whose servers set the window themselves. */
  readonly #windowSetters: ReadonlySet<string>

  constructor(table: RouteTable, given: NameTable<ModelFacts>) {
    this.#table = table
    this.#given = given
    this.#servers = new Set(table.config.upstreams.flatMap(({ driver, name }) => isServer(driver) ? [name] : []))
    this.#homes = new Set(table.config.upstreams.flatMap(({ isHome, name }) => isHome ? [name] : []))
    this.#windowSetters = new Set(
      [...table.config.listed ?? []].flatMap(([upstream, list]) =>
        [...list.values()].some(({ setsWindow }) => setsWindow === true) ? [upstream] : []
      )
    )
  }

  /** Whether the catalogue belongs to these parts of a configuration. */
  isOf(given: NameTable<ModelFacts>): boolean {
    return this.#given === given
  }

  /** The facts of a target, with their sources. */
  ofTarget(target: Target): SourcedFacts {
    const name = targetName(target)
    const known = this.#facts.get(name)
    if (known !== undefined) return known
    const facts = this.#merged(target)
    this.#facts.set(name, facts)
    return facts
  }

  /** The windows of targets. */
  windowsOf(targets: ReadonlyArray<Target>): Windows {
    return targets.map((target) => this.ofTarget(target).context_window?.value)
  }

  /** The facts of a route, with their sources. Disabled targets count only where no target is enabled. */
  ofRoute({ facts, targets }: Pick<Route, "facts" | "targets">): SourcedFacts {
    const enabled = targets.filter((target) => target.enabled)
    return factsOfRoute(facts, (enabled.length === 0 ? targets : enabled).map((target) => this.ofTarget(target)))
  }

  /** The facts of a route alone. */
  factsOf(route: Pick<Route, "facts" | "targets">): ModelFacts {
    return plainFacts(this.ofRoute(route))
  }

  #merged({ facts, model: { id }, served = id, upstream }: Target): SourcedFacts {
    const name = normalizeModelName(served)
    const ofServer = listedIn(this.#table.config.listed?.get(upstream), name)?.facts
    const given = findNamed(this.#given, { upstream, model: id, served, asked: undefined }, (facts) => facts)?.found
    // An id may be the name of another vendor's model, for clients that ask for it. The server's own name is not.
    const known = this.#servers.has(upstream) ? findOfVendor(knownModels, name) : undefined
    // What binds schemas is the server, and other hosts of the same model may not.
    const knownHere = this.#homes.has(upstream) ? known : withoutFact(known, "schemas")
    const setsWindow = this.#windowSetters.has(upstream)
    return mergeFacts([
      ["entry", facts],
      ["server", ofServer],
      ["model_facts", setsWindow ? withoutFact(given, "context_window") : given],
      ["known", setsWindow ? withoutFact(knownHere, "context_window") : knownHere]
    ])
  }
}

const catalogues = new WeakMap<RouteTable, Catalogue>()

/** The catalogue of a configuration: the same one while routes, lists of servers and facts stay the same. */
export const catalogueOf = (
  { model_facts, route_table }: { readonly route_table: RouteTable; readonly model_facts: NameTable<ModelFacts> }
): Catalogue => {
  const known = catalogues.get(route_table)
  if (known?.isOf(model_facts) === true) return known
  const made = new Catalogue(route_table, model_facts)
  catalogues.set(route_table, made)
  return made
}
