/**
 * Logins and tokens of the embedded upstream, which accepts all of them. The scripted provider for tests has its own.
 */
import type { LoginBody } from "./calls.ts"

/** The account and token of a login, or the `biz_code` of its refusal. */
export type LoggedIn = { readonly account: string; readonly token: string } | { readonly bizCode: 2 | 5 }

/** A token that works, or the envelope `code` and HTTP status of its refusal. */
export type Identified = "known" | { readonly code: 40001 | 40002 | 40003; readonly status: number }

/** `now` is in milliseconds. */
export interface Logins {
  readonly logIn: (login: LoginBody, now: number) => LoggedIn
  /** The account of a token, whether or not the token still works. */
  readonly accountOf: (token: string) => string
  readonly identify: (token: string | undefined, now: number) => Identified
}

/** Drops the entries that a map received first until it has at most `max`. */
export const dropOldest = (map: Map<string, unknown>, max: number): void => {
  for (const oldest of map.keys()) {
    if (map.size <= max) return
    map.delete(oldest)
  }
}

/** Tokens that are remembered; the oldest are dropped. */
const maxTokens = 20_000

/** Issues tokens and remembers their accounts. */
export class Tokens<A extends { readonly account: string }> {
  private readonly issued = new Map<string, A>()
  private count = 0

  issue(holder: A): string {
    const token = `reference-token-${++this.count}`
    this.issued.set(token, holder)
    dropOldest(this.issued, maxTokens)
    return token
  }

  get(token: string): A | undefined {
    return this.issued.get(token)
  }

  [Symbol.iterator](): Iterator<[string, A]> {
    return this.issued.entries()
  }
}

/** Accepts every login and every token. A token that was not issued here is an account of its own. */
export class AnyLogin implements Logins {
  private readonly tokens = new Tokens<{ readonly account: string }>()

  logIn({ email, mobile }: LoginBody): LoggedIn {
    const account = email ?? mobile ?? ""
    return { account, token: this.tokens.issue({ account }) }
  }

  accountOf(token: string): string {
    return this.tokens.get(token)?.account ?? token
  }

  identify(token: string | undefined): Identified {
    return token === undefined || token === "" ? { code: 40001, status: 200 } : "known"
  }
}
