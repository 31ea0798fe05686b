/**
 * The callers of the scripted provider: its accounts, and the tokens that their logins received.
 */
import type { LoginBody } from "../contracts/session/readRequest.ts"

/** An account that the provider knows. */
export interface KnownAccount {
  readonly email?: string | undefined
  /** National digits, as the protocol sends them. */
  readonly mobile?: string | undefined
  readonly password: string
  readonly suspended?: boolean | undefined
}

export interface IdentityOptions {
  /** The accounts that may log in; by default every login succeeds, with any password. */
  readonly accounts?: ReadonlyArray<KnownAccount> | undefined
  /** Accepts tokens that were not issued here; by default if every login succeeds. */
  readonly anyToken?: boolean | undefined
  /** Milliseconds after which a token expires; by default never. */
  readonly tokenLifetime?: number | undefined
  /** HTTP status of a refused token (200). */
  readonly refusedTokenStatus?: number | undefined
}

/** The token of a login, or the `biz_code` of its refusal. */
export type LoggedIn = { readonly token: string } | { readonly bizCode: 2 | 5 }

/** A token that works, or the envelope `code` and HTTP status of its refusal. */
export type Identified = "known" | { readonly code: 40001 | 40002 | 40003; readonly status: number }

/** Drops the entries that a map received first until it has at most `max`. */
export const dropOldest = (map: Map<string, unknown>, max: number): void => {
  for (const oldest of map.keys()) {
    if (map.size <= max) return
    map.delete(oldest)
  }
}

/** Tokens that are remembered; the oldest are dropped. */
const maxTokens = 20_000

/** Who a token was issued to, and when. */
interface Issued {
  readonly account: string
  readonly issuedAt: number
}

const identityOf = (login: { readonly email?: string | undefined; readonly mobile?: string | undefined }): string =>
  login.email ?? login.mobile ?? ""

export class Identities {
  private readonly known: ReadonlyMap<string, KnownAccount> | undefined
  private readonly anyToken: boolean
  private readonly lifetime: number
  private readonly status: number
  private readonly tokens = new Map<string, Issued>()
  private issued = 0
  private readonly revoked = new Set<string>()
  private readonly suspended = new Set<string>()

  constructor({ accounts, anyToken, refusedTokenStatus, tokenLifetime }: IdentityOptions) {
    this.known = accounts === undefined
      ? undefined
      : new Map(accounts.map((account) => [identityOf(account), account]))
    this.anyToken = anyToken ?? accounts === undefined
    this.lifetime = tokenLifetime ?? Infinity
    this.status = refusedTokenStatus ?? 200
    for (const account of accounts ?? []) if (account.suspended === true) this.suspended.add(identityOf(account))
  }

  /** `now` is in milliseconds. */
  logIn({ account, password }: LoginBody, now: number): LoggedIn {
    if (this.known !== undefined && this.known.get(account)?.password !== password) return { bizCode: 2 }
    if (this.suspended.has(account)) return { bizCode: 5 }
    const token = `reference-token-${++this.issued}`
    this.tokens.set(token, { account, issuedAt: now })
    dropOldest(this.tokens, maxTokens)
    return { token }
  }

  /** The account of a token, whether or not the token still works. */
  accountOf(token: string): string {
    return this.tokens.get(token)?.account ?? token
  }

  identify(token: string, now: number): Identified {
    const refuse = (code: 40001 | 40002 | 40003) => ({ code, status: this.status })
    if (token === "") return refuse(40001)
    const issued = this.tokens.get(token)
    if (this.revoked.has(token)) return refuse(40003)
    if (issued === undefined) return this.anyToken ? "known" : refuse(40002)
    return this.suspended.has(issued.account) || now - issued.issuedAt >= this.lifetime ? refuse(40003) : "known"
  }

  /** Ends the tokens of an account, or one token, or all issued tokens. */
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
