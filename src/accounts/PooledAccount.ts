/**
 * What the pool knows of one account beyond its slots: its tokens, what its last failures were, its clean-ups.
 *
 * It lives as long as the account is configured. A change of its credentials, or of the upstream, renews it.
 */
import type * as Deferred from "effect/Deferred"
import type * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import { type Account, keyless } from "../config/Account.ts"
import { sha256Hex } from "../config/json.ts"
import { accountHash, nationalMobile } from "../domain/identity.ts"
import type { Driver, Login } from "../upstream/Upstream.ts"
import { type Fault, keyMissing, reasonFor } from "./backOff.ts"
import type { AccountTokens } from "./tokens.ts"

/** What an account test showed last; empty before the first. */
export type TestStatus = "" | "ok" | "failed"

/** A running deletion of all sessions of an account. */
export interface CleanUp {
  readonly done: Deferred.Deferred<void>
  readonly fiber: Fiber.Fiber<void>
}

const secretOf = (secret: Redacted.Redacted<string> | undefined): string | undefined =>
  secret === undefined ? undefined : Redacted.value(secret)

export class PooledAccount {
  readonly key: string
  /** As shown in the admin API. */
  readonly identifier: string
  /** `undefined` for the one account of an upstream that needs none. */
  account: Account | undefined
  /** Made on first need, and made anew for another driver. */
  tokens: AccountTokens | undefined = undefined
  tested: TestStatus = ""
  /** The last fault, until the account has served again. */
  fault: Fault | undefined = undefined
  /** How many faults of that kind came in a row. */
  faults = 0
  /** Rises with each fault, so that attempts that began before one do not count for or against the account again. */
  epoch = 0
  /** Whether sessions were made that `auto_delete` mode `all` is to delete, and with what. */
  unclean: { readonly driver: Driver; readonly token: string | undefined } | undefined = undefined
  cleanUp: CleanUp | undefined = undefined
  #hash: string | undefined = undefined

  constructor(key: string, identifier: string, account: Account | undefined) {
    this.key = key
    this.identifier = identifier
    this.account = account
  }

  /** What stands for the account in logs, traces and usage. */
  get hash(): string {
    this.#hash ??= accountHash(this.key, sha256Hex)
    return this.#hash
  }

  get login(): Login | undefined {
    const account = this.account
    if (account === undefined || (account.email === undefined && account.mobile === undefined)) return undefined
    const password = secretOf(account.password)
    return password === undefined ? undefined : { email: account.email, mobile: account.mobile, password }
  }

  get configuredToken(): string | undefined {
    return secretOf(this.account?.token)
  }

  /** What nobody but the upstream may be told: its names, as they were configured and as they are sent, and its password. */
  get secrets(): ReadonlyArray<string> {
    const { email, mobile } = this.account ?? {}
    return [email?.trim(), mobile, mobile === undefined ? undefined : nationalMobile(mobile), this.login?.password]
      .filter((secret) => secret !== undefined)
  }

  /** It has nothing to log in with: it stands for a server that asks for no key. */
  get isAnonymous(): boolean {
    const token = this.configuredToken
    return this.login === undefined && (token === undefined || token === keyless)
  }

  /** Why a fault keeps it out of rotation, in words for the operator. */
  reasonFor(fault: Fault): string {
    return fault === "refused_login" && this.isAnonymous ? keyMissing : reasonFor(fault)
  }

  /** Counts a fault; the number of that kind in a row. */
  failed(fault: Fault): number {
    this.faults = this.fault === fault ? this.faults + 1 : 1
    this.fault = fault
    this.epoch++
    return this.faults
  }

  /** Forgets the faults. */
  healed(): void {
    this.fault = undefined
    this.faults = 0
  }
}
