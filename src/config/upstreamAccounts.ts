/** What follows for an upstream from its accounts: its limits, and the faults of settings that do not fit them. */
import * as Redacted from "effect/Redacted"
import { isServer, needsAccounts } from "../contracts/drivers.ts"
import { defaultUpstream, placeOfUpstream } from "../domain/upstreamNames.ts"
import { type Account, keyless } from "./Account.ts"
import { type Fault, fault } from "./ConfigError.ts"
import type { UpstreamLimits } from "./GatewayConfig.ts"
import type * as Groups from "./schema.ts"
import { type ConfiguredUpstream, type DecodedUpstreams, vendorAddress } from "./upstreams.ts"

/** The accounts of an upstream, counted. */
export interface AccountCount {
  total: number
  enabled: number
  /** The first enabled one. */
  first: Account | undefined
  /** The place of the first one that has a password and no token. */
  login: number | undefined
  /** The place of the first one whose token comes from a source. */
  credential: number | undefined
  /** The place of the first one whose credential signs requests. */
  signing: number | undefined
}

/** Counts the accounts of each upstream that has any. */
export const countAccounts = (accounts: ReadonlyArray<Account>): ReadonlyMap<string, AccountCount> => {
  const counts = new Map<string, AccountCount>()
  for (const [place, account] of accounts.entries()) {
    const count = counts.get(account.upstream) ??
      { total: 0, enabled: 0, first: undefined, login: undefined, credential: undefined, signing: undefined }
    if (count.total === 0) counts.set(account.upstream, count)
    count.total++
    if (account.password !== undefined && account.token === undefined) count.login ??= place
    if (account.credential !== undefined) count.credential ??= place
    if (account.credential?.from === "aws") count.signing ??= place
    if (account.disabled) continue
    count.enabled++
    count.first ??= account
  }
  return counts
}

/** The accounts of each upstream, counted once for a configuration. */
const counted = new WeakMap<ReadonlyArray<Account>, ReadonlyMap<string, AccountCount>>()

/** How many enabled accounts an upstream has. */
export const countEnabled = (accounts: ReadonlyArray<Account>, upstream: string): number => {
  const counts = counted.get(accounts) ?? countAccounts(accounts)
  counted.set(accounts, counts)
  return counts.get(upstream)?.enabled ?? 0
}

/** Default concurrency of an account (behaviour "Defaults and ranges"). */
const accountInflight = 2
/** A server without API keys has no account to protect, and schedules requests itself. */
const keylessInflight = 8

/**
 * The limits of an upstream. Unset ones follow from its enabled accounts, whose slots together are `slots`. Without configured
 * accounts, a driver that needs none counts one.
 */
export const limitsOf = (
  upstream: ConfiguredUpstream,
  { enabled, first, total }: Pick<AccountCount, "enabled" | "first" | "total"> = {
    total: 0,
    enabled: 0,
    first: undefined
  },
  runtime: typeof Groups.Runtime.Type
): { readonly slots: number; readonly limits: UpstreamLimits } => {
  const { account_max_inflight, account_max_queue, driver, max_inflight, name } = upstream
  const accounts = total === 0 && !needsAccounts(driver) ? 1 : enabled
  const asksForNoKey = isServer(driver) && accounts === 1 &&
    (first === undefined || (first.token !== undefined && Redacted.value(first.token) === keyless))
  const keylessLimit = max_inflight ?? (name === defaultUpstream ? runtime.account_max_inflight : undefined) ??
    keylessInflight
  const perAccount = account_max_inflight ??
    (asksForNoKey ? keylessLimit : runtime.account_max_inflight ?? accountInflight)
  const slots = accounts * perAccount
  const automatic = Math.max(1, slots)
  return {
    slots,
    limits: {
      perAccount,
      global: max_inflight ?? automatic,
      queue: account_max_queue ?? runtime.account_max_queue ?? automatic
    }
  }
}

/** Reports the accounts with a login where accounts are keys, and with a credential where they are logins: one of each upstream. */
export const checkLogins = (
  upstreams: DecodedUpstreams["upstreams"],
  counts: ReadonlyMap<string, AccountCount>,
  faults: Array<Fault>
): void => {
  for (const { driver, name, server } of upstreams.values()) {
    const { credential, login, signing } = counts.get(name) ?? {}
    if (signing !== undefined && isServer(driver) && vendorAddress({ driver, server })?.signing === undefined) {
      const vendors = "bedrock or bedrock-runtime"
      faults.push(fault(`accounts[${signing}].credential`, `must be of an upstream with the vendor ${vendors}`))
    }
    if (credential !== undefined && !isServer(driver)) {
      faults.push(fault(`accounts[${credential}].credential`, `must be unset with the ${driver} driver`))
    }
    if (login === undefined || !isServer(driver)) continue
    faults.push(fault(
      `accounts[${login}].password`,
      `must be unset: the upstream ${name} has the driver ${driver}, whose accounts are keys; give a token`
    ))
  }
}

/** Headers that carry the credential of an account by default. */
const credentialHeaders = ["authorization", "x-api-key"]

/** Reports the headers that would replace the credentials of an upstream's accounts. */
export const checkCredentialHeaders = (
  upstreams: DecodedUpstreams["upstreams"],
  counts: ReadonlyMap<string, AccountCount>,
  faults: Array<Fault>
): void => {
  for (const { credential_header, headers, name } of upstreams.values()) {
    if (!counts.has(name)) continue
    const taken = credential_header === undefined ? credentialHeaders : [credential_header]
    const place = placeOfUpstream(name)
    for (const header of headers) {
      if (!taken.includes(header.name.toLowerCase())) continue
      faults.push(fault(`${place}.headers.${header.name}`, "must be unset: the upstream's accounts have credentials"))
    }
  }
}
