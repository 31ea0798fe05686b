/**
 * What of a server's answers reaches the caller of one request: errors word for word, and rate-limit headers. Both are facts of an account,
 * so that they depend on how many accounts could answer.
 */
import type { Caller, Lease } from "../accounts/Accounts.ts"
import { isDirect } from "../accounts/Lease.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import { countEnabled } from "../config/upstreamAccounts.ts"
import { protocolFamily } from "../contracts/drivers.ts"
import type { ErrorFamily } from "../domain/errorBody.ts"
import type { FailureContext } from "../domain/failureRules.ts"
import { KnownSecrets } from "../domain/hideSecrets.ts"
import type { Passing } from "../domain/passedError.ts"
import { secretsOfUpstream } from "../upstream/serverSecrets.ts"
import type { Driver } from "../upstream/Upstream.ts"

/** An app's driver has any name, and may have a contract. */
const familyOf = ({ contract, name }: Driver): ErrorFamily | undefined =>
  protocolFamily(name) ?? protocolFamily(contract ?? "")

/** The words of a request's servers. */
export class ServerWords {
  readonly #config: GatewayConfig
  readonly #family: ErrorFamily | undefined
  readonly #hasKey: boolean
  readonly #isPinned: boolean
  readonly #upstreams: ReadonlyArray<string>

  /** `upstreams` has the upstream of each target, and `family` the form of the caller's errors. */
  constructor(
    config: GatewayConfig,
    caller: Caller,
    upstreams: ReadonlyArray<string>,
    family: ErrorFamily | undefined
  ) {
    this.#hasKey = caller._tag === "Managed"
    this.#isPinned = caller._tag === "Managed" && caller.target !== undefined
    this.#config = config
    this.#upstreams = upstreams
    this.#family = family
  }

  /** Exactly one account could answer: also a caller's own login. An upstream without accounts counts as one. */
  #isOnly(lease: Lease): boolean {
    const upstreams = this.#upstreams
    if (isDirect(lease) || this.#isPinned) return true
    return upstreams.every((upstream) => upstream === upstreams[0]) &&
      countEnabled(this.#config.accounts, upstreams[0] ?? "") <= 1
  }

  /** The upstream's name for messages, and whether the caller has a key. */
  naming({ upstream }: Pick<Lease, "upstream">): Pick<FailureContext, "hasKey" | "only" | "upstream"> {
    const isShown = this.#config.route_table.showsUpstreams
    return {
      upstream: isShown ? upstream : undefined,
      only: isShown ? undefined : upstream,
      hasKey: this.#hasKey
    }
  }

  /** How an error of the lease's server may reach the caller; `undefined` if the caller gets the gateway's own. */
  passing(lease: Lease): Passing | undefined {
    const { driver, upstream } = lease
    if (this.#family === undefined || familyOf(driver) !== this.#family) return undefined
    if (this.#config.upstreams.get(upstream)?.errors === "own") return undefined
    const ofLease = new KnownSecrets(lease.credential.secrets())
    const ofUpstream = secretsOfUpstream(this.#config, upstream)
    return {
      isOwnLogin: isDirect(lease),
      isOnly: this.#isOnly(lease),
      hide: (text) => ofLease.hide(ofUpstream.hide(text))
    }
  }

  /** What the caller gets of the rate-limit headers of an answer; `undefined` without any. */
  limits(
    lease: Lease,
    stated: Readonly<Record<string, string>> | undefined
  ): Readonly<Record<string, string>> | undefined {
    if (stated === undefined) return undefined
    const { rate_limit_headers: when = "auto" } = this.#config.upstreams.get(lease.upstream) ?? {}
    if (when === "never" || (when === "auto" && !this.#isOnly(lease))) return undefined
    const secrets = secretsOfUpstream(this.#config, lease.upstream)
    return Object.fromEntries(Object.entries(stated).map(([name, value]) => [name, secrets.hide(value)]))
  }
}
