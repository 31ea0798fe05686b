/**
 * Decodes `upstreams` and `routes`: other upstreams with their headers and limits, and the models that several of them serve.
 * Every fault has its place; no message contains a header, an address or a token.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { answerer, baseAddress, hasApis, hasTools, isHome, isServer, protocolNames } from "../contracts/drivers.ts"
import {
  addressOfCloud,
  clouds,
  contractOfApi,
  driversOfCloud,
  type PlaceField,
  type VendorAddress
} from "../contracts/names.ts"
import { natives, normalizeModelName } from "../domain/models.ts"
import { routeFaults } from "../domain/routeFaults.ts"
import { type RoutedModel, type RoutedUpstream, targetText, upstreamOfTarget } from "../domain/routes.ts"
import { onPath } from "../domain/serverAddress.ts"
import { defaultUpstream } from "../domain/upstreamNames.ts"
import { type Fault, fault, faultsOf } from "./ConfigError.ts"
import type { ConfiguredModel, RouteConfigEntry, UpstreamConfig, VendorServer } from "./GatewayConfig.ts"
import { isJsonObject, type RawConfig } from "./json.ts"
import { factsIn } from "./modelFacts.ts"
import { namesVariable } from "./referenceNames.ts"
import { isShown, proxyAt, type Variables } from "./references.ts"
import * as Groups from "./schema.ts"
import { type PemFiles, readTls } from "./tls.ts"
import { toCredential, toCredentialHeader, toForwarded, toHeaders, toPromptCache } from "./upstreamHeaders.ts"
import { toLimit } from "./windowLimit.ts"

type Entry = Omit<typeof Groups.UpstreamGroup.Type, "timeouts">

/** How an upstream at a place of the file gets declarations of tools. */
const toTools = (
  { driver, tools }: Entry,
  place: string,
  faults: Array<Fault>
): UpstreamConfig["tools"] => {
  if (tools === "prompt" && hasTools(driver)) {
    faults.push(fault(`${place}.tools`, `must be native with the ${driver} driver`))
  }
  if (tools === "functions" && !hasApis(driver)) {
    faults.push(fault(`${place}.tools`, `must not be functions with the ${driver} driver`))
  }
  return tools ?? (isServer(driver) ? "native" : "prompt")
}

const normalForm =
  "must be in its normal form, such as https://host/v1: in lower case up to the path, and without the usual port"

/** The value of a field at a place of the file that servers with several APIs alone have. */
const ofApis = <Value>(driver: string, value: Value | undefined, place: string, faults: Array<Fault>) => {
  if (value !== undefined && !hasApis(driver)) faults.push(fault(place, `must be unset with the ${driver} driver`))
  return value
}

/** The contract that the words of `api` at a place of the file mean. */
const toContract = (driver: string, { api }: Pick<Entry, "api">, place: string, faults: Array<Fault>) =>
  api === undefined ? undefined : contractOfApi[ofApis(driver, api, `${place}.api`, faults) ?? api]

/**
 * What is wrong with the address of an upstream or a webhook. Each has one form, so that no reader takes a part of it for another: `http:\\host`, for
 * one, is the same address, and its user information begins elsewhere.
 */
export const addressRule = (address: string): string | undefined => {
  if (!URL.canParse(address)) return "must be an http or https address"
  if (namesVariable(address)) {
    return "must be the address itself: set a secret in a header, where variables are replaced"
  }
  const { hash, href, protocol } = new URL(address)
  if (protocol !== "http:" && protocol !== "https:") return "must be an http or https address"
  if (isShown(address)) return "must be written with its user information and its query"
  if (hash !== "" || address.includes("#")) return "must have no fragment"
  const whole = address.replace(/^([a-z]+:\/\/[^/?]+)(?=\?|$)/, "$1/")
  return href === whole ? undefined : normalForm
}

/** The vendor's server of an upstream at a place of the file. */
const toServer = (entry: Entry, place: string, faults: Array<Fault>): VendorServer | undefined => {
  const { driver, project = "", region = "", resource = "", vendor } = entry
  const said = { region, project, resource }
  const needs: ReadonlyArray<PlaceField> = vendor === undefined ? [] : clouds[vendor].needs
  const of = vendor === undefined ? "without a vendor" : `with the vendor ${vendor}`
  for (const field of Struct.keys(said)) {
    if (needs.includes(field) && said[field] === "") faults.push(fault(`${place}.${field}`, `is required ${of}`))
    if (!needs.includes(field) && entry[field] !== undefined) {
      faults.push(fault(`${place}.${field}`, `must be unset ${of}`))
    }
  }
  if (vendor === undefined) return undefined
  const drivers = driversOfCloud(vendor)
  if (!drivers.includes(driver)) faults.push(fault(`${place}.driver`, `must be one of ${drivers.join(", ")} ${of}`))
  return { vendor, place: said }
}

/** The address of the server of an upstream as its vendor has it; `undefined` without a vendor. */
export const vendorAddress = (
  { driver, server }: Pick<UpstreamConfig, "driver" | "server">
): VendorAddress | undefined => server && addressOfCloud(server.vendor, driver, server.place)

/** The base URL of an upstream at a place of the file, without a trailing slash. */
const toBaseUrl = (
  group: Entry,
  address: VendorAddress | undefined,
  place: string,
  faults: Array<Fault>
): string => {
  const written = (group.base_url ?? "").trim()
  if (address !== undefined) {
    const origin = written.replace(/\/+$/, "") || address.origin
    const rule = written === "" ? undefined : addressRule(origin) ??
      (origin === new URL(origin).origin
        ? undefined
        : "must have no path and no query beside a vendor, which has its own")
    if (rule !== undefined) faults.push(fault(`${place}.base_url`, rule))
    return origin + address.base
  }
  if (group.vendor !== undefined) return written
  // Operators often paste the full endpoint address in place of the base URL.
  const base_url = onPath(written, (path) => baseAddress(group.driver, path))
  const rule = base_url !== ""
    ? addressRule(written)
    : group.driver === answerer
    ? undefined
    : `is required with the ${group.driver} driver`
  if (rule !== undefined) faults.push(fault(`${place}.base_url`, rule))
  return base_url
}

/** What is wrong with a name that looks like a pattern. */
export const noWildcard = "must be the name of one model: names have no wildcards"

/** The models of an upstream at a place of the file. */
const toModels = (
  { driver, models: entries }: Entry,
  place: string,
  faults: Array<Fault>
): ReadonlyArray<ConfiguredModel> =>
  Object.entries(entries).map(([id, entry]): ConfiguredModel => {
    if (id.trim() === "") faults.push(fault(`${place}.models`, "must not have an empty id"))
    if (id.includes("*")) faults.push(fault(`${place}.models.${id}`, noWildcard))
    // An entry inherits the flags of the native model with its id.
    const native = natives.get(normalizeModelName(id))
    const written: Exclude<typeof entry, string> = typeof entry === "string" ? { model: entry } : entry
    const { hidden, max_tokens, model, reasoning, search, thinking } = written
    const images = written.images ?? written.input?.includes("image")
    const facts = factsIn(images === false ? { input: ["text"], ...written } : written)
    if (model.trim() === "") faults.push(fault(`${place}.models.${id}`, "must name a model"))
    const contract = toContract(driver, written, `${place}.models.${id}`, faults)
    return {
      id: native === undefined ? id.trim() : normalizeModelName(id),
      model: model.trim(),
      reasoning: reasoning ?? native?.reasoning ?? "auto",
      search: search ?? native?.search ?? false,
      ...(thinking === undefined ? {} : { thinking }),
      ...(max_tokens === undefined ? {} : { max_tokens }),
      ...(contract === undefined ? {} : { contract }),
      ...(images === undefined ? {} : { images }),
      ...(facts === undefined ? {} : { facts }),
      ...(hidden === undefined ? {} : { hidden })
    }
  })

/** Whether two entries of one name are the same upstream, with the same server. */
export const hasSameServer = (one: ConfiguredUpstream | undefined, other: ConfiguredUpstream | undefined): boolean =>
  one !== undefined && one.driver === other?.driver && one.base_url === other.base_url

/** What the driver of an upstream does not depend on. */
const ofOthers = [
  "account_max_inflight",
  "account_max_queue",
  "budgets",
  "choose",
  "enabled",
  "errors",
  "limits",
  "max_inflight",
  "rate_limit_headers",
  "reserve"
] as const

/** What the driver of an upstream depends on: how many requests it serves is the pool's matter, and what callers get of it the attempts'. */
export const settingsOf = (upstream: UpstreamConfig): object => Struct.omit(upstream, ofOthers)

/** An upstream as configured: without the limits that depend on its accounts. */
export type ConfiguredUpstream = Omit<UpstreamConfig, "limits">

/** All upstreams and the routes, decoded. */
export interface DecodedUpstreams {
  /** Whether a name may be of an upstream or a route that is left out for its faults. */
  readonly mayBeLeftOut: (name: string) => boolean
  /** By name, in the order of the file. */
  readonly upstreams: ReadonlyMap<string, ConfiguredUpstream>
  readonly routes: ReadonlyArray<RouteConfigEntry>
  /** All upstreams as routes see them. */
  readonly routed: ReadonlyArray<RoutedUpstream>
  /** The names of their models and of the routes, in normal form. */
  readonly names: ReadonlyArray<string>
}

const decodeEntry = Schema.decodeUnknownResult(Groups.UpstreamEntry)
const decodeTargets = Schema.decodeUnknownResult(Groups.RouteTargets)
const decodeRoute = Schema.decodeUnknownResult(Groups.RouteEntry)

/** What entries refer to outside of the configuration. */
export interface Outside {
  readonly variables: Variables
  readonly files: PemFiles
}

/** An upstream at a place of the file. */
const toUpstream = (
  name: string,
  entry: Entry & Pick<typeof Groups.UpstreamEntry.Type, "timeouts">,
  place: string,
  outside: Outside,
  faults: Array<Fault>
): ConfiguredUpstream => {
  const server = toServer(entry, place, faults)
  const address = vendorAddress({ driver: entry.driver, server })
  const base_url = toBaseUrl(entry, address, place, faults)
  const isPlain = entry.tls !== undefined && base_url.startsWith("http:")
  if (isPlain) faults.push(fault(`${place}.tls`, "must be unset with an http address"))
  const { connect, first_byte, silence } = entry.timeouts
  return {
    name,
    driver: entry.driver,
    base_url,
    server,
    models: toModels(entry, place, faults),
    contract: toContract(entry.driver, entry, place, faults),
    compaction: ofApis(entry.driver, entry.compaction, `${place}.compaction`, faults) ?? "auto",
    tools: toTools(entry, place, faults),
    history_reasoning: entry.history_reasoning,
    fields: entry.fields,
    whole_replies: entry.whole_replies,
    prompt_cache: toPromptCache(entry, `${place}.prompt_cache`, faults),
    bill: entry.bill,
    enabled: entry.enabled,
    timeouts: { connect, first_byte, silence },
    headers: toHeaders(entry.headers, `${place}.headers`, outside.variables, faults),
    credential: toCredential(entry, `${place}.credential`, faults),
    credential_header: toCredentialHeader(entry, `${place}.credential_header`, faults) ?? address?.keyHeader,
    forward_headers: toForwarded(entry, `${place}.forward_headers`, faults),
    errors: entry.errors,
    choose: entry.choose,
    reserve: entry.reserve,
    budgets: entry.budgets?.map(toLimit),
    rate_limit_headers: entry.rate_limit_headers,
    proxy: proxyAt(entry.proxy, `${place}.proxy`, outside.variables, faults),
    tls: isPlain ? undefined : readTls(entry.tls, `${place}.tls`, faults, outside.files),
    max_inflight: entry.max_inflight,
    account_max_inflight: entry.account_max_inflight,
    account_max_queue: entry.account_max_queue
  }
}

/**
 * The faults of what an entry has besides its faulty fields, `wrong`: operators mend them together. What follows from the absence of such a
 * field does not count.
 */
const restFaults = (
  name: string,
  raw: unknown,
  place: string,
  wrong: ReadonlyArray<Fault>,
  outside: Outside
): ReadonlyArray<Fault> => {
  if (!isJsonObject(raw) || wrong.length === 0) return []
  const isWrong = (field: string) => {
    const within = `${place}.${field}`
    return wrong.some((each) =>
      each.field === within || /^[.[]/.test(each.field.slice(within.length)) && each.field.startsWith(within)
    )
  }
  const decoded = decodeEntry(Object.fromEntries(Object.entries(raw).filter(([field]) => !isWrong(field))))
  if (Result.isFailure(decoded) || isWrong("driver") || isWrong("vendor")) return []
  const faults: Array<Fault> = []
  toUpstream(name, decoded.success, place, outside, faults)
  return faults.filter(({ field }) => !isWrong(field.slice(place.length + 1)))
}

/** An entry of `upstreams`; `undefined` for one with faults that leave no upstream. */
const toEntry = (
  name: string,
  raw: unknown,
  outside: Outside,
  faults: Array<Fault>
): ConfiguredUpstream | undefined => {
  const place = `upstreams.${name}`
  const isNamed = Groups.upstreamName.test(name) && name !== defaultUpstream
  if (!isNamed) {
    const rule = name === defaultUpstream
      ? "is the name of the group upstream"
      : "must have a name of a-z, 0-9 and -, which begins with a letter and has at most 32 characters"
    faults.push(fault(place, rule))
  }
  const timeouts = isJsonObject(raw) && isJsonObject(raw["timeouts"]) ? raw["timeouts"] : {}
  for (const field of ["queue", "client", "drain", "attempts"]) {
    if (Object.hasOwn(timeouts, field)) {
      faults.push(fault(`${place}.timeouts.${field}`, "belongs to the whole request: set it in upstream.timeouts"))
    }
  }
  const decoded = decodeEntry(raw, { errors: "all" })
  if (Result.isFailure(decoded)) {
    const wrong = faultsOf(decoded.failure, ["upstreams", name])
    faults.push(...wrong, ...restFaults(name, raw, place, wrong, outside))
    return undefined
  }
  const upstream = toUpstream(name, decoded.success, place, outside, faults)
  return isNamed ? upstream : undefined
}

const toRoute = (
  name: string,
  raw: unknown,
  longestWait: number,
  faults: Array<Fault>
): RouteConfigEntry | undefined => {
  if (name.includes("*")) faults.push(fault(`routes.${name}`, noWildcard))
  const short = Array.isArray(raw)
  const decoded = short
    ? Result.flatMap(decodeTargets(raw, { errors: "all" }), (targets) => decodeRoute({ targets }))
    : decodeRoute(raw, { errors: "all" })
  if (Result.isFailure(decoded)) {
    faults.push(...faultsOf(decoded.failure, ["routes", name]))
    return undefined
  }
  const { description: _, display_name: __, ...route } = decoded.success
  const facts = factsIn(Struct.pick(decoded.success, ["description", "display_name"]))
  return {
    name,
    sticky: undefined,
    ...route,
    wait: Math.min(route.wait, longestWait),
    ...(facts === undefined ? {} : { facts })
  }
}

const entriesOf = (raw: RawConfig, field: string, most: number, faults: Array<Fault>): Array<[string, unknown]> => {
  const value = Object.hasOwn(raw, field) ? raw[field] : {}
  if (!isJsonObject(value)) {
    faults.push(fault(field, "must be an object"))
    return []
  }
  const entries = Object.entries(value)
  if (entries.length <= most) return entries
  faults.push(fault(field, `must have at most ${most} entries`))
  return []
}

/** The names of all upstreams of the file, also of those with faults. */
export const upstreamNames = (raw: RawConfig): ReadonlySet<string> => {
  const others = isJsonObject(raw["upstreams"]) ? Object.keys(raw["upstreams"]) : []
  return new Set(others.length === 0 || Object.hasOwn(raw, "upstream") ? [defaultUpstream, ...others] : others)
}

/** The ids of the models of an upstream of the file, which may have faults. */
const modelIdsIn = (raw: RawConfig, upstream: string): ReadonlyArray<string> => {
  const others = isJsonObject(raw["upstreams"]) ? raw["upstreams"] : {}
  const entry = upstream === defaultUpstream ? raw["upstream"] : others[upstream]
  return isJsonObject(entry) && isJsonObject(entry["models"]) ? Object.keys(entry["models"]) : []
}

/** Without this check, an address without a driver would silently use the embedded upstream. */
const namesDriver = (group: Schema.Json | undefined): boolean => isJsonObject(group) && Object.hasOwn(group, "driver")

/**
 * Decodes all upstreams and `routes`, bounded by the numbers of both that are allowed. `group` is the group `upstream`, which is the
 * notation of the upstream `default`; without it, a configuration of other upstreams has no such one.
 */
export const decodeUpstreams = (
  raw: RawConfig,
  group: typeof Groups.UpstreamGroup.Type | undefined,
  outside: Outside,
  faults: Array<Fault>
): DecodedUpstreams => {
  const own = group && toUpstream(defaultUpstream, group, "upstream", outside, faults)
  if (own !== undefined && own.base_url !== "" && !namesDriver(raw["upstream"])) {
    faults.push(fault("upstream.driver", `is required with a base_url: one of ${protocolNames.join(", ")}`))
  }
  if (group === undefined) {
    const wrong = faults.filter(({ field }) => /^upstream(?:[.[]|$)/.test(field))
    faults.push(...restFaults(defaultUpstream, raw["upstream"], "upstream", wrong, outside))
  }
  const others = entriesOf(raw, "upstreams", Groups.mostUpstreams, faults)
    .flatMap(([name, entry]) => toEntry(name, entry, outside, faults) ?? [])
  const longestWait = group?.timeouts.queue ?? Number.POSITIVE_INFINITY
  const entries = entriesOf(raw, "routes", Groups.mostRoutes, faults)
  const routes = entries.flatMap(([name, entry]) => toRoute(name, entry, longestWait, faults) ?? [])
  const upstreams = [...own !== undefined && upstreamNames(raw).has(defaultUpstream) ? [own] : [], ...others]
  const routed = upstreams.map(({ base_url, driver, enabled, models, name }): RoutedUpstream => ({
    name,
    driver,
    isHome: isHome(driver, base_url),
    enabled,
    models: models.map(({ facts, hidden, id, images, model, reasoning, search }): RoutedModel => ({
      id,
      reasoning,
      search,
      images,
      ...(model === id ? {} : { served: model }),
      ...(facts === undefined ? {} : { facts }),
      ...(hidden === undefined ? {} : { hidden })
    }))
  }))
  const read = new Set(upstreams.map(({ name }) => name))
  const leftOut = new Set([...upstreamNames(raw)].filter((name) => !read.has(name)))
  const possible = new Set(entries.map(([name]) => normalizeModelName(name)))
  for (const name of leftOut) {
    for (const id of modelIdsIn(raw, name)) possible.add(normalizeModelName(id))
  }
  const wrong = routeFaults({
    upstreams: routed,
    unnamed: defaultUpstream,
    routes,
    aliases: new Map(),
    mapping: { fast: "", slow: "" },
    families: true,
    mapped: undefined,
    listed: undefined
  })
  const byName = new Map(routes.map((route) => [route.name, route]))
  const written = new Map(entries)
  for (const { message, route, target } of wrong) {
    // A target of an upstream that is left out would be reported as unknown.
    const named = target === undefined ? undefined : byName.get(route)?.targets[target]
    if (named !== undefined && leftOut.has(upstreamOfTarget(targetText(named)))) continue
    const short = Array.isArray(written.get(route))
    const place = target === undefined ? "" : `${short ? "" : ".targets"}[${target}]`
    faults.push(fault(`routes.${route}${place}`, message))
  }
  return {
    mayBeLeftOut: (name) =>
      possible.has(normalizeModelName(name)) || name.includes("/") && leftOut.has(upstreamOfTarget(name)),
    upstreams: new Map(upstreams.map((upstream) => [upstream.name, upstream])),
    routes,
    routed,
    names: [...upstreams.flatMap(({ models }) => models.map(({ id }) => id)), ...routes.map(({ name }) => name)]
      .map(normalizeModelName)
  }
}
