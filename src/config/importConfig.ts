/**
 * Imports a configuration: selects the importable parts and merges them into the current one, all or nothing.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import { normalizeEmail, normalizeMobile } from "../domain/identity.ts"
import { defaultUpstream } from "../domain/upstreamNames.ts"
import { type Account, blankToUndefined } from "./Account.ts"
import { ConfigInvalid, type Fault, fault } from "./ConfigError.ts"
import { checkFormat, decodeConfig } from "./decodeConfig.ts"
import { ConfigDocument } from "./document.ts"
import type { Snapshot } from "./GatewayConfig.ts"
import { shownCredential } from "./hidden.ts"
import { canonicalJson, forEachCooperatively, isJsonObject, type RawConfig } from "./json.ts"
import { dropOrphans } from "./keyRecords.ts"
import { accountsOf, keyIdentityIn, keysOf, keyText } from "./rawConfig.ts"
import { unknownFields } from "./unknownFields.ts"
import { upstreamNames } from "./upstreams.ts"

/** `merge` adds to the current configuration; `replace` replaces the importable parts. */
export type ImportMode = "merge" | "replace"

/** The configuration after an import, with the numbers of added or changed keys and accounts. */
export interface ImportResult {
  readonly raw: RawConfig
  readonly imported_keys: number
  readonly imported_accounts: number
  readonly warnings: ReadonlyArray<string>
}

/** Groups that an import may change (spec "Import"), besides keys, accounts and `admin`. All others are ignored. */
const plainGroups = ["msgcompat_mapping", "model_aliases", "runtime", "responses", "embeddings", "auto_delete"] as const

const ownGroup = (raw: RawConfig, name: string): RawConfig => {
  const group = Object.hasOwn(raw, name) ? raw[name] : undefined
  return isJsonObject(group) ? group : {}
}

/** Fields that an import leaves alone, and that its parts refer to. */
const ofUpstreams: ReadonlySet<string> = new Set(["upstream", "upstreams", "routes"])

/** All importable fields of the file. */
const taken: ReadonlySet<string> = new Set([
  ...plainGroups,
  "keys",
  "key_records",
  "accounts",
  "admin",
  "msgcompat_model_mapping",
  "$schema",
  "format"
])

/** Warnings for ignored parts of an import. */
const warningsOf = Effect.fnUntraced(function*(incoming: RawConfig) {
  const leftOut = Object.keys(ConfigDocument.fields).filter((name) => Object.hasOwn(incoming, name) && !taken.has(name))
  const placeOf = (name: string) =>
    `${["upstreams", "routes", "webhooks"].includes(name) ? `by /admin/${name} or ` : ""}in the configuration file`
  return [
    ...leftOut.map((name) => `${name} is left out: an import does not take it, it is set ${placeOf(name)}`),
    ...(yield* unknownFields(incoming))
  ]
})

/** A warning for each upstream that is not configured and has accounts in the import. */
const strayWarnings = Effect.fnUntraced(function*(entries: ReadonlyArray<RawConfig>, names: ReadonlySet<string>) {
  const strays = new Map<string, number>()
  yield* forEachCooperatively(entries, ({ upstream }) => {
    const name = (typeof upstream === "string" ? blankToUndefined(upstream) : undefined) ?? defaultUpstream
    if (!names.has(name)) strays.set(name, (strays.get(name) ?? 0) + 1)
  })
  return Array.from(
    strays,
    ([name, count]) =>
      `accounts of the upstream ${name} are left out (${count}): the configuration has no upstream of this name`
  )
})

/** The importable part, under the current names of the file. */
const accepted = (incoming: RawConfig): RawConfig => {
  const groups = Object.entries(incoming).filter(([name]) =>
    name === "keys" || name === "key_records" || name === "accounts" || name === "admin" ||
    plainGroups.some((group) => group === name)
  )
  const mapping = incoming["msgcompat_model_mapping"]
  const named = Object.fromEntries(groups)
  if (mapping === undefined || Object.hasOwn(named, "msgcompat_mapping")) return named
  return { ...named, msgcompat_mapping: mapping }
}

const mergeKeys = (current: Snapshot, incoming: ReadonlyArray<Schema.Json>) => {
  const { configured_keys } = current.config
  const identity = keyIdentityIn(configured_keys, incoming.map(keyText))
  const known = new Set(configured_keys.map(identity))
  const added = incoming.filter((key) => keyText(key) !== "" && !known.has(identity(keyText(key))))
  return { keys: [...keysOf(current.raw), ...added], added: added.length }
}

/** Fields that identify an account, with their normal forms. */
const identityForms: ReadonlyMap<string, (text: string) => string> = new Map([
  ["email", normalizeEmail],
  ["mobile", normalizeMobile],
  ["token", (text) => text.trim()]
])

const sameField = (name: string, a: Schema.Json | undefined, b: Schema.Json): boolean => {
  const form = identityForms.get(name)
  return a === b || (form !== undefined && typeof a === "string" && typeof b === "string" && form(a) === form(b))
}

/** Adds the imported fields to an account. Returns the same object if nothing changes. */
const overlay = (existing: RawConfig, incoming: RawConfig): RawConfig => {
  const given = Object.entries(incoming).filter(([name, value]) =>
    value !== "" && !sameField(name, existing[name], value)
  )
  return given.length === 0 ? existing : { ...existing, ...Object.fromEntries(given) }
}

/**
 * The accounts of an import with their credentials as configured. An import brings no others: a program to run, a file to read and the
 * identity of a computer are chosen in the configuration file alone.
 */
const keepCredentials = Effect.fnUntraced(function*(current: RawConfig, incoming: RawConfig) {
  const places = new Map<string, Array<Schema.Json>>()
  const place = ({ credential = null, upstream = "" }: RawConfig) =>
    canonicalJson([upstream, shownCredential(credential)])
  const faults: Array<Fault> = []
  yield* forEachCooperatively(accountsOf(current), (entry) => {
    const { credential } = entry
    if (credential !== undefined) places.set(place(entry), [...places.get(place(entry)) ?? [], credential])
  })
  const accounts: Array<Schema.Json> = []
  const given = Array.isArray(incoming["accounts"]) ? incoming["accounts"] : []
  yield* forEachCooperatively(given, (entry, index) => {
    if (!isJsonObject(entry) || entry["credential"] === undefined) {
      accounts.push(entry)
      return
    }
    // Those that look the same without their secrets are in the order of the export.
    const credential = places.get(place(entry))?.shift()
    if (credential === undefined) {
      faults.push(fault(`accounts[${index}].credential`, "is set in the configuration file alone"))
    } else accounts.push({ ...entry, credential })
  })
  if (faults.length > 0) return yield* ConfigInvalid.of(faults)
  return given.length === 0 ? incoming : { ...incoming, accounts }
})

const mergeAccounts = Effect.fnUntraced(function*(
  current: Snapshot,
  incoming: ReadonlyArray<RawConfig>,
  decoded: ReadonlyArray<Account>
) {
  const merged = [...accountsOf(current.raw)]
  const places = new Map<string, number>()
  const faults: Array<Fault> = []
  let count = 0
  yield* forEachCooperatively(current.config.accounts, (account, place) => {
    for (const key of account.identity) places.set(key, place)
  })
  yield* forEachCooperatively(incoming, (entry, index) => {
    const found = new Set(decoded[index]!.identity.flatMap((key) => places.get(key) ?? []))
    const [place] = found
    if (found.size > 1) {
      faults.push(fault(`accounts[${index}]`, "names two accounts that are configured apart"))
    } else if (place === undefined) {
      merged.push(entry)
      count++
    } else {
      const next = overlay(merged[place]!, entry)
      if (next !== merged[place]) count++
      merged[place] = next
    }
  })
  if (faults.length > 0) return yield* ConfigInvalid.of(faults)
  return { accounts: merged, count }
})

/** Converts the older flag to a mode, so that an existing mode does not hide it. */
const autoDelete = (group: RawConfig): RawConfig =>
  group["mode"] === undefined && typeof group["sessions"] === "boolean"
    ? { mode: group["sessions"] ? "all" : "none" }
    : group

/** Fields of `admin` that control logins and the validity of JWTs. */
const credentialFields = new Set(["password_hash", "password_check", "jwt_valid_after_unix", "generation", "tokens"])

const idOf = (token: Schema.Json): Schema.Json => isJsonObject(token) ? token["id"] ?? null : null

/** The tokens for the admin API after a merge: an imported token replaces the one of its id. */
const mergeTokens = (before: Schema.Json | undefined, given: Schema.Json): Schema.Json => {
  if (!Array.isArray(before) || !Array.isArray(given)) return given
  const ids = new Set(given.map(idOf))
  return [...before.filter((token) => !ids.has(idOf(token))), ...given]
}

/**
 * The `admin` group after an import. A changed password invalidates every JWT, as a password change does. Generation and
 * validity are never imported and never decrease.
 */
const importAdmin = (current: Snapshot, incoming: RawConfig, mode: ImportMode, now: number): RawConfig => {
  const before = ownGroup(current.raw, "admin")
  const credential = Object.fromEntries(Object.entries(before).filter(([name]) => credentialFields.has(name)))
  const {
    generation: _generation,
    jwt_valid_after_unix: _validAfter,
    password_check: _check,
    password_hash,
    ...given
  } = incoming
  const merged = {
    ...(mode === "merge" ? before : credential),
    ...given,
    ...(mode === "merge" && given["tokens"] !== undefined
      ? { tokens: mergeTokens(before["tokens"], given["tokens"]) }
      : {})
  }
  if (password_hash === undefined || password_hash === "" || password_hash === before["password_hash"]) return merged
  return {
    ...merged,
    password_hash,
    jwt_valid_after_unix: now,
    generation: current.config.admin.generation + 1
  }
}

const mappingOf = (raw: RawConfig): RawConfig =>
  ownGroup(raw, Object.hasOwn(raw, "msgcompat_mapping") ? "msgcompat_mapping" : "msgcompat_model_mapping")

const importGroups = (current: RawConfig, taken: RawConfig, mode: ImportMode): RawConfig =>
  Object.fromEntries(
    plainGroups.flatMap((name): ReadonlyArray<[string, RawConfig]> => {
      if (!Object.hasOwn(taken, name)) return []
      const given = name === "auto_delete" ? autoDelete(ownGroup(taken, name)) : ownGroup(taken, name)
      if (mode === "replace") return [[name, given]]
      const before = name === "msgcompat_mapping" ? mappingOf(current) : ownGroup(current, name)
      return [[name, { ...before, ...given }]]
    })
  )

/**
 * The fields that an import keeps: with `merge` those that it does not name, with `replace` those that no import may
 * change.
 */
const untouched = (current: RawConfig, taken: RawConfig, mode: ImportMode): RawConfig => {
  const replaced = new Set<string>(mode === "replace" ? [...plainGroups, "keys", "accounts"] : Object.keys(taken))
  if (replaced.has("msgcompat_mapping")) replaced.add("msgcompat_model_mapping")
  return Object.fromEntries(Object.entries(current).filter(([name]) => !replaced.has(name)))
}

/**
 * Merges `incoming` into `current`. With `replace`, importable groups that are absent from the import get their defaults.
 * `admin` and the records of remaining keys are the exception: they stay if the import does not name them, so that an
 * import never opens the admin API or lifts the limits of a key. `now` is in Unix seconds.
 */
export const applyImport = Effect.fnUntraced(function*(
  current: Snapshot,
  incoming: RawConfig,
  mode: ImportMode,
  now: number
): Effect.fn.Return<ImportResult, ConfigInvalid> {
  yield* checkFormat(incoming)
  const taken = yield* keepCredentials(current.raw, accepted(incoming))
  const { snapshot } = yield* decodeConfig(
    { ...taken, ...Object.fromEntries(Object.entries(current.raw).filter(([name]) => ofUpstreams.has(name))) },
    { duplicates: "refuse", strays: "leave-out", previous: current }
  )
  const entries = accountsOf(snapshot.raw)
  const { accounts, count } = mode === "merge"
    ? yield* mergeAccounts(current, entries, snapshot.config.accounts)
    : { accounts: entries, count: entries.length }
  const { keys, added } = mode === "merge"
    ? mergeKeys(current, keysOf(taken))
    : { keys: keysOf(taken), added: keysOf(taken).length }
  const records = { ...ownGroup(current.raw, "key_records"), ...ownGroup(taken, "key_records") }
  const next: RawConfig = {
    ...untouched(current.raw, taken, mode),
    keys,
    accounts,
    ...importGroups(current.raw, taken, mode),
    ...(Object.hasOwn(taken, "admin") ? { admin: importAdmin(current, ownGroup(taken, "admin"), mode, now) } : {}),
    ...(Object.hasOwn(taken, "key_records") ? { key_records: mode === "merge" ? records : taken["key_records"]! } : {})
  }
  return {
    warnings: [
      ...(yield* warningsOf(incoming)),
      ...(yield* strayWarnings(accountsOf(taken), upstreamNames(current.raw)))
    ],
    raw: yield* dropOrphans(current.raw, next),
    imported_keys: added,
    imported_accounts: count
  }
})
