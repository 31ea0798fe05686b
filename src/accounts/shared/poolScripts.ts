/** Arguments and replies of the pool's scripts: reports (`health.lua`), `status` and `facts`. */
import * as Schema from "effect/Schema"
import type { AccountHealth } from "../../domain/failureRules.ts"
import type { UpstreamFault } from "../../placement/UpstreamCooling.ts"
import type { Share, Used } from "../../usage/Admission.ts"
import { type ShareFields, shareFields } from "../../usage/sharedWindows.ts"
import { isFault } from "../accountHealth.ts"
import { backOff, jitter } from "../backOff.ts"

const text = Schema.String
const count = Schema.Number

/** Lua encodes an empty list as an object. */
const listOf = <S extends Schema.Constraint>(item: S) =>
  Schema.Union([Schema.Array(item), Schema.Record(Schema.String, Schema.Never)])

/** A pool; those that leave the configuration have leases still. */
const StatusOfPool = Schema.Struct({
  name: text,
  leaving: Schema.Boolean,
  in_use: count,
  waiting: count,
  global: count,
  queue: count,
  total: count,
  disabled: count,
  cooling: count,
  out: count,
  spare: count,
  retry: Schema.optionalKey(count),
  /** Milliseconds until the window of its used-up budget ends, and what is used of its budgets. */
  spent: Schema.optionalKey(count),
  used_of_budgets: Schema.optionalKey(text),
  available: Schema.optionalKey(listOf(text)),
  used: Schema.optionalKey(listOf(text)),
  /** Milliseconds until the upstream is probed, and why it is cooled. */
  cooled: Schema.optionalKey(count),
  cause: Schema.optionalKey(text)
})
export type StatusOfPool = typeof StatusOfPool.Type

const PoolStatus = Schema.Struct({
  now: text,
  /** The most slots in use of all pools. */
  global: count,
  /** Waiters, each once. */
  waiting: count,
  pools: listOf(StatusOfPool),
  /** Accounts in rotation whose last test failed; only with lists of accounts. */
  failed_tests: Schema.optionalKey(count),
  nodes: listOf(Schema.Struct({
    id: text,
    version: text,
    started: text,
    beat: text,
    state: text,
    revision: text,
    in_use: count,
    waiting: count
  })),
  waiters: listOf(Schema.Struct({ age: count, style: text, account: text }))
})
export type PoolStatus = typeof PoolStatus.Type

type CountOfPool = "in_use" | "total" | "disabled" | "cooling" | "out" | "spare"

/** A count over all pools; `unknown` without a status. */
export const countOf = (seen: PoolStatus | undefined, name: CountOfPool, unknown = 0): number =>
  seen === undefined ? unknown : asList(seen.pools).reduce((sum, pool) => sum + pool[name], 0)

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(PoolStatus))

/** Reads the reply of `status`. */
export const readStatus = (reply: ReadonlyArray<string>): PoolStatus => decode(reply[0] ?? "")

/** An array of what Lua encoded as a list. */
export const asList = <A>(list: ReadonlyArray<A> | { readonly [key: string]: never } | undefined): ReadonlyArray<A> =>
  Array.isArray(list) ? list : []

/** An account in the store. */
export interface SharedFacts {
  readonly name: string
  readonly state: string
  /** Milliseconds until the account returns or is tried again; `undefined` while it is being tried. */
  readonly left: number | undefined
  readonly inUse: number
  readonly fault: string
  readonly tested: string
  readonly epoch: string
  readonly version: string
  /** As stored: `<version> <time> <encrypted>`. */
  readonly token: string
  /** The windows of its quota (`Quotas.received`). */
  readonly quota: string
  /** Whether a budget of it is used up. */
  readonly isSpent: boolean
  /** What is used of its budgets (`readWindows`); empty without budgets. */
  readonly budgets: string
}

const fields = 12

/** Reads the reply of `facts`. */
export const readFacts = (reply: ReadonlyArray<string>): ReadonlyArray<SharedFacts> =>
  Array.from({ length: Math.floor(reply.length / fields) }, (_, i) => {
    const facts = reply.slice(i * fields, (i + 1) * fields)
    const [name = "", state = "", left, inUse, fault = "", tested = "", epoch = "0", version = "0"] = facts
    const [token = "", quota = "", spent = "", budgets = ""] = facts.slice(8)
    return {
      name,
      state,
      left: left === "inf" ? undefined : Number(left),
      inUse: Number(inUse),
      fault,
      tested,
      epoch,
      version,
      token,
      quota,
      isSpent: spent !== "",
      budgets
    }
  })

/** What an attempt, a login or a try showed of an account; `undefined` in `health` if it worked. */
export interface Verdict {
  readonly health: AccountHealth | undefined
  /** Seconds. */
  readonly retryAfter: number | undefined
}

/** A report about an account, as the scripts take it (`health.lua`). */
export interface AccountReport {
  readonly account: string
  readonly since: string
  readonly verdict: AccountHealth | "ok"
  readonly state: "cooling" | "out" | undefined
  /** The first and the longest delay, in milliseconds. */
  readonly first: number | undefined
  readonly longest: number | undefined
  /** Seconds that the upstream states. */
  readonly retry: number | undefined
  readonly random: number
}

/**
 * What a verdict reports of an account; `undefined` if it says nothing. `since` is the account's epoch at the beginning of the attempt,
 * `always` for a report that counts at any time, or `login` or `try` for the outcome of one. `random` is in [0, 1).
 */
export const accountReport = (
  account: string,
  since: string,
  { health, retryAfter: retry }: Verdict,
  random: number
): AccountReport | undefined => {
  const seen = { account, since, random: jitter * random }
  const plain = { ...seen, state: undefined, first: undefined, longest: undefined, retry: undefined }
  if (health === undefined) return { ...plain, verdict: "ok" }
  if (!isFault(health)) return since === "try" ? { ...plain, verdict: "none" } : undefined
  const { first, longest, longestStated, state } = backOff[health]
  return { ...seen, verdict: health, state, first, longest: retry === undefined ? longest : longestStated, retry }
}

/**
 * A model that may serve a request: its id and name, and until when its server takes no request for it, in Unix milliseconds of the store.
 * `isFailed`: the accounts that the request avoids do not serve it.
 */
export interface NeededModel {
  readonly id: string
  readonly name: string
  readonly until: number
  readonly isFailed: boolean
}

/**
 * What a request needs of an account, as words behind its lease request (`needs.lua`): one of `models`, and what it reserves of budgets.
 * `isBackground`: it leaves to others what upstreams reserve for them.
 */
export const needsWords = (
  models: ReadonlyArray<NeededModel>,
  share: Share | undefined,
  isBackground: boolean
): string => {
  if (models.length === 0 && share === undefined) return ""
  const named = models.map(({ id, isFailed, name, until }) =>
    `${[id, name].map(encodeURIComponent).join(",")},${until},${isFailed ? 1 : 0}`
  )
  const { strict } = share ?? {}
  const shares = share && [shareFields(share), ...(strict === undefined ? [] : [shareFields(strict)])]
  return ` ${named.join(";") || "-"} ${shares?.join(";") ?? "-"} ${isBackground ? 1 : 0}`
}

/** What a try showed of its upstream: `ok`, or a fault. */
export type UpstreamVerdict = "ok" | UpstreamFault

/** A report about the upstream of a lease, as the scripts take it (`cooling.lua`). */
export interface UpstreamReport {
  readonly verdict: UpstreamVerdict
  /** Those before the try. */
  readonly coolings: string
  /** Identifies the request over its tries. */
  readonly request: string
  /** Seconds of `Retry-After`. */
  readonly retry: number | undefined
  readonly random: number
}

/** The end of a lease or a waiter, as `release` takes it. */
export interface LeaseEnd {
  readonly seen: AccountReport | undefined
  readonly upstream: UpstreamReport | undefined
  /** Whether this node can delete the sessions of the account. */
  readonly cleans: boolean
  /** Whether there are sessions to delete once the account has no lease. */
  readonly unclean: boolean
  /** The windows that an answer has stated of the account's quota (`Quotas.received`); empty for none. */
  readonly quota: string
  /** What the turn leaves to the next one of its conversation. */
  readonly memory: readonly [key: string, sealed: string] | undefined
  /** What it has used, of a lease whose budgets were asked. */
  readonly used: { readonly counted: boolean; readonly share: ShareFields } | undefined
}

/** The end of a lease that has shown nothing. */
export const nothingSeen: LeaseEnd = {
  seen: undefined,
  upstream: undefined,
  cleans: false,
  unclean: false,
  quota: "",
  memory: undefined,
  used: undefined
}

/** What a lease has used, as the scripts take it. */
export const usedFields = ({ cost = 0n, counted, tokens }: Used): LeaseEnd["used"] => ({
  counted,
  share: shareFields({ cost, tokens })
})
