/**
 * Decodes and indexes the accounts and keys of a configuration. Lists may be long, so decoding yields to other fibers and
 * caches decoded entries.
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { hashedKey, identifierOf, identityKeys, isKeyId, keyIdForm, lookupKeys } from "../domain/identity.ts"
import { defaultUpstream, keyWithin } from "../domain/upstreamNames.ts"
import { type Fault, fault, faultsOf } from "./ConfigError.ts"
import { type CredentialSettings, isSameCredential, toCredential } from "./credentials.ts"
import { AccountEntry } from "./document.ts"
import { forEachCooperatively, isJsonObject, sha256Hex } from "./json.ts"
import { CurrentVariables, hasReferences, proxyAt, secretAt, type Variables } from "./references.ts"
import { HashedKeyEntry, KeyEntry } from "./schema.ts"
import type { KeyLimit } from "./windowLimit.ts"
import { toLimit } from "./windowLimit.ts"

/** An `openai` account with this token sends no API key: its server requires none. */
export const keyless = "none"

export interface Account {
  /** The name of its upstream. */
  readonly upstream: string
  /** The email, else the mobile, else `token:<hash>`, or the source of its credential with a hash. It is unique within the upstream. */
  readonly identifier: string
  /** The identifier, and `<upstream>/<identifier>` outside of the default upstream. It is unique. */
  readonly name: string
  readonly email: string | undefined
  /** As configured; compare by its normal form. */
  readonly mobile: string | undefined
  readonly password: Redacted.Redacted<string> | undefined
  /** A configured token. Tokens from logins are kept elsewhere. */
  readonly token: Redacted.Redacted<string> | undefined
  /** Where its token comes from; `undefined` for an account with a token or a login. */
  readonly credential: CredentialSettings | undefined
  /** Excluded from use by the operator. */
  readonly disabled: boolean
  /** The operator's note; empty if unset. */
  readonly note: string
  /** An address, which may contain a password, or `direct`; `undefined` for the upstream's. */
  readonly proxy: Redacted.Redacted<string> | undefined
  /** Names those whose seals it opens; `undefined` if unset. */
  readonly organization: string | undefined
  /** Higher ones are used first where the upstream says so; 0 without it. */
  readonly priority: number | undefined
  /** Its share of the requests where the upstream says so; 1 without it. */
  readonly weight: number | undefined
  /** What it may use in windows; absent without a budget. */
  readonly budgets: ReadonlyArray<KeyLimit> | undefined
  /** Normal forms of all names of the account (`identityKeys`); of a token in the environment, as it is written, then as it is. */
  readonly identity: ReadonlyArray<string>
}

/** Decoded accounts, indexed by every form of `Account.identity`. */
export interface AccountTable {
  readonly accounts: ReadonlyArray<Account>
  readonly index: ReadonlyMap<string, Account>
  /** The accounts outside of the default upstream, by the forms of their identity without the upstream. */
  readonly others: ReadonlyMap<string, ReadonlyArray<Account>>
}

/** How to treat an entry that repeats an earlier one. */
export type Duplicates = "refuse" | "keep-first"

/** A decoded list with its faults and warnings. */
export interface Decoded<A> {
  readonly value: A
  /** The list without repeated entries; the same array if there were no repeats. */
  readonly raw: ReadonlyArray<Schema.Json>
  readonly faults: Array<Fault>
  readonly warnings: ReadonlyArray<string>
}

const decodeEntry = Schema.decodeUnknownResult(AccountEntry)
const decodeText = Schema.decodeUnknownResult(KeyEntry)
const decodeHashed = Schema.decodeUnknownResult(HashedKeyEntry)

const decodeKey = (entry: Schema.Json): Result.Result<string, Schema.SchemaError> =>
  isJsonObject(entry)
    ? Result.map(decodeHashed(entry, { errors: "all" }), ({ hash, preview }) => hashedKey(hash, preview))
    : decodeText(entry)
const decodedEntries = new WeakMap<object, Account>()

/** The trimmed text; `undefined` if it is blank. */
export const blankToUndefined = (text: string | undefined): string | undefined => {
  const trimmed = text?.trim()
  return trimmed === "" ? undefined : trimmed
}

const withOthers = (forms: ReadonlyArray<string>, more: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set([...forms, ...more])
]

const toAccount = (raw: unknown, index: number, variables: Variables): Result.Result<Account, Array<Fault>> => {
  const known = isJsonObject(raw) ? decodedEntries.get(raw) : undefined
  if (known !== undefined) return Result.succeed(known)
  const decoded = decodeEntry(raw, { errors: "all" })
  if (Result.isFailure(decoded)) return Result.fail(faultsOf(decoded.failure, ["accounts", index]))
  const entry = decoded.success
  const identity = identityKeys(entry, sha256Hex)
  if (identity.length === 0) {
    return Result.fail([fault(`accounts[${index}]`, "must have an email, a mobile, a token or a credential")])
  }
  const faults: Array<Fault> = []
  const upstream = blankToUndefined(entry.upstream) ?? defaultUpstream
  const identifier = identifierOf(entry, sha256Hex)
  const ownToken = blankToUndefined(entry.token)
  const token = ownToken === undefined ? undefined : secretAt(ownToken, `accounts[${index}].token`, variables, faults)
  const account: Account = {
    upstream,
    identifier,
    name: keyWithin(upstream, identifier),
    email: blankToUndefined(entry.email),
    mobile: blankToUndefined(entry.mobile),
    password: entry.password === undefined || entry.password === ""
      ? undefined
      : secretAt(entry.password, `accounts[${index}].password`, variables, faults),
    token,
    credential: toCredential(entry, `accounts[${index}]`, variables, faults),
    disabled: entry.disabled ?? false,
    note: entry.note ?? "",
    proxy: proxyAt(entry.proxy, `accounts[${index}].proxy`, variables, faults),
    organization: blankToUndefined(entry.organization),
    priority: entry.priority,
    weight: entry.weight,
    budgets: entry.budgets?.map(toLimit),
    identity: token === undefined || !hasReferences(entry.token)
      ? identity
      : withOthers(identity, identityKeys({ ...entry, token: Redacted.value(token) }, sha256Hex))
  }
  if (faults.length > 0) return Result.fail(faults)
  const written = [entry.token, entry.proxy, entry.password, entry.credential && JSON.stringify(entry.credential)]
  const isFixed = !written.some(hasReferences)
  if (isJsonObject(raw) && isFixed) decodedEntries.set(raw, account)
  return Result.succeed(account)
}

/** Calls `take` for each entry of a list. Returns the entries for which it is true; the same array if these are all. */
const takeEntries = Effect.fnUntraced(function*(
  name: string,
  raw: Schema.Json | undefined,
  faults: Array<Fault>,
  take: (entry: Schema.Json, place: number) => boolean
) {
  if (raw !== undefined && !Array.isArray(raw)) faults.push(fault(name, "must be an array"))
  const entries: ReadonlyArray<Schema.Json> = Array.isArray(raw) ? raw : []
  const kept: Array<Schema.Json> = []
  yield* forEachCooperatively(entries, (entry, place) => {
    if (take(entry, place)) kept.push(entry)
  })
  return kept.length === entries.length ? entries : kept
})

/** The fault of an account at a place of `accounts` whose upstream is not configured. */
export const misplaced = (
  { upstream }: Account,
  place: number,
  upstreams: ReadonlySet<string>
): Fault | undefined => {
  if (upstreams.has(upstream)) return undefined
  return upstream === defaultUpstream
    ? fault(`accounts[${place}].upstream`, "is required: the configuration has no upstream of the name default")
    : fault(`accounts[${place}].upstream`, "must be the name of a configured upstream")
}

/** How to treat an account of an upstream that is not configured. */
export type Strays = "refuse" | "leave-out"

/** Decodes the `accounts` of a configuration. Their upstreams are among the named ones. */
export const decodeAccounts = Effect.fnUntraced(function*(
  raw: Schema.Json | undefined,
  duplicates: Duplicates,
  upstreams: ReadonlySet<string>,
  strays: Strays = "refuse"
): Effect.fn.Return<Decoded<AccountTable>> {
  const variables = yield* CurrentVariables
  const accounts: Array<Account> = []
  const index = new Map<string, Account>()
  const others = new Map<string, Array<Account>>()
  const places = new Map<string, number>()
  const faults: Array<Fault> = []
  const warnings: Array<string> = []
  const entries = yield* takeEntries("accounts", raw, faults, (entry, place) => {
    const result = toAccount(entry, place, variables)
    if (Result.isFailure(result)) {
      faults.push(...result.failure)
      return false
    }
    const account = result.success
    const wrong = misplaced(account, place, upstreams)
    if (wrong !== undefined) {
      if (strays === "refuse") faults.push(wrong)
      return false
    }
    const first = account.identity.map((key) => places.get(key)).find((earlier) => earlier !== undefined)
    if (first !== undefined) {
      const rule = `is the same account as accounts[${first}]`
      if (duplicates === "refuse") faults.push(fault(`accounts[${place}]`, rule))
      else warnings.push(`accounts[${place}] ${rule} and is left out`)
      return false
    }
    for (const key of account.identity) {
      places.set(key, place)
      index.set(key, account)
      if (account.upstream === defaultUpstream) continue
      const form = key.slice(account.upstream.length + 1)
      others.set(form, [...others.get(form) ?? [], account])
    }
    accounts.push(account)
    return true
  })
  return { value: { accounts, index, others }, raw: entries, faults, warnings }
})

/**
 * Decodes the `keys` of a configuration. A key in the form of a key id could collide with the id of another key. With
 * `"refuse"` such a key is a fault, unless `before` has it.
 */
export const decodeKeys = Effect.fnUntraced(function*(
  raw: Schema.Json | undefined,
  duplicates: Duplicates,
  before: ReadonlyArray<string> = []
): Effect.fn.Return<Decoded<ReadonlySet<string>>> {
  let had: ReadonlySet<string> | undefined
  const keys = new Set<string>()
  const faults: Array<Fault> = []
  const warnings: Array<string> = []
  const entries = yield* takeEntries("keys", raw, faults, (entry, place) => {
    const result = decodeKey(entry)
    if (Result.isFailure(result)) {
      faults.push(...faultsOf(result.failure, ["keys", place]))
      return false
    }
    const key = result.success.trim()
    if (keys.has(key)) {
      if (duplicates === "refuse") faults.push(fault(`keys[${place}]`, "is listed twice"))
      else warnings.push(`keys[${place}] is listed twice`)
      return false
    }
    if (isKeyId(key)) {
      had ??= new Set(before)
      if (duplicates === "refuse" && !had.has(key)) {
        faults.push(fault(`keys[${place}]`, `must not be ${keyIdForm}`))
        return false
      }
      warnings.push(`keys[${place}] is ${keyIdForm}: replace it by another key`)
    }
    keys.add(key)
    return true
  })
  return { value: keys, raw: entries, faults, warnings }
})

const firstOf = <A>(entries: ReadonlyMap<string, A>, keys: ReadonlyArray<string>): A | undefined => {
  for (const key of keys) {
    const found = entries.get(key)
    if (found !== undefined) return found
  }
  return undefined
}

/**
 * The accounts that a name stands for: an email, a mobile in any spelling, or `token:<hash>`, alone or as
 * `<upstream>/<identifier>`. A bare identifier is the default upstream's account, else every other upstream's.
 */
export const accountsNamed = (table: AccountTable, name: string): ReadonlyArray<Account> => {
  const keys = lookupKeys(name)
  const own = firstOf(table.index, keys)
  if (own !== undefined) return [own]
  const slash = name.indexOf("/")
  const upstream = name.slice(0, Math.max(slash, 0)).trim().toLowerCase()
  const within = slash === -1
    ? undefined
    : firstOf(table.index, lookupKeys(name.slice(slash + 1)).map((form) => keyWithin(upstream, form)))
  return within === undefined ? firstOf(table.others, keys) ?? [] : [within]
}

/** Finds the one account that a name stands for (`accountsNamed`). `undefined` where accounts of several upstreams have it. */
export const findAccount = (table: AccountTable, name: string): Account | undefined => {
  const [account, ...others] = accountsNamed(table, name)
  return others.length === 0 ? account : undefined
}

/** The rule that a name breaks which stands for several accounts. */
export const ambiguous = (accounts: ReadonlyArray<Account>): string =>
  `names accounts of several upstreams: use ${accounts.map(({ name }) => name).join(" or ")}`

const secretOf = (secret: Redacted.Redacted<string> | undefined): string | undefined =>
  secret === undefined ? undefined : Redacted.value(secret)

/** Whether two configurations of an account have the same name, the same credentials and the same proxy. */
export const isSameAccount = (one: Account, other: Account): boolean =>
  one === other || (
    one.identifier === other.identifier && one.email === other.email && one.mobile === other.mobile &&
    one.upstream === other.upstream && secretOf(one.password) === secretOf(other.password) &&
    secretOf(one.token) === secretOf(other.token) && secretOf(one.proxy) === secretOf(other.proxy) &&
    isSameCredential(one.credential, other.credential)
  )
