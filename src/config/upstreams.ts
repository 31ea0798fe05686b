/**
 * Decodes `upstreams` and `routes`: further upstreams with their headers and limits, and the models that several of them serve.
 * Every fault has its place; no message contains a header, an address or a token.
 */
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { type Model, nativeModels, normalizeModelName } from "../domain/models.ts"
import { defaultUpstream, type RoutedUpstream, routeFaults } from "../domain/routes.ts"
import { blankToUndefined } from "./Account.ts"
import { type Fault, fault, faultsOf } from "./ConfigError.ts"
import type {
  ConfiguredModel,
  NamedUpstream,
  RouteConfigEntry,
  UpstreamConfig,
  UpstreamHeader
} from "./GatewayConfig.ts"
import { isJsonObject, type RawConfig } from "./json.ts"
import { isProxySetting } from "./proxies.ts"
import { resolveReferences, type Variables } from "./references.ts"
import * as Groups from "./schema.ts"
import { readTls } from "./tls.ts"

/** Native models by id. Entries of `models` inherit their flags. */
export const natives: ReadonlyMap<string, Model> = new Map(nativeModels.map((model) => [model.id, model]))

/** True for a driver whose accounts are the API keys of a server. */
export const usesKeys = (driver: UpstreamConfig["driver"]): boolean => driver !== "embedded" && driver !== "session"

/** What addresses may end with beyond the base address. */
const endpoints: { readonly [Name in UpstreamConfig["driver"]]: RegExp } = {
  embedded: /\/+$/,
  session: /\/+$/,
  openai: /(?:\/chat\/completions)?\/*$/,
  messages: /(?:\/v1)?(?:\/messages)?\/*$/,
  generate: /(?:\/models(?:\/[^/]*:\w+)?)?\/*$/
}

/** How an upstream at a place of the file gets declarations of tools. */
export const toTools = (
  { driver, tools }: Pick<typeof Groups.UpstreamGroup.Type, "driver" | "tools">,
  place: string,
  faults: Array<Fault>
): UpstreamConfig["tools"] => {
  if (tools === "prompt" && (driver === "messages" || driver === "generate")) {
    faults.push(fault(`${place}.tools`, `must be native with the ${driver} driver`))
  }
  return tools ?? (usesKeys(driver) ? "native" : "prompt")
}

/** The base address of an upstream at a place of the file, without a trailing slash. */
export const toBaseUrl = (
  group: Pick<typeof Groups.UpstreamGroup.Type, "driver" | "base_url">,
  place: string,
  faults: Array<Fault>
): string => {
  // Operators often paste the full endpoint address in place of the base address.
  const base_url = (group.base_url ?? "").trim().replace(endpoints[group.driver], "")
  if (base_url === "") {
    if (group.driver !== "embedded") {
      faults.push(fault(`${place}.base_url`, `is required with the ${group.driver} driver`))
    }
  } else if (!URL.canParse(base_url) || !/^https?:$/.test(new URL(base_url).protocol)) {
    faults.push(fault(`${place}.base_url`, "must be an http or https address"))
  }
  return base_url
}

/** The models of an upstream at a place of the file. */
export const toModels = (
  entries: typeof Groups.UpstreamGroup.Type["models"],
  place: string,
  faults: Array<Fault>
): ReadonlyArray<ConfiguredModel> =>
  Object.entries(entries).map(([id, entry]): ConfiguredModel => {
    if (id.trim() === "") faults.push(fault(`${place}.models`, "must not have an empty id"))
    const native = natives.get(normalizeModelName(id))
    const { max_tokens, model, reasoning, search, thinking } = typeof entry === "string" ? { model: entry } : entry
    if (model.trim() === "") faults.push(fault(`${place}.models.${id}`, "must name a model"))
    return {
      id: native === undefined ? id.trim() : normalizeModelName(id),
      model: model.trim(),
      reasoning: reasoning ?? native?.reasoning ?? "auto",
      search: search ?? native?.search ?? false,
      ...(thinking === undefined ? {} : { thinking }),
      ...(max_tokens === undefined ? {} : { max_tokens })
    }
  })

/** The other upstreams and the routes, decoded. */
export interface Several {
  readonly upstreams: ReadonlyArray<NamedUpstream>
  readonly routes: ReadonlyArray<RouteConfigEntry>
  /** All upstreams as routes see them. */
  readonly routed: ReadonlyArray<RoutedUpstream>
  /** The names of their models and of the routes, in normal form. */
  readonly names: ReadonlyArray<string>
}

/** Headers that belong to the connection, to the proxy or to the driver. */
const ownHeaders = new Set(
  "host content-length transfer-encoding connection te upgrade expect content-type accept".split(" ")
)
const mostHeaderBytes = 8 * 1024

const headerRule = (name: string, value: string): string | undefined => {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) return "must have the name of a header"
  if (ownHeaders.has(name.toLowerCase()) || /^proxy-/i.test(name)) return "is a header that the gateway sets itself"
  if (/[^\t -~\u00a0-\u00ff]/.test(value)) return "must contain Latin-1 characters without line breaks"
  return value.length + name.length > mostHeaderBytes ? `must have at most ${mostHeaderBytes} bytes` : undefined
}

/** The value behind the references of a secret; reports a variable that is unset. */
const secretAt = (
  text: string,
  place: string,
  variables: Variables,
  faults: Array<Fault>
): Redacted.Redacted<string> => {
  const found = resolveReferences(text, variables)
  if ("value" in found) return Redacted.make(found.value)
  faults.push(fault(place, "refers to a variable of the environment that is not set"))
  return Redacted.make("")
}

const toHeaders = (
  headers: Readonly<Record<string, string>>,
  place: string,
  variables: Variables,
  faults: Array<Fault>
): ReadonlyArray<UpstreamHeader> => {
  const entries = Object.entries(headers)
  if (entries.length > Groups.mostHeaders) faults.push(fault(place, `must have at most ${Groups.mostHeaders} headers`))
  const seen = new Set<string>()
  return entries.map(([name, text]) => {
    const value = secretAt(text, `${place}.${name}`, variables, faults)
    const rule = seen.has(name.toLowerCase()) ? "is named twice, but for case" : headerRule(name, Redacted.value(value))
    if (rule !== undefined) faults.push(fault(`${place}.${name}`, rule))
    seen.add(name.toLowerCase())
    return { name, value }
  })
}

const decodeEntry = Schema.decodeUnknownResult(Groups.UpstreamEntry)
const decodeTargets = Schema.decodeUnknownResult(Groups.RouteTargets)
const decodeRoute = Schema.decodeUnknownResult(Groups.RouteEntry)

const toNamed = (
  name: string,
  raw: unknown,
  variables: Variables,
  faults: Array<Fault>
): NamedUpstream | undefined => {
  const place = `upstreams.${name}`
  if (!Groups.upstreamName.test(name) || name === defaultUpstream) {
    const rule = name === defaultUpstream
      ? "is the name of the group upstream"
      : "must have a name of a-z, 0-9 and -, which begins with a letter and has at most 32 characters"
    faults.push(fault(place, rule))
    return undefined
  }
  const decoded = decodeEntry(raw, { errors: "all" })
  if (Result.isFailure(decoded)) {
    faults.push(...faultsOf(decoded.failure, ["upstreams", name]))
    return undefined
  }
  const entry = decoded.success
  const timeouts = isJsonObject(raw) && isJsonObject(raw["timeouts"]) ? raw["timeouts"] : {}
  for (const field of ["queue", "client", "drain", "attempts"]) {
    if (Object.hasOwn(timeouts, field)) {
      faults.push(fault(`${place}.timeouts.${field}`, "belongs to the whole request: set it in upstream.timeouts"))
    }
  }
  const base_url = toBaseUrl(entry, place, faults)
  const written = blankToUndefined(entry.proxy)
  const proxy = written === undefined ? undefined : secretAt(written, `${place}.proxy`, variables, faults)
  if (proxy !== undefined && Redacted.value(proxy) !== "" && !isProxySetting(Redacted.value(proxy))) {
    faults.push(fault(`${place}.proxy`, "must be an http, https, socks5 or socks5h address, or direct"))
  }
  const isPlain = base_url.startsWith("http:")
  if (entry.tls !== undefined && isPlain) {
    faults.push(fault(`${place}.tls`, "must be unset with an http address"))
  }
  return {
    name,
    driver: entry.driver,
    enabled: entry.enabled,
    base_url,
    models: toModels(entry.models, place, faults),
    tools: toTools(entry, place, faults),
    history_reasoning: entry.history_reasoning,
    fields: entry.fields,
    timeouts: entry.timeouts,
    headers: toHeaders(entry.headers, `${place}.headers`, variables, faults),
    proxy,
    tls: isPlain ? undefined : readTls(entry.tls, `${place}.tls`, faults),
    max_inflight: entry.max_inflight,
    account_max_inflight: entry.account_max_inflight,
    account_max_queue: entry.account_max_queue
  }
}

const toRoute = (
  name: string,
  raw: unknown,
  longestWait: number,
  faults: Array<Fault>
): RouteConfigEntry | undefined => {
  const short = Array.isArray(raw)
  const decoded = short
    ? Result.map(decodeTargets(raw, { errors: "all" }), (targets) => ({
      targets,
      wait: 0,
      also_on: [],
      spread: "order" as const,
      sticky: false
    }))
    : decodeRoute(raw, { errors: "all" })
  if (Result.isFailure(decoded)) {
    faults.push(...faultsOf(decoded.failure, ["routes", name]))
    return undefined
  }
  return { name, ...decoded.success, wait: Math.min(decoded.success.wait, longestWait) }
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

/** Decodes `upstreams` and `routes`, beside the group `upstream`. Bounded by the numbers of both that are allowed. */
export const decodeSeveral = (
  raw: RawConfig,
  upstream: UpstreamConfig | undefined,
  variables: Variables,
  faults: Array<Fault>
): Several => {
  const before = faults.length
  const upstreams = entriesOf(raw, "upstreams", Groups.mostUpstreams, faults)
    .flatMap(([name, entry]) => toNamed(name, entry, variables, faults) ?? [])
  const longestWait = upstream?.timeouts.queue ?? Number.POSITIVE_INFINITY
  const entries = entriesOf(raw, "routes", Groups.mostRoutes, faults)
  const routes = entries.flatMap(([name, entry]) => toRoute(name, entry, longestWait, faults) ?? [])
  // Without the group, a configuration of other upstreams has no default one.
  const hasDefault = upstream !== undefined && (upstreams.length === 0 || Object.hasOwn(raw, "upstream"))
  const routed: ReadonlyArray<RoutedUpstream> = [
    ...(hasDefault ? [{ ...upstream, name: defaultUpstream, enabled: true }] : []),
    ...upstreams
  ].map(({ driver, enabled, models, name }) => ({
    name,
    driver,
    enabled,
    models: models.map(({ id, reasoning, search }) => ({ id, reasoning, search }))
  }))
  // A target of an upstream with faults would be reported as unknown.
  if (faults.length === before && upstream !== undefined) {
    const mapping = { fast: "", slow: "" }
    const wrong = routeFaults({ upstreams: routed, routes, aliases: new Map(), mapping, families: true })
    for (const { message, route, target } of wrong) {
      const short = Array.isArray(entries.find(([name]) => name === route)?.[1])
      const place = target === undefined ? "" : `${short ? "" : ".targets"}[${target}]`
      faults.push(fault(`routes.${route}${place}`, message))
    }
  }
  return {
    upstreams,
    routes,
    routed,
    names: [...upstreams.flatMap(({ models }) => models.map(({ id }) => id)), ...routes.map(({ name }) => name)]
      .map(normalizeModelName)
  }
}
