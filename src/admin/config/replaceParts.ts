/**
 * From the body of `POST /admin/config` to the configuration that it asks for. What is wrong with keys, accounts or mapping
 * is left for the configuration's own check to find and name.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import { type Account, findAccount } from "../../config/Account.ts"
import { accountsOf } from "../../config/edit.ts"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import { forEachSliced, isJsonObject, type RawConfig, sha256Hex } from "../../config/json.ts"
import { dropOrphans } from "../../config/keyRecords.ts"
import { identityKeys } from "../../domain/identity.ts"
import { patchMapping } from "../mapping.ts"

const textOf = (value: Schema.Json | undefined): string | undefined => typeof value === "string" ? value : undefined

/** Fields of an account that a caller may give. Those that the admin API shows beside them are no input. */
const inputFields = ["email", "mobile", "password", "token", "disabled", "note"] as const

const isGiven = (value: Schema.Json | undefined): value is Schema.Json =>
  value !== undefined && value !== null && value !== ""

const findListed = (config: GatewayConfig, entry: RawConfig): Account | undefined => {
  const identity = {
    email: textOf(entry["email"]),
    mobile: textOf(entry["mobile"]),
    token: textOf(entry["token"])
  }
  for (const key of identityKeys(identity, sha256Hex)) {
    const account = config.account_table.index.get(key)
    if (account !== undefined) return account
  }
  const identifier = textOf(entry["identifier"])
  return identifier === undefined ? undefined : findAccount(config.account_table, identifier)
}

/**
 * The accounts as listed. One that is configured keeps its password, its token and whatever else is not given, so that
 * what `GET /admin/config` shows may be sent back.
 */
const listAccounts = Effect.fnUntraced(function*(
  raw: RawConfig,
  config: GatewayConfig,
  listed: ReadonlyArray<Schema.Json>
) {
  const known = new Map<Account, RawConfig>()
  const entries = accountsOf(raw)
  yield* forEachSliced(config.accounts, (account, place) => {
    known.set(account, entries[place]!)
  })
  const accounts: Array<Schema.Json> = []
  yield* forEachSliced(listed, (entry) => {
    if (!isJsonObject(entry)) {
      accounts.push(entry)
      return
    }
    const account = findListed(config, entry)
    const before = account === undefined ? undefined : known.get(account)
    const given = inputFields.filter((field) => isGiven(entry[field]) && entry[field] !== before?.[field])
      .map((field) => [field, entry[field]!] as const)
    // The same object where nothing is new: what was worked out for it before is not worked out again.
    accounts.push(
      before !== undefined && given.length === 0 ? before : { ...before, ...Object.fromEntries(given) }
    )
  })
  return accounts
})

/** Puts the lists that `given` names in the place of the configured ones, and its mapping over the configured one. */
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
