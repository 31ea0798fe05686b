/**
 * Who may call the reference upstream: accounts, and the tokens that their logins were given.
 */
import { dropOldest } from "./dropOldest.ts"
import type { KnownAccount, ReferenceOptions } from "./Options.ts"

interface Token {
  readonly account: string
  readonly issuedAt: number
}

/** The account behind a token, or the envelope `code` of the refusal. */
export type Identified = { readonly account: string } | { readonly code: 40001 | 40002 | 40003 }

/** The account that a login gives a token for, or the `biz_code` of the refusal. */
export type LoggedIn = { readonly account: string; readonly token: string } | { readonly bizCode: 2 | 5 }

/** The most tokens that are remembered; the oldest go first. */
const maxTokens = 20_000

const identityOf = (login: { readonly email?: string | undefined; readonly mobile?: string | undefined }): string =>
  login.email ?? login.mobile ?? ""

export class Identities {
  private readonly known: ReadonlyMap<string, KnownAccount> | undefined
  private readonly anyToken: boolean
  private readonly lifetime: number
  private readonly tokens = new Map<string, Token>()
  private readonly revoked = new Set<string>()
  private readonly suspended = new Set<string>()
  private issued = 0

  constructor(options: ReferenceOptions) {
    this.known = options.accounts === undefined
      ? undefined
      : new Map(options.accounts.map((account) => [identityOf(account), account]))
    this.anyToken = options.anyToken ?? options.accounts === undefined
    this.lifetime = options.tokenLifetime ?? Infinity
    for (const account of options.accounts ?? []) {
      if (account.suspended === true) this.suspended.add(identityOf(account))
    }
  }

  logIn(
    login: { readonly email?: string | undefined; readonly mobile?: string | undefined; readonly password: string },
    now: number
  ): LoggedIn {
    const account = identityOf(login)
    if (this.known !== undefined && this.known.get(account)?.password !== login.password) return { bizCode: 2 }
    if (this.suspended.has(account)) return { bizCode: 5 }
    const token = `reference-token-${++this.issued}`
    this.tokens.set(token, { account, issuedAt: now })
    dropOldest(this.tokens, maxTokens)
    return { account, token }
  }

  /** The account that a token stands for, whether or not it still holds. */
  accountOf(token: string): string {
    return this.tokens.get(token)?.account ?? token
  }

  identify(token: string | undefined, now: number): Identified {
    if (token === undefined || token === "") return { code: 40001 }
    const issued = this.tokens.get(token)
    if (issued === undefined) {
      if (this.revoked.has(token)) return { code: 40003 }
      return this.anyToken ? { account: token } : { code: 40002 }
    }
    const ended = this.revoked.has(token) || this.suspended.has(issued.account) ||
      now - issued.issuedAt >= this.lifetime
    return ended ? { code: 40003 } : { account: issued.account }
  }

  /** Ends the tokens of an account, or one token, or all that were given out. */
  revoke(accountOrToken: string | undefined): void {
    if (accountOrToken !== undefined) this.revoked.add(accountOrToken)
    for (const [token, { account }] of this.tokens) {
      if (accountOrToken === undefined || account === accountOrToken) this.revoked.add(token)
    }
  }

  suspend(account: string, suspended: boolean): void {
    if (suspended) this.suspended.add(account)
    else this.suspended.delete(account)
  }
}
