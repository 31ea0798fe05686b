/**
 * Entries of `accounts` in the configuration: new ones, and the marks of the operator.
 */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import { type Account, accountsNamed, type AccountTable, ambiguous } from "../../config/Account.ts"
import { keepProxy } from "../../config/hidden.ts"
import type { RawConfig } from "../../config/json.ts"
import { setField } from "../../config/rawConfig.ts"
import { longestNote } from "../../config/schema.ts"
import { type GatewayError, gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { given, headerText } from "../adminBody.ts"
import type { AddAccountRequest, PatchAccountRequest } from "./Api.ts"

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
export const newAccount = (body: typeof AddAccountRequest.Type): Result.Result<RawConfig, GatewayError> => {
  const [email, mobile, token] = [given(body.email), given(body.mobile), given(body.token)]
  const [password, note] = [body.password || undefined, body.note || undefined]
  const [upstream, proxy] = [given(body.upstream), given(body.proxy)]
  const refuse = (rule: string, field: string) => Result.fail(invalidRequest(rule, field))
  if (email === undefined && mobile === undefined && token === undefined) {
    return refuse("email, mobile or token is required", "email")
  }
  if (mobile !== undefined && !/\d/.test(mobile)) return refuse("mobile must have digits", "mobile")
  if (password === undefined && token === undefined) return refuse("password or token is required", "password")
  const sendable = headerText(token ?? "", "token")
  if (Result.isFailure(sendable)) return Result.fail(sendable.failure)
  if (note !== undefined && note.length > longestNote) {
    return refuse(`note must have at most ${longestNote} characters`, "note")
  }
  const fields = { upstream, email, mobile, password, token, note, proxy }
  return Result.succeed(
    Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as RawConfig
  )
}

const set = (entry: RawConfig, field: string, value: Schema.Json | undefined): RawConfig =>
  entry[field] === value ? entry : setField(entry, [field], value)

/** The entry with these marks; a mark at its default is removed. Returns the same object if nothing changes. */
export const markAccount = (
  entry: RawConfig,
  { disabled, note, proxy }: Partial<typeof PatchAccountRequest.Type>
): RawConfig => {
  const switched = disabled === undefined || disabled === (entry["disabled"] === true)
    ? entry
    : set(entry, "disabled", disabled || undefined)
  const noted = note === undefined ? switched : set(switched, "note", note || undefined)
  return proxy === undefined ? noted : set(noted, "proxy", given(proxy) && keepProxy(entry, proxy ?? ""))
}
