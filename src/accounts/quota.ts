/**
 * What this process knows of the quotas of accounts, and which accounts a request leaves out because of them.
 *
 * A used-up window of a whole account takes the account out of rotation (`accountHealth.ts`). One of a model leaves the account to its
 * other models. `Lease.ts` says when windows are learned.
 */
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import type { Notices } from "../config/Notices.ts"
import {
  countsModel,
  decodeWindows,
  pausesOf,
  type QuotaWindow,
  windowAt,
  windowsOfError,
  windowsOfEvent,
  windowsOfHeaders
} from "../domain/quota.ts"
import { triedAfter } from "../domain/statedTime.ts"
import { formatTimestamp } from "../domain/time.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import { AccountQuota } from "./AccountQuota.ts"
import type { PooledAccount } from "./PooledAccount.ts"

/** What an answer says of an account's quota. */
export interface QuotaSeen {
  /** Seconds until what is used up has something left again; `undefined` if nothing is. */
  readonly seconds: number | undefined
  /** Only the model that was asked is out. */
  readonly isOfModel: boolean
}

const nothingSeen: QuotaSeen = { seconds: undefined, isOfModel: false }

/** A model of an upstream. */
export interface TargetModel {
  readonly upstream: string
  readonly model: string
}

export class Quotas {
  readonly #accountOf: (key: string) => PooledAccount | undefined
  readonly #config: () => GatewayConfig
  readonly #now: () => number
  readonly #notices: Notices | undefined
  /** Accounts that were out for some of their models when their windows changed last. */
  readonly #paused = new WeakSet<PooledAccount>()
  /** Is called when the windows of an account change, if set. */
  changed: ((account: PooledAccount) => void) | undefined

  /** `now` is in Unix milliseconds. */
  constructor(
    accountOf: (key: string) => PooledAccount | undefined,
    config: () => GatewayConfig,
    now: () => number,
    notices: Notices | undefined
  ) {
    this.#accountOf = accountOf
    this.#config = config
    this.#now = now
    this.#notices = notices
  }

  /** Whether a key leaves what upstreams reserve for others. */
  isBackground(key: string | undefined): boolean {
    return key !== undefined && this.#config().key_records.get(key)?.class === "background"
  }

  /** A model of an upstream as windows count it: by its id, and by its name at the server. */
  asked(upstream: string, id: string): { readonly id: string; readonly name: string } {
    const model = this.#config().upstreams.get(upstream)?.models.find((model) => model.id === id)
    return { id, name: model?.model ?? id }
  }

  /** Learns what the headers of an answer, its failure, and an event of its stream say of an account's quota. */
  seen(
    key: string | undefined,
    headers: Readonly<Record<string, string>> | undefined,
    model: string,
    failure: UpstreamFailure | undefined,
    event: unknown
  ): QuotaSeen {
    const body = failure?.body
    if (key === undefined || (headers === undefined && body === undefined && event === undefined)) return nothingSeen
    const now = this.#now()
    return this.#learned(key, model, now, [
      ...headers === undefined ? [] : windowsOfHeaders(headers, model, now),
      ...windowsOfError(body, model, now),
      ...windowsOfEvent(event, now)
    ])
  }

  #learned(key: string, model: string, now: number, windows: ReadonlyArray<QuotaWindow>): QuotaSeen {
    const account = windows.length === 0 ? undefined : this.#accountOf(key)
    if (account === undefined) return nothingSeen
    const quota = account.quota ??= new AccountQuota()
    for (const window of windows) {
      quota.learn(window)
      publishWindow(this.#notices, account, window)
    }
    this.#note(account)
    const pauses = pausesOf(windows, this.asked(account.upstream, model), now)
    const until = pauses.account === 0 ? pauses.model : pauses.account
    return until === 0 ? nothingSeen : { seconds: (until - now) / 1_000, isOfModel: pauses.account === 0 }
  }

  /** Leaves a model of an account alone for so many seconds. One of its windows is used up until then, or a wait without a window. */
  pauseModel(key: string, model: string, seconds: number): void {
    const account = this.#accountOf(key)
    if (account === undefined) return
    const now = this.#now()
    const until = Math.ceil(now + seconds * 1_000)
    const quota = account.quota ??= new AccountQuota()
    const out = this.#outFor(account, model, now)
    for (const window of out) {
      if (window.room_at >= until) continue
      quota.learn({ ...window, room_at: until, resets_at: Math.max(until, window.resets_at), seen_at: now })
    }
    if (out.length === 0) {
      const of = { window: "retry_after", model, limit: null, remaining: null }
      quota.learn({ ...of, used: 1, status: "exhausted", resets_at: until, room_at: until, seen_at: now })
    }
    this.#note(account)
  }

  /**
   * Learns that a request for a model was answered, which took so many milliseconds. What is used up by what its server said before the
   * request began has something left again.
   */
  answered(key: string | undefined, model: string, took: number): void {
    const account = key === undefined ? undefined : this.#accountOf(key)
    if (account === undefined || !this.#paused.has(account)) return
    const now = this.#now()
    for (const window of this.#outFor(account, model, now)) {
      if (window.seen_at > now - took) continue
      account.quota!.learn({ ...window, status: "low", room_at: now, seen_at: now })
      this.#note(account)
    }
  }

  /** Lets the request that has got an account be the only one for an hour that tries a model which is out for longer. */
  tries(key: string | undefined, { model }: TargetModel): void {
    const account = key === undefined ? undefined : this.#accountOf(key)
    if (account === undefined || !this.#paused.has(account)) return
    const now = this.#now()
    for (const window of this.#outFor(account, model, now)) {
      account.quota!.learn({ ...window, seen_at: now })
      this.#note(account)
    }
  }

  /** The used-up windows that keep a model of an account out. */
  #outFor(account: PooledAccount, model: string, now: number): ReadonlyArray<QuotaWindow> {
    const asked = this.asked(account.upstream, model)
    return (account.quota?.list() ?? []).filter((window) =>
      window.model !== null && window.status === "exhausted" && window.room_at > now && countsModel(window, asked)
    )
  }

  /** Learns what the store says of an account's windows: keys and windows with `;` between. */
  received(account: PooledAccount, text: string): void {
    if (text === "") return
    for (const window of decodeWindows(text)) (account.quota ??= new AccountQuota()).learn(window, true)
    this.#note(account)
  }

  /** Takes the windows of an account that were known before this process began, without those that are over. Their events were sent then. */
  restored(account: PooledAccount, windows: ReadonlyArray<QuotaWindow>): void {
    const now = this.#now()
    for (const window of windows) {
      if (window.resets_at <= now) continue
      const quota = account.quota ??= new AccountQuota()
      quota.learn(window)
      const { subject, type, until } = noticeOf(account, window)
      if (type !== undefined && until !== undefined) this.#notices?.known(type, subject, until)
    }
    if (account.quota !== undefined) this.#mark(account)
  }

  /** Forgets the windows of an account. */
  forget(account: PooledAccount): void {
    account.quota = undefined
    this.#paused.delete(account)
    this.changed?.(account)
  }

  /** The windows of an account as they are now. */
  windowsOf(account: PooledAccount): ReadonlyArray<QuotaWindow> {
    const now = this.#now()
    return Array.from(account.quota?.list() ?? [], (window) => windowAt(window, now))
  }

  /** Milliseconds for which an account is out for a model of its upstream; 0 if it may serve the model. */
  waitAt(account: PooledAccount, { model, upstream }: TargetModel, isBackground = false): number {
    if (!isBackground && !this.#paused.has(account)) return 0
    const now = this.#now()
    const windows = account.quota?.list() ?? []
    const asked = this.asked(upstream, model)
    const reserve = isBackground ? this.#config().upstreams.get(upstream)?.reserve ?? 0 : 0
    const pause = pausesOf(windows.map(untilTried), asked, now).model
    return Math.max(0, Math.max(pause, reservedUntil(windows, asked, reserve, now)) - now)
  }

  #note(account: PooledAccount): void {
    this.#mark(account)
    this.changed?.(account)
  }

  #mark(account: PooledAccount): void {
    if (hasModelOut(account, this.#now())) this.#paused.add(account)
    else this.#paused.delete(account)
  }
}

/** The lengths of windows that reset in one step. Others refill steadily, and their reset moves with each answer. */
const fixedWindow = /^(?:\d+[hdm]|day)/

const eventTypes = { ok: undefined, low: "quota.low", exhausted: "quota.exhausted" } as const

/** The event of a window; `until` is its end, and absent for one that refills steadily. */
const noticeOf = ({ hash }: PooledAccount, { model, resets_at, status, window }: QuotaWindow) => ({
  type: eventTypes[status],
  subject: `${hash} ${window} ${model ?? ""}`,
  // A countdown in whole seconds names times that differ by seconds.
  until: fixedWindow.test(window) ? Math.round(resets_at / 60_000) * 60_000 : undefined
})

/** Publishes that a window of an account's quota is low or used up: once for the window, or once a minute for one that refills steadily. */
const publishWindow = (notices: Notices | undefined, account: PooledAccount, window: QuotaWindow): void => {
  const wanted = eventTypes[window.status]
  if (wanted === undefined || notices?.wants(wanted) !== true) return
  const { subject, until } = noticeOf(account, window)
  const { hash, note, upstream } = account
  const { limit, model, remaining, resets_at, used: share } = window
  const data = {
    account: hash,
    note,
    upstream,
    window: window.window,
    model,
    limit,
    remaining,
    share,
    resets_at: formatTimestamp(resets_at)
  }
  notices.publish(wanted, subject, data, until)
}

/** Until when windows leave nothing but their reserve for a model, in Unix milliseconds; 0 while they leave more. */
const reservedUntil = (
  windows: ReadonlyArray<QuotaWindow>,
  asked: { readonly id: string; readonly name: string },
  reserve: number,
  now: number
): number => {
  if (reserve === 0) return 0
  const most = 1 - reserve
  let until = 0
  for (const window of windows) {
    const { resets_at, room_at, seen_at, used } = window
    if (used < most || resets_at <= now || !countsModel(window, asked)) continue
    // One that refills steadily is used less by and by.
    const isSteady = room_at < resets_at && used > 0
    until = Math.max(until, isSteady ? Math.ceil(resets_at - (most / used) * (resets_at - seen_at)) : resets_at)
  }
  return until > now ? until : 0
}

/** A window as it keeps requests away: what its server said an hour ago is tried by one request. */
const untilTried = (window: QuotaWindow): QuotaWindow => ({
  ...window,
  room_at: Math.min(window.room_at, window.seen_at + triedAfter)
})

const hasModelOut = (account: PooledAccount, now: number): boolean => {
  for (const { model, room_at, status } of account.quota?.list() ?? []) {
    if (model !== null && status === "exhausted" && room_at > now) return true
  }
  return false
}
