/** What a lease gives to its holder: the credential, the account, and what receives what its attempts show. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { bareToken, sentToken } from "../credentials/CredentialSource.ts"
import { secretsOfToken } from "../domain/ownLogin.ts"
import type { Credential, Driver } from "../upstream/Upstream.ts"
import type { AccountWork } from "./AccountWork.ts"
import type { Caller, LeasedAccount, LeasedCredential, Shown } from "./Lease.ts"
import type { ModelLimits } from "./ModelLimits.ts"
import type { PooledAccount } from "./PooledAccount.ts"
import type { Quotas } from "./quota.ts"
import { type AccountTokens, fixedCredential } from "./tokens.ts"
import type { UpstreamTimes } from "./UpstreamTimes.ts"

/** What a lease remembers until it ends: what its sessions are deleted with. */
export class Held {
  readonly upstream: string
  readonly driver: Driver
  /** The token that was handed out last. */
  token: string | undefined
  sessions: ReadonlyArray<string> = []

  constructor(upstream: string, driver: Driver, token: string | undefined) {
    this.upstream = upstream
    this.driver = driver
    this.token = token
  }
}

/** What a lease of a caller begins with. */
export const heldBy = (caller: Caller, upstream: string, driver: Driver): Held =>
  new Held(upstream, driver, caller._tag === "Direct" ? caller.token : undefined)

/** A caller's own token is not refreshed. */
export const ownCredential = ({ driver, token }: Held): LeasedCredential => ({
  ...fixedCredential(token),
  drop: Effect.void,
  isRenewable: false,
  secrets: () => [...(token === undefined ? [] : secretsOfToken(token)), ...driver.secrets.map(Redacted.value)]
})

/** An account's credential for one lease; records the token that it hands out. */
export class AccountCredential implements LeasedCredential {
  readonly #account: PooledAccount
  readonly #tokens: AccountTokens
  readonly #held: Held
  constructor(account: PooledAccount, tokens: AccountTokens, held: Held) {
    this.#account = account
    this.#tokens = tokens
    this.#held = held
  }

  get token(): Credential["token"] {
    return Effect.mapEager(this.#tokens.current, (token) => this.#record(token))
  }

  renew(stale: string | undefined): ReturnType<Credential["renew"]> {
    const refused = stale === undefined || this.#account.source === undefined ? stale : bareToken(stale)
    return Effect.map(this.#tokens.renew(refused), (token) => this.#record(token))
  }

  #record(token: string | undefined): string | undefined {
    this.#held.token = token
    return sentToken(this.#account.source, token)
  }

  get isRenewable(): boolean {
    return this.#account.source !== undefined || this.#held.driver.capabilities.login !== undefined
  }

  get drop(): Effect.Effect<void> {
    return Effect.sync(() => this.#tokens.drop(this.#held.token))
  }

  secrets(): ReadonlyArray<string> {
    const { driver, token } = this.#held
    const sent = sentToken(this.#account.source, token)
    return [
      ...(sent === undefined ? [] : secretsOfToken(sent)),
      ...this.#account.secrets,
      ...driver.secrets.map(Redacted.value)
    ]
  }
}

/** An account as its leases name it. */
export const leasedAccount = (account: PooledAccount): LeasedAccount => ({
  key: account.key,
  identifier: account.identifier,
  hash: account.hash,
  isKeyless: account.isAnonymous,
  organization: () => account.organization,
  learnOrganization: (name) => {
    account.saidOrganization = name
  }
})

/** What learns from attempts. */
interface Learning {
  readonly modelLimits: ModelLimits
  readonly quotas: Quotas
  readonly times: UpstreamTimes
}

/** What the attempts on a lease of an account, or of a caller's own token, show of it. `work` counts what the account does. */
export const shownOf = (
  { modelLimits, quotas, times }: Learning,
  account: PooledAccount | undefined,
  work: AccountWork | undefined,
  { driver, upstream }: Held,
  model: string | undefined
): Shown => {
  const key = account?.key
  const target = { upstream, model: model ?? "" }
  return {
    began: () => {
      times.began(upstream)
      work?.began()
    },
    answered: (first) => times.answered(upstream, first),
    failed: (failureClass, message) => {
      times.failed(upstream)
      work?.failed(failureClass, message)
    },
    worked: (took) => {
      modelLimits.answered(target)
      quotas.answered(key, target.model, took)
    },
    saw: (headers, failure, event) => quotas.seen(key, headers, target.model, failure, event),
    paused: (seconds) => {
      if (key !== undefined) quotas.pauseModel(key, target.model, seconds)
    },
    limited: (retryAfter) => modelLimits.limited(target, driver, retryAfter)
  }
}
