/**
 * Where the attempts of a request go, and with whose credential: pure functions of what it has tried, over the targets of its route and the
 * configured accounts.
 */
import type { Caller } from "../accounts/Accounts.ts"
import type { Account } from "../config/Account.ts"
import type { UpstreamConfig } from "../config/GatewayConfig.ts"
import { isOfVendor } from "../contracts/contractOf.ts"
import type { Classification } from "../domain/classifyUpstreamFailure.ts"
import type { Windows } from "../domain/fits.ts"
import { type AlsoOn, nextTry } from "../domain/nextTry.ts"

/** A failed try of a request. */
interface Failed {
  /** Index of the target. */
  readonly target: number
  readonly failure: Classification
}

/** What a request may choose from. */
export interface Choice {
  /** The upstream of each target, in order. */
  readonly upstreams: ReadonlyArray<string>
  /** The windows of the models of the targets, as far as they are known. */
  readonly windows: Windows | undefined
  /** The accounts when the request started. */
  readonly accounts: ReadonlyArray<Pick<Account, "disabled" | "identity" | "upstream">>
  readonly alsoOn: ReadonlyArray<AlsoOn>
  /** The request is pinned to an account. */
  readonly isPinned: boolean
}

/** What a request has tried. */
export interface Tried {
  readonly tries: ReadonlyArray<Failed>
  /** Targets that turned out to have no account for the request, or to be unable to serve it. */
  readonly out: ReadonlySet<number>
  /** Accounts on which this request has failed. */
  readonly avoid: ReadonlySet<string>
  /** Accounts whose token was replaced, once each. */
  readonly refreshed: ReadonlySet<string | undefined>
  /** Attempts repeated on the same server, or on a target that was tried before. */
  readonly retries: number
}

export const nothingTried: Tried = {
  tries: [],
  out: new Set(),
  avoid: new Set(),
  refreshed: new Set(),
  retries: 0
}

/** Where an attempt may go. */
export interface Step {
  /** Indices of targets in order of preference. */
  readonly candidates: ReadonlyArray<number>
  /** The account to lease again, after its token was replaced. */
  readonly stay: string | undefined
  /** What the attempt counts as, unless it goes to another target, which is a failover; `undefined` for the first one. */
  readonly counts: "failovers" | "retries" | undefined
  /** The number of the retry, from 1, before which the request waits; `undefined` if it does not wait. */
  readonly pauses: number | undefined
}

/** A step after a failure, and what the request has tried then. */
interface Next {
  readonly step: Step
  readonly tried: Tried
}

/** A step to targets, as the first one and those to other candidates are. */
export const stepTo = (candidates: ReadonlyArray<number>): Step => ({
  candidates,
  stay: undefined,
  counts: undefined,
  pauses: undefined
})

export const firstStep = ({ upstreams }: Choice): Step => stepTo(upstreams.map((_, index) => index))

export const failedAt = (tried: Tried, target: number, failure: Classification): Tried => ({
  ...tried,
  tries: [...tried.tries, { target, failure }]
})

export const leavingOut = (tried: Tried, targets: ReadonlyArray<number>): Tried => ({
  ...tried,
  out: new Set([...tried.out, ...targets])
})

export const hasTried = ({ tries }: Tried, index: number): boolean => tries.some(({ target }) => target === index)

/** The targets that were not tried yet and may be. */
export const untriedOf = ({ upstreams }: Choice, tried: Tried): ReadonlyArray<number> =>
  upstreams.flatMap((_, index) => tried.out.has(index) || hasTried(tried, index) ? [] : [index])

/** True if the account is the best that a target has, and the request has failed on it: the next target comes first. */
export const hasFailedOn = ({ avoid, tries }: Tried, account: string | undefined, index: number): boolean =>
  account !== undefined && avoid.has(account) && tries.at(-1)?.target === index

/** True if an upstream has at most one account: another attempt would repeat the same request. */
export const hasOneAccount = ({ accounts }: Choice, upstream: string): boolean => {
  const isOne = ({ disabled, upstream: of }: Choice["accounts"][number]) => of === upstream && !disabled
  return accounts.findIndex(isOne) === accounts.findLastIndex(isOne)
}

/** True if the configuration has an account of the upstream on which the request has not failed. */
const hasOtherAccount = (
  { accounts }: Choice,
  { avoid }: Tried,
  upstream: string,
  account: string | undefined
): boolean => {
  const isAvoided = (key: string) => key === account || avoid.has(key)
  return accounts.some((other) => other.upstream === upstream && !other.disabled && !isAvoided(other.identity[0]!))
}

/**
 * The step after a failure on an account, or on none; `undefined` if the request fails. A server that is asked again immediately gets a pause,
 * unless the failure takes the account out of rotation, which has a delay of its own.
 */
export const nextStep = (
  choice: Choice,
  tried: Tried,
  failure: Classification,
  account: string | undefined
): Next | undefined => {
  const { upstreams } = choice
  const last = tried.tries.at(-1)!
  const upstream = upstreams[last.target]!
  const next = nextTry({
    targets: upstreams.length,
    tries: tried.tries,
    hasAccount: upstreams.length === 1 || hasOtherAccount(choice, tried, upstream, account),
    alsoOn: choice.alsoOn,
    windows: choice.windows,
    isPinned: choice.isPinned,
    out: tried.out
  })
  if (next._tag === "end") return undefined
  if (next._tag === "refresh") {
    return {
      step: { ...stepTo([next.target]), stay: account },
      tried: { ...tried, refreshed: new Set([...tried.refreshed, account]) }
    }
  }
  const others = untriedOf(choice, tried).filter((index) => index !== next.target)
  const candidates = [next.target, ...others]
  const isRepeated = next.target === last.target && hasOneAccount(choice, upstream)
  const isTriedAgain = upstreams.length > 1 && next._tag === "target" && hasTried(tried, next.target)
  if (isRepeated || isTriedAgain) {
    const retries = tried.retries + 1
    return {
      step: { ...stepTo(candidates), counts: "retries", pauses: failure.health === "none" ? retries : undefined },
      tried: { ...tried, retries }
    }
  }
  return {
    step: { ...stepTo(candidates), counts: "failovers" },
    tried: account === undefined ? tried : { ...tried, avoid: new Set([...tried.avoid, account]) }
  }
}

/** Whose credential an upstream gets for a request; `undefined` if it takes none that the request has. */
export const credentialFor = (
  caller: Caller,
  style: string | undefined,
  upstream: Pick<UpstreamConfig, "credential" | "driver"> | undefined
): "account" | "login" | undefined => {
  if (upstream === undefined || upstream.credential === "account" || caller._tag === "Direct") return "account"
  const isOwn = caller.login !== undefined && isOfVendor(style, upstream.driver)
  return isOwn ? "login" : upstream.credential === "either" ? "account" : undefined
}
