/**
 * A configuration in the making: upstreams, their models under the names that callers ask for, and the routes that follow from these.
 */
import type * as Schema from "effect/Schema"
import type { RawConfig } from "../../../config/json.ts"
import { mostHeaders, mostRoutes, mostTargets, mostUpstreams } from "../../../config/schema.ts"
import type { UpstreamProtocol } from "../../../contracts/drivers.ts"
import type { ModelFacts } from "../../../domain/modelFacts.ts"
import { normalizeModelName } from "../../../domain/models.ts"
import { defaultUpstream } from "../../../domain/upstreamNames.ts"
import type { Report } from "./Report.ts"

/** A server in the making. */
export interface DraftUpstream {
  /** A name for people, from which that of the upstream follows. */
  readonly wanted: string
  /** Where the file has it first. */
  readonly place: string
  readonly driver: UpstreamProtocol
  /** Empty where its vendor has an address. */
  readonly base_url: string
  readonly headers: { readonly [name: string]: string }
  /** Its other fields. */
  readonly fields: Record<string, Schema.Json>
  /** Tokens with the fields of their accounts. One with a `credential` has a text that stands for it in place of the token. */
  readonly accounts: Map<string, RawConfig>
  /** Counts towards the orders of its deployments. */
  order: number
  /** Its share among the targets of a route where its deployments have none of their own; 0 for none. */
  weight: number
  /** It serves what its server lists, since the file names no models. At most one upstream can. */
  isOpen: boolean
}

/** A model of an upstream under the name that callers ask for. */
export interface Deployment {
  readonly upstream: DraftUpstream
  /** As callers write it. */
  readonly name: string
  /** The server's name. */
  readonly model: string
  /** Other fields of the model's entry. */
  readonly fields: RawConfig
  /** Facts, in the form of `readModelFacts`. */
  readonly info: RawConfig | undefined
  /** The lowest ones are asked first; those with equal ones evenly, or by their weights. */
  readonly order: number
  /** Its share among those with an equal order; absent for that of its upstream. */
  readonly weight: number | undefined
  /** Prices per token, in the form of `readPrices`. */
  readonly costs: RawConfig | undefined
}

/** A name of callers with what it stands for. */
interface Group {
  readonly name: string
  readonly deployments: Array<Deployment>
  readonly others: Set<string>
  readonly alsoOn: Set<"context_length" | "content_filter">
}

/** What follows from a draft. */
export interface Built {
  readonly raw: RawConfig
  /** Prices per token by `upstream/model`. */
  readonly costs: RawConfig
}

/** The most concurrent requests of an account that the schema of the configuration allows. */
const mostInflight = 256

/** The highest weight of a target and of an account that the schema of the configuration allows. */
const mostWeight = 1_000

/** Whole numbers from 1 to `mostWeight` in the proportion of weights, of which one is above 0. */
export const sharesOf = (weights: ReadonlyArray<number>): ReadonlyArray<number> => {
  const largest = Math.max(...weights)
  const isWhole = (number: number) => Math.abs(number - Math.round(number)) < 1e-9
  const scale = [1, 10, 100, 1_000].find((scale) =>
    largest * scale <= mostWeight && weights.every((weight) => isWhole(weight * scale))
  )
  return weights.map((weight) =>
    Math.max(1, Math.round(scale === undefined ? weight / largest * mostWeight : weight * scale))
  )
}

const nameFrom = (wanted: string): string => {
  const plain = wanted.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replace(/^[^a-z]+/, "").slice(0, 24)
    .replace(/-+$/, "")
  return plain === "" || plain === defaultUpstream ? "server" : plain
}

/** The first of `name`, `name-2`, … that is not taken. `last` has the last number of each name: names that are taken stay taken. */
const firstFree = (name: string, last: Map<string, number>, isTaken: (name: string) => boolean): string => {
  let n = last.get(name) ?? 0
  let free: string
  do free = ++n === 1 ? name : `${name}-${n}`
  while (isTaken(free))
  last.set(name, n)
  return free
}

const modelKey = ({ fields, model }: Deployment): string => JSON.stringify([model, fields["api"]])

const orderOf = ({ order, upstream }: Deployment): number => order + upstream.order

export class Draft {
  readonly report: Report
  readonly #upstreams = new Map<string, DraftUpstream>()
  /** By names in normal form. */
  readonly #groups = new Map<string, Group>()
  readonly #afterAll: Pick<Group, "others" | "alsoOn"> = { others: new Set(), alsoOn: new Set() }
  readonly #aliases = new Map<string, readonly [alias: string, name: string, place: string]>()
  /** Whether the servers of a name are asked in the order of the file, where nothing else orders them. */
  isOrdered = false
  /** Whether servers with equal orders are asked by their weights, if they have some. */
  isWeighted = true
  /** Other fields of the configuration. */
  readonly fields: Record<string, Schema.Json> = {}

  constructor(report: Report) {
    this.report = report
  }

  /** The upstream of a server. Two with the same driver, address, headers and fields in `apart` are one. */
  upstream(
    wanted: string,
    place: string,
    driver: UpstreamProtocol,
    base_url: string,
    headers: { readonly [name: string]: string },
    apart: RawConfig = {}
  ): DraftUpstream {
    const key = JSON.stringify([driver, base_url, headers, apart])
    const known = this.#upstreams.get(key)
    if (known !== undefined) return known
    const made: DraftUpstream = {
      wanted,
      place,
      driver,
      base_url,
      headers,
      fields: {},
      accounts: new Map(),
      order: 0,
      weight: 0,
      isOpen: false
    }
    this.#upstreams.set(key, made)
    return made
  }

  /** Facts of the models by numbers, in the form of `readModelFacts`. */
  readonly infos: Record<string, RawConfig> = {}
  readonly #numbers = new Map<Deployment, string>()

  /** Adds a model. */
  deploy(deployment: Deployment): void {
    if (deployment.info !== undefined) {
      const number = String(this.#numbers.size)
      this.#numbers.set(deployment, number)
      this.infos[number] = deployment.info
    }
    const key = normalizeModelName(deployment.name)
    const group = this.#groups.get(key)
    if (group === undefined) {
      this.#groups.set(key, { name: deployment.name, deployments: [deployment], others: new Set(), alsoOn: new Set() })
    } else group.deployments.push(deployment)
  }

  /** Whether callers can ask for a name. */
  has(name: string): boolean {
    return this.#groups.has(normalizeModelName(name))
  }

  /**
   * Lets a name, or all names after their own ones, go on to others, for failures and for the named refusals. Those beyond the targets of a
   * route are reported with the route.
   */
  goOn(from: string | undefined, to: string, alsoOn?: "context_length" | "content_filter"): void {
    const after = from === undefined ? this.#afterAll : this.#groups.get(normalizeModelName(from))
    if (after === undefined) return
    if (after.others.size <= mostTargets) after.others.add(normalizeModelName(to))
    if (alsoOn !== undefined) after.alsoOn.add(alsoOn)
  }

  /** Lets another name stand for one. */
  alias(alias: string, name: string, place: string): void {
    this.#aliases.set(normalizeModelName(alias), [alias, name, place])
  }

  /** The names of the upstreams. Model names with a slash are not taken for models of an upstream. */
  #nameUpstreams(): Map<DraftUpstream, string> {
    const taken = new Set<string>([...this.#groups.keys(), ...this.#aliases.keys()].flatMap((name) => {
      const slash = name.indexOf("/")
      return slash === -1 ? [] : [name.slice(0, slash)]
    }))
    const named = new Map<DraftUpstream, string>()
    const last = new Map<string, number>()
    let open: DraftUpstream | undefined
    for (const upstream of this.#upstreams.values()) {
      if (named.size === mostUpstreams) {
        this.report.leftOut(upstream.place, `a configuration has at most ${mostUpstreams} upstreams`)
      } else if (upstream.isOpen && open === undefined && !taken.has(defaultUpstream)) {
        open = upstream
        named.set(upstream, defaultUpstream)
        this.report.changed(upstream.place, "serves the models that its server lists, since it names none itself")
      } else if (upstream.isOpen) {
        this.report.leftOut(
          upstream.place,
          "it names no models, and one upstream alone can serve all that its server lists: name them in the configuration"
        )
      } else {
        const name = firstFree(nameFrom(upstream.wanted), last, (name) => taken.has(name))
        taken.add(name)
        named.set(upstream, name)
      }
    }
    return named
  }

  /** The id of each model within its upstream. */
  #identify(named: ReadonlyMap<DraftUpstream, string>, facts: ReadonlyMap<string, ModelFacts>) {
    const entries = new Map<DraftUpstream, Map<string, readonly [id: string, entry: Schema.Json]>>()
    const ids = new Map<Deployment, string>()
    /** Deployments of one model of one server, whose first facts count. */
    const add = (same: ReadonlyArray<Deployment>, id: string, hidden: boolean) => {
      const { model, upstream } = same[0]!
      const fields = Object.assign(
        hidden ? { hidden } : {},
        ...same.toReversed().map((deployment) => ({
          ...deployment.fields,
          ...facts.get(this.#numbers.get(deployment) ?? "")
        }))
      ) as RawConfig
      const models = entries.get(upstream) ?? new Map<string, readonly [string, Schema.Json]>()
      entries.set(upstream, models)
      models.set(normalizeModelName(id), [id, Object.keys(fields).length === 0 ? model : { model, ...fields }])
      for (const deployment of same) ids.set(deployment, id)
    }
    const pooled: Array<ReadonlyArray<Deployment>> = []
    for (const { deployments, name } of this.#groups.values()) {
      const served = deployments.filter(({ upstream }) => named.has(upstream))
      for (const within of Map.groupBy(served, ({ upstream }) => upstream).values()) {
        if (new Set(within.map(modelKey)).size > 1) pooled.push(within)
        else add(within, name, false)
      }
    }
    // A name for each of several models of one server: one that no caller asks for, so that it changes no other route.
    const last = new Map<DraftUpstream, Map<string, number>>()
    for (const within of pooled) {
      for (const same of Map.groupBy(within, modelKey).values()) {
        const { model, upstream } = same[0]!
        const models = entries.get(upstream)
        const numbers = last.get(upstream) ?? new Map<string, number>()
        last.set(upstream, numbers)
        const isTaken = (id: string) =>
          this.has(id) || this.#aliases.has(normalizeModelName(id)) || models?.has(normalizeModelName(id)) === true
        add(same, firstFree(model, numbers, isTaken), true)
      }
    }
    return { entries, ids }
  }

  /** `targets` returns the targets of a group in order, with the sums of their weights. */
  #routes(targets: (group: Group) => ReadonlyMap<string, number>): Record<string, Schema.Json> {
    const routes: Record<string, Schema.Json> = {}
    for (const group of this.#groups.values()) {
      const weights = targets(group)
      const own = [...weights.keys()]
      const all = [
        ...new Set([
          ...own,
          ...[...group.others, ...this.#afterAll.others].flatMap((name) => {
            const other = this.#groups.get(name)
            return other === undefined ? [] : [...targets(other).keys()]
          })
        ])
      ]
      const place = `the model ${group.name}`
      if (new Set(group.deployments.map(({ weight }) => weight)).size > 1 && own.length < group.deployments.length) {
        this.report.changed(place, "keys of one server are taken evenly, and their weights count together")
      }
      if (new Set(group.deployments.map(orderOf)).size > own.length) {
        this.report.leftOut(place, "the order of keys of one server: they are taken evenly")
      }
      if (all.length < 2) continue
      if (Object.keys(routes).length === mostRoutes) {
        this.report.leftOut(place, `a configuration has at most ${mostRoutes} routes: the first target alone serves it`)
        continue
      }
      if (all.length > mostTargets) {
        this.report.leftOut(place, `a route has at most ${mostTargets} targets: the first ones`)
      }
      const orders = new Set(group.deployments.map(orderOf))
      const isEven = own.length > 1 && orders.size === 1 && !this.isOrdered
      const isMixed = isEven && all.length > own.length
      if (isMixed || (orders.size > 1 && orders.size < own.length)) {
        this.report.changed(
          place,
          "its targets are asked in order, also those that were equal: a route has one way to choose"
        )
      }
      const listed = all.slice(0, mostTargets)
      const alsoOn = [...new Set([...group.alsoOn, ...this.#afterAll.alsoOn])]
      const given = listed.map((target) => weights.get(target) ?? 0)
      const hasWeights = this.isWeighted && own.length > 1 && given.some((weight) => weight > 0)
      const isWeighted = hasWeights && isEven && !isMixed
      if (hasWeights && !isWeighted) this.report.leftOut(place, "its targets are asked in order, and have no weights")
      else if (isWeighted && given.includes(0)) {
        this.report.changed(place, "targets without a weight have the smallest one")
      }
      const shares = isWeighted ? sharesOf(given) : []
      routes[group.name] = isEven && !isMixed || alsoOn.length > 0
        ? {
          targets: isWeighted ? listed.map((target, i) => ({ target, weight: shares[i]! })) : listed,
          ...(alsoOn.length > 0 ? { also_on: alsoOn } : {}),
          ...(isEven && !isMixed ? { spread: isWeighted ? "weighted" : "even" } : {})
        }
        : listed
    }
    return routes
  }

  #model_aliases(): Record<string, Schema.Json> {
    return Object.fromEntries(
      [...this.#aliases.values()].flatMap(([alias, name, place]) => {
        if (alias.includes("*")) this.report.leftOut(place, "names have no wildcards")
        else if (this.has(alias)) {
          this.report.leftOut(place, "a model has this name, and an alias never stands before it")
        } else if (!this.has(name)) this.report.leftOut(place, "it stands for no model of the result")
        else return [[alias, name]]
        return []
      })
    )
  }

  #entry(upstream: DraftUpstream, models: ReadonlyMap<string, readonly [id: string, entry: Schema.Json]>): RawConfig {
    const { base_url, driver, fields, headers, place } = upstream
    const kept = Object.entries(headers).slice(0, mostHeaders)
    for (const [name] of Object.entries(headers).slice(mostHeaders)) {
      this.report.leftOut(`${place}.headers.${name}`, `an upstream has at most ${mostHeaders} headers`)
    }
    return {
      driver,
      ...(base_url === "" ? {} : { base_url }),
      ...(models.size === 0 ? {} : { models: Object.fromEntries(models.values()) }),
      ...(kept.length === 0 ? {} : { headers: Object.fromEntries(kept) }),
      ...fields
    }
  }

  /** The configuration with the facts of `infos`; `undefined` if it would have no model. */
  build(facts: ReadonlyMap<string, ModelFacts>): Built | undefined {
    const named = this.#nameUpstreams()
    const { entries, ids } = this.#identify(named, facts)
    const targetOf = (deployment: Deployment): string => `${named.get(deployment.upstream)}/${ids.get(deployment)}`
    const kept = [...named].filter(([upstream]) => upstream.isOpen || entries.has(upstream))
    if (kept.length === 0) return undefined
    const upstreams: Record<string, RawConfig> = {}
    const costs: Record<string, Schema.Json> = {}
    let open: RawConfig | undefined
    for (const [upstream, name] of kept) {
      const entry = this.#entry(upstream, entries.get(upstream) ?? new Map())
      if (name === defaultUpstream) open = entry
      else upstreams[name] = entry
    }
    for (const { deployments } of this.#groups.values()) {
      for (const deployment of deployments) {
        if (deployment.costs !== undefined && ids.has(deployment)) costs[targetOf(deployment)] ??= deployment.costs
      }
    }
    const routes = this.#routes(({ deployments }) => {
      const weights = new Map<string, number>()
      for (const deployment of deployments.filter((each) => ids.has(each)).sort((a, b) => orderOf(a) - orderOf(b))) {
        const target = targetOf(deployment)
        weights.set(target, (weights.get(target) ?? 0) + (deployment.weight ?? deployment.upstream.weight))
      }
      return weights
    })
    const aliases = this.#model_aliases()
    const accounts = kept.flatMap(([upstream, name]) =>
      Array.from(upstream.accounts, ([token, fields]) => ({
        ...(name === defaultUpstream ? {} : { upstream: name }),
        ...(fields["credential"] === undefined ? { token } : {}),
        ...fields
      }))
    )
    const { runtime, ...fields } = this.fields
    this.report.changed(
      "runtime.account_max_inflight of the result",
      `is ${mostInflight}, the most, since the file bounds the requests of a key in no other way`
    )
    return {
      costs,
      raw: {
        ...fields,
        ...(accounts.length === 0 ? {} : { accounts }),
        // Names of families would stand for models that the server lacks.
        ...(open === undefined ? {} : { upstream: open, compat: { family_models: false } }),
        ...(Object.keys(upstreams).length === 0 ? {} : { upstreams }),
        ...(Object.keys(routes).length === 0 ? {} : { routes }),
        ...(Object.keys(aliases).length === 0 ? {} : { model_aliases: aliases }),
        runtime: { account_max_inflight: mostInflight, ...runtime as RawConfig | undefined }
      }
    }
  }
}
