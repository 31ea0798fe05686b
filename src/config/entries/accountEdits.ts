/**
 * Entries of `accounts` in the configuration: new ones, and the marks of the operator.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { type GatewayError, gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { given, headerText } from "../../domain/givenText.ts"
import { type Account, accountsNamed, type AccountTable, ambiguous } from "../Account.ts"
import { faultsOf } from "../ConfigError.ts"
import { AccountEntry } from "../document.ts"
import { keepProxy } from "../hidden.ts"
import type { RawConfig } from "../json.ts"
import { setField } from "../rawConfig.ts"
import { longestNote } from "../schema.ts"

/** An account to add: an email, a mobile number or a token, and a password unless it has a token. Blank texts count as absent. */
export interface NewAccount {
  readonly email?: string | null | undefined
  readonly mobile?: string | null | undefined
  readonly password?: string | null | undefined
  /** A session token of the upstream, or the key of a server. */
  readonly token?: string | null | undefined
  readonly note?: string | null | undefined
  /** The name of its upstream; by default `default`. */
  readonly upstream?: string | null | undefined
  /** Its own proxy, or `direct`. */
  readonly proxy?: string | null | undefined
  /** Accounts with the same one open one another's seals. */
  readonly organization?: string | null | undefined
  readonly disabled?: boolean | null | undefined
  readonly priority?: number | null | undefined
  readonly weight?: number | null | undefined
  /** As in the file. */
  readonly budgets?: Schema.Json | undefined
}

/**
 * Marks of an account, and what it logs in with. An absent one stays; an empty note, and any other mark but `disabled` that is `null`, are
 * removed. A password or a token takes the place of the one before; `null` leaves it.
 */
export interface AccountMarks
  extends Pick<NewAccount, "budgets" | "organization" | "password" | "priority" | "proxy" | "token" | "weight">
{
  readonly disabled?: boolean | undefined
  readonly note?: string | undefined
}

const marks: Readonly<Record<keyof AccountMarks, true>> = {
  disabled: true,
  note: true,
  password: true,
  token: true,
  proxy: true,
  organization: true,
  priority: true,
  weight: true,
  budgets: true
}

/** The fields of a request that changes marks. */
export const markNames = Object.keys(marks)

const decodeEntry = Schema.decodeUnknownResult(AccountEntry)

/** The error for an account that is not configured. */
export const unknownAccount = gatewayError("not_found", "No such account is configured")

/** The one account that a name stands for. Fails for an unknown name, and for one that accounts of several upstreams have. */
export const accountIn = (table: AccountTable, name: string): Result.Result<Account, GatewayError> => {
  const found = accountsNamed(table, name)
  const [account] = found
  if (account === undefined) return Result.fail(unknownAccount)
  return found.length === 1
    ? Result.succeed(account)
    : Result.fail(invalidRequest(`identifier ${ambiguous(found)}`, "identifier"))
}

/** The entry of a new account. Fails if a login could not work with it. */
export const newAccount = (body: NewAccount): Result.Result<RawConfig, GatewayError> => {
  const [email, mobile, token] = [given(body.email), given(body.mobile), given(body.token)]
  const [password, note] = [body.password || undefined, body.note || undefined]
  const [upstream, proxy, organization] = [given(body.upstream), given(body.proxy), given(body.organization)]
  const refuse = (rule: string, field: string) => Result.fail(invalidRequest(rule, field))
  if (email === undefined && mobile === undefined && token === undefined) {
    return refuse("email, mobile or token is required", "email")
  }
  if (mobile !== undefined && !/\d/.test(mobile)) return refuse("mobile must have digits", "mobile")
  if (password === undefined && token === undefined) return refuse("password or token is required", "password")
  const sendable = headerText(token ?? "", "token")
  if (Result.isFailure(sendable)) return Result.fail(sendable.failure)
  for (const [name, text = ""] of [["note", note], ["organization", organization]] as const) {
    if (text.length > longestNote) return refuse(`${name} must have at most ${longestNote} characters`, name)
  }
  const fields = { upstream, email, mobile, password, token, note, proxy, organization }
  const { budgets, disabled, priority, weight } = body
  const entry = markAccount(
    Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as RawConfig,
    { budgets, disabled: disabled ?? undefined, priority, weight }
  )
  const decoded = decodeEntry(entry)
  if (Result.isSuccess(decoded)) return Result.succeed(entry)
  const [wrong] = faultsOf(decoded.failure, [])
  return refuse(wrong!.message, wrong!.field)
}

const set = (entry: RawConfig, field: string, value: Schema.Json | undefined): RawConfig =>
  entry[field] === value ? entry : setField(entry, [field], value)

/** The entry with another password or token. Fails where the account logs in by other means. Returns the same object if nothing changes. */
export const withSecrets = (
  entry: RawConfig,
  marks: Pick<AccountMarks, "password" | "token">
): Result.Result<RawConfig, GatewayError> => {
  const refuse = (rule: string, field: string) => Result.fail(invalidRequest(rule, field))
  const [password, token] = [marks.password ?? undefined, marks.token ?? undefined]
  if (password === undefined && token === undefined) return Result.succeed(entry)
  const field = password === undefined ? "token" : "password"
  if (entry["credential"] !== undefined) return refuse(`${field} must be absent: the account has a credential`, field)
  if (password === "") return refuse("password must not be empty", "password")
  if (
    password !== undefined && given(textIn(entry, "email")) === undefined &&
    given(textIn(entry, "mobile")) === undefined
  ) {
    return refuse("password must be absent: the account has neither email nor mobile", "password")
  }
  const next = given(token)
  if (token !== undefined && next === undefined) return refuse("token must not be empty", "token")
  const sendable = headerText(next ?? "", "token")
  if (Result.isFailure(sendable)) return Result.fail(sendable.failure)
  const named = password === undefined ? entry : set(entry, "password", password)
  return Result.succeed(next === undefined ? named : set(named, "token", next))
}

const textIn = (entry: RawConfig, field: string): string | undefined => {
  const value = entry[field]
  return typeof value === "string" ? value : undefined
}

/** The entry with these marks; a mark at its default is removed. Returns the same object if nothing changes. */
export const markAccount = (
  entry: RawConfig,
  { budgets, disabled, note, organization, priority, proxy, weight }: Omit<AccountMarks, "password" | "token">
): RawConfig => {
  const switched = disabled === undefined || disabled === (entry["disabled"] === true)
    ? entry
    : set(entry, "disabled", disabled || undefined)
  const noted = note === undefined ? switched : set(switched, "note", note || undefined)
  const named = organization === undefined ? noted : set(noted, "organization", given(organization))
  const ranked = Object.entries({ priority, weight, budgets }).reduce(
    (marked, [field, value]) => value === undefined ? marked : set(marked, field, value ?? undefined),
    named
  )
  return proxy === undefined ? ranked : set(ranked, "proxy", given(proxy) && keepProxy(entry, proxy ?? ""))
}
