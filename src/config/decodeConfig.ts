/**
 * Decodes a raw configuration to the one in effect: decodes every group, checks references between groups, and reports all
 * faults together.
 */
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { isServer } from "../contracts/drivers.ts"
import { type MessagesMapping, type Model, natives, normalizeModelName } from "../domain/models.ts"
import { type Listed, makeRouteTable, type RouteConfig, targetsNamed } from "../domain/routes.ts"
import { parseTimestamp } from "../domain/time.ts"
import { defaultUpstream } from "../domain/upstreamNames.ts"
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
import { configFormat } from "./document.ts"
import type {
  AdminConfig,
  ConfiguredModel,
  DecodedGroups,
  GatewayConfig,
  RuntimeConfig,
  Snapshot,
  UpstreamConfig
} from "./GatewayConfig.ts"
import { type RawConfig, sha256Hex } from "./json.ts"
import { decodeKeyRecords, unknownFallbacks, unknownModels } from "./keyRecords.ts"
import { decodeModelFacts } from "./modelFacts.ts"
import { decodeCurrency, decodeListPrices, decodePrices, withServedNames } from "./prices.ts"
import { CurrentVariables } from "./references.ts"
import * as Groups from "./schema.ts"
import { withSecretFiles } from "./secretFiles.ts"
import { readPemFiles } from "./tls.ts"
import { unknownFields } from "./unknownFields.ts"
import { type AccountCount, checkCredentialHeaders, checkLogins, countAccounts, limitsOf } from "./upstreamAccounts.ts"
import { type DecodedUpstreams, decodeUpstreams, hasSameServer, noWildcard, upstreamNames } from "./upstreams.ts"
import { decodeWebhooks } from "./webhooks.ts"

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
const mayStandFor = (decoded: DecodedUpstreams): (name: string) => boolean => {
  const known = new Set([...natives.keys(), ...decoded.names])
  const isTarget = targetsNamed({ upstreams: decoded.routed, unnamed: defaultUpstream, routes: decoded.routes })
  return (name) => known.has(normalizeModelName(name)) || isTarget(name) || decoded.mayBeLeftOut(name)
}

const notKnown = "must name a model, a route or a target (upstream/model)"

const toModel = ({ id, reasoning, search }: ConfiguredModel): Model => ({ id, reasoning, search })

/** The models of the server by its own names. Of several entries for one, another model is chosen, then the first. */
const mappedNames = (models: UpstreamConfig["models"] = []): ReadonlyMap<string, Model> =>
  new Map(
    [...models].reverse().sort((one, other) => Number(natives.has(other.id)) - Number(natives.has(one.id)))
      .map((entry) => [normalizeModelName(entry.model), toModel(entry)])
  )

/** The models listed by the servers that the upstreams still have; the same object if these are all. */
const keptLists = (
  { route_table, upstreams }: GatewayConfig,
  now: DecodedUpstreams["upstreams"]
): Listed | undefined => {
  const { listed } = route_table.config
  const isKept = (name: string) => hasSameServer(upstreams.get(name), now.get(name))
  if (listed === undefined) return undefined
  const kept = [...listed].filter(([name]) => isKept(name))
  return kept.length === listed.size ? listed : new Map(kept)
}

/** The aliases by their names in normal form. */
const toAliases = (
  aliases: ReadonlyMap<string, string>,
  isKnown: (name: string) => boolean,
  faults: Array<Fault>
): ReadonlyMap<string, string> => {
  const normalized = new Map<string, string>()
  for (const [alias, target] of aliases) {
    const name = normalizeModelName(alias)
    if (name === "") faults.push(fault("model_aliases", "must not have an empty name"))
    if (name.includes("*")) faults.push(fault(`model_aliases.${alias}`, noWildcard))
    if (normalized.has(name)) faults.push(fault(`model_aliases.${alias}`, "is named twice, but for case and blanks"))
    if (!isKnown(target)) faults.push(fault(`model_aliases.${alias}`, notKnown))
    normalized.set(name, target)
  }
  return normalized
}

const checkMapping = (
  mapping: MessagesMapping,
  isKnown: (name: string) => boolean,
  faults: Array<Fault>
): void => {
  for (const key of ["fast", "slow"] as const) {
    if (!isKnown(mapping[key])) faults.push(fault(`msgcompat_mapping.${key}`, notKnown))
  }
}

/** Upstreams with their limits. Each with unchanged content is the previous object. */
const toUpstreams = (
  { upstreams }: DecodedUpstreams,
  counts: ReadonlyMap<string, AccountCount>,
  runtime: typeof Groups.Runtime.Type,
  direct_upstream: string | undefined,
  before: GatewayConfig["upstreams"] = new Map()
): { readonly upstreams: GatewayConfig["upstreams"]; readonly slots: number } => {
  let slots = 0
  const made = Array.from(upstreams, ([name, upstream]): [string, UpstreamConfig] => {
    const own = limitsOf(upstream, counts.get(name), runtime)
    if (upstream.enabled) slots += own.slots
    // Callers with tokens of their own use slots of their upstream beside those of its accounts.
    const isWhole = upstreams.size === 1 || name === direct_upstream
    const global = upstream.max_inflight ?? (isWhole ? runtime.global_max_inflight : undefined) ?? own.limits.global
    return [name, keep<UpstreamConfig>(before.get(name), { ...upstream, limits: { ...own.limits, global } })]
  })
  const known = [...before.values()]
  const isSame = known.length === made.length && made.every(([, each], place) => each === known[place])
  return { upstreams: isSame ? before : new Map(made), slots }
}

/** The upstream that callers' own tokens go to: that of the group `upstream`, unless tokens are off or it is a server with keys. */
const directUpstream = (
  { direct_tokens }: DecodedGroups["auth"],
  { upstreams }: DecodedUpstreams
): string | undefined => {
  const upstream = upstreams.get(defaultUpstream)
  return upstream !== undefined && (direct_tokens ?? !isServer(upstream.driver)) ? upstream.name : undefined
}

/**
 * Derives the unset limits over all enabled upstreams: the queue defaults to the recommended concurrency, at least 1, and the global
 * limit to the sum of those of the upstreams.
 */
const toRuntime = (
  group: typeof Groups.Runtime.Type,
  upstreams: GatewayConfig["upstreams"],
  slots: number
): RuntimeConfig => {
  const all = [...upstreams.values()]
  const sum = all.reduce((sum, { enabled, limits }) => enabled ? sum + limits.global : sum, 0)
  const [first] = all
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
  faults: [...config.upstreams.keys()].every((name) => names.has(name))
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
  locked: group.locked,
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
  /** Those of `snapshot.config`. */
  readonly warnings: ReadonlyArray<string>
}

/** Replaces the lists from which repeated entries were removed. */
const withLists = (raw: RawConfig, lists: { readonly [name: string]: ReadonlyArray<Schema.Json> }): RawConfig => {
  const changed = Object.entries(lists).filter(([name, list]) => raw[name] !== undefined && raw[name] !== list)
  return changed.length === 0 ? raw : { ...raw, ...Object.fromEntries(changed) }
}

/** Fails for a configuration of another format, whose fields may mean something else. One without a number has this format. */
export const checkFormat = ({ format }: RawConfig, source?: string): Effect.Effect<void, ConfigInvalid> =>
  format === undefined || format === configFormat
    ? Effect.void
    : Effect.fail(
      ConfigInvalid.of(
        [fault(
          "format",
          `must be ${configFormat} in this version: start the version that wrote this configuration`
        )],
        source
      )
    )

/**
 * Decodes a configuration. Fails with all its faults. A repeated key or account is a fault or a warning, depending on
 * `options.duplicates`.
 */
export const decodeConfig = Effect.fnUntraced(function*(
  raw: RawConfig,
  options: DecodeOptions
): Effect.fn.Return<DecodedConfig, ConfigInvalid> {
  yield* checkFormat(raw, options.source)
  const known = options.previous
  const variables = yield* withSecretFiles(raw, yield* CurrentVariables)
  const before = known?.config
  const keys = yield* decodeKeys(raw["keys"], options.duplicates, before?.configured_keys)
  const names = upstreamNames(raw)
  const accounts = known !== undefined && known.raw["accounts"] === raw["accounts"]
    ? unchangedAccounts(known, names)
    : yield* Effect.provideService(
      decodeAccounts(raw["accounts"], options.duplicates, names, options.strays),
      CurrentVariables,
      variables
    )
  const records = yield* decodeKeyRecords(raw["key_records"])
  const faults = [...keys.faults, ...accounts.faults, ...records.faults]
  const prices = yield* decodePrices(raw["prices"], faults)
  const model_facts = yield* decodeModelFacts(raw["model_facts"], faults)
  const currency = decodeCurrency(raw["currency"], faults)
  const list = yield* decodeListPrices(raw["prices"], currency, faults)
  const groups = decodeGroups(raw, faults)
  const model_aliases = new Map(Object.entries(groups.model_aliases ?? {}))
  const outside = { variables, files: yield* readPemFiles(raw) }
  const webhooks = decodeWebhooks(raw["webhooks"], variables, faults)
  const decoded = decodeUpstreams(raw, groups.upstream, outside, faults)
  const counts = countAccounts(accounts.value.accounts)
  checkCredentialHeaders(decoded.upstreams, counts, faults)
  checkLogins(decoded.upstreams, counts, faults)
  if (groups.auth?.direct_tokens === true && !names.has(defaultUpstream)) {
    faults.push(
      fault(
        "auth.direct_tokens",
        "must be false without the default upstream (the group upstream), to which such tokens go"
      )
    )
  }
  const isKnown = mayStandFor(decoded)
  const aliases = toAliases(model_aliases, isKnown, faults)
  if (groups.msgcompat_mapping !== undefined) checkMapping(groups.msgcompat_mapping, isKnown, faults)
  if (!areComplete(groups, faults)) {
    // Without the routes, whose targets may be wrong, a fallback is known by its name.
    const table = makeRouteTable({
      upstreams: decoded.routed,
      unnamed: defaultUpstream,
      routes: [],
      aliases: new Map(),
      mapping: { fast: "", slow: "" },
      families: groups.compat?.family_models ?? true,
      mapped: groups.upstream !== undefined && !isServer(groups.upstream.driver) ? undefined : new Map(),
      listed: undefined
    })
    const mayBe = (name: string) => isKnown(name) || aliases.has(normalizeModelName(name))
    faults.push(...(yield* unknownFallbacks(table, records.value, mayBe)).faults)
    return yield* ConfigInvalid.of(
      faults,
      options.source,
      options.source === undefined ? [] : yield* unknownFields(raw)
    )
  }
  const configured_keys = keep(before?.configured_keys, [...keys.value])
  const generated = options.generatedKey === undefined || configured_keys.length > 0 ||
      groups.auth.removed_keys.includes(sha256Hex(options.generatedKey))
    ? undefined
    : options.generatedKey
  const routing: RouteConfig = {
    upstreams: decoded.routed,
    unnamed: defaultUpstream,
    routes: decoded.routes.map(({ also_on: alsoOn, wait, ...route }) => ({ ...route, alsoOn, wait: wait * 1000 })),
    aliases,
    mapping: groups.msgcompat_mapping,
    families: groups.compat.family_models,
    mapped: isServer(groups.upstream.driver) ? mappedNames(decoded.upstreams.get(defaultUpstream)?.models) : undefined,
    listed: before === undefined ? undefined : keptLists(before, decoded.upstreams)
  }
  const direct_upstream = directUpstream(groups.auth, decoded)
  const { slots, upstreams } = toUpstreams(decoded, counts, groups.runtime, direct_upstream, before?.upstreams)
  const runtime = toRuntime(groups.runtime, upstreams, slots)
  const { attempts, client, drain, queue } = groups.upstream.timeouts
  const { upstream: _, ...others } = keepGroups(groups, before)
  const decodedConfig: Omit<GatewayConfig, "warnings"> = {
    ...others,
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
    upstreams,
    request_timeouts: keep(before?.request_timeouts, { queue, client, drain, attempts }),
    routes: keep(before?.routes, decoded.routes),
    route_table: before !== undefined && Equal.equals(before.route_table.config, routing)
      ? before.route_table
      : makeRouteTable(routing),
    prices: withServedNames(prices, list, upstreams),
    model_facts,
    webhooks: keep(before?.webhooks, webhooks),
    currency,
    auth: keep(before?.auth, {
      direct_upstream,
      hash_keys: groups.auth.hash_keys,
      public_models: groups.auth.public_models,
      direct_max_inflight: groups.auth.direct_max_inflight ?? Math.max(1, Math.floor(runtime.global_max_inflight / 2)),
      removed_keys: groups.auth.removed_keys
    })
  }
  const fallbacks = yield* unknownFallbacks(decodedConfig.route_table, decodedConfig.key_records, () => false)
  if (fallbacks.faults.length > 0) return yield* ConfigInvalid.of(fallbacks.faults, options.source)
  const warnings = [
    ...(yield* unknownFields(raw)),
    ...keys.warnings,
    ...accounts.warnings,
    ...(yield* unknownModels(decodedConfig.route_table, decodedConfig.key_records)),
    ...fallbacks.warnings,
    ...(yield* adviceOn(raw, decodedConfig))
  ]
  const config = { ...decodedConfig, warnings: keep(before?.warnings, warnings) }
  return {
    snapshot: { raw: withLists(raw, { keys: keys.raw, accounts: accounts.raw }), config },
    warnings: config.warnings
  }
})
