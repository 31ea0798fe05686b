/**
 * Requests that change the configuration: imports, and lists that replace the configured ones. Values are checked by the
 * configuration store, which names the faulty field.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import { type Account, findAccount } from "../../config/Account.ts"
import { ConfigDocument } from "../../config/document.ts"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import { keepProxy } from "../../config/hidden.ts"
import type { ImportMode } from "../../config/importConfig.ts"
import { forEachCooperatively, isJsonObject, type RawConfig, sha256Hex } from "../../config/json.ts"
import { dropOrphans } from "../../config/keyRecords.ts"
import { accountsOf } from "../../config/rawConfig.ts"
import { type GatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { identityKeys } from "../../domain/identity.ts"
import { nearest } from "../../domain/nearest.ts"
import { runSync } from "../../domain/stream/cooperative.ts"
import { isUnnamed, keyWithin, upstreamNamed } from "../../domain/upstreamNames.ts"
import { refusing } from "../adminBody.ts"
import { patchMapping } from "../settings/patch.ts"
import { ExportReply, ImportWrapper } from "./Api.ts"

interface Import {
  readonly mode: ImportMode
  readonly config: RawConfig
}

const isNamed = (mode: unknown): boolean => mode !== undefined && mode !== null && mode !== ""

/** The reply to an export may be imported as it is. */
const refuseWrapper = refusing([ImportWrapper, ExportReply])

/** Whether a field of a bare configuration is, or resembles, a field of the wrapper. */
const isOfWrapper = (name: string): boolean =>
  !Object.hasOwn(ConfigDocument.fields, name) && nearest(name, Object.keys(ImportWrapper.fields)).length > 0

/** The fields to check against the wrapper's. Unknown fields of the configuration itself are allowed. */
const wrapperOf = (body: RawConfig): RawConfig =>
  Object.hasOwn(body, "config")
    ? body
    : Object.fromEntries(Object.entries(body).filter(([name]) => isOfWrapper(name)))

/**
 * Reads a configuration, bare or in a wrapper (spec "POST /admin/config/import"). The mode of the query takes precedence over
 * that of the body.
 */
export const readImport = (
  body: RawConfig,
  queryMode: string | undefined
): Result.Result<Import, GatewayError> => {
  const named = isNamed(queryMode) ? queryMode : body["mode"]
  const mode = !isNamed(named) ? "merge" : typeof named === "string" ? named.trim().toLowerCase() : undefined
  if (mode !== "merge" && mode !== "replace") {
    return Result.fail(invalidRequest("mode must be merge or replace", "mode"))
  }
  const refused = runSync(refuseWrapper(wrapperOf(body)))
  if (refused !== undefined) return Result.fail(refused)
  if (!Object.hasOwn(body, "config")) {
    const { mode: _mode, ...config } = body
    return Result.succeed({ mode, config })
  }
  const config = body["config"]
  return isJsonObject(config)
    ? Result.succeed({ mode, config })
    : Result.fail(invalidRequest("config must be an object", "config"))
}

const textOf = (value: Schema.Json | undefined): string | undefined => typeof value === "string" ? value : undefined

/** Fields of an account that are input. Other fields that the admin API shows are ignored. */
const inputFields = ["email", "mobile", "password", "token", "disabled", "note", "proxy"] as const

/** The upstream of a listed account; `undefined` for the default one. */
const upstreamOf = (entry: RawConfig): string | undefined => {
  const upstream = textOf(entry["upstream"])?.trim()
  return isUnnamed(upstreamNamed(upstream)) ? undefined : upstream
}

const isGiven = (value: Schema.Json | undefined): value is Schema.Json =>
  value !== undefined && value !== null && value !== ""

const findListed = (config: GatewayConfig, entry: RawConfig): Account | undefined => {
  const upstream = upstreamOf(entry)
  const identity = {
    upstream,
    email: textOf(entry["email"]),
    mobile: textOf(entry["mobile"]),
    token: textOf(entry["token"])
  }
  for (const key of identityKeys(identity, sha256Hex)) {
    const account = config.account_table.index.get(key)
    if (account !== undefined) return account
  }
  const identifier = textOf(entry["identifier"])
  return identifier === undefined
    ? undefined
    : findAccount(config.account_table, keyWithin(upstream ?? "", identifier))
}

/**
 * The entries for the listed accounts. A configured account keeps the fields that are not given, such as its password, so
 * that the reply of `GET /admin/config` may be sent back.
 */
const listAccounts = Effect.fnUntraced(function*(
  raw: RawConfig,
  config: GatewayConfig,
  listed: ReadonlyArray<Schema.Json>
) {
  const known = new Map<Account, RawConfig>()
  const entries = accountsOf(raw)
  yield* forEachCooperatively(config.accounts, (account, place) => {
    known.set(account, entries[place]!)
  })
  const accounts: Array<Schema.Json> = []
  yield* forEachCooperatively(listed, (entry) => {
    if (!isJsonObject(entry)) {
      accounts.push(entry)
      return
    }
    const account = findListed(config, entry)
    const before = account === undefined ? undefined : known.get(account)
    const { proxy } = entry
    const own: RawConfig = isGiven(proxy) ? { ...entry, proxy: keepProxy(before, proxy) } : entry
    const given = inputFields.filter((field) => isGiven(own[field]) && own[field] !== before?.[field])
      .map((field) => [field, own[field]!] as const)
    const upstream = entry["upstream"]
    const placed = before === undefined && isGiven(upstream) ? { upstream } : before
    // An unchanged entry stays the same object, so that it is not decoded again.
    accounts.push(
      before !== undefined && given.length === 0 ? before : { ...placed, ...Object.fromEntries(given) }
    )
  })
  return accounts
})

/** Replaces the configured lists by those in `given`, and merges its mapping into the configured one. */
export const replaceParts = Effect.fnUntraced(function*(
  raw: RawConfig,
  config: GatewayConfig,
  given: RawConfig
): Effect.fn.Return<RawConfig> {
  const { accounts, keys, msgcompat_mapping } = given
  return yield* dropOrphans(raw, {
    ...(msgcompat_mapping === undefined ? raw : patchMapping(raw, msgcompat_mapping)),
    ...(keys === undefined ? {} : { keys }),
    ...(accounts === undefined
      ? {}
      : { accounts: Array.isArray(accounts) ? yield* listAccounts(raw, config, accounts) : accounts })
  })
})
