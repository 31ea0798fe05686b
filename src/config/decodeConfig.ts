/**
 * Decodes a raw configuration to the one in effect: decodes every group, checks references between groups, and reports all
 * faults at once.
 */
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { type MessagesMapping, type Model, nativeModels, normalizeModelName } from "../domain/models.ts"
import {
  defaultUpstream,
  isServer,
  type Listed,
  makeRouteTable,
  type RouteConfig,
  targetsNamed
} from "../domain/routes.ts"
import { parseTimestamp } from "../domain/time.ts"
import {
  type AccountTable,
  decodeAccounts,
  type Decoded,
  decodeKeys,
  type Duplicates,
  misplaced,
  type Strays
} from "./Account.ts"
import { adviceOn } from "./advice.ts"
import { ConfigInvalid, type Fault, fault, faultsOf } from "./ConfigError.ts"
import type {
  AdminConfig,
  ConfiguredModel,
  DecodedGroups,
  GatewayConfig,
  NamedUpstream,
  RuntimeConfig,
  Snapshot,
  UpstreamConfig
} from "./GatewayConfig.ts"
import { isJsonObject, type RawConfig, sha256Hex } from "./json.ts"
import { decodeKeyRecords, unknownModels } from "./keyRecords.ts"
import { decodeCurrency, decodePrices, withServedNames } from "./prices.ts"
import { CurrentVariables } from "./references.ts"
import * as Groups from "./schema.ts"
import { readPemFiles } from "./tls.ts"
import { unknownFields } from "./unknownFields.ts"
import {
  type AccountCount,
  checkCredentialHeaders,
  countAccounts,
  decodeSeveral,
  hasSameServer,
  limitsOf,
  natives,
  type Several,
  toServer,
  upstreamNames,
  usesKeys
} from "./upstreams.ts"

export interface DecodeOptions {
  /** Name of the file or variable, for error messages. */
  readonly source?: string | undefined
  /** The previous configuration. Unchanged parts keep their identity. */
  readonly previous?: Snapshot | undefined
  /** A generated business key. Accepted until a key is configured or it is removed. */
  readonly generatedKey?: string | undefined
  readonly duplicates: Duplicates
  /** Accounts of upstreams that are not configured; by default `refuse`. */
  readonly strays?: Strays | undefined
}

/** Returns the previous object if the content is equal. */
const keep = <A>(previous: A | undefined, next: A): A =>
  previous !== undefined && Equal.equals(previous, next) ? previous : next

/** Tells whether aliases and the mapping may stand for a name. */
const mayStandFor = (upstream: UpstreamConfig | undefined, several: Several): (name: string) => boolean => {
  const known = new Set([
    ...[...nativeModels, ...(upstream?.models ?? [])].map((model) => normalizeModelName(model.id)),
    ...several.names
  ])
  const isTarget = targetsNamed({ upstreams: several.routed, routes: several.routes })
  return (name) => known.has(normalizeModelName(name)) || isTarget(name)
}

const notKnown = "must name a native model, an id of upstream.models, a route or upstream/model"

const toUpstream = (group: typeof Groups.UpstreamGroup.Type, faults: Array<Fault>): UpstreamConfig => ({
  ...toServer(group, "upstream", faults),
  timeouts: group.timeouts
})

/** Without this check, an address without a driver would silently use the embedded upstream. */
const namesDriver = (group: Schema.Json | undefined): boolean => isJsonObject(group) && Object.hasOwn(group, "driver")

const toModel = ({ id, reasoning, search }: ConfiguredModel): Model => ({ id, reasoning, search })

/** The models of the server by its own names. Of several entries for one, a further model is chosen, then the first. */
const mappedNames = ({ models }: UpstreamConfig): ReadonlyMap<string, Model> =>
  new Map(
    [...models].reverse().sort((one, other) => Number(natives.has(other.id)) - Number(natives.has(one.id)))
      .map((entry) => [normalizeModelName(entry.model), toModel(entry)])
  )

/** The models listed by the servers that the upstreams still have; the same object if these are all. */
const keptLists = ({ route_table, upstreams }: GatewayConfig, now: Several["upstreams"]): Listed | undefined => {
  const { listed } = route_table.config
  const isKept = (name: string) =>
    upstreams.some((one) => one.name === name && now.some((other) => hasSameServer(one, other)))
  if (listed === undefined) return undefined
  const kept = [...listed].filter(([name]) => isKept(name))
  return kept.length === listed.size ? listed : new Map(kept)
}

/** The aliases by their names in normal form. */
const toAliases = (
  aliases: ReadonlyMap<string, string>,
  upstream: UpstreamConfig | undefined,
  several: Several,
  faults: Array<Fault>
): ReadonlyMap<string, string> => {
  const isKnown = mayStandFor(upstream, several)
  const normalized = new Map<string, string>()
  for (const [alias, target] of aliases) {
    const name = normalizeModelName(alias)
    if (name === "") faults.push(fault("model_aliases", "must not have an empty name"))
    if (normalized.has(name)) faults.push(fault(`model_aliases.${alias}`, "is named twice, but for case and blanks"))
    if (!isKnown(target)) faults.push(fault(`model_aliases.${alias}`, notKnown))
    normalized.set(name, target)
  }
  return normalized
}

const checkMapping = (
  mapping: MessagesMapping,
  upstream: UpstreamConfig | undefined,
  several: Several,
  faults: Array<Fault>
): void => {
  const isKnown = mayStandFor(upstream, several)
  for (const key of ["fast", "slow"] as const) {
    if (!isKnown(mapping[key])) faults.push(fault(`msgcompat_mapping.${key}`, notKnown))
  }
}

/** Upstreams with their limits. Each with unchanged content is the previous object. */
const toUpstreams = (
  { upstreams }: Several,
  counts: ReadonlyMap<string, AccountCount>,
  { auth, runtime }: DecodedGroups,
  before: GatewayConfig | undefined
): { readonly upstreams: ReadonlyArray<NamedUpstream>; readonly slots: number } => {
  const known = new Map(before?.upstreams.map((upstream) => [upstream.name, upstream]))
  let slots = 0
  const made = upstreams.map((upstream) => {
    const own = limitsOf(upstream, counts.get(upstream.name), runtime)
    if (upstream.enabled) slots += own.slots
    // Callers with tokens of their own use slots of the default upstream beside those of its accounts.
    const isWhole = upstreams.length === 1 || (upstream.name === defaultUpstream && acceptsTokens(auth, upstream))
    const global = upstream.max_inflight ?? (isWhole ? runtime.global_max_inflight : undefined) ?? own.limits.global
    return keep<NamedUpstream>(known.get(upstream.name), { ...upstream, limits: { ...own.limits, global } })
  })
  const same = before?.upstreams.length === made.length && made.every((each, place) => each === before.upstreams[place])
  return { upstreams: same ? before.upstreams : made, slots }
}

/** Whether callers may show tokens of their own, which go to the default upstream. */
const acceptsTokens = (
  { direct_tokens }: DecodedGroups["auth"],
  upstream: Pick<NamedUpstream, "driver"> | undefined
): boolean => upstream !== undefined && (direct_tokens ?? !usesKeys(upstream.driver))

/**
 * Derives the unset limits over all enabled upstreams: the queue defaults to the recommended concurrency, at least 1, and the global
 * limit to the sum of those of the upstreams.
 */
const toRuntime = (
  group: typeof Groups.Runtime.Type,
  upstreams: ReadonlyArray<NamedUpstream>,
  slots: number
): RuntimeConfig => {
  const sum = upstreams.reduce((sum, { enabled, limits }) => enabled ? sum + limits.global : sum, 0)
  const [first] = upstreams
  return {
    ...group,
    account_max_inflight: group.account_max_inflight ?? first?.limits.perAccount ?? 1,
    account_max_queue: group.account_max_queue ?? Math.max(1, slots),
    global_max_inflight: group.global_max_inflight ?? Math.max(1, sum),
    key_max_inflight: group.key_max_inflight,
    recommended_concurrency: slots,
    configured: {
      account_max_queue: group.account_max_queue,
      global_max_inflight: group.global_max_inflight
    }
  }
}

/** The accounts of the previous configuration, with faults for those whose upstream is gone. */
const unchangedAccounts = ({ config, raw }: Snapshot, names: ReadonlySet<string>): Decoded<AccountTable> => ({
  value: config.account_table,
  raw: Array.isArray(raw["accounts"]) ? raw["accounts"] : [],
  faults: config.upstreams.every(({ name }) => names.has(name))
    ? []
    : config.accounts.flatMap((account, place) => misplaced(account, place, names) ?? []),
  warnings: []
})

const groupSchemas: Readonly<Record<string, Schema.ConstraintDecoder<unknown>>> = {
  ...Groups.settingGroups,
  host: Groups.Host
}

/** Decodes every group. A group with faults is absent from the result. */
const decodeGroups = (raw: RawConfig, faults: Array<Fault>): Partial<DecodedGroups> => {
  const decoded: Record<string, unknown> = {}
  for (const [name, schema] of Object.entries(groupSchemas)) {
    const field = name === "msgcompat_mapping" && !Object.hasOwn(raw, name) ? "msgcompat_model_mapping" : name
    const value = Object.hasOwn(raw, field) ? raw[field] : {}
    const result = Schema.decodeUnknownResult(schema)(value, { errors: "all" })
    if (Result.isSuccess(result)) decoded[name] = result.success
    else faults.push(...faultsOf(result.failure, [field]))
  }
  return decoded as Partial<DecodedGroups>
}

const areComplete = (_groups: Partial<DecodedGroups>, faults: ReadonlyArray<Fault>): _groups is DecodedGroups =>
  faults.length === 0

/** The groups. Each with unchanged content is the previous object. */
const keepGroups = (groups: DecodedGroups, before: GatewayConfig | undefined): DecodedGroups => {
  const previous: Readonly<Record<string, unknown>> = { ...before }
  const kept = Object.entries(groups).map(([name, group]) => [name, keep<unknown>(previous[name], group)])
  return Object.fromEntries(kept) as DecodedGroups
}

const toAutoDelete = (group: typeof Groups.AutoDelete.Type): GatewayConfig["auto_delete"] => ({
  mode: group.mode ?? (group.sessions === true ? "all" : "none")
})

const toAdmin = (group: typeof Groups.Admin.Type): AdminConfig => ({
  jwt_expire_hours: group.jwt_expire_hours,
  password_hash: group.password_hash === undefined || group.password_hash === ""
    ? undefined
    : Redacted.make(group.password_hash),
  password_check: group.password_check,
  jwt_valid_after_unix: group.jwt_valid_after_unix,
  generation: group.generation,
  tokens: group.tokens.map(({ expires_at, hash, id, name, role }) => ({
    id,
    name: name.trim(),
    role,
    hash: Redacted.make(hash.toLowerCase()),
    expires_at: expires_at === undefined ? undefined : parseTimestamp(expires_at)
  }))
})

export interface DecodedConfig {
  readonly snapshot: Snapshot
  readonly warnings: ReadonlyArray<string>
}

/** Replaces the lists from which repeated entries were removed. */
const withLists = (raw: RawConfig, lists: { readonly [name: string]: ReadonlyArray<Schema.Json> }): RawConfig => {
  const changed = Object.entries(lists).filter(([name, list]) => raw[name] !== undefined && raw[name] !== list)
  return changed.length === 0 ? raw : { ...raw, ...Object.fromEntries(changed) }
}

/**
 * Decodes a configuration. Fails with all its faults. A repeated key or account is a fault or a warning, depending on
 * `options.duplicates`.
 */
export const decodeConfig = Effect.fnUntraced(function*(
  raw: RawConfig,
  options: DecodeOptions
): Effect.fn.Return<DecodedConfig, ConfigInvalid> {
  const known = options.previous
  const before = known?.config
  const keys = yield* decodeKeys(raw["keys"], options.duplicates, before?.configured_keys)
  const names = upstreamNames(raw)
  const accounts = known !== undefined && known.raw["accounts"] === raw["accounts"]
    ? unchangedAccounts(known, names)
    : yield* decodeAccounts(raw["accounts"], options.duplicates, names, options.strays)
  const records = yield* decodeKeyRecords(raw["key_records"])
  const faults = [...keys.faults, ...accounts.faults, ...records.faults]
  const prices = yield* decodePrices(raw["prices"], faults)
  const currency = decodeCurrency(raw["currency"], faults)
  const groups = decodeGroups(raw, faults)
  const upstream = groups.upstream && keep(before?.upstream, toUpstream(groups.upstream, faults))
  if (upstream !== undefined && upstream.base_url !== "" && !namesDriver(raw["upstream"])) {
    faults.push(fault("upstream.driver", "is required with a base_url: session or openai"))
  }
  const model_aliases = new Map(Object.entries(groups.model_aliases ?? {}))
  const outside = { variables: yield* CurrentVariables, files: yield* readPemFiles(raw) }
  const several = decodeSeveral(raw, groups.upstream, upstream, outside, faults)
  const counts = countAccounts(accounts.value.accounts)
  checkCredentialHeaders(several.upstreams, counts, faults)
  if (groups.auth?.direct_tokens === true && !names.has(defaultUpstream)) {
    faults.push(fault("auth.direct_tokens", "must be false without the group upstream, to which such tokens go"))
  }
  const aliases = toAliases(model_aliases, upstream, several, faults)
  if (groups.msgcompat_mapping !== undefined) checkMapping(groups.msgcompat_mapping, upstream, several, faults)
  if (upstream === undefined || !areComplete(groups, faults)) {
    return yield* ConfigInvalid.of(faults, options.source)
  }
  const configured_keys = keep(before?.configured_keys, [...keys.value])
  const generated = options.generatedKey === undefined || configured_keys.length > 0 ||
      groups.auth.removed_keys.includes(sha256Hex(options.generatedKey))
    ? undefined
    : options.generatedKey
  const routing: RouteConfig = {
    upstreams: several.routed,
    routes: several.routes.map(({ also_on: alsoOn, wait, ...route }) => ({ ...route, alsoOn, wait: wait * 1000 })),
    aliases,
    mapping: groups.msgcompat_mapping,
    families: groups.compat.family_models,
    mapped: isServer(upstream.driver) ? mappedNames(upstream) : undefined,
    listed: before === undefined ? undefined : keptLists(before, several.upstreams)
  }
  const { slots, upstreams } = toUpstreams(several, counts, groups, before)
  const runtime = toRuntime(groups.runtime, upstreams, slots)
  const config: GatewayConfig = {
    ...keepGroups(groups, before),
    keys: keep(before?.keys, generated === undefined ? configured_keys : [generated]),
    configured_keys,
    generated_key: generated,
    key_records: known?.raw["key_records"] === raw["key_records"] && before !== undefined
      ? before.key_records
      : records.value,
    accounts: accounts.value.accounts,
    account_table: accounts.value,
    model_aliases: keep(before?.model_aliases, model_aliases),
    admin: keep(before?.admin, toAdmin(groups.admin)),
    runtime: keep(before?.runtime, runtime),
    auto_delete: keep(before?.auto_delete, toAutoDelete(groups.auto_delete)),
    upstream,
    upstreams,
    routes: keep(before?.routes, several.routes),
    route_table: before !== undefined && Equal.equals(before.route_table.config, routing)
      ? before.route_table
      : makeRouteTable(routing),
    prices: withServedNames(prices, upstreams),
    currency,
    auth: keep(before?.auth, {
      direct_tokens: acceptsTokens(groups.auth, upstreams.find(({ name }) => name === defaultUpstream)),
      public_models: groups.auth.public_models,
      direct_max_inflight: groups.auth.direct_max_inflight ?? Math.max(1, Math.floor(runtime.global_max_inflight / 2)),
      removed_keys: groups.auth.removed_keys
    })
  }
  return {
    snapshot: { raw: withLists(raw, { keys: keys.raw, accounts: accounts.raw }), config },
    warnings: [
      ...(yield* unknownFields(raw)),
      ...keys.warnings,
      ...accounts.warnings,
      ...(yield* unknownModels(config.route_table, config.key_records)),
      ...(yield* adviceOn(raw, config))
    ]
  }
})
