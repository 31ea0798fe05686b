/**
 * What the pool knows of one account beside its slots: identity, credentials, faults and clean-ups.
 *
 * The object lives as long as the account is configured. A change of its credentials or of the upstream replaces it.
 */
import type * as Deferred from "effect/Deferred"
import type * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import { type Account, keyless } from "../config/Account.ts"
import { secretsOfCredential } from "../config/credentials.ts"
import { sha256Hex } from "../config/json.ts"
import { type CredentialFacts, type TokenMaker, unusedFacts } from "../credentials/CredentialSource.ts"
import { tokenMakerOf } from "../credentials/sources.ts"
import { accountHash, nationalMobile } from "../domain/identity.ts"
import type { SlotState } from "../placement/PoolState.ts"
import { driverThrough } from "../upstream/connection.ts"
import type { Driver, Login } from "../upstream/Upstream.ts"
import type { Drivers } from "../upstream/Upstreams.ts"
import type { AccountQuota } from "./AccountQuota.ts"
import type { AccountWork } from "./AccountWork.ts"
import { type Fault, keyMissing, proxyFailed, reasonFor } from "./backOff.ts"

/** The result of the last account test; empty before the first. */
export type TestStatus = "" | "ok" | "failed"

/** A running deletion of all sessions of an account. */
interface CleanUp {
  readonly done: Deferred.Deferred<void>
  readonly fiber: Fiber.Fiber<void>
}

const secretOf = (secret: Redacted.Redacted<string> | undefined): string | undefined =>
  secret === undefined ? undefined : Redacted.value(secret)

export class PooledAccount {
  /** The name of its upstream, which its pool has too. */
  readonly upstream: string
  readonly key: string
  /** As in the admin API. */
  readonly identifier: string
  /** `undefined` for the one account of an upstream that needs no credential. */
  account: Account | undefined
  tested: TestStatus = ""
  /** What it has done in this process; made at its first use or test. */
  work: AccountWork | undefined = undefined
  /** What its server has said of its quota; made at the first word of it. */
  quota: AccountQuota | undefined = undefined
  /** The last fault, until the account has served again. */
  fault: Fault | undefined = undefined
  /** The faults of that kind in a row. */
  faults = 0
  /** Rises with each fault; identifies attempts that began before one. */
  epoch = 0
  /** What the server has said of the account's organisation. */
  saidOrganization: string | undefined = undefined
  /** Set when leases have made sessions that `auto_delete` mode `all` must delete: what to delete them with. */
  unclean: { readonly driver: Driver; readonly token: string | undefined } | undefined = undefined
  cleanUp: CleanUp | undefined = undefined
  /** What its credential does, once its tokens are made. */
  credential: (() => CredentialFacts | undefined) | undefined = undefined
  #heldBack: { readonly state: "cooling" | "out"; readonly at: number } | undefined = undefined
  #source: TokenMaker | undefined = undefined
  #hash: string | undefined = undefined
  #isAnonymous: boolean | undefined = undefined
  /** The driver over the account's own proxy, and the upstream's driver that it was made of. */
  #own: { readonly of: Driver; readonly driver: Driver } | undefined = undefined

  constructor(upstream: string, key: string, identifier: string, account: Account | undefined) {
    this.upstream = upstream
    this.key = key
    this.identifier = identifier
    this.account = account
  }

  /** The operator's note; `null` without one. */
  get note(): string | null {
    return this.account?.note || null
  }

  /** Stands for the account in logs, traces and usage. */
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

  /** What issues the tokens of its credential; `undefined` without one. */
  get source(): TokenMaker | undefined {
    const settings = this.account?.credential
    return settings === undefined ? undefined : this.#source ??= tokenMakerOf(settings)
  }

  get credentialFacts(): CredentialFacts | undefined {
    return this.source && (this.credential?.() ?? unusedFacts(this.source))
  }

  get configuredToken(): string | undefined {
    return secretOf(this.account?.token)
  }

  /** Secrets for the upstream only: the names, as configured and as sent, and the password. */
  get secrets(): ReadonlyArray<string> {
    const { email, mobile } = this.account ?? {}
    const named = [
      email?.trim(),
      mobile,
      mobile === undefined ? undefined : nationalMobile(mobile),
      this.login?.password
    ]
    return [...named.filter((secret) => secret !== undefined), ...secretsOfCredential(this.account?.credential)]
  }

  /** Whether the account has no credential: it stands for a server that needs no key. Computed once, as it is read for every lease. */
  get isAnonymous(): boolean {
    return this.#isAnonymous ??= this.login === undefined && this.source === undefined &&
      (this.configuredToken ?? keyless) === keyless
  }

  /** The driver of the account's upstream, over the account's own proxy if it has one. The same object until the upstream's changes. */
  driverIn(drivers: Drivers): Driver | undefined {
    const driver = drivers.get(this.upstream)
    const proxy = this.account?.proxy
    if (driver === undefined || proxy === undefined) return driver
    if (this.#own?.of !== driver) this.#own = { of: driver, driver: driverThrough(driver, proxy) }
    return this.#own.driver
  }

  /** The reason of a fault, in words for operators. */
  reasonFor(fault: Fault): string {
    const failure = fault === "refused_login" ? this.credential?.()?.failure : undefined
    if (failure !== undefined) return `its credential failed: ${failure.message}`
    if (fault === "refused_login" && this.account?.proxy !== undefined) return proxyFailed
    return fault === "refused_login" && this.isAnonymous ? keyMissing : reasonFor(fault)
  }

  /** Names those whose seals it opens: what the configuration says, else what the server has said lately. */
  get organization(): string | undefined {
    return this.account?.organization ?? this.saidOrganization
  }

  /** Counts a fault; returns the faults of that kind in a row. */
  failed(fault: Fault): number {
    this.faults = this.fault === fault ? this.faults + 1 : 1
    this.fault = fault
    this.epoch++
    return this.faults
  }

  /** Notes that it is held back in a state from a time on, in Unix milliseconds. More faults in the state change nothing. */
  heldBack(state: "cooling" | "out", at: number): void {
    if (this.#heldBack?.state !== state) this.#heldBack = { state, at }
  }

  /** Notes that it is in rotation. */
  broughtBack(): void {
    this.#heldBack = undefined
  }

  /** Since when it is in a state, in Unix milliseconds; `null` in rotation, and where this process has not seen it leave. */
  heldBackSince(state: SlotState): number | null {
    // Another node of a store may have brought it back.
    if (state === "ready") this.broughtBack()
    return this.#heldBack?.state === state ? this.#heldBack.at : null
  }

  /** Forgets the faults. */
  healed(): void {
    this.fault = undefined
    this.faults = 0
  }
}
