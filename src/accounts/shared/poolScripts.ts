/** Arguments and replies of the pool's scripts: reports (`health.lua`), `status` and `facts`. */
import * as Schema from "effect/Schema"
import type { AccountHealth } from "../../domain/failureRules.ts"
import type { Share, Used } from "../../usage/Admission.ts"
import { shareFields } from "../../usage/sharedWindows.ts"
import { isFault } from "../accountHealth.ts"
import { backOff, jitter } from "../backOff.ts"
import type { UpstreamFault } from "../UpstreamCooling.ts"

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

/** A count over all pools. */
export const countOf = ({ pools }: PoolStatus, name: CountOfPool): number =>
  asList(pools).reduce((sum, pool) => sum + pool[name], 0)

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

/** The arguments of a report without content. */
export const noVerdict: ReadonlyArray<string> = ["", "", "", "", "", "", "", ""]

/**
 * The arguments of a report. `since` is the account's epoch at the beginning of the attempt, `always` for a report that counts
 * at any time, or `login` or `try` for the outcome of one. `random` is in [0, 1).
 */
export const verdictArguments = (
  name: string,
  since: string,
  { health, retryAfter }: Verdict,
  random: number
): ReadonlyArray<string> => {
  if (health === undefined) return [name, since, "ok", "", "", "", "", ""]
  if (!isFault(health)) {
    return since === "try" ? [name, since, "none", "", "", "", "", String(jitter * random)] : noVerdict
  }
  const { first, longestStated, state } = backOff[health]
  const longest = retryAfter === undefined ? backOff[health].longest : longestStated
  const retry = retryAfter === undefined ? "" : String(retryAfter)
  return [name, since, health, state, String(first), String(longest), retry, String(jitter * random)]
}

/** What a request may use of budgets, as a target of it has it (`budgets.lua`). */
export const sharesArgument = (share: Share): ReadonlyArray<number> => [
  ...shareFields(share),
  ...(share.strict === undefined ? [] : shareFields(share.strict))
]

/** The argument of `release` that settles what was reserved of budgets. */
export const usedArgument = ({ cost = 0n, counted, tokens }: Used): string =>
  `used ${counted ? 1 : 0} ${shareFields({ cost, tokens }).join(" ")}`

/** What a try showed of its upstream: `ok`, or a fault. */
export type UpstreamVerdict = "ok" | UpstreamFault

/**
 * The arguments of a report about an upstream, which follow those about the account. `coolings` are those before the try. `request`
 * identifies the request over its tries, `retryAfter` is in seconds, and `random` in [0, 1).
 */
export const upstreamArguments = (
  verdict: UpstreamVerdict,
  coolings: string,
  request: string,
  retryAfter: number | undefined,
  random: number
): ReadonlyArray<string> => [
  verdict,
  coolings,
  request,
  retryAfter === undefined ? "" : String(retryAfter),
  String(jitter * random)
]
